"""Selective look-ahead: where the two best tokens are close, try both a few steps and keep one.

It needs no beam: both branches run one after the other in the same static cache of batch one, the
second over the slots of the first. The first is what greedy would write, so that its steps are
spent anyway; the second stops where both have come to say the same, or where it can hardly win any
more. Beside it: ``greedy.py``, which never looks, and ``beam.py``, which always does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from beamless.inference.budget import is_spent, without_repeats
from beamless.inference.decoder import CrossKV
from beamless.inference.greedy import Choice, Chooser, greedy, open_window, room_for_text
from beamless.inference.hypothesis import NO_SPEECH, FinishReason, Hypothesis
from beamless.inference.repeats import cycles, stutters

LENGTH_REWARD = 0.1
"""Nats that each token of a branch is worth beside its score. By sums alone a branch that says less
wins; this and what follows was chosen on dev (``training/LOG.md``)."""

COST_TO_COME = 0.2
"""Nats that a branch which has not ended is taken to cost still."""

BEHIND = 2.0
"""Nats by which the second branch, as long as the first so far, may be behind it and go on."""

ALIKE = 2
"""Tokens that two branches both end in where they have come to say the same."""

APART = 4
"""Tokens that one branch may have more than the other there."""


@dataclass(frozen=True)
class LookaheadOptions:
    """When and how far to look.

    Attributes:
        margin: both tokens are tried where their log-probabilities are closer than this (nats).
        doubt: of a corrector with a gate: they are tried where it gives its own choice at least
            this probability of being wrong, whatever the margin.
        depth: tokens of a branch at most, the one in question among them.
        budget: extra decoder steps that a window may spend on branches.

    Raises:
        ValueError: a branch has no token.
    """

    margin: float = 2.0
    doubt: float = 0.1
    depth: int = 8
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

    Both branches are compared by the sums of their tokens' scores, where they have come to say the
    same, or end, or reach the depth. The better one is kept up to its next step in question, and
    the other is forgotten. A branch that begins to repeat itself looks probable, so one that cycles
    loses against one that does not, and the second may not even say anything twice, unless the
    first does. A text that a second branch is part of, and that cycles in spite of that, is given
    up for what the chooser writes without tries.
    Where nobody seems to speak nothing is tried: what is likelier there is not what was said.

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
    path = [first_of(choice)]
    budget = 0 if no_speech_prob > NO_SPEECH else options.budget
    tokens: list[int] = []
    strayed = False
    while True:
        settled = len(tokens)
        depth = min(options.depth, room - settled)
        second = second_of(path[settled].choice)
        if in_question(path[settled], second, options) and budget >= depth > 1:
            extend(chooser, path, settled + depth, end)
            better, wasted = compare(chooser, path, [*path[:settled], second], end, depth)
            strayed = strayed or better is not path
            path, budget = better, budget - wasted
        tokens.append(path[settled].token)
        if strayed and cycles(tokens):
            in_vain = decoder.steps
            plain = greedy(chooser, cross_kv, prompt, end)
            return replace(plain, steps=in_vain + plain.steps)
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


def first_of(choice: Choice) -> Taken:
    """Take the best token."""
    return Taken(choice.token, choice.logprob, choice.score, choice)


def second_of(choice: Choice) -> Taken:
    """Take the second best token."""
    return Taken(choice.runner_up, choice.runner_up_logprob, choice.runner_up_score, choice)


def extend(chooser: Chooser, path: list[Taken], length: int, end: int) -> None:
    """Go on greedily until a path has so many tokens, or ends.

    All of its tokens but the last have been fed; the decoder stands where that one goes.
    """
    while len(path) < length and path[-1].token != end:
        choice = chooser.next(path[-1].token, "text")
        path.append(first_of(choice))


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
    wins = outcome(rival, path, length, end, sure)
    if wins is False and sure:
        return path, 0
    passage = decoder.keep(begins_at)
    decoder.rewind(begins_at)
    while wins is None:
        extend(chooser, rival, len(rival) + 1, end)
        wins = outcome(rival, path, length, end, sure)
    if may_be_kept(rival, path, parting, end, chooser.options.timestamps, wins):
        return rival, ends_at - begins_at
    wasted = decoder.position - begins_at
    decoder.put_back(passage)
    return path, wasted


def outcome(
    rival: Sequence[Taken], path: Sequence[Taken], length: int, end: int, sure: bool
) -> bool | None:
    """Tell whether a rival wins against a path; None while it has to go on.

    Args:
        rival: the hypothesis with the second branch.
        path: the one with the first.
        length: tokens of the longest that is looked at.
        end: the end token.
        sure: a rival that can hardly win has lost.
    """
    worth = worth_of(rival, end)
    if rival[-1].token == end or len(rival) == length:
        return worth > worth_of(path, end)
    if met := meeting(tokens_of(rival), tokens_of(path)):
        return worth > worth_of(path[:met], end)
    behind = worth <= worth_of(path[: len(rival)], end) - BEHIND
    return False if sure and (behind or worth <= worth_of(path, end)) else None


def meeting(rival: Sequence[int], path: Sequence[int]) -> int:
    """Return how many tokens of a path lead to where a rival has come to say the same; 0 if none.

    What they end in alike is behind the first token of each that is not the other's.
    """
    parting = next((at for at, (r, p) in enumerate(zip(rival, path, strict=False)) if r != p), 0)
    if len(rival) - parting <= ALIKE:
        return 0
    first, last = parting + 1 + ALIKE, min(len(path), len(rival) + APART)
    places = range(max(first, len(rival) - APART), last + 1)
    return next((at for at in places if path[at - ALIKE : at] == rival[-ALIKE:]), 0)


def may_be_kept(
    rival: Sequence[Taken],
    path: Sequence[Taken],
    parting: int,
    end: int,
    timed: bool,
    wins: bool,
) -> bool:
    """Tell whether to leave a path for a rival that parts from it there, and wins or does not.

    With times each segment's end is said again as the start of the next: only text can stutter.
    """
    new, old = tokens_of(rival), tokens_of(path)
    if cycles(new) != cycles(old):
        return cycles(old)
    if timed:
        parting = len([token for token in new[:parting] if token < end])
        new, old = ([token for token in tokens if token < end] for tokens in (new, old))
    return wins and not (stutters(new, parting) and not stutters(old, parting))


def tokens_of(path: Sequence[Taken]) -> list[int]:
    """Return what a path says."""
    return [taken.token for taken in path]


def worth_of(path: Sequence[Taken], end: int) -> float:
    """Return the sum of a path's scores, with what its length is worth and its rest may cost."""
    rest = 0.0 if path[-1].token == end else COST_TO_COME
    return sum(taken.score for taken in path) + LENGTH_REWARD * len(path) - rest
