"""Weights as int8: rounded by half a step at most, and by nothing but that."""

import numpy as np
import openvino as ov
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from beamless.inference.bundle import load_bundle
from beamless.inference.corrected import Corrected
from beamless.inference.decoder import StaticDecoder
from beamless.inference.greedy import Greedy, greedy
from beamless.models.bundle import write_bundle
from beamless.models.corrector import CorrectorConfig, untrained
from beamless.models.fuse import corrected_graph
from beamless.models.graphs import decoder_graph
from beamless.models.int8 import EMBEDDING, round_matrices, rounded, rounded_checkpoint

rows = arrays(np.float32, (3, 5), elements=st.floats(-8, 8, width=32))


@given(rows)
def test_a_weight_is_off_by_half_a_step_of_its_row_at_most(matrix):
    whole, scale = rounded(matrix)
    assert scale.shape == (3, 1)
    step = np.abs(matrix).max(axis=1, keepdims=True) / 127
    assert (np.abs(whole * scale - matrix) <= 0.56 * step + 5e-6).all()


@given(rows)
def test_scales_are_stored_as_they_are_reckoned_with(matrix):
    _, scale = rounded(matrix)
    np.testing.assert_array_equal(scale, scale.astype(np.float16))


def test_the_step_is_that_of_the_rounded_model_and_of_no_other(tiny, tiny_window, tmp_path):
    """The device must not round what the weights are multiplied with."""
    graph = decoder_graph(tiny, 16)
    round_matrices(graph, tiny)
    ov.save_model(graph, tmp_path / "int8.xml", compress_to_fp16=True)
    ov.save_model(decoder_graph(rounded_checkpoint(tiny), 16), tmp_path / "f32.xml", False)
    logits = []
    for name in ("int8", "f32"):
        model = ov.Core().read_model(tmp_path / f"{name}.xml")
        hint = {"INFERENCE_PRECISION_HINT": "f32"}
        decoder = StaticDecoder(ov.Core().compile_model(model, "CPU", hint))
        decoder.start(tiny_window)
        logits.append(decoder.prefill([50257, 50362, 383]).logits.copy())
    np.testing.assert_allclose(*logits, atol=1e-3)
    assert (tmp_path / "int8.bin").stat().st_size < 31e6


def test_a_correctors_large_matrices_are_rounded_and_its_gate_is_not(tiny):
    config = CorrectorConfig("shift", tiny.hash, tiny.sizes.width, gate=True)
    corrector = untrained(config)
    graph = corrected_graph(tiny, corrector, 16, 50256, 50361, 50362, int8=True)
    round_matrices(graph, tiny, corrector)
    constants = [op for op in graph.get_ops() if op.get_type_name() == "Constant"]
    shapes = [tuple(c.shape) for c in constants if c.get_element_type() == ov.Type.i8]
    assert len(shapes) == 4 * 8 + 1 + 2
    assert shapes.count(tiny.arrays[EMBEDDING].shape) == 1
    assert all(corrector.arrays[f"{name}.weight"].shape in shapes for name in ("up", "down"))
    assert corrector.arrays["doubt.weight"].shape not in shapes


def test_rounded_an_untrained_corrector_changes_nothing(tiny, tiny_window, tmp_path):
    """Token for token, and the log-probabilities beside them."""
    corrector = untrained(CorrectorConfig("shift", tiny.hash, tiny.sizes.width))
    write_bundle(tiny, tmp_path / "bundle", corrector, precision={"weights": "int8"})
    bundle = load_bundle(tmp_path / "bundle")
    rule = (tiny_window, bundle.tokenizer.prompt(), bundle.tokenizer.end)
    plain, corrected = (greedy(chooser(bundle), *rule) for chooser in (Greedy, Corrected))
    assert corrected.tokens == plain.tokens
    np.testing.assert_allclose(corrected.logprobs, plain.logprobs, atol=1e-3)
    assert corrected.no_speech_prob == pytest.approx(plain.no_speech_prob, abs=1e-4)


def test_a_bundle_with_int8_weights_hears_the_same(tiny, tiny_bundle, tiny_window, tmp_path):
    write_bundle(tiny, tmp_path / "bundle", precision={"weights": "int8"})
    bundle = load_bundle(tmp_path / "bundle")
    assert bundle.manifest.precision == {"encoder": "f32", "decoder": "f32", "weights": "int8"}
    rule = (tiny_window, bundle.tokenizer.prompt(), bundle.tokenizer.end)
    assert greedy(Greedy(bundle), *rule).tokens == greedy(Greedy(tiny_bundle), *rule).tokens
    encoders = [folder / "encoder.bin" for folder in (bundle.folder, tiny_bundle.folder)]
    assert encoders[0].read_bytes() == encoders[1].read_bytes()
