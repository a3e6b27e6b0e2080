"""Selective look-ahead: where the two best tokens are close, try both a few steps and keep one.

It needs no beam: both branches run one after the other in the same static cache of batch one, the
second over the slots of the first. The first is what greedy would write, so that its steps are
spent anyway; the second stops where it can hardly win any more. Beside it: ``greedy.py``, which
never looks, and ``beam.py``, which always does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beamless.inference.budget import is_spent, without_repeats
from beamless.inference.decoder import CrossKV
from beamless.inference.greedy import Choice, Chooser, open_window, room_for_text
from beamless.inference.hypothesis import NO_SPEECH, FinishReason, Hypothesis
from beamless.inference.repeats import cycles, stutters
from beamless.inference.sampling import weighed

COST_TO_COME = 0.2
"""Nats that a token of a branch is taken to cost before it is decoded: chosen on dev, where more
costs words and less costs steps (``training/LOG.md``)."""


@dataclass(frozen=True)
class LookaheadOptions:
    """When and how far to look.

    Attributes:
        margin: both tokens are tried where their log-probabilities are closer than this (nats).
        doubt: of a corrector with a gate: they are tried where it gives its own choice at least
            this probability of being wrong, whatever the margin.
        depth: tokens of a branch, the one in question among them.
        budget: extra decoder steps that a window may spend.

    Raises:
        ValueError: a branch has no token.
    """

    margin: float = 2.0
    doubt: float = 0.3
    depth: int = 4
    budget: int = 64

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise ValueError("a branch has at least one token")


@dataclass(frozen=True)
class Taken:
    """A token, and the choice that it was one of the two best of.

    ``score`` is its log-probability, with the boost and the penalty in it that choose tokens.
    """

    token: int
    logprob: float
    score: float
    choice: Choice


def lookahead(
    chooser: Chooser,
    cross_kv: CrossKV,
    prompt: Sequence[int],
    end: int,
    options: LookaheadOptions,
) -> Hypothesis:
    """Decode one window.

    A branch's score is the mean score of the tokens of the whole hypothesis with it. The better
    branch is kept up to its next step in question, and the other is forgotten. A branch that
    begins to repeat itself looks probable, so one that cycles loses against one that does not, and
    the second may not even say anything twice, unless the first does.
    Where nobody seems to speak nothing is tried: in noise the longer of two texts wins, as the
    mean of an end token alone, or of one word, is a poor one.

    Args:
        chooser: ``Greedy`` or ``Corrected``.
        cross_kv: the window, encoded.
        prompt: the ids that open it.
        end: the end token.
        options: when and how far to look.

    Raises:
        BeamlessError: the prompt leaves no room for text.
    """
    decoder = chooser.decoder
    room = room_for_text(decoder.capacity, prompt)
    choice, no_speech_prob = open_window(chooser, cross_kv, prompt)
    path = [first_of(choice, [], chooser, end)]
    budget = 0 if no_speech_prob > NO_SPEECH else options.budget
    tokens: list[int] = []
    while True:
        settled = len(tokens)
        depth = min(options.depth, room - settled)
        second = second_of(path[settled].choice, path[:settled], chooser, end)
        if in_question(path[settled], second, options) and budget >= depth > 1:
            extend(chooser, path, settled + depth, end)
            path, wasted = compare(chooser, path, [*path[:settled], second], end, depth)
            budget -= wasted
        tokens.append(path[settled].token)
        spent = is_spent(tokens, end, chooser.options.budget)
        if tokens[-1] == end or len(tokens) == room or spent:
            break
        extend(chooser, path, len(tokens) + 1, end)
    finish_reason: FinishReason = "length" if len(tokens) == room else "budget"
    if tokens[-1] == end:
        finish_reason = "stop"
    path = path[: len(tokens)]
    found = Hypothesis(
        tokens=tuple(token for token in tokens if token != end),
        logprobs=tuple(taken.logprob for taken in path),
        finish_reason=finish_reason,
        no_speech_prob=no_speech_prob,
        steps=decoder.steps,
        others=tuple(t.choice.others for t in path) if chooser.options.others else (),
    )
    return without_repeats(found)


def in_question(first: Taken, second: Taken, options: LookaheadOptions) -> bool:
    """Tell whether the second best token is worth a try."""
    if first.choice.doubt is not None:
        return first.choice.doubt >= options.doubt
    return first.score - second.score < options.margin


def first_of(choice: Choice, before: Sequence[Taken], chooser: Chooser, end: int) -> Taken:
    """Take the best token behind those before."""
    score = score_of(choice.token, choice.logprob, before, chooser, end)
    return Taken(choice.token, choice.logprob, score, choice)


def second_of(choice: Choice, before: Sequence[Taken], chooser: Chooser, end: int) -> Taken:
    """Take the second best token behind those before."""
    score = score_of(choice.runner_up, choice.runner_up_logprob, before, chooser, end)
    return Taken(choice.runner_up, choice.runner_up_logprob, score, choice)


def score_of(
    token: int, logprob: float, before: Sequence[Taken], chooser: Chooser, end: int
) -> float:
    """Weigh a log-probability as the chooser does."""
    if chooser.options.plain:
        return logprob
    text = tokens_of(before)
    return float(weighed(np.array([token]), np.array([logprob]), text, end, chooser.options)[0])


def extend(chooser: Chooser, path: list[Taken], length: int, end: int) -> None:
    """Go on greedily until a path has so many tokens, or ends.

    All of its tokens but the last have been fed; the decoder stands where that one goes.
    """
    while len(path) < length and path[-1].token != end:
        choice = chooser.next(path[-1].token, "text")
        path.append(first_of(choice, path, chooser, end))


def compare(
    chooser: Chooser, path: list[Taken], rival: list[Taken], end: int, depth: int
) -> tuple[list[Taken], int]:
    """Try a rival that parts from a path at its last token, for ``depth`` tokens from there on.

    It stops where what may follow will hardly make it the better one, and has lost then.

    Returns:
        The better path, with the decoder at its end, and the steps that the other one took.
    """
    decoder = chooser.decoder
    parting = len(rival) - 1
    length = parting + depth
    ends_at = decoder.position
    begins_at = ends_at - (len(path) - len(rival))
    # a boost may be worth more than a token costs; a path that cycles loses all the same
    sure = chooser.options.plain and not cycles(tokens_of(path))
    mean = mean_of(path)
    alive = not sure or may_win(rival, mean, length, end)
    if not alive:
        return path, 0
    passage = decoder.keep(begins_at)
    decoder.rewind(begins_at)
    while alive and len(rival) < length and rival[-1].token != end:
        extend(chooser, rival, len(rival) + 1, end)
        alive = not sure or may_win(rival, mean, length, end)
    timed = chooser.options.timestamps
    if alive and is_better(rival, path, parting, end, timed):
        return rival, ends_at - begins_at
    wasted = decoder.position - begins_at
    decoder.put_back(passage)
    return path, wasted


def may_win(rival: Sequence[Taken], mean: float, length: int, end: int) -> bool:
    """Tell whether a branch that ends, now or by ``length`` tokens, may well be above a mean."""
    if rival[-1].token == end or len(rival) == length:
        return mean_of(rival) > mean
    now, total = len(rival), total_of(rival)
    return any((total - COST_TO_COME * (n - now)) / n > mean for n in (now + 1, length))


def is_better(
    rival: Sequence[Taken], path: Sequence[Taken], parting: int, end: int, timed: bool
) -> bool:
    """Tell whether to leave a path for a rival that parts from it there; not where they tie.

    With times each segment's end is said again as the start of the next: only text can stutter.
    """
    new, old = tokens_of(rival), tokens_of(path)
    if cycles(new) != cycles(old):
        return cycles(old)
    if timed:
        parting = len([token for token in new[:parting] if token < end])
        new, old = ([token for token in tokens if token < end] for tokens in (new, old))
    if stutters(new, parting) and not stutters(old, parting):
        return False
    return mean_of(rival) > mean_of(path)


def tokens_of(path: Sequence[Taken]) -> list[int]:
    """Return what a path says."""
    return [taken.token for taken in path]


def mean_of(path: Sequence[Taken]) -> float:
    """Return the mean of a path's scores."""
    return total_of(path) / len(path)


def total_of(path: Sequence[Taken]) -> float:
    """Return the sum of a path's scores."""
    return sum(taken.score for taken in path)
