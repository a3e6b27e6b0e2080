"""Transcript files keep to their standards, whatever the text."""

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.errors import BeamlessError
from beamless.inference.subtitles import Layout, clusters, cues
from beamless.inference.transcript import Segment, Transcript, Word, side_by_side
from beamless.inference.writers import FORMATS, output_paths, render, timestamp, write_transcript

av = pytest.importorskip("av")

MANDARIN = "今天天气很好,我们一起去公园散步吧。明天也许会下雨,记得带伞。"
HINDI = " आज मौसम बहुत अच्छा है"


def segment(text: str, start: float = 0.0, end: float = 5.0, **other) -> Segment:
    return Segment(start, end, text, (1, 2), -0.25, 0.01, "stop", **other)


def transcript(*segments: Segment) -> Transcript:
    text = "".join(each.text for each in segments)
    return Transcript(text, segments, "en", 10.0, {"encode": 0.5})


def read_cues(text: str, kind: str, folder: Path) -> list[tuple[int, int, str]]:
    """Read a subtitle file with FFmpeg's parser: milliseconds and text of each cue."""
    path = folder / f"cues.{kind}"
    path.write_text(text, encoding="utf-8")
    with av.open(str(path)) as container:
        found = [
            (round(p.pts * p.time_base * 1000), round(p.duration * p.time_base * 1000), bytes(p))
            for p in container.demux()
            if p.size
        ]
    return [(start, start + length, text.decode()) for start, length, text in found]


# --- times ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (0.0, "00:00:00,000"),
        (0.9995, "00:00:01,000"),
        (59.9996, "00:01:00,000"),
        (3599.9999, "01:00:00,000"),
        (360000.5, "100:00:00,500"),
        (-0.001, "00:00:00,000"),
    ],
)
def test_b23_times_that_round_up_carry_over(seconds, wanted):
    assert timestamp(seconds, ",") == wanted


@given(st.floats(0, 1e6))
def test_fields_of_a_time_stay_in_their_ranges(seconds):
    hours, minutes, rest = timestamp(seconds, ".").split(":")
    whole, fraction = rest.split(".")
    assert int(minutes) < 60 and int(whole) < 60 and len(fraction) == 3
    found = int(hours) * 3600 + int(minutes) * 60 + int(whole) + int(fraction) / 1000
    assert math.isclose(found, seconds, abs_tol=0.000501)


@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_cues_are_in_order_and_never_empty_in_time(kind, tmp_path):
    made = transcript(segment(" b", 2.0, 2.0), segment(" a", 1.0, 1.00001))
    found = read_cues(render(made, kind), kind, tmp_path)
    assert found == [(1000, 1001, "a"), (2000, 2001, "b")]


# --- escaping -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_blank_lines_and_arrows_inside_a_text_do_not_break_the_file(kind, tmp_path):
    nasty = segment(" one\n\n2\n00:00:01,000 --> 00:00:02,000\ntwo")
    found = read_cues(render(transcript(nasty, segment(" end", 6, 7)), kind), kind, tmp_path)
    assert len(found) == 2 and found[1][2] == "end"


def test_vtt_escapes_what_would_be_a_tag():
    assert "a &lt;b&gt; &amp; c" in render(transcript(segment(" a <b> & c")), "vtt")


def test_tsv_rows_have_three_columns_whatever_the_text():
    text = render(transcript(segment(' a\tb\n"c', 0.0005, 1.9996), segment(" ")), "tsv")
    rows = list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert rows == [["start", "end", "text"], ["1", "2000", 'a b "c']]


def test_json_is_strict_and_complete():
    made = transcript(segment(" é", 0.12345, 2.0, words=(Word(0.1, 2.0, " é", math.nan),)))
    read = json.loads(render(made, "json"), parse_constant=pytest.fail)
    assert read["language"] == "en" and read["duration"] == 10.0
    assert read["timings"] == {"encode": 0.5}
    (only,) = read["segments"]
    assert only["start"] == 0.123 and only["tokens"] == [1, 2] and only["avg_logprob"] == -0.25
    assert only["finish_reason"] == "stop" and only["no_speech_prob"] == 0.01
    word = {"start": 0.1, "end": 2.0, "text": " é", "probability": None, "alternatives": []}
    assert only["words"] == [word]


def test_txt_is_one_segment_a_line():
    assert render(transcript(segment(" one\ntwo"), segment(" three")), "txt") == "one two\nthree\n"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_recording_without_speech_gives_a_valid_file(kind):
    wanted = {"txt": "", "srt": "", "vtt": "WEBVTT\n", "tsv": "start\tend\ttext\n"}
    text = render(Transcript("", (), "en", 6.0), kind)
    assert json.loads(text)["segments"] == [] if kind == "json" else text == wanted[kind]


@pytest.mark.parametrize("kind", FORMATS)
def test_b20_half_characters_never_reach_a_file(kind):
    texts = (" 天\ufffd", "\ufffd", "气\ud800\x00")
    words = tuple(Word(i, i + 1, text, 0.9) for i, text in enumerate(texts))
    made = transcript(segment(" 天\ufffd\ufffd气\ud800\x00", words=words))
    text = render(made, kind, Layout(10, 1) if kind in ("srt", "vtt") else None)
    assert "\ufffd" not in text and "天气" in text and "\x00" not in text
    text.encode("utf-8")


def test_an_unknown_format_is_named_with_those_there_are():
    with pytest.raises(BeamlessError, match="'ass'; take txt, srt, vtt, json, tsv"):
        render(transcript(), "ass")


@pytest.mark.parametrize("kind", FORMATS)
def test_words_that_are_said_twice_are_written_twice(kind):
    said = "very very good, I'll work with the prompt I'll work with the prompt 5 5 5 1 2 1 2"
    text = render(transcript(segment(" " + said), segment(" " + said, 5, 10)), kind)
    assert text.replace("\n", " ").count(said) == (4 if kind == "json" else 2)


# --- line length and line count -------------------------------------------------------------


def test_words_fill_lines_and_lines_fill_cues_with_the_words_own_times():
    words = tuple(Word(i, i + 0.5, f" word{i}", 0.9) for i in range(6))
    whole = segment("".join(w.text for w in words), 0.0, 6.0, words=words)
    first, second = cues(whole, Layout(line_length=11, line_count=2))
    assert first.lines == ("word0 word1", "word2 word3") and (first.start, first.end) == (0, 3.5)
    assert second.lines == ("word4 word5",) and (second.start, second.end) == (4, 6)


@pytest.mark.parametrize("text", [MANDARIN, HINDI, " नमस्तेनमस्तेनमस्ते", "👩🏽\u200d🚀" * 5])
def test_a_line_limit_never_cuts_inside_a_character(text):
    found = cues(segment(text), Layout(10, 1))
    assert "".join("".join(c.lines) for c in found).replace(" ", "") == text.replace(" ", "")
    parts = set(clusters(text.replace(" ", "")))
    assert all(set(clusters(line.replace(" ", ""))) <= parts for c in found for line in c.lines)


def test_no_line_of_mandarin_begins_with_a_full_stop():
    found = cues(segment(MANDARIN), Layout(5, 1))
    assert len(found) > 4 and not any(line[0] in "。,、" for cue in found for line in cue.lines)


WORDS = st.lists(st.text(st.characters(categories=("L", "M", "P", "N")), min_size=1), max_size=20)


@given(WORDS, st.integers(1, 20), st.integers(0, 3))
def test_layout_keeps_every_character_and_both_limits(words, length, count):
    text = "".join(" " + word for word in words)
    found = cues(segment(text, 2.0, 9.0), Layout(length, count))
    assert "".join("".join(cue.lines) for cue in found).replace(" ", "") == "".join(words)
    for cue in found:
        assert not count or len(cue.lines) <= count
        assert all(len(line) <= length or len(list(clusters(line))) == 1 for line in cue.lines)
    times = [time for cue in found for time in (cue.start, cue.end)]
    assert times == sorted(times)
    assert not found or (times[0] == 2.0 and times[-1] == 9.0)


def test_a_line_count_without_a_length_is_refused():
    with pytest.raises(BeamlessError, match="line length"):
        Layout(0, 2)


# --- speakers -------------------------------------------------------------------------------


def test_two_channels_stand_side_by_side_in_order_of_time():
    left = transcript(segment(" hello", 0, 1), segment(" fine", 4, 5))
    right = transcript(segment(" how are you", 2, 3))
    both = side_by_side([left, right], ["left", "right"])
    assert both.text == "hello how are you fine" and both.timings == {"encode": 1.0}
    assert render(both, "txt") == "left: hello\nright: how are you\nleft: fine\n"
    assert "<v right>how are you</v>" in render(both, "vtt")
    assert "\nright: how are you\n" in render(both, "srt")


def test_channels_are_joined_as_their_language_writes():
    heard = replace(
        transcript(segment("今日は", 0, 1), segment("良い天気です", 2, 3)), language="ja"
    )
    assert (
        side_by_side([heard, heard], ["left", "right"]).text
        == "今日は今日は良い天気です良い天気です"
    )


def test_where_one_channel_is_silent_nothing_of_the_recording_is_left_out():
    left, right = (replace(transcript(segment(" hi", at, at + 1)), left_out=10.0) for at in (0, 10))
    assert side_by_side([left, right], ["left", "right"]).left_out == 0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_speakers_name_is_part_of_the_line_that_it_opens(count):
    spoken = segment(" a man saw the red house by the old stone bridge near a mill", 0, 9)
    both = side_by_side([transcript(spoken), transcript()], ["left", "right"])
    written = render(both, "srt", Layout(20, count))
    shown = [line for line in written.splitlines() if line[:1].isalpha()]
    assert "left: a man saw the" in shown and max(map(len, shown)) <= 20


# --- names ----------------------------------------------------------------------------------


def names(folder: Path, *inputs: str) -> list[str]:
    return [path.name for path in output_paths([Path(each) for each in inputs], folder, "srt")]


def test_b21_the_full_stem_is_kept(tmp_path):
    assert names(tmp_path, "a.b.c.mp3", "-x.wav", "かな 1.wav", "blob") == [
        "a.b.c.srt",
        "-x.srt",
        "かな 1.srt",
        "blob.srt",
    ]


def test_b21_inputs_of_one_stem_do_not_overwrite_each_other(tmp_path):
    assert names(tmp_path, "a.wav", "a.mp3") == ["a.wav.srt", "a.mp3.srt"]
    assert names(tmp_path, "x/a.wav", "y/a.wav") == ["a.wav.srt", "a.wav-2.srt"]
    found = names(tmp_path, "A.wav", "a.wav", "a", "a.wav.mp3", "e\u0301.wav", "\u00e9.mp3")
    assert len({name.casefold() for name in found}) == 6


def test_a_transcript_that_exists_is_never_overwritten(tmp_path):
    (tmp_path / "a.srt").write_text("mine", encoding="utf-8")
    with pytest.raises(BeamlessError, match=r"a\.srt exists already"):
        names(tmp_path, "a.wav")


def test_a_file_appears_whole_with_unix_line_ends(tmp_path):
    path = tmp_path / "new" / "é.srt"
    write_transcript(transcript(segment(" é")), path, "srt")
    assert path.read_bytes() == "1\n00:00:00,000 --> 00:00:05,000\né\n".encode()
    assert [each.name for each in path.parent.iterdir()] == ["é.srt"]
