"""Logits in a fused step: rounded where that does not matter, exact where it does.

A step of batch one spends its time reading weights, and more than half of those are the projection
to the vocabulary. As int8 they are a quarter, but their logits are off by up to one. So these only
find the likeliest tokens, whose logits are then computed from the embedding's own rows. Those of
the tokens that are no text (the end, languages, times), which rules compare with sums of others,
are all exact.

Dimension symbols: d width, V vocabulary, T tokens of text, O others (V - T), N of the shortlist.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import openvino as ov
from openvino import Node, Output
from openvino import opset13 as op

from beamless.models.graphs import project
from beamless.models.int8 import EMBEDDING, forbid_rounding, rounded
from beamless.models.operators import flattened, floats, index, ints, largest, odds_beside, sum_of
from beamless.models.whisper import Checkpoint

SHORTLIST = 64
"""N. Of 257 steps of tiny.en and base each, the likeliest token was always the first of the rounded
logits too, and the eighth never behind the twelfth."""

ROUGH = "rough_logits"


@dataclass(frozen=True)
class Logits:
    """The scores of a step's tokens.

    Attributes:
        text: of tokens of text, [T].
        others: of those behind them, [O].
        error: of text as it was projected: for ids [N] how far off they will be, [N], once the
            projection is rounded. None where all are exact.
    """

    text: Output
    others: Output
    error: Callable[[Output], Node] | None = None

    @property
    def end(self) -> int:
        """T, which is the first id of the others."""
        return int(self.text.get_shape()[0])

    def plus(self, added: Node) -> "Logits":
        """Add to all of them, [V]."""
        text, others = _parts(flattened(added), self.end)
        text, others = op.add(self.text, text), op.add(self.others, others)
        return replace(self, text=text.output(0), others=others.output(0))


def logits_alike(checkpoint: Checkpoint, hidden: Node, end: int) -> Logits:
    """Project a hidden state [1, 1, d] by the embedding as it is, rounded or not."""
    return Logits(*_parts(flattened(project(checkpoint, hidden)), end))


def rough_logits(checkpoint: Checkpoint, hidden: Node, end: int) -> Logits:
    """Project a hidden state [1, 1, d], text by a matrix that ``round_projection`` finds."""
    embedding = checkpoint.arrays[EMBEDDING].astype(np.float32)
    rough = op.matmul(hidden, op.constant(embedding[:end]), False, True, name=ROUGH)
    text = flattened(rough)
    others = flattened(op.matmul(hidden, op.constant(embedding[end:]), False, True))

    def error(ids: Output) -> Node:
        rows = op.gather(op.constant(embedding), ids, index(0))
        exact = flattened(op.matmul(hidden, rows, transpose_a=False, transpose_b=True))
        return op.subtract(op.gather(text, ids, index(0)), exact)

    return Logits(text.output(0), others.output(0), error)


def round_projection(graph: ov.Model) -> None:
    """Let a fused step hold the matrix of ``rough_logits`` as int8.

    OpenVINO leaves floats as they are in a graph with integers in it, so that this comes last,
    when the others have been made float16.
    """
    matmul = next(node for node in graph.get_ops() if node.get_friendly_name() == ROUGH)
    constant = matmul.input_value(1).get_node()
    if constant.get_type_name() == "Convert":
        constant = constant.input_value(0).get_node()
    whole, scale = rounded(constant.get_data().astype(np.float32))
    floats = op.multiply(op.convert(op.constant(whole), "f32"), op.constant(scale))
    matmul.input(1).replace_source_output(floats.output(0))
    graph.validate_nodes_and_infer_types()
    forbid_rounding(graph)


@dataclass(frozen=True)
class Shortlist:
    """The K likeliest tokens of text, best first.

    Attributes:
        tokens, logits: their ids, int32 [K], and exact logits [K].
        missing: what the odds of text beside the best sum to beyond what rounded logits say, [1].
    """

    tokens: Node | Output
    logits: Node | Output
    missing: Node


def shortlist(logits: Logits, allowed: Output, k: int) -> Shortlist:
    """Find the likeliest tokens of text.

    Args:
        logits: as they were projected.
        allowed: those of text [T] after rules, which add to them or suppress them.
        k: how many to find.
    """
    if logits.error is None:
        return Shortlist(*largest(allowed, k), floats([0]))
    ids, rough = largest(allowed, SHORTLIST)
    exact = op.subtract(rough, logits.error(ids))
    places, values = largest(exact.output(0), k)
    highest = op.gather(values, ints([0]), index(0))
    gained = [odds_beside(some, highest) for some in (exact, rough)]
    missing = sum_of(op.subtract(*gained))
    return Shortlist(op.gather(ids, places, index(0)), values, missing)


def _parts(logits: Node, end: int) -> list[Output]:
    return op.variadic_split(logits, index(0), ints([end, -1])).outputs()
