"""One graph of a decoder step, the suppress lists, a corrector and the choice of a token."""

import numpy as np
import openvino as ov
from openvino import opset13 as op

from beamless.inference.tokenizer import Tokenizer
from beamless.models.corrector import CANDIDATES, Corrector
from beamless.models.corrector_graphs import (
    Likeliest,
    doubt_of,
    down_of,
    layer_of,
    rerank_of,
    scores_of,
    seen,
)
from beamless.models.graphs import decoder_body, graph_input, graph_output, project
from beamless.models.projection import rough_logits, with_exact_best
from beamless.models.whisper import Checkpoint

TOP_K = CANDIDATES
SUPPRESSED = -1e9  # stands in for minus infinity, which times zero is not a number


def corrected_graph(
    checkpoint: Checkpoint,
    corrector: Corrector,
    capacity: int,
    end: int,
    no_speech: int,
    no_timestamps: int,
    int8: bool = False,
) -> ov.Model:
    """Build ``corrected.xml``.

    ``end``, ``no_speech`` and ``no_timestamps`` are the ids of these tokens, as ``special_of``
    gives them; no token from ``end`` on is text. With ``int8`` the graph is one whose matrices
    ``int8.round_matrices`` will round, all of them: then no logit is computed twice.

    Inputs: those of the step (``graphs.decoder_graph``); ``first`` [1], 1 where the token to
    come opens the text; ``strength`` [1], 1 to correct and 0 to decode greedily; ``history``
    [W, d], the hidden states of the steps before; those of ``_allowed_by_times``; and, for the
    family ``rerank``, ``text_position`` [1], how many tokens of text stand before the one to come;
    and, for a corrector with a ledger, ``spent`` [1], the share of the window's budget of tokens
    that the text has used up.

    Outputs: ``top_tokens`` [K] (int32) and ``top_logprobs`` [K], best first; ``no_speech_prob``
    [1]; ``hidden`` [1, 1, d], as the decoder gave it; the step's present keys and values and
    alignment; and, where the corrector has a gate, ``doubt`` [1], the probability that the
    corrected choice is wrong. The full logits never leave the graph, and most of them are rounded
    once ``projection.round_projection`` or ``int8.round_matrices`` has been at it.
    """
    inputs, hidden, others = decoder_body(checkpoint, capacity)
    vocabulary = checkpoint.sizes.vocabulary
    first = graph_input([1], np.float32, "first")
    strength = graph_input([1], np.float32, "strength")
    history_shape = [corrector.config.history, checkpoint.sizes.width]
    history = graph_input(history_shape, np.float32, "history")

    config, moved, layer = corrector.config, hidden, None
    spent = graph_input([1], np.float32, "spent") if config.ledger else None
    if config.family != "rerank":
        layer = layer_of(corrector, hidden, history, spent)
        added = op.multiply(strength, down_of(corrector, layer))
    if config.family == "shift":
        moved = op.add(hidden, added)
    if int8:
        logits = op.reshape(project(checkpoint, moved), _ints([vocabulary]), special_zero=False)
    else:
        logits = rough = rough_logits(checkpoint, moved, end)
    if config.family == "dense":
        logits = op.add(logits, op.reshape(added, np.array([vocabulary]), special_zero=False))
    unruled = logits
    always = _bias(vocabulary, checkpoint.suppress_tokens)
    begin = _bias(vocabulary, checkpoint.begin_suppress_tokens)
    logits = op.add(logits, op.add(always, op.multiply(begin, first)))
    logits, rules = _allowed_by_times(logits, no_timestamps, vocabulary)
    if not int8:
        logits = with_exact_best(checkpoint, moved, rough, logits)
    highest = op.reduce_max(logits, _ints([0]), keep_dims=True)
    logits, total = _times_prevail(logits, highest, rules[0], no_timestamps)
    no_speech_logit = op.gather(unruled, _ints([no_speech]), op.constant(np.int32(0)))
    everything = op.add(highest, op.log(_sum(_odds(unruled, highest))))
    no_speech_prob = op.exp(op.subtract(no_speech_logit, everything))
    k = op.constant(np.int32(config.candidates or TOP_K))
    top = op.topk(logits, k, 0, "max", "value", index_element_type="i32")
    tokens, logprobs = top.output(1), op.subtract(top.output(0), total)
    if config.family == "rerank":
        rules.append(graph_input([1], np.float32, "text_position"))
        likeliest = Likeliest(tokens, top.output(0), total)
        embedding = checkpoint.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)
        embedded = op.gather(op.constant(embedding), tokens, op.constant(np.int32(0)))
        scores = scores_of(likeliest, first, rules[-1])
        state = seen(corrector, hidden, history, spent)
        added, layer = rerank_of(corrector, state, embedded, scores)
        tokens, logprobs = _reordered(likeliest, op.multiply(strength, added))
    outputs = [
        graph_output(tokens, "top_tokens"),
        graph_output(logprobs, "top_logprobs"),
        graph_output(no_speech_prob, "no_speech_prob"),
        graph_output(hidden, "hidden"),
        *others,
    ]
    if spent is not None:
        rules.append(spent)
    if config.gate:
        outputs.append(graph_output(doubt_of(corrector, layer, logprobs), "doubt"))
    return ov.Model(outputs, [*inputs, first, strength, history, *rules], "corrected")


def special_of(tokenizer: Tokenizer) -> tuple[int, int, int]:
    """Return the ids that ``corrected_graph`` asks for."""
    return tokenizer.end, tokenizer.no_speech, tokenizer.no_timestamps


def _reordered(likeliest: Likeliest, added: ov.Node) -> tuple[ov.Output, ov.Node]:
    """Add to the candidates' logits [K]; return their ids and log-probabilities, best first.

    The tokens that are no candidates keep their share of the sum, and are never chosen. Ties keep
    the candidates' order.
    """
    logits = op.add(likeliest.logits, added)
    axis = _ints([0])
    highest = op.maximum(
        op.reduce_max(logits, axis, keep_dims=True),
        op.reduce_max(likeliest.logits, axis, keep_dims=True),
    )
    before = op.reduce_sum(op.exp(op.subtract(likeliest.logits, highest)), axis, keep_dims=True)
    others = op.subtract(op.exp(op.subtract(likeliest.log_sum_exp, highest)), before)
    others = op.maximum(others, op.constant(np.float32(0)))
    after = op.reduce_sum(op.exp(op.subtract(logits, highest)), axis, keep_dims=True)
    total = op.add(highest, op.log(op.add(others, after)))
    count = op.constant(np.int32(logits.get_output_shape(0)[0]))
    best = op.topk(logits, count, 0, "max", "value", index_element_type="i32", stable=True)
    tokens = op.gather(likeliest.tokens, best.output(1), op.constant(np.int32(0)))
    return tokens, op.subtract(best.output(0), total)


def _allowed_by_times(
    logits: ov.Node, no_timestamps: int, vocabulary: int
) -> tuple[ov.Node, list[ov.Node]]:
    """Suppress what Whisper's timestamp rules forbid, whatever the logits are.

    The host says which ids may come (``inference/timestamps.py``): of those below the first time
    all from ``text_low`` [1] on, and the times from ``time_low`` [1] to ``time_high`` [1], int32.
    ``timestamps`` [1] is 1 where times are wanted: then ``<|notimestamps|>`` may not come. At 0,
    with bounds that allow everything, no logit is changed.

    Returns:
        The logits [V], and the four inputs.
    """
    switch = graph_input([1], np.float32, "timestamps")
    text_low, time_low, time_high = (
        graph_input([1], np.int32, name) for name in ("text_low", "time_low", "time_high")
    )
    ids = np.arange(vocabulary, dtype=np.int32)
    is_text = op.constant(ids <= no_timestamps)
    times_may = op.logical_and(op.greater_equal(ids, time_low), op.less_equal(ids, time_high))
    may = op.select(is_text, op.greater_equal(ids, text_low), times_may)
    logits = op.select(may, logits, op.constant(np.float32(SUPPRESSED)))
    logits = op.add(logits, op.multiply(_bias(vocabulary, (no_timestamps,)), switch))
    return logits, [switch, text_low, time_low, time_high]


def _times_prevail(
    logits: ov.Node, highest: ov.Node, switch: ov.Node, no_timestamps: int
) -> tuple[ov.Node, ov.Node]:
    """Allow nothing but times where these together are likelier than any other token.

    Only where ``switch`` [1] is 1, as times are wanted. Where a time is the likeliest token they
    are, so that the ``highest`` logit [1] is all they need to be compared with.

    Returns:
        The logits [V], and the log-sum-exp [1] of those that are allowed.
    """
    vocabulary, count = logits.get_output_shape(0)[0], no_timestamps + 1
    odds = _odds(logits, highest)
    parts = op.variadic_split(odds, op.constant(np.int32(0)), _ints([count, vocabulary - count]))
    others, times = _sum(parts.output(0)), _sum(parts.output(1))
    prevail = op.logical_and(
        op.greater_equal(times, op.constant(np.float32(1))),
        op.greater(switch, op.constant(np.float32(0.5))),
    )
    others = op.select(prevail, op.constant(np.float32(0)), others)
    is_text = op.constant(np.arange(vocabulary) < count)
    never = op.constant(np.float32(SUPPRESSED))
    logits = op.select(op.logical_and(is_text, prevail), never, logits)
    return logits, op.add(highest, op.log(op.add(times, others)))


def _bias(vocabulary: int, tokens: tuple[int, ...]) -> ov.Node:
    bias = np.zeros(vocabulary, np.float32)
    bias[list(tokens)] = SUPPRESSED
    return op.constant(bias)


def _odds(logits: ov.Node, highest: ov.Node) -> ov.Node:
    """Return how likely each token is beside that of the ``highest`` logit [1]: [V]."""
    return op.exp(op.subtract(logits, highest))


def _sum(x: ov.Node | ov.Output) -> ov.Node:
    """[n] → [1]."""
    return op.reduce_sum(x, _ints([0]), keep_dims=True)


def _ints(values: list[int]) -> ov.Node:
    return op.constant(np.array(values, np.int32))
