"""Whisper's timestamp tokens: which of them may come next, and what they say in a hypothesis.

The rules are those of Whisper (Radford et al. 2022, section 4.5, and openai/whisper's timestamp
filter): times come in pairs around each passage, never go back, begin within the first second, and
come whenever their probability together is above that of every other token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beamless.inference.logits import Tokens, log_sum_exp
from beamless.inference.tokenizer import Tokenizer

SECONDS_A_STEP = 0.02
MAX_INITIAL = 1.0  # s: Whisper's max_initial_timestamp
LATEST = 2**30  # an id beyond every vocabulary


class Allowed(NamedTuple):
    """Which tokens may come.

    Attributes:
        text_low: the first id that may, of those that are no time.
        time_low, time_high: the first and last time that may.
    """

    text_low: int
    time_low: int
    time_high: int


EVERYTHING = Allowed(0, 0, LATEST)


@dataclass(frozen=True)
class TimestampRules:
    """What may follow a text that has times in it; ``begin`` is the id of time 0."""

    end: int
    no_timestamps: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "TimestampRules":
        """Make the rules of a model."""
        return cls(tokenizer.end, tokenizer.no_timestamps)

    @property
    def begin(self) -> int:
        """The id of time 0.00."""
        return self.no_timestamps + 1

    def allowed(self, text: Tokens) -> Allowed:
        """Return what may follow ``text``, the tokens since the prompt.

        All is said but for the weighing of probabilities, which ``apply`` and the fused graph do.
        """
        begin = self.begin
        if len(text) == 0:
            return Allowed(begin, begin, begin + round(MAX_INITIAL / SECONDS_A_STEP))
        closing = text[-1] >= begin and len(text) > 1 and text[-2] < begin
        if text[-1] >= begin and not closing:
            return Allowed(0, LATEST, 0)
        last = next((int(token) for token in reversed(text) if token >= begin), begin - 1)
        return Allowed(self.end, last, LATEST) if closing else Allowed(0, last + 1, LATEST)

    def apply(self, logits: np.ndarray, texts: Sequence[Tokens]) -> None:
        """Set what may not follow each text to minus infinity, in place.

        Args:
            logits: [B, V], with suppressed tokens at minus infinity already.
            texts: the tokens since the prompt of each of the B hypotheses.
        """
        begin = self.begin
        logits[:, self.no_timestamps] = -np.inf
        for row, text in zip(logits, texts, strict=True):
            allowed = self.allowed(text)
            row[: allowed.text_low] = -np.inf
            row[begin : max(begin, allowed.time_low)] = -np.inf
            row[max(begin, allowed.time_high + 1) :] = -np.inf
            times = row[None, begin:]
            if np.isfinite(times.max()) and log_sum_exp(times)[0, 0] > row[:begin].max():
                row[:begin] = -np.inf


class TimedSlice(NamedTuple):
    """A passage of a hypothesis, in seconds from the window's start.

    Attributes:
        end: None where the decoder wrote none.
        first, stop: its tokens, those of its times among them.
    """

    start: float
    end: float | None
    first: int
    stop: int


def timed_slices(tokens: Sequence[int], begin: int) -> list[TimedSlice]:
    """Part a hypothesis's tokens at its times; ``begin`` is the id of time 0."""
    found: list[TimedSlice] = []
    start, first = 0.0, 0
    open_text = False
    for index, token in enumerate(tokens):
        if token < begin:
            open_text = True
            continue
        time = (token - begin) * SECONDS_A_STEP
        if open_text:
            found.append(TimedSlice(start, time, first, index + 1))
            first, open_text = index + 1, False
        else:
            first = index
        start = time
    if open_text:
        found.append(TimedSlice(start, None, first, len(tokens)))
    return found
