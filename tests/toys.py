"""A toy model: a real OpenVINO step graph, small enough to search by hand.

Its next logits are a Markov table's row for the current token, bent by a number that sums up all
visible tokens before it, as its cache holds them. The table comes in as the window's cross-KV, so
that one compiled graph serves every table. ``toy_logits`` is the same in NumPy, without a cache.
"""

from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import openvino as ov
from openvino import opset13 as op

from beamless.models.graphs import graph_input, graph_output

END = 0
START = 1


@cache
def toy_graph(vocabulary: int, capacity: int, batch: int = 1) -> ov.CompiledModel:
    """Compile the toy: one layer, one head, one number a token in each of its two caches."""
    ids = graph_input([batch, 1], np.int32, "input_ids")
    position = graph_input([1], np.int32, "position_ids")
    mask = graph_input([1, capacity], np.float32, "attention_mask")
    key = graph_input([batch, 1, capacity - 1, 1], np.float32, "past_key.0")
    value = graph_input([batch, 1, capacity - 1, 1], np.float32, "past_value.0")
    table = graph_input([vocabulary, vocabulary], np.float32, "cross_table")
    phases = graph_input([vocabulary], np.float32, "cross_phases")

    one, four = op.constant(np.float32(1)), np.array([batch, 1, 1, 1])
    number = op.add(op.convert(ids, "f32"), one)  # token + 1, so that no filled slot is 0
    present_key = op.reshape(number, four, special_zero=False)
    where = op.add(op.convert(position, "f32"), one)
    present_value = op.broadcast(where, four)
    now = op.reshape(number, np.array([batch, 1]), special_zero=False)
    past = op.reshape(key, np.array([batch, capacity - 1]), special_zero=False)
    places = op.reshape(value, np.array([batch, capacity - 1]), special_zero=False)
    seen = op.multiply(op.concat([past, now], axis=1), mask)
    at = op.concat([places, op.broadcast(where, np.array([batch, 1]))], axis=1)
    weighted = op.multiply(seen, at)  # [B, C]
    context = op.reduce_sum(weighted, np.array([1]), keep_dims=True)  # [B, 1]
    context = op.reshape(context, np.array([batch, 1, 1]), special_zero=False)
    row = op.gather(table, ids, op.constant(np.int32(0)))  # [B, 1, V]
    logits = op.add(row, op.sin(op.multiply(context, phases)))
    outputs = [
        graph_output(logits, "logits"),
        graph_output(context, "hidden"),
        graph_output(present_key, "present_key.0"),
        graph_output(present_value, "present_value.0"),
    ]
    model = ov.Model(outputs, [ids, position, mask, key, value, table, phases], "toy")
    return ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def toy_logits(window, tokens) -> np.ndarray:
    """Return the logits [V] after ``tokens``, prompt included, with no cache at all."""
    context = sum((token + 1) * (place + 1) for place, token in enumerate(tokens))
    return window["cross_table"][tokens[-1]] + np.sin(context * window["cross_phases"])


class ToyBundle:
    """What decoders ask of a bundle, for the toy."""

    def __init__(self, vocabulary, capacity, suppress=(), begin=(), times=1):
        """The last ``times`` tokens are times; the one before them says that there are none."""
        self.vocabulary = vocabulary
        self.manifest = SimpleNamespace(
            capacity=capacity, suppress_tokens=suppress, begin_suppress_tokens=begin
        )
        self.tokenizer = SimpleNamespace(
            start=START,
            end=END,
            no_speech=START,
            no_timestamps=vocabulary - times - 1,
            timestamp_begin=vocabulary - times,
        )

    def compile(self, graph, batch=1, capacity=None):
        assert graph == "decoder"
        return toy_graph(self.vocabulary, capacity or self.manifest.capacity, batch)


def toy_window(vocabulary, seed, bent=True):
    """A random toy: what follows depends on all tokens before, or, unbent, on the last alone."""
    rng = np.random.default_rng(seed)
    table = rng.normal(0, 2, (vocabulary, vocabulary)).astype(np.float32)
    phases = rng.normal(0, 1, vocabulary).astype(np.float32) * bent
    return {"cross_table": table, "cross_phases": phases.astype(np.float32)}


def scripted(vocabulary, *chain):
    """A toy that says ``chain[1:]`` after ``chain[0]``."""
    table = np.zeros((vocabulary, vocabulary), np.float32)
    for token, following in pairwise(chain):
        table[token, following] = 20
    return {"cross_table": table, "cross_phases": np.zeros(vocabulary, np.float32)}
