"""Selective look-ahead: where the two best tokens are close, try both a few steps and keep one.

It needs no beam: both branches run one after the other in the same static cache of batch one, the
second over the slots of the first. Beside it: ``greedy.py``, which never looks, and ``beam.py``,
which always does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from beamless.inference.budget import is_spent, without_repeats
from beamless.inference.decoder import CrossKV, Passage
from beamless.inference.greedy import Choice, Chooser, open_window, room_for_text
from beamless.inference.hypothesis import FinishReason, Hypothesis, Others
from beamless.inference.repeats import cycles


@dataclass(frozen=True)
class LookaheadOptions:
    """When and how far to look.

    Attributes:
        margin: both tokens are tried where their log-probabilities are closer than this (nats).
        doubt: of a corrector with a gate: they are tried where it gives its own choice at least
            this probability of being wrong, whatever the margin.
        depth: tokens of a branch, the one in question among them.
        budget: extra decoder steps that a window may spend.
    """

    margin: float = 0.6
    doubt: float = 0.3
    depth: int = 4
    budget: int = 64


@dataclass(frozen=True)
class Branch:
    """A try: its tokens, the choice behind each of them, and what it left in the decoder.

    Attributes:
        tokens: the first one was in question; the end token, if there, is the last.
        logprobs: of each token.
        choices: what came after each token; one less where the last token is the end.
        passage: the decoder's slots.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    choices: tuple[Choice, ...]
    passage: Passage


def lookahead(
    chooser: Chooser,
    cross_kv: CrossKV,
    prompt: Sequence[int],
    end: int,
    options: LookaheadOptions,
) -> Hypothesis:
    """Decode one window.

    A branch's score is the mean log-probability of the whole hypothesis with it. The better
    branch is kept up to its next step in question, and the other is forgotten. A branch that
    begins to repeat itself looks probable, so one that cycles loses against one that does not.

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
    tokens: list[int] = []
    logprobs: list[float] = []
    others: list[Others] = []
    budget = options.budget
    while True:
        depth = min(options.depth, room - len(tokens))
        if in_question(choice, options) and budget >= depth > 1:
            at = decoder.position
            before = decoder.steps
            second = explore(chooser, choice.runner_up, choice.runner_up_logprob, end, depth)
            decoder.rewind(at)
            first = explore(chooser, choice.token, choice.logprob, end, depth)
            won = better(first, second, tokens, logprobs)
            kept = until_next_question(won, options)
            if won is second:
                decoder.put_back(second.passage)
            decoder.rewind(min(decoder.position, at + kept))
            budget -= decoder.steps - before - kept
            tokens += won.tokens[:kept]
            logprobs += won.logprobs[:kept]
            others += [made.others for made in (choice, *won.choices)][:kept]
            if tokens[-1] != end:
                choice = won.choices[kept - 1]
        else:
            tokens.append(choice.token)
            logprobs.append(choice.logprob)
            others.append(choice.others)
            if choice.token != end and len(tokens) < room:
                choice = chooser.next(choice.token, "text")
        spent = is_spent(tokens, end, chooser.options.budget)
        if tokens[-1] == end or len(tokens) >= room or spent:
            break
    finish_reason: FinishReason = "length" if len(tokens) >= room else "budget"
    if tokens[-1] == end:
        finish_reason = "stop"
    found = Hypothesis(
        tokens=tuple(token for token in tokens if token != end),
        logprobs=tuple(logprobs),
        finish_reason=finish_reason,
        no_speech_prob=no_speech_prob,
        steps=decoder.steps,
        others=tuple(others) if chooser.options.others else (),
    )
    return without_repeats(found)


def in_question(choice: Choice, options: LookaheadOptions) -> bool:
    """Tell whether the second best token is worth a try."""
    if choice.doubt is not None:
        return choice.doubt >= options.doubt
    return choice.logprob - choice.runner_up_logprob < options.margin


def explore(chooser: Chooser, token: int, logprob: float, end: int, depth: int) -> Branch:
    """Try a token: feed it, and greedily what follows, until ``depth`` tokens or the end token."""
    start = chooser.decoder.position
    tokens, logprobs, choices = [token], [logprob], []
    while tokens[-1] != end:
        choice = chooser.next(tokens[-1], "text")
        choices.append(choice)
        if len(tokens) == depth:
            break
        tokens.append(choice.token)
        logprobs.append(choice.logprob)
    passage = chooser.decoder.keep(start)
    return Branch(tuple(tokens), tuple(logprobs), tuple(choices), passage)


def better(
    first: Branch, second: Branch, tokens: Sequence[int], logprobs: Sequence[float]
) -> Branch:
    """Return the branch to keep, behind the tokens so far; the first one where they tie."""
    cycling = [cycles((*tokens, *branch.tokens)) for branch in (first, second)]
    if cycling[0] != cycling[1]:
        return second if cycling[0] else first
    return second if mean(second, logprobs) > mean(first, logprobs) else first


def mean(branch: Branch, logprobs: Sequence[float]) -> float:
    """Return the mean log-probability of a hypothesis: what it was so far, and a branch."""
    total = sum(logprobs) + sum(branch.logprobs)
    return total / (len(logprobs) + len(branch.logprobs))


def until_next_question(branch: Branch, options: LookaheadOptions) -> int:
    """Return how many tokens of a branch to keep: up to the first choice that is in question."""
    for index, choice in enumerate(branch.choices[: len(branch.tokens) - 1]):
        if in_question(choice, options):
            return index + 1
    return len(branch.tokens)
