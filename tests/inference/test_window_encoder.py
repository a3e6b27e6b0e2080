"""The short audio context: what is heard is the full one's, and nothing of another window is."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import say
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.bundle import load_bundle
from beamless.inference.decoder import StaticDecoder
from beamless.inference.encoder import Encoder
from beamless.inference.features import log_mel
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.methods import open_method
from beamless.inference.options import DecodingOptions
from beamless.inference.silence import group_starts
from beamless.inference.transcribe import Transcriber
from beamless.inference.window_encoder import WindowEncoder, with_silence

SECOND = 16000


@pytest.fixture(scope="module")
def encoder(tiny_bundle):
    """On the CPU, which takes windows of any size."""
    return WindowEncoder(tiny_bundle)


@pytest.fixture(scope="module")
def fixed_bundle(tiny_bundle):
    """On a device that is given graphs of fixed sizes, as an NPU is, and that is fast here."""
    return load_bundle(tiny_bundle.folder, "AUTO")


@pytest.fixture(scope="module")
def fixed(fixed_bundle):
    return WindowEncoder(fixed_bundle)


@pytest.fixture(scope="module")
def silent(tiny_bundle):
    """What the full encoder makes of thirty seconds of silence."""
    return Encoder(tiny_bundle.compile("encoder"))(log_mel(np.zeros(0, np.float32)))


def said(bundle, cross_kv, method="greedy"):
    """What a method hears in a window, as text."""
    decode = open_method(bundle, method, "en")
    return bundle.tokenizer.decode(decode(cross_kv).tokens).strip()


@pytest.mark.parametrize("method", ["corrected", "beam5"])
def test_a_short_clip_says_what_it_says_in_the_full_context(tiny_bundle, encoder, speech, method):
    short, full = (said(tiny_bundle, encoder(speech, c), method) for c in ("short", "full"))
    assert short == full == "The quick brown fox jumps over the lazy dog."


def test_a_multilingual_model_hears_a_short_clip_too(base_bundle, speech):
    encoder = WindowEncoder(base_bundle)
    assert said(base_bundle, encoder(speech, "short")) == said(base_bundle, encoder(speech, "full"))


def test_the_full_context_is_whispers_own_bit_for_bit(tiny_window, encoder, speech):
    for name, array in encoder(speech, "full").items():
        np.testing.assert_array_equal(array, tiny_window[name])


def test_behind_the_audio_stands_what_the_encoder_makes_of_silence(fixed, silent, speech):
    size = fixed.size_for(len(speech))
    assert size == 250
    window = fixed(speech, "short")
    for name, array in silent.items():
        np.testing.assert_allclose(window[name][:, :, size:], array[:, :, size:], atol=1e-3)
        assert np.abs(window[name][:, :, :size] - array[:, :, :size]).max() > 0.1


def test_one_position_stands_for_many_of_silence_where_any_size_is_taken(encoder, silent, speech):
    size = encoder.size_for(len(speech))
    window = encoder(speech, "short")
    np.testing.assert_allclose(window["cross_bias"][0, size:-50], np.log(25), atol=1e-6)
    assert not window["cross_bias"][0, -50:].any()
    for name, array in silent.items():
        groups = array[:, :, size:1450].reshape(1, 6, -1, 25, 64).mean(axis=3)
        np.testing.assert_allclose(window[name][:, :, size:-50], groups, atol=1e-5)
        np.testing.assert_array_equal(window[name][:, :, -50:], array[:, :, -50:])


@pytest.mark.parametrize("text", ["Seven.", "Six. Six. Six. Six.", "The quick brown fox."])
def test_few_positions_of_silence_are_all_of_them_to_the_decoder(
    tiny_bundle, encoder, silent, text
):
    """The next token's distribution; without the last second as it is this one fails."""
    few = encoder(say(text), "short")
    size = int((few["cross_bias"] == 0).sum()) - 50
    whole = {n: np.concatenate([few[n][:, :, :size], a[:, :, size:]], 2) for n, a in silent.items()}
    chooser = Greedy(tiny_bundle)
    prompt, end = tiny_bundle.tokenizer.prompt(), tiny_bundle.tokenizer.end
    several, all_of_them = (greedy(chooser, kv, prompt, end) for kv in (few, whole))
    assert several.tokens == all_of_them.tokens
    np.testing.assert_allclose(several.logprobs, all_of_them.logprobs, atol=0.02)


@given(st.integers(0, 28 * SECOND))
def test_all_positions_together_are_as_many_as_in_the_full_context(encoder, samples):
    size = encoder.size_for(samples)
    part = {"cross_key.0": np.ones((1, 1, size, 1), np.float32)}
    starts = group_starts(1500)
    silence = {"cross_key.0": np.zeros((1, 1, len(starts), 1), np.float32)}
    window = with_silence(part, silence, starts)
    assert np.exp(window["cross_bias"]).sum() == pytest.approx(1500, abs=0.01)
    assert window["cross_bias"].shape[1] == window["cross_key.0"].shape[2]


@pytest.mark.parametrize("method", ["corrected", "greedy-lookahead", "beam5"])
def test_fixed_sizes_hear_what_open_ones_hear(tiny_bundle, fixed_bundle, other_speech, method):
    heard = {
        said(bundle, WindowEncoder(bundle)(other_speech, "short"), method)
        for bundle in (tiny_bundle, fixed_bundle)
    }
    assert heard == {"In short, the period was so far like the present period."}


def test_zeros_behind_the_audio_would_spoil_the_text(tiny_bundle, encoder):
    word = say("Seven.")
    size = encoder.size_for(len(word))
    window = dict(encoder(word, "short"))
    assert said(tiny_bundle, window) in ("7", "7.")
    bias = window.pop("cross_bias")
    for array in window.values():
        array[:, :, size:] = 0
    assert said(tiny_bundle, {**window, "cross_bias": bias}) not in ("7", "7.")


def test_silence_is_encoded_once_for_all_starts(fixed_bundle, speech, tmp_path):
    bundle = replace(fixed_bundle, graph_cache=tmp_path)
    first = WindowEncoder(bundle)(speech, "short")
    (file,) = tmp_path.glob("silence-*.npy")
    compiled = {key: value for key, value in bundle._compiled.items() if key[3] != 3000}
    assert len(compiled) == 1 < len(bundle._compiled)
    again = replace(bundle)
    again._compiled.update(compiled)
    for damage in (False, True):
        if damage:
            file.write_bytes(file.read_bytes()[:-1000])
        second = WindowEncoder(again)(speech, "short")
        assert len(again._compiled) == 1 + damage
        for name, array in first.items():
            np.testing.assert_array_equal(second[name], array)


def test_silence_of_open_sizes_is_kept_and_made_again_where_it_is_damaged(
    tiny_bundle, speech, tmp_path
):
    bundle = replace(tiny_bundle, graph_cache=tmp_path)
    first = WindowEncoder(bundle)(speech, "short")
    (file,) = tmp_path.glob("silence-*-CPU-108.npy")
    whole = file.read_bytes()
    assert len(whole) < 2e6
    for damaged in (whole[:-1000], whole[:-4] + np.float32("nan").tobytes()):
        file.write_bytes(damaged)
        second = WindowEncoder(bundle)(speech, "short")
        assert file.read_bytes() == whole
        for name, array in first.items():
            np.testing.assert_array_equal(second[name], array)


def test_nothing_of_a_longer_window_is_left_in_a_shorter_one(tiny_bundle, speech):
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, 8 * SECOND).astype(np.float32)
    encoder = WindowEncoder(tiny_bundle)
    alone = {name: array.copy() for name, array in encoder(speech, "short").items()}
    for _ in range(3):
        encoder(noise, "short")
    for name, array in encoder(speech, "short").items():
        np.testing.assert_array_equal(array, alone[name])


def test_a_window_stays_as_it_is_while_the_next_ones_are_encoded(encoder, speech, other_speech):
    held = encoder(speech, "short")
    before = {name: array.copy() for name, array in held.items()}
    for _ in range(3):
        encoder(other_speech, "short")
    for name, array in held.items():
        np.testing.assert_array_equal(array, before[name])


def test_a_decoder_keeps_its_window_though_nobody_else_does(fixed_bundle, fixed, speech):
    prompt, encoder = fixed_bundle.tokenizer.prompt(), fixed
    decoder = StaticDecoder(fixed_bundle.compile("decoder"))
    decoder.start(encoder(speech, "short"))
    expected = decoder.prefill(prompt).logits.copy()
    decoder.start(encoder(speech, "short"))
    for _ in range(3):
        encoder(np.zeros(SECOND, np.float32), "short")
    np.testing.assert_array_equal(decoder.prefill(prompt).logits, expected)


def test_ever_more_windows_take_no_more_memory(fixed_bundle, speech):
    encoder, chooser = WindowEncoder(fixed_bundle), Greedy(fixed_bundle)
    places = set()
    for _ in range(6):
        window = encoder(speech, "short")
        places.add(window["cross_key.0"].ctypes.data)
        greedy(chooser, window, fixed_bundle.tokenizer.prompt(), fixed_bundle.tokenizer.end)
    assert len(places) == 2


@given(st.integers(0, 30 * SECOND))
def test_the_smallest_size_that_holds_the_audio_and_a_second_is_taken(encoder, fixed, samples):
    for each in (encoder, fixed):
        seconds = {name: name / 50 for name in each.sizes}
        holding = [s for s in each.sizes if seconds[s] * SECOND >= samples + SECOND]
        assert each.size_for(samples) == min(holding, default=1500)


@pytest.mark.parametrize(
    ("samples", "size"),
    [
        (0, 250),
        (4 * SECOND, 250),
        (4 * SECOND + 1, 500),
        (9 * SECOND + 1, 750),
        (14 * SECOND, 750),
        (14 * SECOND + 1, 1500),
        (30 * SECOND, 1500),
    ],
)
def test_one_sample_more_takes_the_next_size(fixed, samples, size):
    assert fixed.size_for(samples) == size


@pytest.mark.parametrize(
    ("samples", "size"),
    [(0, 250), (4 * SECOND, 250), (4 * SECOND + 1, 300), (28 * SECOND + 1, 1500)],
)
def test_any_size_is_of_whole_seconds_from_five_on(encoder, samples, size):
    assert encoder.size_for(samples) == size


def test_audio_of_just_under_and_over_a_size_is_heard_to_its_end(
    tiny_bundle, encoder, fixed, speech
):
    for length in (4 * SECOND, 4 * SECOND + 1):
        padded = np.zeros(length, np.float32)
        padded[-len(speech) :] = speech[-length:]
        for each in (encoder, fixed):
            assert said(tiny_bundle, each(padded, "short")).endswith("the lazy dog.")


def test_more_than_thirty_seconds_are_refused(encoder):
    with pytest.raises(ValueError, match="do not fit in 3000 frames"):
        encoder(np.zeros(30 * SECOND + 1, np.float32), "short")


def test_the_npus_way_hears_a_short_clip(tiny_bundle, speech):
    bundle = load_bundle(tiny_bundle.folder, "NPU:CPU")
    assert said(bundle, WindowEncoder(bundle)(speech, "short")).startswith("The quick brown fox")


def test_a_transcriber_changes_its_context_between_recordings(tiny_bundle, speech):
    transcriber = Transcriber(tiny_bundle, options=DecodingOptions(audio_context="short"))
    short = transcriber.transcribe(speech)
    transcriber.options = DecodingOptions(audio_context="full")
    assert transcriber.transcribe(speech).text == short.text
