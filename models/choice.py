"""What may come next and the likeliest of it, as operators of a step: suppress lists, times, top K.

A vocabulary is mostly text, and reading all of it costs as much as some layers, so that it is gone
through as seldom as can be: the rules of times forbid text as a whole or not at all, and what they
say of single tokens is of the few behind it (the end, languages, times).

Dimension symbols: V vocabulary, T tokens of text, O others (V - T), N of a shortlist, K.
"""

from dataclasses import dataclass

import numpy as np
from openvino import Node, Output
from openvino import opset13 as op

from beamless.models.graphs import graph_input
from beamless.models.operators import (
    floats,
    index,
    ints,
    odds_beside,
    scalar,
    sum_of,
    sum_of_many,
)
from beamless.models.projection import Logits, shortlist
from beamless.models.whisper import Checkpoint

SUPPRESSED = -1e4
"""Stands in for minus infinity, which times zero is not a number. float16 holds it, too."""


@dataclass(frozen=True)
class Likeliest:
    """The K likeliest tokens of a step, best first.

    Attributes:
        tokens: their ids, int32 [K].
        logits: [K].
        log_sum_exp: of all the logits that may come, [1].
    """

    tokens: Node | Output
    logits: Node | Output
    log_sum_exp: Node


@dataclass(frozen=True)
class Rules:
    """Inputs that say what may come, each [1].

    ``first`` is 1 where the token to come opens the text. ``timestamps`` is 1 where times are
    wanted: then ``<|notimestamps|>`` may not come, and times prevail. Of the ids below the first
    time all from ``text_low`` on may come, which is 0 or no text at all, and of the times those
    from ``time_low`` to ``time_high`` (``inference/timestamps.py``).
    """

    first: Node
    timestamps: Node
    text_low: Node
    time_low: Node
    time_high: Node


def rules_inputs() -> Rules:
    """Make the inputs; at 0, with bounds that allow everything, only the suppress lists apply."""
    first, timestamps = (graph_input([1], np.float32, name) for name in ("first", "timestamps"))
    names = ("text_low", "time_low", "time_high")
    return Rules(first, timestamps, *(graph_input([1], np.int32, name) for name in names))


def choose(
    checkpoint: Checkpoint,
    logits: Logits,
    rules: Rules,
    no_speech: int,
    no_timestamps: int,
    k: int,
) -> tuple[Likeliest, Node]:
    """Find the likeliest tokens among those that may come.

    Args:
        checkpoint: the Whisper, whose suppress lists apply.
        logits: of all tokens.
        rules: the inputs.
        no_speech, no_timestamps: the ids of these tokens.
        k: how many to find.

    Returns:
        These, and the probability of ``no_speech`` among all tokens, whether they may come or not.
    """
    end, vocabulary = logits.end, checkpoint.sizes.vocabulary
    text, before, after = _suppressed_text(checkpoint, logits.text, rules.first, end)
    found = shortlist(logits, text, k)
    best = op.gather(found.logits, ints([0]), index(0))
    text_sum = op.add(sum_of_many(odds_beside(text, best)), found.missing)
    forbidden = op.greater(rules.text_low, index(0))
    others = _allowed_others(checkpoint, logits.others, rules, no_timestamps, end)
    best_text = op.select(forbidden, scalar(SUPPRESSED), best)
    highest = op.maximum(best_text, op.reduce_max(others, ints([0]), keep_dims=True))

    split = ints([no_timestamps + 1 - end, vocabulary - no_timestamps - 1])
    special, times = op.variadic_split(others, index(0), split).outputs()
    special_sum, times_sum = (sum_of(odds_beside(part, highest)) for part in (special, times))
    likelier = op.greater_equal(times_sum, scalar(1))  # together than any one token beside them
    only_times = op.logical_and(likelier, op.greater(rules.timestamps, scalar(0.5)))
    no_text = op.logical_or(forbidden, only_times)
    text_sum_here = op.multiply(text_sum, op.exp(op.subtract(best, highest)))
    sums = [
        op.select(no_text, scalar(0), text_sum_here),
        op.select(only_times, scalar(0), special_sum),
        times_sum,
    ]
    total = op.add(highest, op.log(sum_of(op.concat(sums, axis=0))))

    scores = [
        op.select(no_text, scalar(SUPPRESSED), found.logits),
        op.select(only_times, scalar(SUPPRESSED), special),
        times,
    ]
    ids = op.constant(np.arange(end, vocabulary, dtype=np.int32))
    tokens = op.concat([found.tokens, ids], axis=0)
    number, scores = index(k), op.concat(scores, axis=0)
    top = op.topk(scores, number, 0, "max", "value", index_element_type="i32")
    chosen = Likeliest(op.gather(tokens, top.output(1), index(0)), top.output(0), total)

    unlisted = op.subtract(text_sum, sum_of(odds_beside(after, best)))
    parts = [unlisted, sum_of(odds_beside(before, best)), sum_of(odds_beside(logits.others, best))]
    no_speech_logit = op.gather(logits.others, ints([no_speech - end]), index(0))
    return chosen, op.divide(odds_beside(no_speech_logit, best), sum_of(op.concat(parts, axis=0)))


def _suppressed_text(
    checkpoint: Checkpoint, text: Output, first: Node, end: int
) -> tuple[Output, Node, Node]:
    """Apply the suppress lists to text [T].

    Returns:
        Its logits, and those of the tokens on the lists alone before and after.
    """
    always = [token for token in checkpoint.suppress_tokens if token < end]
    begin = [t for t in checkpoint.begin_suppress_tokens if t < end and t not in always]
    if not always + begin:
        return text, floats([0]), floats([0])
    listed = ints([*always, *begin])
    before = op.gather(text, listed, index(0))
    standing = floats([SUPPRESSED] * len(always) + [0] * len(begin))
    at_first = floats([0] * len(always) + [SUPPRESSED] * len(begin))
    after = op.add(before, op.add(standing, op.multiply(at_first, first)))
    return op.scatter_elements_update(text, listed, after, index(0)).output(0), before, after


def _allowed_others(
    checkpoint: Checkpoint, others: Output, rules: Rules, no_timestamps: int, end: int
) -> Node:
    """Apply the suppress lists and the rules of times to what is no text, [O]."""
    ids = np.arange(end, checkpoint.sizes.vocabulary, dtype=np.int32)
    always = SUPPRESSED * np.isin(ids, checkpoint.suppress_tokens)
    begin = SUPPRESSED * np.isin(ids, checkpoint.begin_suppress_tokens)
    timed = SUPPRESSED * (ids == no_timestamps)
    others = op.add(others, op.add(floats(always), op.multiply(floats(begin), rules.first)))
    others = op.add(others, op.multiply(floats(timed), rules.timestamps))
    special = op.greater_equal(op.constant(ids), rules.text_low)
    times = op.logical_and(
        op.greater_equal(op.constant(ids), rules.time_low),
        op.less_equal(op.constant(ids), rules.time_high),
    )
    may = op.select(op.constant(ids <= no_timestamps), special, times)
    return op.select(may, others, scalar(SUPPRESSED))
