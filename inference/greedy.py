"""Greedy decoding of one window: the likeliest token, then the next, until the end token.

The loop does not know who chooses: ``Greedy`` here takes the largest logit; ``Corrected``
(``corrected.py``) takes what the fused graph chose. ``beam.py`` stands beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from beamless.inference.budget import is_spent, without_repeats
from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV, StaticDecoder
from beamless.inference.errors import BeamlessError
from beamless.inference.hypothesis import FinishReason, Hypothesis, Others
from beamless.inference.logits import Suppression, likeliest, log_sum_exp, probability_of, top_k
from beamless.inference.sampling import LIKELIEST, TokenOptions, preferred, weighed
from beamless.inference.timestamps import TimestampRules

Place = Literal["prompt", "first", "text"]
"""Where the token that a step predicts stands; inside the prompt it is known, not chosen."""


@dataclass(frozen=True)
class Choice:
    """What follows the tokens so far.

    Attributes:
        token: the chosen token.
        logprob: its log-probability.
        score: what it is chosen by: its log-probability with the boost and the penalty in it.
        runner_up, runner_up_logprob, runner_up_score: the second best.
        no_speech_prob: probability of ``<|nospeech|>`` here; it means something after the start
            token only.
        doubt: probability that the token is wrong, by a corrector that has a gate; else None.
        others: the likeliest tokens, where they are asked for.
    """

    token: int
    logprob: float
    score: float
    runner_up: int
    runner_up_logprob: float
    runner_up_score: float
    no_speech_prob: float
    doubt: float | None = None
    others: Others = ()


class Chooser(Protocol):
    """A static decoder, and the rule that picks its next token.

    Attributes:
        options: how it picks; they may be changed between windows.
        rng: what tokens are drawn with, where they are drawn.
    """

    decoder: StaticDecoder
    options: TokenOptions
    rng: np.random.Generator

    def next(self, token: int, place: Place) -> Choice:
        """Feed a token and choose the one after it; ``place`` is that of the chosen one."""
        ...


class Greedy:
    """Chooses the largest logit that is not suppressed."""

    def __init__(self, bundle: Bundle, capacity: int | None = None) -> None:
        manifest, tokenizer = bundle.manifest, bundle.tokenizer
        self.decoder = StaticDecoder(bundle.compile("decoder", capacity=capacity))
        self.options = TokenOptions()
        self.rng = np.random.default_rng(0)
        self._suppression = Suppression.of(manifest.suppress_tokens, manifest.begin_suppress_tokens)
        self._rules = TimestampRules.of(tokenizer)
        self._start, self._end = tokenizer.start, tokenizer.end
        self._no_speech = tokenizer.no_speech
        self._text_start = 0

    def next(self, token: int, place: Place) -> Choice:
        """Feed a token and choose the one after it."""
        step = self.decoder.step([token])
        if place != "text":
            self._text_start = self.decoder.position
        text = self.decoder.tokens[self._text_start : self.decoder.position, 0]
        no_speech = 0.0
        if token == self._start:
            no_speech = probability_of(self._no_speech, step.logits)
        logits = self._suppression.apply(step.logits, place == "first")
        if self.options.timestamps and place != "prompt":
            self._rules.apply(logits, [text])
        total = float(log_sum_exp(logits)[0, 0])
        plain = self.options.plain
        tokens = np.array(two_largest(logits[0]) if plain else top_k(logits[0], LIKELIEST))
        logprobs = logits[0, tokens].astype(np.float64) - total
        scores = weighed(tokens, logprobs, total, text, self._end, self.options)
        order = preferred(scores, self.options.temperature, self.rng)
        others = likeliest(logits[0], total, self.options.others)
        return chosen(tokens, logprobs, scores, order, no_speech, others)


def chosen(
    tokens: np.ndarray,
    logprobs: np.ndarray,
    scores: np.ndarray,
    order: np.ndarray,
    no_speech_prob: float,
    others: Others,
    doubt: float | None = None,
) -> Choice:
    """Return the choice among candidates [K], which are preferred in ``order`` [K]."""
    best, second = order[:2]
    return Choice(
        token=int(tokens[best]),
        logprob=float(logprobs[best]),
        score=float(scores[best]),
        runner_up=int(tokens[second]),
        runner_up_logprob=float(logprobs[second]),
        runner_up_score=float(scores[second]),
        no_speech_prob=no_speech_prob,
        doubt=doubt,
        others=others,
    )


def two_largest(logits: np.ndarray) -> tuple[int, int]:
    """Return where the largest and the second largest of logits [V] are, ties by index."""
    best = int(logits.argmax())
    value, logits[best] = logits[best], -np.inf
    second = int(logits.argmax())
    logits[best] = value
    return best, second


def greedy(
    chooser: Chooser,
    cross_kv: CrossKV,
    prompt: Sequence[int],
    end: int,
    record: bool = False,
    on_token: Callable[[int], None] | None = None,
) -> Hypothesis:
    """Decode one window.

    Prompt and text together hold at most the decoder's capacity of tokens; a text that fills it
    finishes with ``length``, one that uses its budget up with ``budget``.

    Args:
        chooser: ``Greedy`` or ``Corrected``.
        cross_kv: the window, encoded.
        prompt: the ids that open it.
        end: the end token.
        record: keep the hidden states.
        on_token: called with each token as it comes.

    Raises:
        BeamlessError: the prompt leaves no room for text.
    """
    room = room_for_text(chooser.decoder.capacity, prompt)
    choice, no_speech_prob = open_window(chooser, cross_kv, prompt)
    tokens: list[int] = []
    logprobs, others = [choice.logprob], [choice.others]
    finish_reason: FinishReason = "stop"
    while choice.token != end:
        tokens.append(choice.token)
        if on_token:
            on_token(choice.token)
        if len(tokens) == room:
            finish_reason = "length"
            break
        if is_spent(tokens, end, chooser.options.budget):
            finish_reason = "budget"
            break
        choice = chooser.next(choice.token, "text")
        logprobs.append(choice.logprob)
        others.append(choice.others)
    states = chooser.decoder.states[len(prompt) - 1 : chooser.decoder.position, 0]
    found = Hypothesis(
        tokens=tuple(tokens),
        logprobs=tuple(logprobs),
        finish_reason=finish_reason,
        no_speech_prob=no_speech_prob,
        steps=chooser.decoder.steps,
        hidden=states.copy() if record else None,
        others=tuple(others) if chooser.options.others else (),
    )
    return without_repeats(found)


def open_window(chooser: Chooser, cross_kv: CrossKV, prompt: Sequence[int]) -> tuple[Choice, float]:
    """Feed a window's prompt; return the first choice of text and the no-speech probability."""
    chooser.decoder.start(cross_kv)
    no_speech_prob = 0.0
    for index, token in enumerate(prompt):
        choice = chooser.next(token, "first" if index == len(prompt) - 1 else "prompt")
        no_speech_prob = max(no_speech_prob, choice.no_speech_prob)
    return choice, no_speech_prob


def room_for_text(capacity: int, prompt: Sequence[int]) -> int:
    """Return how many tokens of text fit behind a prompt.

    Raises:
        BeamlessError: the prompt is empty, or fills the capacity.
    """
    if not 0 < len(prompt) < capacity:
        raise BeamlessError(
            f"a prompt of {len(prompt)} tokens leaves no room in a capacity of {capacity}; "
            "shorten the previous text"
        )
    return capacity - len(prompt)
