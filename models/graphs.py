"""The two static OpenVINO graphs of a Whisper, built from its arrays with OpenVINO's operators.

Dimension symbols are those of ``whisper.py``: M, F, S, P, d, H, e, L, V, C, B; A is the number of
alignment heads.
"""

from collections.abc import Mapping

import numpy as np
import openvino as ov
from openvino import Node
from openvino import opset13 as op

from beamless.models.operators import floats, index, scalar
from beamless.models.whisper import Checkpoint

HIDDEN_POSITION = -1e4  # added to the scores of masked positions; exp() of it is 0 in float16 too
LAYER_NORM_EPSILON = 1e-5


def encoder_graph(checkpoint: Checkpoint) -> ov.Model:
    """Build log-mel → cross-KV.

    Nothing in the graph fixes F: ``ov.Model.reshape`` makes the encoder of a shorter context out of
    the same file.

    Input ``log_mel`` [1, M, F]; outputs ``cross_key.l`` and ``cross_value.l`` [1, H, S, e] for
    each decoder layer l: all that the decoder ever needs of a window.
    """
    arrays, sizes = checkpoint.arrays, checkpoint.sizes
    log_mel = graph_input([1, sizes.mels, sizes.frames], np.float32, "log_mel")
    x = op.gelu(_convolution(arrays, "model.encoder.conv1", log_mel, stride=1), "erf")
    x = op.gelu(_convolution(arrays, "model.encoder.conv2", x, stride=2), "erf")
    x = op.transpose(x, np.array([0, 2, 1]))
    x = op.add(x, _first_positions(arrays["model.encoder.embed_positions.weight"], x))
    for layer in range(sizes.encoder_layers):
        name = f"model.encoder.layers.{layer}."
        y = layer_norm(arrays, name + "self_attn_layer_norm", x)
        query, key, value = (
            split_heads(linear(arrays, f"{name}self_attn.{part}_proj", y), checkpoint.heads)
            for part in "qkv"
        )
        y = merge_heads(op.scaled_dot_product_attention(query, key, value))
        x = op.add(x, linear(arrays, name + "self_attn.out_proj", y))
        x = feed_forward(arrays, name, x)
    x = layer_norm(arrays, "model.encoder.layer_norm", x)
    outputs = []
    for layer in range(sizes.decoder_layers):
        for part in ("key", "value"):
            name = f"model.decoder.layers.{layer}.encoder_attn.{part[0]}_proj"
            heads = split_heads(linear(arrays, name, x), checkpoint.heads)
            outputs.append(graph_output(heads, f"cross_{part}.{layer}"))
    return ov.Model(outputs, [log_mel], "encoder")


def decoder_graph(checkpoint: Checkpoint, capacity: int) -> ov.Model:
    """Build one static decoder step for B = 1 hypothesis.

    Nothing in the graph fixes B, C or S: ``ov.Model.reshape`` makes the step for a beam, whose
    hypotheses stand at the same position, for a larger cache, or for windows of any number of
    positions, out of the same file.

    Inputs: ``input_ids`` [B, 1]; ``position_ids`` [1]; ``attention_mask`` [1, C], 1 = attend,
    the current token at the last index; ``past_key.l``, ``past_value.l`` [B, H, C-1, e];
    ``cross_key.l``, ``cross_value.l`` [1, H, S, e]; ``cross_bias`` [1, S], added to the scores of
    the cross-attention: log n where a position stands for n that are alike.

    Outputs: ``logits`` [B, 1, V]; ``hidden`` [B, 1, d], what the projection to logits sees;
    ``present_key.l``, ``present_value.l`` [B, H, 1, e], the current token's own; and
    ``alignment`` [B, A, S], the alignment heads' attention over the audio, where A > 0.
    """
    inputs, _, hidden, others = decoder_body(checkpoint, capacity)
    logits = project(checkpoint, hidden)
    outputs = [graph_output(logits, "logits"), graph_output(hidden, "hidden"), *others]
    return ov.Model(outputs, inputs, "decoder")


def project(checkpoint: Checkpoint, hidden: Node) -> Node:
    """Project hidden states [..., d] to logits [..., V] by the tied token embedding."""
    embedding = floats(checkpoint.arrays["model.decoder.embed_tokens.weight"])
    return op.matmul(hidden, embedding, transpose_a=False, transpose_b=True)


def decoder_body(
    checkpoint: Checkpoint, capacity: int
) -> tuple[list[Node], Node, Node, list[Node]]:
    """Build a step up to its last hidden state.

    Returns:
        The graph's inputs, the token's embedding and the hidden state [B, 1, d], and the outputs
        beside it: the present keys and values, and the alignment heads' attention.
    """
    arrays, sizes, heads = checkpoint.arrays, checkpoint.sizes, checkpoint.heads
    size = sizes.width // heads
    ids = graph_input([1, 1], np.int32, "input_ids")
    position = graph_input([1], np.int32, "position_ids")
    mask = graph_input([1, capacity], np.float32, "attention_mask")
    bias = op.multiply(op.subtract(scalar(1.0), mask), scalar(HIDDEN_POSITION))
    bias = op.unsqueeze(bias, np.array([0, 1]))
    weight = graph_input([1, sizes.audio_positions], np.float32, "cross_bias")
    cross_bias = op.unsqueeze(weight, np.array([0, 1]))
    inputs, outputs, alignment = [ids, position, mask, weight], [], []

    embedded = op.gather(floats(arrays["model.decoder.embed_tokens.weight"]), ids, index(0))
    x = op.add(
        embedded,
        op.gather(floats(arrays["model.decoder.embed_positions.weight"]), position, index(0)),
    )
    for layer in range(sizes.decoder_layers):
        name = f"model.decoder.layers.{layer}."
        past_key, past_value = (
            graph_input([1, heads, capacity - 1, size], np.float32, f"past_{part}.{layer}")
            for part in ("key", "value")
        )
        cross_key, cross_value = (
            graph_input(
                [1, heads, sizes.audio_positions, size], np.float32, f"cross_{part}.{layer}"
            )
            for part in ("key", "value")
        )
        inputs += [past_key, past_value, cross_key, cross_value]

        y = layer_norm(arrays, name + "self_attn_layer_norm", x)
        query, key, value = (
            split_heads(linear(arrays, f"{name}self_attn.{part}_proj", y), heads) for part in "qkv"
        )
        outputs += [
            graph_output(key, f"present_key.{layer}"),
            graph_output(value, f"present_value.{layer}"),
        ]
        y = _self_attention(query, (past_key, key), (past_value, value), bias)
        x = op.add(x, linear(arrays, name + "self_attn.out_proj", merge_heads(y)))

        y = layer_norm(arrays, name + "encoder_attn_layer_norm", x)
        query = split_heads(linear(arrays, name + "encoder_attn.q_proj", y), heads)
        query = op.transpose(query, np.array([2, 1, 0, 3]))  # B as the query axis: [1, H, B, e]
        weights = _attention(query, cross_key, cross_bias)
        if chosen := [head for at, head in checkpoint.alignment_heads if at == layer]:
            alignment.append(op.gather(weights, op.constant(np.array(chosen, np.int32)), index(1)))
        y = _unfused(weights, cross_value)
        y = merge_heads(op.transpose(y, np.array([2, 1, 0, 3])))
        x = op.add(x, linear(arrays, name + "encoder_attn.out_proj", y))
        x = feed_forward(arrays, name, x)
    hidden = layer_norm(arrays, "model.decoder.layer_norm", x)
    if alignment:
        seen = op.transpose(op.concat(alignment, axis=1), np.array([2, 1, 3, 0]))
        outputs.append(graph_output(op.squeeze(seen, np.array([3])), "alignment"))
    return inputs, embedded, hidden, outputs


def _self_attention(
    query: Node, keys: tuple[Node, Node], values: tuple[Node, Node], bias: Node
) -> Node:
    """Attend with a query [B, H, 1, e] to the cache and the token itself: [B, H, 1, e].

    Only their scores are joined: to join the cache with the token's own key and value copies all
    of it at every step.

    Args:
        query: the token's.
        keys: the cache's [B, H, C-1, e] and the token's own [B, H, 1, e].
        values: the same.
        bias: added to the scores, [1, 1, 1, C].
    """
    query = _scaled(query)
    cached = op.matmul(query, keys[0], False, True)
    own = op.reduce_sum(op.multiply(query, keys[1]), np.array([3]), keep_dims=True)
    weights = op.softmax(op.add(op.concat([cached, own], axis=3), bias), 3)
    parts = op.variadic_split(weights, index(3), op.constant(np.array([-1, 1])))
    seen = op.matmul(parts.output(0), values[0], False, False)
    return op.add(seen, op.multiply(parts.output(1), values[1]))


def _attention(query: Node, key: Node, bias: Node) -> Node:
    """Return the attention [B, H, T, S] of queries [B, H, T, e] to keys [B, H, S, e].

    What ``scaled_dot_product_attention`` becomes on the CPU scales and transposes all keys at
    every step: over thirty seconds a fifth of it.
    """
    return op.softmax(op.add(op.matmul(_scaled(query), key, False, True), bias), 3)


def _scaled(query: Node) -> Node:
    size = int(query.get_output_partial_shape(0)[3].get_length())
    return op.multiply(query, scalar(size**-0.5))


def _unfused(weights: Node, value: Node) -> Node:
    """Multiply [1, H, T, S] by [1, H, S, e], in three dimensions.

    In four the CPU makes one kernel of the whole attention, for a single query half as fast.
    """
    product = op.matmul(op.squeeze(weights, index(0)), op.squeeze(value, index(0)), False, False)
    return op.unsqueeze(product, index(0))


def graph_input(shape: list[int], dtype: type, name: str) -> Node:
    """Make an input that is known by its name."""
    node = op.parameter(shape, dtype, name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def graph_output(node: Node, name: str) -> Node:
    """Make an output that is known by its name."""
    result = op.result(node, name=name)
    result.output(0).get_tensor().set_names({name})
    return result


def _first_positions(embedding: np.ndarray, x: Node) -> Node:
    """Return the embedding [1, T, d] of as many positions as x [1, T, d] has.

    It is a constant once the shapes are known, which is before a graph is compiled.
    """
    length = op.gather(op.shape_of(x), op.constant(np.array([1])), index(0))
    begin, step, axis = (op.constant(np.array([value])) for value in (0, 1, 1))
    return op.slice(floats(embedding[None]), begin, length, step, axis)


def linear(arrays: Mapping[str, np.ndarray], name: str, x: Node) -> Node:
    """Multiply x [..., a] by a checkpoint's weight [b, a], and add its bias where there is one."""
    y = op.matmul(x, floats(arrays[name + ".weight"]), transpose_a=False, transpose_b=True)
    bias = arrays.get(name + ".bias")
    return y if bias is None else op.add(y, floats(bias))


def layer_norm(arrays: Mapping[str, np.ndarray], name: str, x: Node) -> Node:
    """Normalise x [B, T, d] over d."""
    y = op.mvn(x, op.constant(np.array([-1], np.int32)), True, LAYER_NORM_EPSILON, "inside_sqrt")
    y = op.multiply(y, floats(arrays[name + ".weight"]))
    return op.add(y, floats(arrays[name + ".bias"]))


def feed_forward(arrays: Mapping[str, np.ndarray], name: str, x: Node) -> Node:
    """Add a layer's two linear maps with GELU between them to x [B, T, d]."""
    y = layer_norm(arrays, name + "final_layer_norm", x)
    y = op.gelu(linear(arrays, name + "fc1", y), "erf")
    return op.add(x, linear(arrays, name + "fc2", y))


def _convolution(arrays: Mapping[str, np.ndarray], name: str, x: Node, stride: int) -> Node:
    weight = floats(arrays[name + ".weight"])
    y = op.convolution(x, weight, [stride], [1], [1], [1])
    return op.add(y, floats(arrays[name + ".bias"].reshape(1, -1, 1)))


def split_heads(x: Node, heads: int) -> Node:
    """[B, T, d] → [B, H, T, e]."""
    width = x.get_output_partial_shape(0)[2].get_length()
    x = op.reshape(x, np.array([0, 0, heads, width // heads]), special_zero=True)
    return op.transpose(x, np.array([0, 2, 1, 3]))


def merge_heads(x: Node) -> Node:
    """[B, H, T, e] → [B, T, d]."""
    shape = x.get_output_partial_shape(0)  # of B and T it may know nothing
    width = shape[1].get_length() * shape[3].get_length()
    x = op.transpose(x, np.array([0, 2, 1, 3]))
    return op.reshape(x, np.array([0, 0, width]), special_zero=True)
