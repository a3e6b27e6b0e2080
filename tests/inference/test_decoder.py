"""The static decoder beside transformers' growing cache, and what it refuses."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from toys import ToyBundle, toy_graph, toy_logits, toy_window

from beamless.inference.decoder import StaticDecoder
from beamless.inference.greedy import Greedy

POSITIONS = (0, 1, 3, 30)
LOGIT_BOUND = 1e-2


def spoken_tokens(bundle, length):
    """A prompt and as much text as fills ``length`` tokens."""
    tokenizer = bundle.tokenizer
    text = tokenizer.encode(" The quick brown fox jumps over the lazy dog. It sleeps, and wakes.")
    return [*tokenizer.prompt(), *text * (length // len(text) + 1)][:length]


@pytest.fixture(scope="module")
def decoder(tiny_bundle):
    return StaticDecoder(tiny_bundle.compile("decoder"))


@pytest.fixture
def started(decoder, tiny_window):
    decoder.start(tiny_window)
    return decoder


def snapshot(step):
    return step.logits[0].copy()


@pytest.mark.filterwarnings("ignore:`past_key_values` is deprecated")
def test_fault_03_step_logits_are_those_of_a_growing_cache_at_every_place(
    started, tiny_bundle, tiny_reference, tiny_encoded
):
    last = started.capacity - 1
    tokens = spoken_tokens(tiny_bundle, started.capacity)
    logits = [snapshot(started.step([token])) for token in tokens]
    for position in (*POSITIONS, last - 1, last):
        expected = growing_cache_logits(tiny_reference, tiny_encoded, tokens[: position + 1])
        assert np.abs(logits[position] - expected).max() < LOGIT_BOUND, f"position {position}"


def growing_cache_logits(model, encoded, tokens):
    """Feed all tokens but the last, then the last one with the cache that they left."""
    cache = None
    for part in filter(None, (tokens[:-1], tokens[-1:])):
        with torch.no_grad():
            output = model(
                encoder_outputs=encoded,
                decoder_input_ids=torch.tensor([part]),
                past_key_values=cache,
                use_cache=True,
            )
        cache = output.past_key_values
    return output.logits[0, -1].numpy()


@pytest.mark.parametrize("position", POSITIONS)
def test_fault_03_what_stands_in_unused_slots_does_not_matter(started, tiny_bundle, position):
    tokens = spoken_tokens(tiny_bundle, position + 1)
    for token in tokens[:-1]:
        started.step([token])
    expected = snapshot(started.step(tokens[-1:]))
    started.rewind(position)
    rng = np.random.default_rng(0)
    for buffer in started.cache.buffers.values():
        buffer[:, :, position:] = rng.normal(0, 10, buffer[:, :, position:].shape)
    np.testing.assert_allclose(snapshot(started.step(tokens[-1:])), expected, atol=1e-4)


def test_fault_03_hiding_the_last_index_hides_the_current_token(started, tiny_bundle, monkeypatch):
    from beamless.inference import decoder as module

    tokens = spoken_tokens(tiny_bundle, 4)
    started.prefill(tokens[:3])
    right = snapshot(started.step(tokens[3:]))
    started.rewind(3)
    mask_of = module.attention_mask

    def flipped(position, capacity):
        mask = mask_of(position, capacity)
        mask[0, -1] = 0
        return mask

    monkeypatch.setattr(module, "attention_mask", flipped)
    assert np.abs(snapshot(started.step(tokens[3:])) - right).max() > 0.1


def test_fault_02_every_prompt_token_fills_its_slot(started, tiny_bundle):
    prompt = spoken_tokens(tiny_bundle, 7)
    started.prefill(prompt)
    assert started.position == len(prompt)
    for buffer in started.cache.buffers.values():
        filled = np.abs(buffer[0]).sum(axis=(0, 2)) > 0  # over heads and width
        assert np.flatnonzero(filled).tolist() == list(range(len(prompt)))


def test_fault_02_the_first_prompt_token_changes_the_logits(started, tiny_window, tiny_bundle):
    prompt = spoken_tokens(tiny_bundle, 5)
    right = snapshot(started.prefill(prompt))
    started.start(tiny_window)
    other = snapshot(started.prefill([tiny_bundle.tokenizer.end, *prompt[1:]]))
    assert np.abs(other - right).max() > 0.1


def test_fault_02_an_empty_prompt_raises(started):
    with pytest.raises(ValueError, match="at least the start token"):
        started.prefill([])


def test_fault_06_a_step_without_a_window_raises():
    with pytest.raises(ValueError, match=r"start\(\) a window"):
        StaticDecoder(toy_graph(6, 8)).step([1])


@pytest.mark.parametrize("missing", ["cross_key.0", "cross_value.3"])
def test_fault_06_a_missing_cross_input_is_named(decoder, tiny_window, missing):
    window = {name: array for name, array in tiny_window.items() if name != missing}
    with pytest.raises(ValueError, match=f"lacks the step's inputs .*{missing}"):
        decoder.start(window)


@pytest.mark.parametrize(
    ("change", "given"),
    [
        (lambda a: a[:, :, :0], r"float32 \(1, 6, 0, 64\)"),
        (lambda a: a[:, :, :-1], r"float32 \(1, 6, 1499, 64\)"),
        (lambda a: a[0], r"float32 \(6, 1500, 64\)"),
        (lambda a: a.astype(np.float16), r"float16 \(1, 6, 1500, 64\)"),
        (lambda a: a.astype(np.float64), r"float64 \(1, 6, 1500, 64\)"),
    ],
    ids=["empty", "short", "rank", "float16", "float64"],
)
def test_fault_06_a_misshaped_input_raises_before_inference(decoder, tiny_window, change, given):
    window = {**tiny_window, "cross_value.1": change(tiny_window["cross_value.1"])}
    expected = r"'cross_value.1' takes .*float32.* \(1, 6, 1500, 64\), not " + given
    with pytest.raises(ValueError, match=expected):
        decoder.start(window)


def test_fault_06_an_input_that_nobody_feeds_is_named_when_the_decoder_is_made(tiny_bundle):
    with pytest.raises(ValueError, match=r"nothing is bound to .*\['first', 'history', 'strength'"):
        StaticDecoder(tiny_bundle.compile("corrected"))


def test_fault_06_an_array_that_is_not_contiguous_raises(decoder, tiny_window):
    strided = np.empty((1, 6, 1500, 128), np.float32)[..., ::2]
    with pytest.raises(ValueError, match="contiguous"):
        decoder.start({**tiny_window, "cross_key.0": strided})


def test_fault_07_a_step_beyond_the_capacity_raises():
    decoder = StaticDecoder(toy_graph(6, 8))
    decoder.start(toy_window(6, 0))
    for _ in range(8):
        decoder.step([2])
    with pytest.raises(IndexError, match="capacity of 8"):
        decoder.step([2])


@pytest.mark.parametrize("tokens", [[], [1], [1, 2, 3]])
def test_a_step_takes_one_token_for_each_hypothesis(tokens):
    decoder = StaticDecoder(toy_graph(6, 8, batch=2))
    decoder.start(toy_window(6, 0))
    with pytest.raises(ValueError, match="takes 2 tokens"):
        decoder.step(tokens)


def test_fault_11_nothing_is_bound_or_made_anew_inside_the_token_loop(monkeypatch):
    made, bound = [], []
    compiled = toy_graph(6, 8)

    class Noted:
        inputs, outputs = compiled.inputs, compiled.outputs

        def create_infer_request(self):
            made.append(compiled.create_infer_request())
            return made[-1]

    decoder = StaticDecoder(Noted())
    bind = decoder.bind
    monkeypatch.setattr(
        decoder, "bind", lambda name, array: (bound.append(name), bind(name, array))
    )
    for seed in (1, 2):
        window = toy_window(6, seed)
        decoder.start(window)
        assert sorted(bound) == ["cross_phases", "cross_table"]
        bound.clear()
        tokens = [1, 2, 3, 4]
        for at, token in enumerate(tokens):
            logits = decoder.step([token]).logits[0]
            np.testing.assert_allclose(logits, toy_logits(window, tokens[: at + 1]), atol=1e-4)
        assert not bound
    assert len(made) == 1


def test_rewind_takes_another_way_from_an_earlier_place():
    window = toy_window(6, 5)
    decoder = StaticDecoder(toy_graph(6, 8))
    decoder.start(window)
    decoder.prefill([1, 2, 3, 4, 5])
    decoder.rewind(2)
    logits = decoder.prefill([5, 5]).logits[0]
    np.testing.assert_allclose(logits, toy_logits(window, [1, 2, 5, 5]), atol=1e-4)
    with pytest.raises(ValueError, match="position 5 has not been reached"):
        decoder.rewind(5)


def test_a_beam_and_a_larger_cache_come_out_of_the_same_file(tiny_bundle, tiny_window, decoder):
    tokens = spoken_tokens(tiny_bundle, 6)
    decoder.start(tiny_window)
    expected = snapshot(decoder.prefill(tokens))
    wide = StaticDecoder(tiny_bundle.compile("decoder", batch=2, capacity=448))
    assert (wide.batch, wide.capacity) == (2, 448)
    wide.start(tiny_window)
    logits = wide.prefill(tokens).logits
    np.testing.assert_allclose(logits, [expected, expected], atol=1e-3)


def test_fault_12_the_same_window_twice_and_ten_in_a_row_survive(tiny_bundle, clip):
    """In a program of its own, since the fault was a crash; what was read is thrown away."""
    program = """
import gc, sys
from pathlib import Path
import numpy as np
from beamless.inference.audio import load_audio
from beamless.inference.bundle import load_bundle
from beamless.inference.encoder import Encoder
from beamless.inference.features import log_mel
from beamless.inference.greedy import Greedy, greedy
bundle = load_bundle(Path(sys.argv[1]))
encoder, chooser = Encoder(bundle.compile("encoder")), Greedy(bundle)
tokenizer, texts = bundle.tokenizer, []
def decode(window):
    hypothesis = greedy(chooser, window, tokenizer.prompt(), tokenizer.end)
    texts.append(tokenizer.decode(hypothesis.tokens))
window = encoder(log_mel(load_audio(Path(sys.argv[2]))))
decode(window)
decode(window)
for _ in range(10):
    window = encoder(log_mel(load_audio(Path(sys.argv[2]))))
    decode(window)
    del window
    gc.collect()
    waste = [np.full(2_000_000, np.nan, np.float32) for _ in range(3)]
print(len(texts), len(set(texts)), texts[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tiny_bundle.folder), str(clip)],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "12 1  The quick brown fox jumps over the lazy dog."


def test_fault_12_the_decoder_keeps_alive_what_it_reads_from():
    bundle = ToyBundle(6, capacity=8)
    decoder = Greedy(bundle).decoder
    window = toy_window(6, 7)
    expected = toy_logits(window, [1, 2])
    decoder.start(window)
    del window
    waste = [np.full((6, 6), np.nan, np.float32) for _ in range(1000)]
    np.testing.assert_allclose(decoder.prefill([1, 2]).logits[0], expected, atol=1e-4)
    assert len(waste) == 1000
