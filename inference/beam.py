"""Beam search of one window over a step graph of static batch B: the reference and the teacher.

The rules are those of openai/whisper's beam decoder: at every step the candidates of all
hypotheses are ranked by their summed log-probability; those that end go to the finished list,
the best B others live on; the search stops when B have finished. Beam 1 is greedy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beamless.inference.budget import is_spent, without_repeats
from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV, StaticDecoder
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import room_for_text
from beamless.inference.hypothesis import FinishReason, Hypothesis, Others
from beamless.inference.logits import Suppression, likeliest, log_sum_exp, probability_of, top_k
from beamless.inference.sampling import LIKELIEST, TokenOptions, weighed
from beamless.inference.timestamps import TimestampRules

MAX_BEAM_SIZE = 10


@dataclass(frozen=True)
class Node:
    """The last token of a hypothesis, and the node of the token before; never changed.

    Attributes:
        total: what the hypothesis ranks by while it lives.
        hidden, alignment: what the step that gave the token left, where it is recorded.
        others: the likeliest tokens of that step, where they are asked for.
    """

    token: int
    logprob: float
    total: float
    parent: "Node | None"
    hidden: np.ndarray | None
    alignment: np.ndarray | None = None
    others: Others = ()


@dataclass(frozen=True)
class Candidate:
    """A hypothesis's possible next token.

    Attributes:
        row: the hypothesis that it goes on from.
        total: the sum of log-probabilities with it, boost and penalty among them.
    """

    row: int
    token: int
    logprob: float
    total: float


class Beam:
    """The static decoder at batch B, and the rules on its logits.

    Attributes:
        options: how tokens are chosen; they may be changed between windows. A beam draws none.
    """

    def __init__(self, bundle: Bundle, beam_size: int = 5, capacity: int | None = None) -> None:
        if not 1 <= beam_size <= MAX_BEAM_SIZE:
            raise BeamlessError(f"a beam size of {beam_size} is not within 1 and {MAX_BEAM_SIZE}")
        manifest = bundle.manifest
        self.beam_size = beam_size
        self.decoder = StaticDecoder(bundle.compile("decoder", beam_size, capacity))
        self.suppression = Suppression.of(manifest.suppress_tokens, manifest.begin_suppress_tokens)
        self.rules = TimestampRules.of(bundle.tokenizer)
        self.start, self.no_speech = bundle.tokenizer.start, bundle.tokenizer.no_speech
        self.options = TokenOptions()

    def allowed(self, logits: np.ndarray, live: Sequence[Node | None]) -> np.ndarray:
        """Return a copy of logits [R, V] in which only what may follow is not minus infinity."""
        logits = self.suppression.apply(logits[: len(live)], live[0] is None)
        if self.options.timestamps:
            self.rules.apply(logits, [text_of(node) for node in live])
        return logits


def beam_search(
    beam: Beam,
    cross_kv: CrossKV,
    prompt: Sequence[int],
    end: int,
    length_penalty: float = 1.0,
    record: bool = False,
) -> list[Hypothesis]:
    """Search one window.

    Args:
        beam: the decoder and its rule.
        cross_kv: the window, encoded.
        prompt: the ids that open it.
        end: the end token.
        length_penalty: finished hypotheses rank by Σ log p ÷ T^length_penalty, once, here.
        record: keep each hypothesis's hidden states.

    Returns:
        The N-best list, best first; N is the beam size, or less where the capacity ends it.
    """
    decoder, size, budget = beam.decoder, beam.beam_size, beam.options.budget
    room = room_for_text(decoder.capacity, prompt)
    decoder.start(cross_kv)
    no_speech_prob = 0.0
    for token in prompt:
        step = decoder.step([token] * size)
        if token == beam.start:
            no_speech_prob = probability_of(beam.no_speech, step.logits)
    live: list[Node | None] = [None]
    finished: list[tuple[Node, FinishReason]] = []
    for length in range(1, room + 1):
        allowed = beam.allowed(step.logits, live)
        found = candidates(allowed, live, beam, end)
        survivors, ended = rank(found, size, end)
        trace = (*_trace(decoder, record), _others(allowed, beam.options.others))
        finished += [(_extend(live, c, *trace), "stop") for c in ended]
        if len(finished) >= size or not survivors:
            break
        live = [_extend(live, c, *trace) for c in survivors]
        if length == room:
            finished += [(node, "length") for node in live if node]
            break
        if budget is not None and length >= budget and is_spent(text_of(live[0]), end, budget):
            finished = finished or [(node, "budget") for node in live if node]
            break
        parents = [candidate.row for candidate in survivors]
        parents += range(len(parents), size)  # rows that no hypothesis fills yet
        decoder.reorder(parents)
        tokens = [candidate.token for candidate in survivors]
        step = decoder.step(tokens + [end] * (size - len(tokens)))
    hypotheses = [
        without_repeats(_unroll(node, reason, end, no_speech_prob, decoder.position))
        for node, reason in finished
    ]
    return sorted(hypotheses, key=lambda h: -h.score(length_penalty))[:size]


def candidates(
    logits: np.ndarray, live: Sequence[Node | None], beam: Beam, end: int
) -> list[Candidate]:
    """Return the best possible next tokens of all hypotheses, best first.

    Each hypothesis gives its ``beam_size + 1`` best: one of them may be the end token, and
    ``beam_size`` must be left to live on.

    Args:
        logits: the allowed logits [R, V] of the R living hypotheses.
        live: the hypotheses; None stands for the empty one.
        beam: the beam's size and options.
        end: the end token.
    """
    found = []
    count = beam.beam_size + 1
    for row, (node, log_sum) in enumerate(zip(live, log_sum_exp(logits)[:, 0], strict=True)):
        total = node.total if node else 0.0
        tokens = top_k(logits[row], count if beam.options.plain else max(count, LIKELIEST))
        logprobs = gains = [float(logits[row, token]) - float(log_sum) for token in tokens]
        if not beam.options.plain:
            rule = (float(log_sum), text_of(node), end, beam.options)
            gains = weighed(tokens, np.array(logprobs), *rule).tolist()
        for token, logprob, gain in zip(tokens, logprobs, gains, strict=True):
            if np.isfinite(logprob):
                found.append(Candidate(row, int(token), logprob, total + gain))
    return sorted(found, key=lambda candidate: -candidate.total)


def rank(
    ordered: Sequence[Candidate], beam_size: int, end: int
) -> tuple[list[Candidate], list[Candidate]]:
    """Part candidates, best first, into those that live on and those that end.

    An end that ranks behind the last survivor does not count: it would not have been searched.
    """
    survivors: list[Candidate] = []
    ended: list[Candidate] = []
    for candidate in ordered:
        if candidate.token == end:
            ended.append(candidate)
        else:
            survivors.append(candidate)
        if len(survivors) == beam_size:
            break
    return survivors, ended


def text_of(node: Node | None) -> list[int]:
    """Return a hypothesis's tokens."""
    tokens = []
    while node is not None:
        tokens.append(node.token)
        node = node.parent
    return tokens[::-1]


Trace = tuple[np.ndarray | None, np.ndarray | None]
"""The hidden states [B, d] and alignments [B, A, S] of a step, where they are recorded."""


def _trace(decoder: StaticDecoder, record: bool) -> Trace:
    at = decoder.position - 1
    alignments = decoder.alignments
    hidden = decoder.states[at].copy() if record else None
    return hidden, None if alignments is None else alignments[at].copy()


def _others(allowed: np.ndarray, count: int) -> list[Others]:
    """Return the likeliest tokens of each row of allowed logits [R, V]."""
    totals = log_sum_exp(allowed)[:, 0] if count else [0.0] * len(allowed)
    return [likeliest(row, float(t), count) for row, t in zip(allowed, totals, strict=True)]


def _extend(
    live: Sequence[Node | None],
    candidate: Candidate,
    hidden: np.ndarray | None,
    alignment: np.ndarray | None,
    others: Sequence[Others],
) -> Node:
    row = candidate.row
    return Node(
        token=candidate.token,
        logprob=candidate.logprob,
        total=candidate.total,
        parent=live[row],
        hidden=None if hidden is None else hidden[row],
        alignment=None if alignment is None else alignment[row],
        others=others[row],
    )


def _unroll(
    node: Node, reason: FinishReason, end: int, no_speech_prob: float, steps: int
) -> Hypothesis:
    nodes: list[Node] = []
    at: Node | None = node
    while at is not None:
        nodes.append(at)
        at = at.parent
    nodes.reverse()
    states = [n.hidden for n in nodes if n.hidden is not None]
    alignments = [n.alignment for n in nodes if n.alignment is not None]
    return Hypothesis(
        tokens=tuple(n.token for n in nodes if n.token != end),
        logprobs=tuple(n.logprob for n in nodes),
        finish_reason=reason,
        no_speech_prob=no_speech_prob,
        steps=steps,
        hidden=np.stack(states) if states else None,
        alignment=np.stack(alignments) if alignments else None,
        others=tuple(n.others for n in nodes) if nodes[0].others else (),
    )
