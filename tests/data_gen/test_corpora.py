"""Reading a corpus: what a line may be, what it may not, and on which side it stands."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.data_gen.corpora import read_corpus, split_of
from beamless.inference.errors import BeamlessError


def test_an_utterance_has_its_fields_an_absolute_path_and_what_else_the_line_says(
    tmp_path, corpora
):
    row = {"speaker": "ann", "duration": 0.2, "source": "s", "license": "CC0", "age": 6}
    [utterance] = read_corpus(corpora.write(tmp_path, [row]))
    assert (utterance.id, utterance.text, utterance.speaker) == ("u0", "hello", "ann")
    assert (utterance.duration, utterance.source, utterance.license) == (0.2, "s", "CC0")
    assert utterance.audio == tmp_path / "audio" / "u0.flac"
    assert utterance.extra == {"age": 6}


def test_a_missing_duration_is_read_from_the_audio(tmp_path, corpora):
    folder = corpora.write(tmp_path, [{}])
    corpora.store(folder / "audio" / "u0.flac", corpora.tone(0.5))
    assert read_corpus(folder)[0].duration == pytest.approx(0.5)


def test_byte_order_mark_crlf_and_blank_lines_are_fine(tmp_path, corpora):
    folder = corpora.write(tmp_path, [{"text": "naïve"}, {"text": "two"}])
    plain = (folder / "metadata.jsonl").read_text(encoding="utf-8").replace("\n", "\r\n\r\n \r\n")
    (folder / "metadata.jsonl").write_bytes(b"\xef\xbb\xbf" + plain.encode())
    assert [utterance.text for utterance in read_corpus(folder)] == ["naïve", "two"]


def test_order_is_that_of_the_lines_beyond_a_thousand(tmp_path, corpora):
    audio = {"file_name": "one.wav", "duration": 0.2}
    corpora.store(tmp_path / "one.wav")
    rows = [{"id": str(number), **audio} for number in range(1005)]
    corpora.write(tmp_path, rows, audio=False)
    assert [utterance.id for utterance in read_corpus(tmp_path)] == [str(n) for n in range(1005)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{broken", "line 2: not JSON"),
        ("[1]", "line 2: a JSON object was expected, not list"),
        ('{"file_name": "a.wav", "text": "x"}', "line 2: the field 'id' is missing"),
        ('{"id": "", "file_name": "a.wav", "text": "x"}', "line 2: the id is empty"),
        ('{"id": "b", "text": "x"}', "line 2: the field 'file_name' is missing"),
        ('{"id": "b", "file_name": "a.wav"}', "line 2: the field 'text' is missing"),
        ('{"id": "b", "file_name": "a.wav", "text": 5}', "line 2: the field 'text' must be"),
        ('{"id": "a", "file_name": "a.wav", "text": "x"}', "line 2: id 'a' is that of line 1"),
        ('{"id": "b", "file_name": "no.wav", "text": "x"}', "line 2: the audio 'no.wav' is mis"),
        ('{"id": "b", "file_name": "../a.wav", "text": "x"}', "line 2: '../a.wav' is not a path"),
        ('{"id": "b", "file_name": "/etc/passwd", "text": "x"}', "is not a path inside"),
        ('{"id": "b", "file_name": "c:\\\\x.wav", "text": "x"}', "is not a path inside"),
        ('{"id": "b", "file_name": "..\\\\x.wav", "text": "x"}', "is not a path inside"),
        ('{"id": "b", "file_name": "", "text": "x"}', "is not a path inside"),
        ('{"id": "b", "file_name": "a.wav", "text": "", "duration": "9"}', "duration must be"),
        ('{"id": "b", "file_name": "a.wav", "text": "", "duration": NaN}', "nan is not a durat"),
        (f'{{"id": "b", "file_name": "a.wav", "text": "", "duration": {10**400}}}', "not a durat"),
        ('{"id": "b", "file_name": "a.wav", "text": "\\ud800"}', "line 2: half a character"),
        ("[" * 100_000, "line 2: not JSON"),
        ('{"id": "b", "file_name": "a.wav", "text": "", "augment": 3}', "'augment' must be"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(tmp_path, corpora, line, said):
    corpora.store(tmp_path / "a.wav")
    first = json.dumps({"id": "a", "file_name": "a.wav", "text": "x", "duration": 0.2})
    (tmp_path / "metadata.jsonl").write_text(f"{first}\n{line}\n", encoding="utf-8")
    with pytest.raises(BeamlessError) as fault:
        read_corpus(tmp_path)
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_file_that_is_not_audio_is_named_where_its_length_is_needed(tmp_path):
    (tmp_path / "a.wav").write_text("no audio", encoding="utf-8")
    line = '{"id": "a", "file_name": "a.wav", "text": "x"}'
    (tmp_path / "metadata.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(BeamlessError, match=r"line 1: a\.wav is not audio"):
        read_corpus(tmp_path)


def test_no_corpus_an_empty_one_and_one_of_another_encoding_say_so(tmp_path):
    with pytest.raises(BeamlessError, match="there is no corpus folder"):
        read_corpus(tmp_path / "none")
    (tmp_path / "metadata.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(BeamlessError, match="holds no utterances"):
        read_corpus(tmp_path)
    (tmp_path / "metadata.jsonl").write_bytes('{"id": "é"}'.encode("cp1252"))
    with pytest.raises(BeamlessError, match="is not UTF-8"):
        read_corpus(tmp_path)


def test_a_folder_of_splits_names_them(tmp_path, corpora):
    corpora.write(tmp_path / "train", [{}])
    corpora.write(tmp_path / "dev", [{}])
    with pytest.raises(BeamlessError, match="its subfolders dev, train do"):
        read_corpus(tmp_path)


@given(st.text(min_size=1))
def test_a_speaker_always_stands_on_the_same_side(speaker):
    assert split_of(speaker) == split_of(speaker)
    assert split_of(speaker) in ("train", "dev", "test")


def test_splits_never_move():
    """These sides are part of the corpus format: a change would leak test speakers to train."""
    speakers = {"lj": "train", "so-0001": "train", "p227": "dev", "eve": "dev"}
    assert {name: split_of(name) for name in speakers} == speakers
    sentences = {"zero": "train", "one": "test", "seven": "dev", "nine": "test"}
    assert {text: split_of("", text) for text in sentences} == sentences


def test_eight_in_ten_are_train():
    counts = Counter(split_of(f"speaker-{number}") for number in range(4000))
    assert counts["train"] == pytest.approx(3200, rel=0.03)
    assert counts["dev"] == pytest.approx(400, rel=0.15)
    assert counts["test"] == pytest.approx(400, rel=0.15)


@given(st.lists(st.text("abcdefgh", min_size=1), min_size=1), st.text(), st.text())
def test_a_sentence_stands_on_one_side_whoever_reads_it_and_however_it_is_written(
    words, speaker, other
):
    plain, written = " ".join(words), ", ".join(words).capitalize() + "!"
    assert split_of(speaker, plain) == split_of(other, written)


def test_neither_speaker_nor_text_is_an_error_not_a_side():
    with pytest.raises(BeamlessError, match="without speaker and text"):
        split_of("", "...")
