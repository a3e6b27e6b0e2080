"""Windows that overlap: what both heard is written once, by times, whatever the words are."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.errors import BeamlessError
from beamless.inference.longform import Window
from beamless.inference.options import DecodingOptions
from beamless.inference.overlap import border_between, overlapping, own_words
from beamless.inference.transcribe import Transcriber
from beamless.inference.transcript import Segment, Word

SECOND = 16000


def window(start, stop):
    return Window(start, np.arange(start, stop, dtype=np.float32))


@pytest.fixture(scope="module")
def rule(tiny_bundle):
    """What words are made with."""
    return tiny_bundle.tokenizer, "en"


def segment_of(rule, *words):
    """A segment of words, each as (start, end, text)."""
    made = tuple(Word(start, end, text, 0.9) for start, end, text in words)
    text = "".join(word.text for word in made)
    tokens = tuple(rule[0].encode(f" {text}"))
    return Segment(made[0].start, made[-1].end, text, tokens, -0.1, 0.0, "stop", made)


# --- what a window hears --------------------------------------------------------------------


def test_windows_that_touch_hear_each_other_and_know_what_is_their_own():
    windows = [window(0, 8 * SECOND), window(8 * SECOND, 20 * SECOND)]
    first, second = overlapping(windows, 2 * SECOND)
    assert (first.first, len(first.samples)) == (0, 10 * SECOND)
    assert (second.first, len(second.samples)) == (6 * SECOND, 14 * SECOND)
    assert (first.own, second.own) == ((0, 8 * SECOND), (8 * SECOND, 20 * SECOND))
    assert second.samples[0] == 6 * SECOND


def test_windows_with_silence_between_them_hear_nothing_of_each_other():
    found = list(overlapping([window(0, SECOND), window(3 * SECOND, 4 * SECOND)], 2 * SECOND))
    assert [len(each.samples) for each in found] == [SECOND, SECOND]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=6))
def test_each_sample_that_a_window_had_is_the_own_of_one(stretches):
    windows, at = [], 0
    for pause, length in stretches:
        windows.append(window(at + pause, at + pause + length))
        at += pause + length
    found = list(overlapping(windows, 7))
    assert [each.own for each in found] == [(w.first, w.first + len(w.samples)) for w in windows]
    for each in found:
        expected = np.arange(each.first, each.first + len(each.samples))
        np.testing.assert_array_equal(each.samples, expected)


def test_a_part_of_a_window_answers_for_no_more_than_the_window():
    whole = Window(100, np.zeros(50, np.float32), (110, 140))
    assert whole.part(0, 20).answers_for == (110, 140)
    assert whole.part(20).answers_for == (120, 140)


# --- which words are its own ----------------------------------------------------------------


def merged(rule, before, behind, border, overlap=2.0):
    """The words of two windows, as they are written one after the other."""
    cut = border_between(before, border, overlap / 2, 0.0)
    kept = own_words(before, 0.0, cut, *rule)
    kept += own_words(behind, cut, border + 20, *rule)
    return [word.text.strip() for segment in kept for word in segment.words]


@pytest.mark.parametrize("late", [-0.14, -0.05, 0.0, 0.05, 0.14])
@pytest.mark.parametrize("border", [9.4, 9.8, 10.0, 10.2])
def test_what_both_heard_is_written_once_though_their_times_differ(rule, late, border):
    said = [(8.6, 9.0, "over"), (9.1, 9.5, " the"), (9.85, 10.1, " old"), (10.3, 10.7, " bridge")]
    before = [segment_of(rule, *said)]
    behind = [segment_of(rule, *((a + late, b + late, text) for a, b, text in said[1:]))]
    assert merged(rule, before, behind, border) == ["over", "the", "old", "bridge"]


def test_the_same_word_said_twice_stays_twice(rule):
    """Times tell, never the words: a merge by words would take one of them away."""
    before = [segment_of(rule, (9.0, 9.4, "no"), (9.5, 9.9, " no"), (10.0, 10.4, " no"))]
    behind = [segment_of(rule, (9.5, 9.9, "no"), (10.0, 10.4, " no"), (10.5, 10.9, " no"))]
    assert merged(rule, before, behind, 10.0) == ["no"] * 4


def test_a_word_that_only_the_second_window_heard_before_the_border_is_kept(rule):
    before = [segment_of(rule, (8.1, 8.5, "never"))]
    behind = [segment_of(rule, (8.1, 8.5, "never"), (9.2, 9.6, " late"), (10.1, 10.4, " comer"))]
    assert merged(rule, before, behind, 10.0) == ["never", "late", "comer"]


def test_a_window_that_heard_nothing_leaves_all_to_the_next(rule):
    assert border_between([], 10.0, 1.0, 4.0) == 4.0


@pytest.mark.parametrize("overlap", [1e-5, 1e-4, 0.3, 5.0])
def test_windows_with_their_neighbours_fit_in_thirty_seconds(tiny_bundle, overlap):
    """Rounding must not make one of them a sample too long."""
    noisy = np.random.default_rng(0).normal(0, 0.1, 95 * SECOND).astype(np.float32)
    options = DecodingOptions(overlap=overlap, vad=False, tokens_a_second=0.1)
    transcriber = Transcriber(tiny_bundle, method="greedy", options=options)
    assert transcriber.transcribe(noisy).duration == 95


def test_the_tokens_of_a_segment_are_those_of_the_words_that_stay(rule):
    whole = segment_of(rule, (1, 1.5, "one"), (2, 2.5, " two"), (3, 3.5, " three"))
    kept = own_words([whole], 1.8, 2.9, *rule)
    assert (kept[0].text, kept[0].start, kept[0].end) == ("two", 2, 2.5)
    assert rule[0].decode(kept[0].tokens).strip() == "two"


def test_what_is_left_of_a_segment_keeps_the_confidences_of_its_tokens(rule):
    whole = segment_of(rule, (1, 1.5, "one"), (2, 2.5, " two"), (3, 3.5, " three"))
    begin = rule[0].timestamp_begin
    tokens = (begin, *whole.tokens, begin + 50)
    sure = (None, 0.1, 0.2, 0.3, None)
    kept = own_words([replace(whole, tokens=tokens, confidences=sure)], 1.8, 2.9, *rule)
    assert len(whole.tokens) == 3
    assert kept[0].confidences == (0.2,)


# --- recordings -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def breathless(speech, other_speech):
    """Both sentences in turn for 50 s without a pause, and how often each is said."""
    ends = [np.flatnonzero(np.abs(said) > 0.01)[[0, -1]] for said in (speech, other_speech)]
    trimmed = [said[a : b + 1] for said, (a, b) in zip((speech, other_speech), ends, strict=True)]
    times = round(50 * SECOND / sum(map(len, trimmed)))
    return np.concatenate(trimmed * times), times


@pytest.mark.parametrize("vad", [True, False], ids=["by speech", "without detection"])
def test_what_lies_on_a_border_is_heard_and_written_once(tiny_bundle, breathless, vad):
    samples, times = breathless
    options = DecodingOptions(overlap=2.0, vad=vad)
    made = Transcriber(tiny_bundle, method="greedy", options=options).transcribe(samples)
    words = made.text.lower().replace(",", "").replace(".", "").split()
    assert words.count("fox") == words.count("lazy") == times
    assert words.count("short") == times and words.count("present") == times
    spans = [(segment.start, segment.end) for segment in made.segments]
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(start < end for start, end in spans)
    assert all(segment.words == () for segment in made.segments)
    assert made.left_out == pytest.approx(0, abs=1)


def test_overlap_takes_nothing_from_a_recording_of_one_window(tiny_bundle, speech):
    plain = Transcriber(tiny_bundle, method="greedy").transcribe(speech)
    options = DecodingOptions(overlap=2.0, word_times=True)
    made = Transcriber(tiny_bundle, method="greedy", options=options).transcribe(speech)
    assert made.text == plain.text
    assert "".join(word.text for word in made.segments[0].words) == made.text


def test_text_before_and_overlap_do_not_go_together():
    """A window that is told what it is yet to hear leaves it out."""
    with pytest.raises(BeamlessError, match="yet to hear"):
        DecodingOptions(overlap=2.0, previous_text=True)


@pytest.mark.parametrize("seconds", [-1.0, 5.1, float("nan")])
def test_an_overlap_out_of_range_is_refused(seconds):
    with pytest.raises(BeamlessError, match="overlap"):
        DecodingOptions(overlap=seconds)
