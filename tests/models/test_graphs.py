"""The graphs built from the arrays, beside transformers' own modules."""

from dataclasses import replace

import numpy as np
import openvino as ov
import pytest
import torch

from beamless.inference.bundle import step_shapes
from beamless.inference.decoder import StaticDecoder
from beamless.inference.encoder import Encoder
from beamless.inference.features import log_mel
from beamless.inference.timestamps import LATEST
from beamless.models.corrector import CorrectorConfig, untrained
from beamless.models.fuse import corrected_graph
from beamless.models.graphs import decoder_graph, encoder_graph
from beamless.models.whisper import Checkpoint


def small_checkpoint(tiny, seed=0, mels=128):
    """A random Whisper of other sizes than any real one: nothing may be a constant."""
    rng = np.random.default_rng(seed)
    width, heads, inner, audio, text, vocabulary = 24, 3, 40, 10, 16, 52
    arrays = {}

    def put(name, *shape):
        arrays[name] = rng.normal(0, 0.3, shape).astype(np.float32)

    def norm(name):
        put(name + ".weight", width)
        put(name + ".bias", width)

    def linear(name, rows, columns, bias=True):
        put(name + ".weight", rows, columns)
        if bias:
            put(name + ".bias", rows)

    for side, layers in (("encoder", 1), ("decoder", 2)):
        for layer in range(layers):
            name = f"model.{side}.layers.{layer}."
            for attention in ("self_attn", "encoder_attn")[: 1 + (side == "decoder")]:
                norm(f"{name}{attention}_layer_norm")
                for part in ("q", "k", "v", "out"):
                    linear(f"{name}{attention}.{part}_proj", width, width, part != "k")
            norm(name + "final_layer_norm")
            linear(name + "fc1", inner, width)
            linear(name + "fc2", width, inner)
        norm(f"model.{side}.layer_norm")
    put("model.encoder.conv1.weight", width, mels, 3)
    put("model.encoder.conv2.weight", width, width, 3)
    for number in (1, 2):
        put(f"model.encoder.conv{number}.bias", width)
    put("model.encoder.embed_positions.weight", audio, width)
    put("model.decoder.embed_positions.weight", text, width)
    put("model.decoder.embed_tokens.weight", vocabulary, width)
    return Checkpoint("small", arrays, heads, tiny.tokenizer_json, (3,), (4,), ((0, 2), (1, 0)))


@pytest.fixture(scope="module")
def small(tiny):
    return small_checkpoint(tiny)


@pytest.fixture(scope="module")
def small_reference(small):
    from beamless.models.reference import reference_model

    return reference_model(small)


def compiled(graph, batch=1, capacity=None):
    if capacity:
        graph.reshape(step_shapes(graph, batch, capacity))
    return ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def features(small, seed=1):
    shape = (1, small.sizes.mels, small.sizes.frames)
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_cross_kv_is_that_of_transformers(tiny_window, tiny_reference, tiny_encoded):
    decoder = tiny_reference.model.decoder
    with torch.no_grad():
        for layer, module in enumerate(decoder.layers):
            attention = module.encoder_attn
            for part, projection in (("key", attention.k_proj), ("value", attention.v_proj)):
                expected = projection(tiny_encoded.last_hidden_state).numpy()
                expected = expected.reshape(1, 1500, 6, 64).transpose(0, 2, 1, 3)
                difference = np.abs(tiny_window[f"cross_{part}.{layer}"] - expected).max()
                assert difference < 5e-3, f"cross_{part}.{layer}"


def test_a_model_of_odd_sizes_is_that_of_transformers(small, small_reference):
    mel = features(small)
    window = Encoder(compiled(encoder_graph(small)))(mel)
    decoder = StaticDecoder(compiled(decoder_graph(small, 9)))
    decoder.start(window)
    tokens = [5, 1, 7, 7, 50, 0, 3, 9, 2]
    logits = np.stack([decoder.step([token]).logits[0].copy() for token in tokens])
    with torch.no_grad():
        expected = small_reference(
            input_features=torch.from_numpy(mel), decoder_input_ids=torch.tensor([tokens])
        )
    np.testing.assert_allclose(logits, expected.logits[0].numpy(), atol=1e-3)


def test_a_shorter_encoder_is_one_with_fewer_positions(small):
    name = "model.encoder.embed_positions.weight"
    cut = replace(small, arrays={**small.arrays, name: small.arrays[name][:4]})
    reshaped = encoder_graph(small)
    reshaped.reshape([1, small.sizes.mels, 8])
    assert not reshaped.is_dynamic()
    mel = features(cut)
    shorter, expected = Encoder(compiled(reshaped))(mel), Encoder(compiled(encoder_graph(cut)))(mel)
    for port, array in expected.items():
        assert array.shape == (1, 3, 4, 8)
        np.testing.assert_array_equal(shorter[port], array)


def test_rows_of_a_beam_do_not_see_each_other(small):
    window = Encoder(compiled(encoder_graph(small)))(features(small))
    rows = [[5, 1, 7], [8, 2, 2], [5, 1, 9]]
    wide = StaticDecoder(compiled(decoder_graph(small, 9), batch=3, capacity=12))
    wide.start(window)
    for tokens in zip(*rows, strict=True):
        together = wide.step(tokens).logits.copy()
    for row, tokens in enumerate(rows):
        alone = StaticDecoder(compiled(decoder_graph(small, 9)))
        alone.start(window)
        np.testing.assert_allclose(together[row], alone.prefill(tokens).logits[0], atol=1e-4)


def test_hidden_states_give_the_logits(small):
    decoder = StaticDecoder(compiled(decoder_graph(small, 9)))
    decoder.start(Encoder(compiled(encoder_graph(small)))(features(small)))
    step = decoder.prefill([5, 1])
    embedding = small.arrays["model.decoder.embed_tokens.weight"]
    np.testing.assert_allclose(step.logits, step.hidden @ embedding.T, atol=1e-4)


def test_alignment_is_the_chosen_heads_attention_over_the_audio(small, small_reference):
    mel = features(small)
    decoder = StaticDecoder(compiled(decoder_graph(small, 9)))
    decoder.start(Encoder(compiled(encoder_graph(small)))(mel))
    alignment = decoder.prefill([5, 1, 7]).outputs["alignment"]
    small_reference.set_attn_implementation("eager")
    with torch.no_grad():
        expected = small_reference(
            input_features=torch.from_numpy(mel),
            decoder_input_ids=torch.tensor([[5, 1, 7]]),
            output_attentions=True,
        ).cross_attentions
    small_reference.set_attn_implementation("sdpa")
    heads = [expected[layer][0, head, -1].numpy() for layer, head in small.alignment_heads]
    np.testing.assert_allclose(alignment, [heads], atol=1e-4)


def test_a_model_without_alignment_heads_has_no_such_output(small):
    graph = decoder_graph(replace(small, alignment_heads=()), 9)
    assert "alignment" not in {port.any_name for port in graph.outputs}


def test_shapes_are_static(tiny):
    for graph in (encoder_graph(tiny), decoder_graph(tiny, 16)):
        assert not graph.is_dynamic()


def test_the_corrected_graph_of_an_odd_model_chooses_as_the_host(small):
    config = CorrectorConfig("shift", small.hash, small.sizes.width, history=3, units=8)
    graph = corrected_graph(small, untrained(config), 9, end=10, no_speech=11, no_timestamps=20)
    extra = {
        "first": np.ones(1, np.float32),
        "strength": np.ones(1, np.float32),
        "history": np.ones((3, small.sizes.width), np.float32),
        "timestamps": np.zeros(1, np.float32),
        "text_low": np.zeros(1, np.int32),
        "time_low": np.zeros(1, np.int32),
        "time_high": np.full(1, LATEST, np.int32),
    }
    window = Encoder(compiled(encoder_graph(small)))(features(small))
    fused, plain = (
        StaticDecoder(compiled(graph), extra),
        StaticDecoder(compiled(decoder_graph(small, 9))),
    )
    for decoder in (fused, plain):
        decoder.start(window)
    outputs, logits = fused.step([5]).outputs, plain.step([5]).logits[0].astype(np.float64)
    everything = np.log(np.exp(logits).sum())
    assert outputs["no_speech_prob"][0] == pytest.approx(np.exp(logits[11] - everything), abs=1e-5)
    logits[[3, 4]] = -np.inf
    best = np.argsort(-logits)[:8]
    assert outputs["top_tokens"].tolist() == best.tolist()
    expected = logits[best] - np.log(np.exp(logits).sum())
    np.testing.assert_allclose(outputs["top_logprobs"], expected, atol=1e-4)


def test_windows_of_another_kind_are_refused(small, tiny_bundle):
    wrong = [np.zeros((80, 3000), np.float32), np.zeros((1, 80, 3000)), np.zeros((2, 80, 3000))]
    for given in wrong:
        with pytest.raises(ValueError, match=r"'log_mel' takes float32 \(1, 80, 3000\), not"):
            Encoder(tiny_bundle.compile("encoder"))(given)
    mel = features(small)
    with pytest.raises(ValueError, match=r"'log_mel' takes float32 .*, not"):
        Encoder(compiled(encoder_graph(small)))(mel[..., :-1])


def test_a_graph_of_open_sizes_gives_what_one_of_each_size_gives(small):
    shapes = {port.any_name: list(port.shape) for port in decoder_graph(small, 9).inputs}
    graph = encoder_graph(small)
    graph.reshape([1, small.sizes.mels, -1])
    encoder, steps = Encoder(compiled(graph)), decoder_graph(small, 9)
    steps.reshape(step_shapes(steps, 1, 9, -1))
    decoder = StaticDecoder(compiled(steps))
    for positions in (4, 6, 4):
        mel = np.ascontiguousarray(features(small)[..., : 2 * positions])
        for name, shape in shapes.items():
            if name.startswith("cross_"):
                shape[1 if name == "cross_bias" else 2] = positions
        fixed = encoder_graph(small), decoder_graph(small, 9)
        fixed[0].reshape([1, small.sizes.mels, 2 * positions])
        fixed[1].reshape(shapes)
        alone = StaticDecoder(compiled(fixed[1]))
        for each, encode in ((decoder, encoder), (alone, Encoder(compiled(fixed[0])))):
            each.record_alignments(True)
            each.start(encode(mel))
        for token in (5, 1, 7):
            logits = decoder.step([token]).logits
            np.testing.assert_allclose(logits, alone.step([token]).logits, atol=1e-4)
        assert decoder.alignments.shape == (9, 1, len(small.alignment_heads), positions)
        np.testing.assert_allclose(decoder.alignments, alone.alignments, atol=1e-4)


def test_a_position_may_stand_for_many_that_are_alike(small):
    """A bias of log n is n of them, in the hidden states and in what each head looks at."""
    window = Encoder(compiled(encoder_graph(small)))(features(small))
    size, heard = window["cross_key.0"].shape[2], 3
    behind = np.arange(size) > heard
    counts = np.array([1] * heard + [size - heard], np.float32)
    alike = {n: np.where(behind[:, None], a[:, :, heard : heard + 1], a) for n, a in window.items()}
    few = {n: np.ascontiguousarray(a[:, :, : heard + 1]) for n, a in alike.items()}
    graph = decoder_graph(small, 9)
    graph.reshape(step_shapes(graph, 1, 9, -1))
    decoder = StaticDecoder(compiled(graph))
    seen = {}
    for name, kv in (("all", alike), ("few", {**few, "cross_bias": np.log(counts)[None]})):
        decoder.start(kv)
        step = decoder.prefill([5, 1, 7])
        seen[name] = step.hidden.copy(), step.outputs["alignment"][..., :heard].copy()
    for several, one in zip(*seen.values(), strict=True):
        np.testing.assert_allclose(several, one, atol=1e-4)
    decoder.start(few)
    assert np.abs(decoder.prefill([5, 1, 7]).hidden - seen["all"][0]).max() > 1e-3


def test_encoded_windows_share_no_memory(tiny_bundle, speech, other_speech):
    """A decoder may still read the window before while the next one is encoded."""
    encoder = Encoder(tiny_bundle.compile("encoder"))
    first = encoder(log_mel(speech))
    kept = {name: array.copy() for name, array in first.items()}
    encoder(log_mel(other_speech))
    for name, array in first.items():
        np.testing.assert_array_equal(array, kept[name])
