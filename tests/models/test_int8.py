"""Weights as int8: rounded by half a step at most, and by nothing but that."""

import numpy as np
import openvino as ov
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from beamless.inference.bundle import load_bundle
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


def test_a_correctors_own_matrices_are_not_rounded(tiny):
    def matrices(graph):
        constants = [op for op in graph.get_ops() if op.get_type_name() == "Constant"]
        return [c for c in constants if c.get_element_type() == ov.Type.i8]

    config = CorrectorConfig("shift", tiny.hash, tiny.sizes.width)
    graph = corrected_graph(tiny, untrained(config), 16, 50256, 50361, 50362)
    round_matrices(graph, tiny)
    assert len(matrices(graph)) == 4 * 8 + 1
    assert sum(tuple(c.shape) == tiny.arrays[EMBEDDING].shape for c in matrices(graph)) == 1


def test_a_bundle_with_int8_weights_hears_the_same(tiny, tiny_bundle, tiny_window, tmp_path):
    write_bundle(tiny, tmp_path / "bundle", precision={"weights": "int8"})
    bundle = load_bundle(tmp_path / "bundle")
    assert bundle.manifest.precision == {"encoder": "f32", "decoder": "f32", "weights": "int8"}
    rule = (tiny_window, bundle.tokenizer.prompt(), bundle.tokenizer.end)
    assert greedy(Greedy(bundle), *rule).tokens == greedy(Greedy(tiny_bundle), *rule).tokens
    encoders = [folder / "encoder.bin" for folder in (bundle.folder, tiny_bundle.folder)]
    assert encoders[0].read_bytes() == encoders[1].read_bytes()
