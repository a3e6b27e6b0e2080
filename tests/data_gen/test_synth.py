"""Texts and a voice to a corpus: every line is said, or refused with a reason, in order."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256

import numpy as np
import pytest
import soundfile
from num2words import num2words

from beamless.data_gen import spoken, text_lines
from beamless.data_gen.casting import Cast, Role
from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.corpus_writer import CorpusWriter, refuse_nothing
from beamless.data_gen.synth import make_corpus, synth
from beamless.data_gen.text_lines import read_text_lines
from beamless.inference.errors import BeamlessError

RATE = 16_000


class ToneVoice:
    """Says each text as a tone whose pitch is a hash of the text; notes what it was asked."""

    name, language, license, rate = "tones", "en", "CC0", RATE

    def __init__(self, speakers=("low", "high"), seconds=0.05, loudness=0.5):
        self.speakers, self.seconds, self.loudness = speakers, seconds, loudness
        self.asked = []

    def say(self, text, speaker=None, speed=1.0):
        self.asked.append(text)
        return tone(text, self.seconds, self.loudness)


def tone(text, seconds=0.05, loudness=0.5):
    pitch = 200 + int.from_bytes(sha256(text.encode()).digest()[:4], "big") % 7000
    times = np.arange(round(seconds * RATE)) / RATE
    return (loudness * np.sin(2 * np.pi * pitch * times)).astype(np.float32)


def lines_of(tmp_path, content):
    path = tmp_path / "lines.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_text_lines(path)


def rows_of(folder):
    return [json.loads(line) for line in (folder / "metadata.jsonl").open(encoding="utf-8")]


def said_with(voice, lines, out, recipe=None):
    return make_corpus(lines, out, Cast((Role(voice),)), recipe or {})


def digests(folder):
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_b35_the_manifest_holds_what_was_written_and_what_was_said(tmp_path):
    written = "Mr. Jr. paid $49.95 at 8:00 on 3/1/1908 in World War II, room 90210, -5 C."
    voice = ToneVoice()
    said_with(voice, lines_of(tmp_path, written), tmp_path / "out")
    [row] = rows_of(tmp_path / "out")
    assert row["text"] == written
    assert voice.asked == [row["spoken"]]
    assert "forty-nine dollars and ninety-five cents at eight o'clock" in row["spoken"]


def test_b38_lines_with_nothing_to_say_are_skipped_with_a_count(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_bytes(b"\n   \n...\n\xf0\x9f\x98\x80\n\xef\xbb\xbfHello\nHello\r\n")
    command = [sys.executable, "-m", "beamless", "synth", str(texts), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0
    assert "2 utterances" in done.stdout
    assert f"refused 4: 4 {spoken.NOTHING}" in done.stdout
    first, second = read_corpus(tmp_path / "out")
    assert (first.text, second.text) == ("Hello", "Hello")
    assert first.audio.read_bytes() == second.audio.read_bytes()
    assert [u.duration > 0.2 for u in (first, second)] == [True, True]
    assert len(list((tmp_path / "out").rglob("*.flac"))) == 2


def test_b40_a_thousand_and_five_lines_keep_their_order(tmp_path):
    words = [num2words(n).replace(",", "") for n in range(1, 1006)]
    said_with(ToneVoice(), lines_of(tmp_path, "\n".join(words) + "\n"), tmp_path / "out")
    utterances = read_corpus(tmp_path / "out")
    assert [u.text for u in utterances] == words
    assert [u.id for u in utterances] == sorted(u.id for u in utterances)
    for n in (9, 10, 99, 100, 999, 1000, 1005):
        samples, rate = soundfile.read(utterances[n - 1].audio, dtype="float32")
        assert rate == RATE
        np.testing.assert_allclose(samples, tone(words[n - 1]), atol=1e-3)


def test_a_line_longer_than_thirty_seconds_is_refused_and_never_cut(tmp_path):
    lines = lines_of(tmp_path, "long\nshort\n")
    voice = ToneVoice()
    voice.say = lambda text, speaker, speed: tone(text, 30.5 if text == "long" else 1.0)
    counts = said_with(voice, lines, tmp_path / "out")
    assert counts["refused"] == {"longer than 30 s": 1}
    assert [row["text"] for row in rows_of(tmp_path / "out")] == ["short"]


def test_a_seven_hundred_word_line_is_refused_before_it_is_said(tmp_path):
    voice = ToneVoice()
    counts = said_with(voice, lines_of(tmp_path, "word " * 700 + "\nfine\n"), tmp_path / "out")
    assert counts["refused"] == {"text of more than 224 tokens": 1}
    assert voice.asked == ["fine"]


def test_a_word_that_no_voice_can_be_given_is_refused_and_the_rest_is_said(tmp_path):
    voice = ToneVoice()
    lines = lines_of(tmp_path, f"Hello.\nsay {'a' * 300_000}\n{'9' * 5000}\nGoodbye.\n")
    counts = said_with(voice, lines, tmp_path / "out")
    assert counts["utterances"] == 2
    assert counts["refused"] == {spoken.LONG: 2}
    assert voice.asked == ["Hello.", "Goodbye."]


def test_a_voice_that_says_nothing_is_refused(tmp_path):
    voice = ToneVoice()
    voice.say = lambda text, speaker, speed: tone(text, 0.0 if text == "hm" else 1.0)
    counts = said_with(voice, lines_of(tmp_path, "hm\nwell\n"), tmp_path / "out")
    assert counts["refused"] == {"no samples": 1}


def test_a_peak_over_full_scale_is_limited_and_never_wrapped(tmp_path):
    said_with(ToneVoice(loudness=3.0), lines_of(tmp_path, "loud\n"), tmp_path / "out")
    [utterance] = read_corpus(tmp_path / "out")
    samples, _ = soundfile.read(utterance.audio, dtype="float32")
    np.testing.assert_allclose(samples, tone("loud", loudness=1.0), atol=2e-3)


def test_the_provenance_of_a_text_is_kept(tmp_path):
    texts = tmp_path / "texts.jsonl"
    row = {"text": "Dr. No", "spoken": "Doctor No", "kind": "names", "source": "grammar", "rate": 3}
    texts.write_text(json.dumps(row) + "\n", encoding="utf-8")
    said_with(ToneVoice(), read_text_lines(texts), tmp_path / "out")
    [stored] = rows_of(tmp_path / "out")
    assert (stored["text"], stored["spoken"], stored["kind"]) == ("Dr. No", "Doctor No", "names")
    assert (stored["source"], stored["text_source"], stored["text_rate"]) == ("synth", "grammar", 3)


def test_ids_are_wide_enough_for_the_last_line(tmp_path, monkeypatch):
    assert lines_of(tmp_path, "a\n" * 12)[0].id == "lines-000001"
    monkeypatch.setattr(text_lines, "DIGITS", 1)
    lines = lines_of(tmp_path, "a\n" * 1005)
    assert (lines[0].id, lines[-1].id) == ("lines-0001", "lines-1005")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.txt", None, "there is no text file"),
        ("empty.txt", b"", "holds no texts"),
        ("latin.txt", b"caf\xe9\n", "is not UTF-8"),
        ("bad.jsonl", b'{"text": "a"}\n{oops\n', "line 2: not JSON"),
        ("list.jsonl", b"[1]\n", "line 1: a JSON object was expected"),
        ("field.jsonl", b'{"words": "a"}\n', "line 1: 'text' must be a string"),
    ],
)
def test_a_text_file_that_cannot_be_read_is_one_clear_line(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BeamlessError, match=said):
        read_text_lines(tmp_path / name)


def test_no_line_that_can_be_said_is_an_error(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("...\n\n", encoding="utf-8")
    with pytest.raises(
        BeamlessError, match=f"none of the 2 lines could be said: 2 {spoken.NOTHING}"
    ):
        synth(texts, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_voice_that_says_nothing_at_all_leaves_no_corpus(tmp_path):
    lines = lines_of(tmp_path, "hm\n")
    for _ in range(2):  # the second run does not take the first one's end for a success
        with pytest.raises(BeamlessError, match="none of the 1 lines could be said: 1 no samples"):
            said_with(ToneVoice(seconds=0.0), lines, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    assert said_with(ToneVoice(), lines, tmp_path / "out")["utterances"] == 1


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_leaves_no_line_is_said_before_anything_is_written(tmp_path, limit):
    texts = tmp_path / "texts.txt"
    texts.write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(BeamlessError, match=f"--limit must be above 0, not {limit}"):
        synth(texts, tmp_path / "out", limit=limit)
    assert not (tmp_path / "out").exists()


def test_an_empty_corpus_in_a_folder_with_other_files_takes_only_its_own_away(tmp_path):
    writer = CorpusWriter(tmp_path / "out", {})
    (tmp_path / "out" / "note.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BeamlessError, match="nothing"), writer:
        refuse_nothing([writer], "nothing")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["note.txt"]


def test_a_folder_of_another_voice_is_never_mixed_in(tmp_path):
    lines = lines_of(tmp_path, "one\n")
    said_with(ToneVoice(), lines, tmp_path / "out")
    with pytest.raises(BeamlessError, match="another recipe"):
        make_corpus(lines, tmp_path / "out", Cast((Role(ToneVoice(), 1, ("high",)),)), {})


def test_a_run_that_was_stopped_goes_on_to_the_same_corpus(tmp_path):
    lines = lines_of(tmp_path, "\n".join(["one", "...", "two", "three", "four"]))
    said_with(ToneVoice(), lines, tmp_path / "whole")

    class Interrupted(ToneVoice):
        def say(self, text, speaker=None, speed=1.0):
            if text == "three":
                raise KeyboardInterrupt
            return super().say(text, speaker, speed)

    with pytest.raises(KeyboardInterrupt):
        said_with(Interrupted(), lines, tmp_path / "part")
    again = ToneVoice()
    said_with(again, lines, tmp_path / "part")
    assert again.asked == ["three", "four"]
    assert digests(tmp_path / "part") == digests(tmp_path / "whole")


def test_a_hard_kill_costs_nothing_but_the_line_in_hand(tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(f"This is line {n}, and it is said." for n in range(1, 9)))
    command = [sys.executable, "-m", "beamless", "synth", str(texts)]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with subprocess.Popen([*command, str(killed)], stderr=subprocess.DEVNULL) as process:
        metadata = killed / "metadata.jsonl"
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            if metadata.is_file() and metadata.read_bytes().count(b"\n") >= 2:
                break
            time.sleep(0.01)
        process.kill() if os.name == "nt" else process.send_signal(signal.SIGKILL)
    begun = metadata.read_bytes().count(b"\n")
    assert 2 <= begun < 8
    for folder in (killed, whole):
        synth(texts, folder)
    assert digests(killed) == digests(whole)
    assert len(read_corpus(killed)) == 8
