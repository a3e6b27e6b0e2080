"""One graph of a decoder step, the suppress lists, a corrector and the choice of a token."""

import numpy as np
import openvino as ov
from openvino import opset13 as op

from beamless.inference.tokenizer import Tokenizer
from beamless.models.choice import Likeliest, choose, rules_inputs
from beamless.models.corrector import CANDIDATES, Corrector
from beamless.models.corrector_graphs import (
    doubt_of,
    down_of,
    layer_of,
    rerank_of,
    scores_of,
    seen,
    told_of,
)
from beamless.models.graphs import decoder_body, graph_input, graph_output
from beamless.models.operators import index, ints, odds_beside, scalar, sum_of
from beamless.models.projection import logits_alike, rough_logits
from beamless.models.whisper import Checkpoint

TOP_K = CANDIDATES


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

    Inputs: those of the step (``graphs.decoder_graph``) and of ``choice.Rules``; ``strength``
    [1], 1 to correct and 0 to decode greedily; ``history`` [W, d], the hidden states of the steps
    before; for the family ``rerank``, ``text_position`` [1], how many tokens of text stand before
    the one to come; and, for a corrector with a ledger, ``spent`` [1], the share of the window's
    budget of tokens that the text has used up.

    Outputs: ``top_tokens`` [K] (int32) and ``top_logprobs`` [K], best first; ``log_sum_exp`` [1]
    of all the corrected logits that may come, which says how high they are; ``no_speech_prob``
    [1]; ``hidden`` [1, 1, d], as the decoder gave it; the step's present keys and values and
    alignment; and, where the corrector has a gate, ``doubt`` [1], the probability that the
    corrected choice is wrong. The full logits never leave the graph, and most of them are rounded
    once ``projection.round_projection`` or ``int8.round_matrices`` has been at it.
    """
    inputs, embedded, hidden, others = decoder_body(checkpoint, capacity)
    rules = rules_inputs()
    strength = graph_input([1], np.float32, "strength")
    history_shape = [corrector.config.history, checkpoint.sizes.width]
    history = graph_input(history_shape, np.float32, "history")
    inputs += [*vars(rules).values(), strength, history]

    config, moved, layer = corrector.config, hidden, None
    spent = graph_input([1], np.float32, "spent") if config.ledger else None
    told = told_of(config, inputs[0], embedded, end, spent)
    if config.family != "rerank":
        layer = layer_of(corrector, hidden, history, told)
        added = op.multiply(strength, down_of(corrector, layer))
    if config.family == "shift":
        moved = op.add(hidden, added)
    logits = (logits_alike if int8 else rough_logits)(checkpoint, moved, end)
    if config.family == "dense":
        logits = logits.plus(added)
    k = config.candidates or TOP_K
    found, no_speech_prob = choose(checkpoint, logits, rules, no_speech, no_timestamps, k)
    tokens, total = found.tokens, found.log_sum_exp
    logprobs = op.subtract(found.logits, total)
    if config.family == "rerank":
        text_position = graph_input([1], np.float32, "text_position")
        inputs.append(text_position)
        embedding = checkpoint.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)
        candidates = op.gather(op.constant(embedding), tokens, index(0))
        scores = scores_of(found, rules.first, text_position)
        state = seen(corrector, hidden, history, told)
        added, layer = rerank_of(corrector, state, candidates, scores)
        tokens, logprobs, total = _reordered(found, op.multiply(strength, added))
    outputs = [
        graph_output(tokens, "top_tokens"),
        graph_output(logprobs, "top_logprobs"),
        graph_output(total, "log_sum_exp"),
        graph_output(no_speech_prob, "no_speech_prob"),
        graph_output(hidden, "hidden"),
        *others,
    ]
    if spent is not None:
        inputs.append(spent)
    if config.gate:
        outputs.append(graph_output(doubt_of(corrector, layer, logprobs), "doubt"))
    return ov.Model(outputs, inputs, "corrected")


def special_of(tokenizer: Tokenizer) -> tuple[int, int, int]:
    """Return the ids that ``corrected_graph`` asks for."""
    return tokenizer.end, tokenizer.no_speech, tokenizer.no_timestamps


def _reordered(likeliest: Likeliest, added: ov.Node) -> tuple[ov.Output, ov.Node, ov.Node]:
    """Add to the candidates' logits [K].

    Their ids and log-probabilities come back, best first, and log Σ exp of all logits then, [1].
    The tokens that are no candidates keep their share of the sum, and are never chosen. Ties keep
    the candidates' order.
    """
    logits = op.add(likeliest.logits, added)
    axis = ints([0])
    highest = op.maximum(
        op.reduce_max(logits, axis, keep_dims=True),
        op.reduce_max(likeliest.logits, axis, keep_dims=True),
    )
    before = sum_of(odds_beside(likeliest.logits, highest))
    others = op.subtract(odds_beside(likeliest.log_sum_exp, highest), before)
    others = op.maximum(others, scalar(0))
    after = sum_of(odds_beside(logits, highest))
    total = op.add(highest, op.log(op.add(others, after)))
    count = op.constant(np.int32(logits.get_output_shape(0)[0]))
    best = op.topk(logits, count, 0, "max", "value", index_element_type="i32", stable=True)
    tokens = op.gather(likeliest.tokens, best.output(1), index(0))
    return tokens, op.subtract(best.output(0), total), total
