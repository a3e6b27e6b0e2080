"""Windows lose no speech at their borders, hold no long silence, and never exceed the limit."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.vad import Span, speech_spans
from beamless.inference.windows import Window, window_audio, windows

SECOND = 16000


@st.composite
def recordings(draw) -> tuple[list[Span], float]:
    """Spans of speech and the duration of the recording they are in."""
    lengths = draw(st.lists(st.tuples(st.floats(0, 12), st.floats(0, 70)), max_size=12))
    spans, now = [], 0.0
    for pause, speech in lengths:
        spans.append(Span(now + pause, now + pause + speech))
        now += pause + speech
    return spans, now + draw(st.floats(0, 5))


@given(recordings(), st.sampled_from([5.0, 10.0, 30.0]))
def test_windows_cover_all_speech_in_order_disjoint_and_within_the_limit(recording, limit):
    spans, duration = recording
    found = list(windows(spans, duration, limit))
    assert all(0 < window.end - window.start <= limit + 1e-9 for window in found)
    assert all(w.samples.stop - w.samples.start <= limit * SECOND for w in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert not found or (found[0].start >= 0 and found[-1].end <= duration)
    for span in spans:
        end = min(span.end, duration)
        inside = [(max(w.start, span.start), min(w.end, end)) for w in found]
        covered = sum(max(0.0, b - a) for a, b in inside)
        assert covered == pytest.approx(end - span.start, abs=2 / SECOND)


@given(recordings())
def test_empty_spans_change_nothing(recording):
    spans, duration = recording
    marked = sorted([*spans, *(Span(s.end, s.end) for s in spans)])
    assert list(windows(marked, duration)) == list(windows(spans, duration))


def test_silence_gives_no_windows():
    assert list(windows([], 60.0)) == []
    assert list(windows([(5.0, 5.0)], 60.0)) == []


def test_a_window_has_room_around_its_speech():
    assert list(windows([(2.0, 5.0)], 10.0)) == [Window(1.6, 5.4)]
    assert list(windows([(0.1, 5.0)], 5.2)) == [Window(0.0, 5.2)]


def test_a_cut_lies_in_the_longest_pause_of_the_last_third():
    spans = [(0.0, 10.0), (13.0, 21.0), (21.2, 24.0), (25.0, 28.0), (28.3, 40.0)]
    assert [w.end for w in windows(spans, 40.0)] == [24.4, 40.0]


def test_a_long_silence_ends_a_window():
    assert [w.start for w in windows([(1.0, 2.0), (8.0, 9.0)], 10.0)] == [0.6, 7.6]
    assert [w.start for w in windows([(1.0, 2.0), (6.0, 7.0)], 10.0)] == [0.6]


def test_speech_longer_than_a_window_is_cut_without_a_gap():
    found = list(windows([(0.0, 70.0)], 70.0))
    assert len(found) == 3 and found[0].start == 0 and found[-1].end == 70.0
    assert all(a.end == b.start for a, b in pairwise(found))


# --- with their audio -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def talk(speech, other_speech) -> np.ndarray:
    """Sentences with short and long pauses, and silence at both ends; about two minutes."""
    parts = []
    for i in range(16):
        pause = [0.3, 1.0, 7.0][i % 3]
        parts += [np.zeros(round(pause * SECOND), np.float32), (speech, other_speech)[i % 2]]
    return np.concatenate([*parts, np.zeros(12 * SECOND, np.float32)])


def test_each_window_comes_with_its_own_samples(talk):
    wanted = list(windows(speech_spans(talk), len(talk) / SECOND))
    for blocks in ([talk], np.array_split(talk, 37)):
        found = list(window_audio(blocks))
        assert [window for window, _ in found] == wanted
        for window, samples in found:
            np.testing.assert_array_equal(samples, talk[window.samples])


def test_a_recording_that_ends_in_speech_is_not_cut(speech):
    (window, samples), *rest = window_audio([speech[: len(speech) * 2 // 3]])
    assert not rest and window.end == pytest.approx(len(samples) / SECOND + window.start)
    assert window.samples.stop == len(speech) * 2 // 3


def test_an_empty_recording_has_no_windows():
    assert list(window_audio([])) == []
    assert list(window_audio([np.zeros(0, np.float32), np.ones(1, np.float32)])) == []


def test_speech_is_given_out_soon_after_it_ends(speech):
    read = 0

    def blocks():
        nonlocal read
        for block in [speech, *[np.zeros(SECOND, np.float32)] * 600]:
            read += len(block)
            yield block

    next(iter(window_audio(blocks())))
    assert read < len(speech) + 25 * SECOND


@pytest.mark.parametrize("kind", ["silence", "speech, then silence", "speech all the time"])
def test_memory_stays_flat_whatever_is_heard(kind, speech):
    silence = np.zeros(len(speech), np.float32)

    def blocks():
        for i in range(250):
            talking = kind == "speech all the time" or (kind != "silence" and i == 0)
            yield (speech if talking else silence).copy()

    list(window_audio([speech]))
    tracemalloc.start()
    heard = sum(len(samples) for _, samples in window_audio(blocks()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (heard > 0) == (kind != "silence")
    assert peak < 16e6  # the whole would be about 40 MB


def test_b08_a_mark_hours_into_silence_is_no_speech():
    marks = [(count * 4.096, count * 4.096) for count in range(1, 5000)]
    assert list(windows([(0.2, 2.7), *marks])) == [Window(0.0, 3.1)]
