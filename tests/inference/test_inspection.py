"""What ``--inspect`` shows: each window's tokens by every method, and a picture of them."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.errors import BeamlessError
from beamless.inference.inspection import Inspector, Reading, differences, side_by_side
from beamless.inference.options import DecodingOptions
from beamless.inference.transcribe import Transcriber

pytest.importorskip("matplotlib")

TOKENS = st.lists(st.integers(0, 3), max_size=8)


def reading(tokens) -> Reading:
    texts = tuple(map(str, tokens))
    return Reading(
        "m", tuple(tokens), texts, (0.5,) * len(tokens), (False,) * len(tokens), (), None
    )


@pytest.fixture(scope="module")
def inspected(tiny_bundle, speech, clip, tmp_path_factory):
    """Two windows, with times and a long pause in between."""
    folder = tmp_path_factory.mktemp("looked") / "inside"
    options = DecodingOptions(timestamps=True)
    transcriber = Transcriber(tiny_bundle, method="corrected", options=options)
    transcriber.on_window = Inspector(folder).of(clip, tiny_bundle, "corrected")
    made = transcriber.transcribe(np.concatenate([speech, np.zeros(160_000), speech]))
    with (folder / "windows.csv").open(encoding="utf-8", newline="") as file:
        return folder, made, list(csv.DictReader(file))


def test_every_window_has_a_picture(inspected):
    folder, made, _ = inspected
    pictures = sorted(folder.glob("*.png"))
    assert [p.name for p in pictures] == ["0001.png", "0002.png"] and len(made.segments) == 2
    assert all(p.read_bytes()[:4] == b"\x89PNG" and p.stat().st_size > 20_000 for p in pictures)


def test_the_table_has_each_methods_tokens_and_the_transcripts_own_text(inspected):
    _, made, rows = inspected
    assert {row["method"] for row in rows} == {"greedy", "corrected", "beam5"}
    for picture, segment in zip(("0001.png", "0002.png"), made.segments, strict=True):
        mine = [r for r in rows if r["picture"] == picture and r["method"] == "corrected"]
        said = "".join(r["text"] for r in mine if not r["text"].startswith("<"))
        assert said.strip() == segment.text
        assert [int(r["token"]) for r in mine] == list(segment.tokens)
        assert all(0 < float(r["probability"]) <= 1 for r in mine)


def test_what_is_shown_is_what_was_transcribed_though_a_budget_cut_it(
    tiny_bundle, speech, other_speech, clip, tmp_path
):
    options = DecodingOptions(tokens_a_second=0.1)
    transcriber = Transcriber(tiny_bundle, method="greedy", options=options)
    transcriber.on_window = Inspector(tmp_path / "inside").of(clip, tiny_bundle, "greedy")
    made = transcriber.transcribe(np.concatenate([speech, other_speech]))
    with (tmp_path / "inside" / "windows.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "greedy"]
    rows = [row for row in rows if row["picture"] == "0001.png"]
    assert made.segments[0].finish_reason == "budget"
    assert [int(row["token"]) for row in rows] == list(made.segments[0].tokens)


def test_times_are_those_of_the_recording(inspected):
    _, made, rows = inspected
    second = [r for r in rows if r["picture"] == "0002.png" and r["method"] == "greedy"]
    times = [float(r["time"]) for r in second]
    assert times == sorted(times)
    assert made.segments[1].start - 0.6 <= times[0] < times[-1] <= made.duration
    assert float(second[0]["start"]) < made.segments[1].end <= float(second[0]["end"])


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BeamlessError, match="holds something"):
        Inspector(tmp_path)


def test_a_word_that_another_method_has_not_is_marked_and_nothing_else():
    assert differences([1, 2, 3, 4], [1, 9, 3, 4]) == (False, True, False, False)
    assert differences([1, 9, 8, 2], [1, 2]) == (False, True, True, False)
    assert differences([], [1]) == ()


@given(TOKENS, TOKENS)
def test_side_by_side_shows_every_token_once_and_in_order(first, other):
    columns = side_by_side([reading(first), reading(other)])
    for number, tokens in enumerate((first, other)):
        steps = [step for column in columns for step in column[number]]
        assert steps == list(range(len(tokens)))


def test_equal_tokens_stand_under_each_other():
    columns = side_by_side([reading([1, 2, 3]), reading([1, 9, 8, 3])])
    assert columns == [[[0], [0]], [[1], [1, 2]], [[2], [3]]]


def test_looking_inside_changes_nothing(inspected, tiny_bundle, speech):
    _, made, _ = inspected
    options = DecodingOptions(timestamps=True)
    samples = np.concatenate([speech, np.zeros(160_000), speech])
    plain = Transcriber(tiny_bundle, method="corrected", options=options).transcribe(samples)
    assert replace(plain, timings={}) == replace(made, timings={})
