"""A Whisper in the layout that OpenVINO GenAI loads, so that both run the very same arrays.

GenAI hands what the encoder gives to the decoder and looks at its first axis only. So the encoder
here gives the cross-KV of all layers in place of its hidden state, and the decoder need not compute
them anew at each step: the fastest layout that GenAI's machinery allows.

Dimension symbols are those of ``whisper.py``; T tokens at once, P tokens before them.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import Node
from openvino import opset13 as op

from beamless.inference.atomic import PARTIAL, write_text_atomically
from beamless.inference.errors import BeamlessError
from beamless.inference.tokenizer import Tokenizer
from beamless.models.graphs import (
    HIDDEN_POSITION,
    encoder_graph,
    feed_forward,
    graph_input,
    graph_output,
    layer_norm,
    linear,
    merge_heads,
    project,
    split_heads,
)
from beamless.models.whisper import Checkpoint


def write_genai_folder(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a folder for ``openvino_genai.WhisperPipeline``, whole or not at all.

    Raises:
        BeamlessError: the folder exists, or openvino-tokenizers or transformers is not installed.
    """
    if folder.exists():
        raise BeamlessError(f"{folder} exists; name another folder or remove it first")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=folder.parent) as name:
        partial = Path(name) / "genai"
        partial.mkdir()
        ov.save_model(wide_encoder_graph(checkpoint), partial / "openvino_encoder_model.xml")
        ov.save_model(stateful_decoder_graph(checkpoint), partial / "openvino_decoder_model.xml")
        _save_tokenizer(checkpoint, partial)
        for stem, content in configs(checkpoint).items():
            write_text_atomically(partial / f"{stem}.json", json.dumps(content, indent=2) + "\n")
        partial.rename(folder)


def wide_encoder_graph(checkpoint: Checkpoint) -> ov.Model:
    """Build ``input_features`` [B, M, F] → ``last_hidden_state`` [B, 2·L·H, S, e], the cross-KV.

    GenAI lets go of a window by feeding none: B = 0.
    """
    model = encoder_graph(checkpoint)
    parts = [result.input_value(0) for result in model.get_results()]
    features = model.get_parameters()[0]
    features.output(0).get_tensor().set_names({"input_features"})
    wide = graph_output(op.concat(parts, axis=1), "last_hidden_state")
    model = ov.Model([wide], [features], "encoder")
    model.reshape([-1, checkpoint.sizes.mels, checkpoint.sizes.frames])
    return model


def stateful_decoder_graph(checkpoint: Checkpoint) -> ov.Model:
    """Build the decoder with its cache inside.

    Inputs: ``input_ids`` [B, T]; ``encoder_hidden_states`` [B, 2·L·H, S, e]; ``beam_idx`` [B],
    which hypothesis each one goes on from. Output: ``logits`` [B, T, V].
    """
    arrays, sizes, heads = checkpoint.arrays, checkpoint.sizes, checkpoint.heads
    ids = graph_input([-1, -1], np.int64, "input_ids")
    parts, size = 2 * sizes.decoder_layers, sizes.width // heads
    wide = [-1, parts * heads, sizes.audio_positions, size]
    encoded = graph_input(wide, np.float32, "encoder_hidden_states")
    beam = graph_input([-1], np.int32, "beam_idx")
    crosses = op.split(encoded, _scalar(1), parts).outputs()
    embedding = op.constant(np.asarray(arrays["model.decoder.embed_tokens.weight"], np.float32))
    x = op.gather(embedding, ids, _scalar(0))
    sinks: list[Node] = []
    caches = [
        [_Cache(ids, beam, heads, size, f"{part}.{layer}") for part in "kv"]
        for layer in range(sizes.decoder_layers)
    ]
    bias, positions = _causal(ids, caches[0][0].past)
    table = op.constant(np.asarray(arrays["model.decoder.embed_positions.weight"], np.float32))
    x = op.add(x, op.gather(table, positions, _scalar(0)))
    for layer, (keys, values) in enumerate(caches):
        name = f"model.decoder.layers.{layer}."
        y = layer_norm(arrays, name + "self_attn_layer_norm", x)
        query, key, value = (
            split_heads(linear(arrays, f"{name}self_attn.{part}_proj", y), heads) for part in "qkv"
        )
        y = op.scaled_dot_product_attention(
            query, keys.extended(key, sinks), values.extended(value, sinks), bias
        )
        x = op.add(x, linear(arrays, name + "self_attn.out_proj", merge_heads(y)))
        y = layer_norm(arrays, name + "encoder_attn_layer_norm", x)
        query = split_heads(linear(arrays, name + "encoder_attn.q_proj", y), heads)
        cross = crosses[2 * layer : 2 * layer + 2]
        y = merge_heads(op.scaled_dot_product_attention(query, *cross))
        x = op.add(x, linear(arrays, name + "encoder_attn.out_proj", y))
        x = feed_forward(arrays, name, x)
    logits = project(checkpoint, layer_norm(arrays, "model.decoder.layer_norm", x))
    outputs = [graph_output(logits, "logits")]
    return ov.Model(outputs, sinks, [ids, encoded, beam], "decoder")


class _Cache:
    """One layer's keys or values [B, H, P, e] as a variable of the graph."""

    def __init__(self, ids: Node, beam: Node, heads: int, size: int, name: str) -> None:
        batch = op.gather(op.shape_of(ids, "i64"), op.constant(np.array([0])), _scalar(0))
        empty = op.concat([batch, op.constant(np.array([heads, 0, size]))], axis=0)
        start = op.broadcast(op.constant(np.float32(0)), empty)
        self._name = name
        shape = ov.PartialShape([-1, heads, -1, size])
        read = op.read_value(start, name, ov.Type.f32, shape)
        self.past = op.gather(read, beam, _scalar(0))

    def extended(self, new: Node, sinks: list[Node]) -> Node:
        """Return the past and the new [B, H, T, e] behind it, and keep them."""
        whole = op.concat([self.past, new], axis=2)
        sinks.append(op.assign(whole, self._name))
        return whole


def _causal(ids: Node, past: Node) -> tuple[Node, Node]:
    """Return what to add to scores [1, 1, T, P + T], and the positions [T]."""
    zero, one = _scalar(0), op.constant(np.int64(1))
    before = op.gather(op.shape_of(past, "i64"), op.constant(np.int64(2)), zero)
    new = op.gather(op.shape_of(ids, "i64"), one, zero)
    end = op.add(before, new)
    positions = op.range(before, end, one, "i64")
    columns = op.range(op.constant(np.int64(0)), end, one, "i64")
    later = op.greater(op.unsqueeze(columns, zero), op.unsqueeze(positions, one))
    bias = op.multiply(op.convert(later, "f32"), op.constant(np.float32(HIDDEN_POSITION)))
    return op.unsqueeze(bias, op.constant(np.array([0, 1]))), positions


def _scalar(value: int) -> Node:
    return op.constant(np.int64(value))


def configs(checkpoint: Checkpoint) -> Mapping[str, Mapping[str, Any]]:
    """Return what the three configuration files say, by their stems."""
    sizes = checkpoint.sizes
    tokens = Tokenizer(checkpoint.tokenizer_json, sizes.vocabulary)
    generation: dict[str, Any] = {
        "decoder_start_token_id": tokens.start,
        "eos_token_id": tokens.end,
        "pad_token_id": tokens.end,
        "prev_sot_token_id": tokens.previous,
        "no_timestamps_token_id": tokens.no_timestamps,
        "max_initial_timestamp_index": 50,
        "max_length": sizes.text_positions,
        "suppress_tokens": list(checkpoint.suppress_tokens),
        "begin_suppress_tokens": list(checkpoint.begin_suppress_tokens),
        "alignment_heads": [list(head) for head in checkpoint.alignment_heads],
        "is_multilingual": tokens.multilingual,
    }
    if tokens.multilingual:
        generation["lang_to_id"] = {f"<|{code}|>": i for code, i in tokens.languages.items()}
        generation["task_to_id"] = {"transcribe": tokens.transcribe, "translate": tokens.translate}
    return {
        "config": {
            "model_type": "whisper",
            "d_model": sizes.width,
            "decoder_layers": sizes.decoder_layers,
            "encoder_layers": sizes.encoder_layers,
            "decoder_attention_heads": sizes.heads,
            "max_source_positions": sizes.audio_positions,
            "max_target_positions": sizes.text_positions,
            "num_mel_bins": sizes.mels,
            "vocab_size": sizes.vocabulary,
        },
        "generation_config": generation,
        "preprocessor_config": {
            "feature_extractor_type": "WhisperFeatureExtractor",
            "feature_size": sizes.mels,
            "sampling_rate": 16000,
            "hop_length": 160,
            "n_fft": 400,
            "chunk_length": 30,
            "n_samples": 480000,
            "nb_max_frames": sizes.frames,
        },
    }


def _save_tokenizer(checkpoint: Checkpoint, folder: Path) -> None:
    try:
        from openvino_tokenizers import convert_tokenizer
        from transformers import PreTrainedTokenizerFast
    except ImportError:
        raise BeamlessError(
            'a folder for GenAI needs openvino-tokenizers; run: pip install "beamless[bench]"'
        ) from None
    source = folder / "tokenizer.json"
    write_text_atomically(source, checkpoint.tokenizer_json)
    backend = PreTrainedTokenizerFast(
        tokenizer_file=str(source), eos_token="<|endoftext|>", bos_token="<|endoftext|>"
    )
    made = convert_tokenizer(
        backend, with_detokenizer=True, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    for model, stem in zip(made, ("tokenizer", "detokenizer"), strict=True):
        ov.save_model(model, folder / f"openvino_{stem}.xml")
