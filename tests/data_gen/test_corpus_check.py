"""Checking a corpus, reporting on it, and dropping what was heard wrongly."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.data_gen.corpora import CorpusWriter, read_corpus
from beamless.data_gen.corpus_check import check_corpus, corpus
from beamless.data_gen.report import clipped_share, measure, report, worse_than
from beamless.inference.errors import BeamlessError


@pytest.fixture
def made(tmp_path, corpora):
    """A complete corpus of three tones; ``u1`` is clipped."""
    with CorpusWriter(tmp_path / "made", {"stage": "test"}) as writer:
        for number in range(3):
            tone = corpora.tone(1.0)
            samples = np.clip(tone, -0.1, 0.1) if number == 1 else tone
            text = f"good morning number {number}"
            writer.add(f"u{number}", samples, 16_000, text, "ann", "tones", "CC0", voice="v")
        writer.finish()
    return tmp_path / "made"


# Check


def test_a_sound_corpus_gets_a_summary(made):
    summary = check_corpus(made)
    assert "sound" in summary
    assert "3 utterances, 0.00 h, 1 speakers known" in summary
    assert "licences: CC0 (3)" in summary


def test_a_corpus_from_elsewhere_is_checked_without_a_marker(tmp_path, corpora):
    corpora.write(tmp_path, [{"file_name": "a.ogg"}, {"file_name": "b.wav"}])
    assert "2 utterances" in check_corpus(tmp_path)


def test_faults_are_counted_and_the_first_five_named(tmp_path, corpora):
    rows = [{"id": "twice", "file_name": f"{n}.wav"} for n in range(8)]
    corpora.write(tmp_path, rows)
    with pytest.raises(BeamlessError) as fault:
        check_corpus(tmp_path)
    said = str(fault.value)
    assert "has 7 faults: " in said
    assert said.count("is that of line 1") == 5
    assert said.endswith("and 2 more")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / "_COMPLETE").unlink(), "it is unfinished"),
        (lambda f: (f / "_COMPLETE").write_text("{", encoding="utf-8"), "cannot be read"),
        (lambda f: edit(f, "u0", text="other"), "was changed after"),
        (lambda f: edit(f, "u0", duration=2.0), "u0: 1.00 s of audio, but a duration of 2.00 s"),
        (lambda f: edit(f, "u0", file_name="../x.flac"), "line 1: '../x.flac' is not a path"),
        (lambda f: audio(f, "u0").unlink(), "is missing"),
        (lambda f: audio(f, "u0").write_bytes(b"no flac"), "u0: audio that cannot be read"),
        (lambda f: cut(audio(f, "u0")), "u0: audio that is damaged or cut short"),
    ],
)
def test_each_fault_is_found(made, damage, said):
    damage(made)
    with pytest.raises(BeamlessError) as fault:
        check_corpus(made)
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)


def edit(folder, id, **changes):
    path = folder / "metadata.jsonl"
    rows = [json.loads(line) for line in path.open(encoding="utf-8")]
    lines = [json.dumps(row | changes if row["id"] == id else row) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")


def audio(folder, id):
    return next(folder.rglob(f"{id}.flac"))


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_audio_that_is_too_long_for_a_window_is_a_fault(tmp_path, corpora):
    corpora.write(tmp_path, [{"duration": 30.5}])
    with pytest.raises(BeamlessError, match="u0: longer than 30 s"):
        check_corpus(tmp_path)


# Report


def test_the_report_is_one_page_with_its_figures_beside_it(made, tmp_path):
    page = tmp_path / "report.html"
    heard = {"u0": "Good morning, number zero.", "u1": "Good mourning", "u2": "something else"}
    listener = iter(heard.values()).__next__
    summary = report(made, page, listener=lambda _samples: listener())
    rows = [json.loads(line) for line in page.with_suffix(".jsonl").open(encoding="utf-8")][1:]
    assert [row["wer"] for row in rows] == [0.0, 0.75, 1.0]
    assert [row["clipped"] > 0 for row in rows] == [False, True, False]
    assert rows[0]["words_per_second"] == 4.0
    assert rows[0]["rate"] == 16_000
    assert "3 utterances" in summary
    assert "1 utterances clipped" in summary
    assert "WER 58.3 %, 2 above 50%" in summary
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 4
    assert "something else" in text
    assert "http" not in text.replace("http://www.w3.org", "")


def test_the_page_is_whole_html_and_escapes_what_people_wrote(tmp_path, corpora):
    from xml.etree import ElementTree

    corpora.write(tmp_path / "c", [{"text": 'a <b> & "c"', "speaker": "<script>"}])
    report(tmp_path / "c", tmp_path / "r.html", listener=lambda _: "<i>x</i>")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    body = text[text.index("<body>") : text.index("</html>")]
    root = ElementTree.fromstring(body)
    assert "<script>" in "".join(root.itertext())
    assert not root.findall(".//script")


def test_the_page_is_grey(made, tmp_path):
    import re

    report(made, tmp_path / "r.html")
    colours = re.findall(r"#([0-9a-f]{3,6})\b", (tmp_path / "r.html").read_text(encoding="utf-8"))
    assert colours
    assert all(len(set(colour)) == 1 for colour in colours)


def test_an_utterance_is_right_if_its_written_or_its_spoken_form_was_heard(tmp_path, corpora):
    rows = [{"text": "Dr. Who paid $5.", "spoken": "doctor who paid five dollars"}]
    [utterance] = read_corpus(corpora.write(tmp_path, rows))
    for heard in ("Dr. Who paid $5.", "Doctor who paid five dollars"):
        assert measure(utterance, lambda _, heard=heard: heard).wer == 0.0


def test_words_heard_in_noise_count_as_insertions(tmp_path, corpora):
    [utterance] = read_corpus(corpora.write(tmp_path, [{"text": ""}]))
    assert measure(utterance, lambda _: "thank you").wer == 2.0
    assert measure(utterance, lambda _: "").wer == 0.0


def test_a_report_is_never_overwritten(made, tmp_path):
    page = tmp_path / "report.html"
    page.write_text("mine", encoding="utf-8")
    with pytest.raises(BeamlessError, match="exists"):
        report(made, page)
    assert page.read_text(encoding="utf-8") == "mine"


def test_a_stopped_report_goes_on_where_it_was(made, tmp_path):
    page, asked = tmp_path / "report.html", []

    def listener(samples):
        asked.append(len(samples))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return "good morning"

    with pytest.raises(KeyboardInterrupt):
        report(made, page, listener=listener)
    assert not page.exists()
    with page.with_suffix(".jsonl").open("a", encoding="utf-8") as torn:
        torn.write('{"id": "u2", "te')
    report(made, page, listener=listener)
    assert len(asked) == 4
    assert len(page.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()) == 4


def test_figures_of_another_corpus_are_not_mixed_in(made, tmp_path, corpora):
    report(made, tmp_path / "r.html")
    (tmp_path / "r.html").unlink()
    other = corpora.write(tmp_path / "other", [{}])
    with pytest.raises(BeamlessError, match="figures of another corpus or model"):
        report(other, tmp_path / "r.html")


@given(st.integers(0, 50), st.integers(0, 50))
def test_only_flat_tops_count_as_clipped(length, place):
    samples = (0.5 * np.sin(np.arange(200) / 10)).astype(np.float32)
    samples[100 + place : 100 + place + length] = 0.9
    run = min(length, 100 - place)
    assert clipped_share(samples) == pytest.approx(run / 200 if run >= 3 else 0.0)


def test_silence_is_not_clipped():
    assert clipped_share(np.zeros(100, np.float32)) == 0.0
    assert clipped_share(np.zeros(0, np.float32)) == 0.0


# Drop


def test_what_was_heard_wrongly_is_dropped_with_a_count(made, tmp_path, corpora):
    page, heard = tmp_path / "r.html", iter(["good morning number 0", "x", "good morning number"])
    report(made, page, listener=lambda _: next(heard))
    assert worse_than(0.5, page.with_suffix(".jsonl"), made) == {"u1"}
    corpus("drop", made, out=page)
    assert [utterance.id for utterance in read_corpus(made)] == ["u0", "u2"]
    assert corpora.marker_of(made)["refused"] == {"heard with a WER above 0.5": 1}
    assert "2 utterances" in check_corpus(made)


def test_a_drop_that_was_killed_halfway_is_finished_by_the_same_command(made, tmp_path, corpora):
    page, heard = tmp_path / "r.html", iter(["good morning number 0", "x", "y"])
    report(made, page, listener=lambda _: next(heard))
    marker = (made / "_COMPLETE").read_bytes()
    corpus("drop", made, out=page)
    (made / "_COMPLETE").write_bytes(marker)  # as a kill before the marker leaves it
    corpus("drop", made, out=page)
    assert "1 utterances" in check_corpus(made)
    assert corpora.marker_of(made)["refused"] == {"heard with a WER above 0.5": 2}


def test_dropping_needs_a_report_in_which_somebody_listened(made, tmp_path):
    with pytest.raises(BeamlessError, match="there are no figures"):
        corpus("drop", made, out=tmp_path / "r.html")
    report(made, tmp_path / "r.html")
    with pytest.raises(BeamlessError, match="nobody listened"):
        corpus("drop", made, out=tmp_path / "r.html")


def test_a_report_of_another_corpus_drops_nothing(made, tmp_path, corpora):
    other = corpora.write(tmp_path / "other", [{"id": "u0", "text": "a b c d"}])
    report(other, tmp_path / "r.html", listener=lambda _: "x")
    with pytest.raises(BeamlessError, match="of another corpus"):
        corpus("drop", made, out=tmp_path / "r.html")


@pytest.mark.parametrize("limit", [-3, -1, 0])
def test_a_report_on_no_utterances_is_refused(made, tmp_path, limit):
    page = tmp_path / "report.html"
    with pytest.raises(BeamlessError, match=f"--limit must be above 0, not {limit}"):
        corpus("report", made, out=page, limit=limit)
    assert not page.exists()


# As a user runs it


def test_whisper_finds_the_utterance_whose_audio_says_something_else(
    tmp_path, tiny_bundle, speech, other_speech
):
    from beamless.inference.transcribe import Transcriber

    sentence = "The quick brown fox jumps over the lazy dog."
    with CorpusWriter(tmp_path / "c", {"stage": "test"}) as writer:
        for id, samples in (("right", speech), ("wrong", other_speech)):
            writer.add(id, samples, 16_000, sentence, "joe", "synth", "CC0")
        writer.finish()
    transcriber = Transcriber(tiny_bundle, method="greedy")
    page = tmp_path / "r.html"
    report(tmp_path / "c", page, listener=lambda heard: transcriber.transcribe(heard).text)
    assert worse_than(0.5, page.with_suffix(".jsonl"), tmp_path / "c") == {"wrong"}


def test_the_command_checks_and_ends_with_2_on_faults(made):
    def beamless(*arguments):
        command = [sys.executable, "-m", "beamless", "corpus", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)

    assert "3 utterances" in beamless("check", made).stdout
    audio(made, "u2").unlink()
    faulty = beamless("check", made)
    assert (faulty.returncode, faulty.stdout) == (2, "")
    assert "has 1 fault: " in faulty.stderr.splitlines()[-1]
