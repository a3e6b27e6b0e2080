"""Beam search of one window over a step graph of static batch B: the reference and the teacher.

The rules are those of openai/whisper's beam decoder: at every step the candidates of all
hypotheses are ranked by their summed log-probability; those that end go to the finished list,
the best B others live on; the search stops when B have finished. Beam 1 is greedy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV, StaticDecoder
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import room_for_text
from beamless.inference.hypothesis import FinishReason, Hypothesis
from beamless.inference.logits import Suppression, log_sum_exp, top_k

MAX_BEAM_SIZE = 10


@dataclass(frozen=True)
class Node:
    """The last token of a hypothesis, and the node of the token before; never changed."""

    token: int
    logprob: float
    total: float
    parent: "Node | None"
    hidden: np.ndarray | None


@dataclass(frozen=True)
class Candidate:
    """A hypothesis's possible next token.

    Attributes:
        row: the hypothesis that it goes on from.
        total: the sum of log-probabilities with it.
    """

    row: int
    token: int
    logprob: float
    total: float


class Beam:
    """The static decoder at batch B, and the rule on its logits."""

    def __init__(self, bundle: Bundle, beam_size: int = 5, capacity: int | None = None) -> None:
        if not 1 <= beam_size <= MAX_BEAM_SIZE:
            raise BeamlessError(f"a beam size of {beam_size} is not within 1 and {MAX_BEAM_SIZE}")
        manifest = bundle.manifest
        self.beam_size = beam_size
        self.decoder = StaticDecoder(bundle.compile("decoder", beam_size, capacity))
        self.suppression = Suppression.of(manifest.suppress_tokens, manifest.begin_suppress_tokens)
        self.start, self.no_speech = bundle.tokenizer.start, bundle.tokenizer.no_speech


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
    decoder, size = beam.decoder, beam.beam_size
    room = room_for_text(decoder.capacity, prompt)
    decoder.start(cross_kv)
    no_speech_prob = 0.0
    for token in prompt:
        step = decoder.step([token] * size)
        if token == beam.start:
            raw = step.logits[:1]
            no_speech_prob = float(np.exp(raw[0, beam.no_speech] - log_sum_exp(raw)[0, 0]))
    live: list[Node | None] = [None]
    finished: list[tuple[Node, FinishReason]] = []
    for length in range(1, room + 1):
        logits = beam.suppression.apply(step.logits[: len(live)], length == 1)
        hidden = step.hidden.copy() if record else None
        totals = np.array([node.total if node else 0.0 for node in live])
        survivors, ended = rank(candidates(logits, totals, size), size, end)
        finished += [(_extend(live, c, hidden), "stop") for c in ended]
        if len(finished) >= size or not survivors:
            break
        live = [_extend(live, c, hidden) for c in survivors]
        if length == room:
            finished += [(node, "length") for node in live if node]
            break
        parents = [candidate.row for candidate in survivors]
        parents += range(len(parents), size)  # rows that no hypothesis fills yet
        decoder.reorder(parents)
        tokens = [candidate.token for candidate in survivors]
        step = decoder.step(tokens + [end] * (size - len(tokens)))
    hypotheses = [
        _unroll(node, reason, end, no_speech_prob, decoder.position) for node, reason in finished
    ]
    return sorted(hypotheses, key=lambda h: -h.score(length_penalty))[:size]


def candidates(logits: np.ndarray, totals: np.ndarray, beam_size: int) -> list[Candidate]:
    """Return the best possible next tokens of all hypotheses, best first.

    Each hypothesis gives its ``beam_size + 1`` best: one of them may be the end token, and
    ``beam_size`` must be left to live on.

    Args:
        logits: the allowed logits [R, V] of the R living hypotheses.
        totals: their sums of log-probabilities so far [R].
    """
    found = []
    for row, (total, log_sum) in enumerate(zip(totals, log_sum_exp(logits)[:, 0], strict=True)):
        for token in top_k(logits[row], beam_size + 1):
            logprob = float(logits[row, token]) - float(log_sum)
            if np.isfinite(logprob):
                found.append(Candidate(row, int(token), logprob, float(total) + logprob))
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


def _extend(live: Sequence[Node | None], candidate: Candidate, hidden: np.ndarray | None) -> Node:
    state = None if hidden is None else hidden[candidate.row]
    parent = live[candidate.row]
    return Node(candidate.token, candidate.logprob, candidate.total, parent, state)


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
    return Hypothesis(
        tokens=tuple(n.token for n in nodes if n.token != end),
        logprobs=tuple(n.logprob for n in nodes),
        finish_reason=reason,
        no_speech_prob=no_speech_prob,
        steps=steps,
        hidden=np.stack(states) if states else None,
    )
