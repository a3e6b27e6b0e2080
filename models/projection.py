"""Logits in a fused step: rounded where that does not matter, exact where it does.

A step of batch one spends its time reading weights, and more than half of those are the projection
to the vocabulary. As int8 they are a quarter, but their logits are off by up to one. So these only
find the likeliest tokens, whose logits are then computed from the embedding's own rows. Those of
the tokens that are no text (the end, languages, times), which rules compare with sums of others,
are all exact.

Dimension symbols: d width, V vocabulary, T tokens of text, N of the shortlist.
"""

import numpy as np
import openvino as ov
from openvino import Node
from openvino import opset13 as op

from beamless.models.int8 import EMBEDDING, forbid_rounding, rounded
from beamless.models.whisper import Checkpoint

SHORTLIST = 64
"""N. Of 257 steps of tiny.en and base each, the likeliest token was always the first of the rounded
logits too, and the eighth never behind the twelfth."""


ROUGH = "rough_logits"


def rough_logits(checkpoint: Checkpoint, hidden: Node, end: int) -> Node:
    """Project a hidden state [1, 1, d] to logits [V].

    Those below ``end`` come from a matrix of their own, which ``round_projection`` finds.
    """
    embedding = checkpoint.arrays[EMBEDDING].astype(np.float32)
    text = op.matmul(hidden, op.constant(embedding[:end]), False, True, name=ROUGH)
    others = op.matmul(hidden, op.constant(embedding[end:]), False, True)
    return op.concat([_flat(text), _flat(others)], axis=0)


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


def with_exact_best(checkpoint: Checkpoint, hidden: Node, rough: Node, logits: Node) -> Node:
    """Return ``logits`` [V] with the N largest of them as if nothing had been rounded.

    Args:
        checkpoint: the Whisper.
        hidden: what was projected, [1, 1, d].
        rough: what ``rough_logits`` made of it.
        logits: the same after rules, which add to them or suppress them.
    """
    count = op.constant(np.int32(min(SHORTLIST, checkpoint.sizes.vocabulary)))
    axis = op.constant(np.int32(0))
    best = op.topk(logits, count, 0, "max", "none", index_element_type="i32")
    embedding = op.constant(checkpoint.arrays[EMBEDDING].astype(np.float32))
    rows = op.gather(embedding, best.output(1), axis)
    exact = _flat(op.matmul(hidden, rows, transpose_a=False, transpose_b=True))
    error = op.subtract(op.gather(rough, best.output(1), axis), exact)
    refined = op.subtract(best.output(0), error)
    return op.scatter_elements_update(logits, best.output(1), refined, axis)


def _flat(x: Node) -> Node:
    return op.reshape(x, np.array([-1]), special_zero=False)
