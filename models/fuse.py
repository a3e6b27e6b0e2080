"""One graph of a decoder step, the suppress lists, a corrector and the choice of a token."""

import numpy as np
import openvino as ov
from openvino import opset13 as op

from beamless.models.corrector import Corrector, shift_of
from beamless.models.graphs import decoder_body, graph_input, graph_output, project
from beamless.models.whisper import Checkpoint

TOP_K = 8
SUPPRESSED = -1e9  # stands in for minus infinity, which times zero is not a number


def corrected_graph(
    checkpoint: Checkpoint, corrector: Corrector, capacity: int, no_speech: int
) -> ov.Model:
    """Build ``corrected.xml``.

    Inputs: those of the step (``graphs.decoder_graph``); ``first`` [1], 1 where the token to
    come opens the text; ``strength`` [1], 1 to correct and 0 to decode greedily; ``history``
    [W, d], the hidden states of the steps before. Outputs: ``top_tokens`` [K] (int32) and
    ``top_logprobs`` [K], best first; ``no_speech_prob`` [1]; ``hidden`` [1, 1, d], as the decoder
    gave it; and the step's present keys and values and alignment. The full logits never leave
    the graph.
    """
    inputs, hidden, others = decoder_body(checkpoint, capacity)
    vocabulary = checkpoint.sizes.vocabulary
    first = graph_input([1], np.float32, "first")
    strength = graph_input([1], np.float32, "strength")
    history_shape = [corrector.config.history, checkpoint.sizes.width]
    history = graph_input(history_shape, np.float32, "history")

    moved = op.add(hidden, op.multiply(strength, shift_of(corrector, hidden, history)))
    logits = op.reshape(project(checkpoint, moved), np.array([vocabulary]), special_zero=False)
    no_speech_logit = op.gather(logits, _ints([no_speech]), op.constant(np.int32(0)))
    no_speech_prob = op.exp(op.subtract(no_speech_logit, _log_sum_exp(logits)))

    always = _bias(vocabulary, checkpoint.suppress_tokens)
    begin = _bias(vocabulary, checkpoint.begin_suppress_tokens)
    logits = op.add(logits, op.add(always, op.multiply(begin, first)))
    k = op.constant(np.int32(TOP_K))
    top = op.topk(logits, k, 0, "max", "value", index_element_type="i32")
    logprobs = op.subtract(top.output(0), _log_sum_exp(logits))
    outputs = [
        graph_output(top.output(1), "top_tokens"),
        graph_output(logprobs, "top_logprobs"),
        graph_output(no_speech_prob, "no_speech_prob"),
        graph_output(hidden, "hidden"),
        *others,
    ]
    return ov.Model(outputs, [*inputs, first, strength, history], "corrected")


def _bias(vocabulary: int, tokens: tuple[int, ...]) -> ov.Node:
    bias = np.zeros(vocabulary, np.float32)
    bias[list(tokens)] = SUPPRESSED
    return op.constant(bias)


def _log_sum_exp(logits: ov.Node) -> ov.Node:
    """[V] → [1]."""
    axis = _ints([0])
    highest = op.reduce_max(logits, axis, keep_dims=True)
    total = op.reduce_sum(op.exp(op.subtract(logits, highest)), axis, keep_dims=True)
    return op.add(highest, op.log(total))


def _ints(values: list[int]) -> ov.Node:
    return op.constant(np.array(values, np.int32))
