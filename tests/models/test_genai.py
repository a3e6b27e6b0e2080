"""The folder for OpenVINO GenAI holds the same model: it loads, and says what we say."""

import numpy as np
import openvino as ov
import pytest

from beamless.inference.errors import BeamlessError
from beamless.models.genai import stateful_decoder_graph, write_genai_folder
from beamless.models.reference import reference_logits


def run_decoder(checkpoint, cross_kv, *pieces):
    """Feed pieces of one text, one after the other, and return all logits [T, V]."""
    model = stateful_decoder_graph(checkpoint)
    hints = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    request = ov.Core().compile_model(model, "CPU", hints).create_infer_request()
    layers = range(checkpoint.sizes.decoder_layers)
    wide = [cross_kv[f"cross_{part}.{n}"] for n in layers for part in ("key", "value")]
    found = []
    for piece in pieces:
        ids = np.array([piece], np.int64)
        encoded = np.concatenate(wide, axis=1)
        inputs = {"input_ids": ids, "encoder_hidden_states": encoded, "beam_idx": np.zeros(1, "i4")}
        found.append(request.infer(inputs)["logits"][0].copy())
    return np.concatenate(found)


def test_its_decoder_gives_the_references_logits_however_a_text_is_fed(
    tiny, tiny_window, tiny_reference, tiny_encoded
):
    tokens = [50257, 50362, 383, 2068, 7586, 21831]
    expected = reference_logits(tiny_reference, tiny_encoded, tokens)
    for pieces in ([tokens], [tokens[:2], tokens[2:5], tokens[5:]]):
        np.testing.assert_allclose(run_decoder(tiny, tiny_window, *pieces), expected, atol=1e-2)


@pytest.mark.parametrize("beams", [1, 5])
def test_genai_hears_what_was_said(tiny, speech, tmp_path_factory, beams):
    genai = pytest.importorskip("openvino_genai")
    folder = tmp_path_factory.getbasetemp() / "genai-tiny.en"
    if not folder.exists():
        write_genai_folder(tiny, folder)
    pipeline = genai.WhisperPipeline(folder, "CPU", INFERENCE_PRECISION_HINT="f32")
    found = pipeline.generate(speech.tolist(), num_beams=beams)
    assert found.texts[0].strip() == "The quick brown fox jumps over the lazy dog."


def test_a_folder_that_exists_is_left_alone(tiny, tmp_path):
    with pytest.raises(BeamlessError, match="exists"):
        write_genai_folder(tiny, tmp_path)
