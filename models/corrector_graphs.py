"""Correctors as OpenVINO subgraphs; ``fuse.py`` puts them into the decoder's step.

Symbols are those of ``corrector.py``.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from openvino import Node
from openvino import opset13 as op

from beamless.models.choice import Likeliest
from beamless.models.corrector import Corrector, CorrectorConfig
from beamless.models.operators import flattened, floats, index, ints, scalar, sum_of

LEAST_LOGPROB = -20.0  # of a score; suppressed tokens have -1e4 here and minus infinity in torch
LEAST_ODDS = 1e-6
NATS = 4.0  # log-probabilities and margins are divided by it, so that scores are about 1
LOGITS = 16.0  # and so are raw logits and their log-sum-exp


def seen(corrector: Corrector, hidden: Node, history: Node, told: Sequence[Node] = ()) -> Node:
    """Normalise hidden [1, 1, d] and history [W, d], oldest first, together: [1, 1, (W + 1)·d].

    What else the corrector is ``told`` stands behind, as it is: see ``told_of``.
    """
    arrays = corrector.arrays
    past = op.reshape(history, np.array([1, 1, -1]), special_zero=False)
    x = _normalised(op.concat([hidden, past], axis=2))
    x = op.add(op.multiply(x, floats(arrays["norm.weight"])), floats(arrays["norm.bias"]))
    return op.concat([x, *told], axis=2) if told else x


def told_of(
    config: CorrectorConfig, ids: Node, embedded: Node, end: int, spent: Node | None
) -> list[Node]:
    """Return what a corrector is told beside the states, each [1, 1, n].

    Args:
        config: the corrector's.
        ids: the token that the step is fed [1, 1].
        embedded: its embedding [1, 1, d], which counts where the token is text.
        end: the first id that is no text.
        spent: the share of the window's budget that the text has used up [1], for a ledger.
    """
    told = []
    if config.last_token:
        is_text = op.convert(op.less(ids, index(end)), "f32")
        told.append(op.multiply(_normalised(embedded), op.unsqueeze(is_text, index(2))))
    if spent is not None:
        told.append(op.reshape(spent, np.array([1, 1, 1]), special_zero=False))
    return told


def layer_of(corrector: Corrector, hidden: Node, history: Node, told: Sequence[Node] = ()) -> Node:
    """Return the hidden units of ``shift`` and ``dense``, [1, 1, m]."""
    return op.gelu(_linear(corrector.arrays, "up", seen(corrector, hidden, history, told)), "erf")


def down_of(corrector: Corrector, layer: Node) -> Node:
    """Return what ``shift`` adds to a hidden state [1, 1, d], or ``dense`` to logits [1, 1, V]."""
    return _linear(corrector.arrays, "down", layer)


def shift_of(corrector: Corrector, hidden: Node, history: Node) -> Node:
    """Build ``shift``: hidden [1, 1, d] and history [W, d] → what to add to hidden."""
    return down_of(corrector, layer_of(corrector, hidden, history))


def doubt_of(corrector: Corrector, layer: Node, logprobs: Node) -> Node:
    """Build the gate.

    It sees three scores of the corrected tokens, and the hidden units: the log-odds of all but
    the best, margin of the best to the second, and entropy, all among the K likeliest alone.

    Args:
        corrector: one with a gate.
        layer: hidden units [..., m].
        logprobs: of the K likeliest tokens after correction, best first, [K].

    Returns:
        The probability that the best is wrong, [1].
    """
    behind = op.subtract(logprobs, op.gather(logprobs, ints([0]), index(0)))  # [K], 0 of the best
    behind = op.maximum(behind, scalar(LEAST_LOGPROB))
    odds = op.subtract(sum_of(op.exp(behind)), scalar(1.0))
    log_odds = op.log(op.maximum(odds, scalar(LEAST_ODDS)))
    margin = op.negative(op.gather(behind, ints([1]), index(0)))
    own = op.subtract(behind, op.log(op.add(odds, scalar(1.0))))
    entropy = op.negative(sum_of(op.multiply(op.exp(own), own)))
    scores = [log_odds, op.divide(margin, scalar(NATS)), entropy]
    x = op.concat([*scores, flattened(layer)], axis=0)
    return op.sigmoid(flattened(_linear(corrector.arrays, "doubt", op.unsqueeze(x, index(0)))))


def rerank_of(corrector: Corrector, state: Node, embedded: Node, scores: Node) -> tuple[Node, Node]:
    """Build ``rerank``.

    Args:
        corrector: of that family.
        state: what ``seen`` returned, [1, 1, (W + 1)·d].
        embedded: the candidates' embeddings [K, d].
        scores: what ``scores_of`` returned, [K, F].

    Returns:
        What to add to the candidates' logits [K], and the mean of their hidden units [1, m].
    """
    arrays = corrector.arrays
    flat = op.reshape(state, np.array([1, -1]), special_zero=False)
    state = _linear(arrays, "state", flat)  # [1, m]
    token = _linear(arrays, "token", _normalised(embedded))  # [K, m]
    x = op.add(op.add(state, token), _linear(arrays, "score", scores))
    x = op.gelu(op.add(x, op.multiply(state, token)), "erf")
    x = op.gelu(_linear(arrays, "up", x), "erf")
    return flattened(_linear(arrays, "down", x)), op.reduce_mean(x, ints([0]), keep_dims=True)


def scores_of(likeliest: Likeliest, first: Node, text_position: Node) -> Node:
    """Build what is known of each candidate beside its token: [K, F].

    Log-probability, margin to the best, entropy of the K, log-sum-exp and raw maximum (shape and
    magnitude: a softmax cannot see the latter), whether the token opens the text, how many tokens
    of text stand before it (as a logarithm), and the rank, one column for each.
    """
    logits, total = likeliest.logits, likeliest.log_sum_exp
    count = int(logits.get_shape()[0])
    logprobs = op.maximum(op.subtract(logits, total), scalar(LEAST_LOGPROB))
    best, highest = (op.gather(x, ints([0]), index(0)) for x in (logprobs, logits))
    entropy = op.negative(sum_of(op.multiply(op.exp(logprobs), logprobs)))
    columns = [
        op.divide(logprobs, scalar(NATS)),
        op.divide(op.subtract(best, logprobs), scalar(NATS)),
        entropy,
        op.divide(total, scalar(LOGITS)),
        op.divide(highest, scalar(LOGITS)),
        first,
        op.divide(op.log(op.add(text_position, scalar(1.0))), scalar(NATS)),
    ]
    standing = [op.unsqueeze(op.broadcast(c, ints([count])), index(1)) for c in columns]
    return op.concat([*standing, floats(np.eye(count))], axis=1)


def _normalised(x: Node) -> Node:
    return op.mvn(x, ints([-1]), True, 1e-5, "inside_sqrt")


def _linear(arrays: Mapping[str, np.ndarray], name: str, x: Node) -> Node:
    y = op.matmul(x, floats(arrays[name + ".weight"]), False, True)
    bias = arrays.get(name + ".bias")
    return y if bias is None else op.add(y, floats(bias))
