"""How many tokens of text a window can hold, by how much of it sounds: the end of runaway loops.

A decoder that has lost its way repeats itself until its cache is full, hundreds of words that
nobody said. Nobody can say them either: speech and pauses have budgets of tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from beamless.inference.features import SAMPLE_RATE
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.repeats import repeated_tail

HEAD_START = 12
"""Tokens that any window may have: short cries that are spelled at length, punctuation."""

PAUSE_RATE = 1.0
"""Tokens a second of what is quiet: a soft voice beside a loud one is counted as quiet."""

ENGLISH_RATE = 8.0
"""Tokens a second of what sounds.

Of 1,839 texts of Common Voice, speechocean762 and LJSpeech, in the tokens of tiny.en and of base,
none takes more than 0.55 of the budget that follows, and one in a hundred more than 0.45.
"""

FRAME = SAMPLE_RATE // 50
LOUDEST = 95  # percentile of the frames' power that counts as a window's loudness
SOUNDING = 1e-3  # of that power, 30 dB less, a frame sounds


def sounding_seconds(samples: np.ndarray) -> float:
    """Return how long samples, float32 [n] at 16 kHz, are less than 30 dB under the loudest."""
    count = len(samples) // FRAME
    power = np.square(samples[: count * FRAME].reshape(count, FRAME)).mean(axis=1)
    if not power.any():
        return 0.0
    return int((power > SOUNDING * np.percentile(power, LOUDEST)).sum()) * FRAME / SAMPLE_RATE


def token_budget(samples: np.ndarray, rate: float = ENGLISH_RATE) -> int:
    """Return how many tokens of text a window can hold, times not counted.

    Args:
        samples: float32 [n] at 16 kHz.
        rate: tokens a second of what sounds.
    """
    sounding = sounding_seconds(samples)
    pausing = len(samples) / SAMPLE_RATE - sounding
    return int(HEAD_START + rate * sounding + min(rate, PAUSE_RATE) * pausing)


def budget_for(samples: np.ndarray, language: str, rate: float | None) -> int | None:
    """Return a window's budget, or None where there is no bound.

    Args:
        samples: float32 [n] at 16 kHz.
        language: its code.
        rate: tokens a second of what sounds; 0 for no bound, None for English's own and no bound
            on other languages, some of which take many tokens for a letter.
    """
    if rate is None:
        rate = ENGLISH_RATE if language == "en" else 0.0
    return token_budget(samples, rate) if rate > 0 else None


def is_spent(tokens: Sequence[int], end: int, budget: int | None) -> bool:
    """Tell whether a text has used its budget up; its times, from ``end`` on, are free."""
    if budget is None or len(tokens) < budget:
        return False
    return sum(token < end for token in tokens) >= budget


def without_repeats(hypothesis: Hypothesis) -> Hypothesis:
    """Return what a hypothesis that the budget stopped said before it began to repeat itself.

    Any other is returned as it is.
    """
    if hypothesis.finish_reason != "budget":
        return hypothesis
    kept = len(hypothesis.tokens) - repeated_tail(hypothesis.tokens)
    hidden, alignment = hypothesis.hidden, hypothesis.alignment
    return replace(
        hypothesis,
        tokens=hypothesis.tokens[:kept],
        logprobs=hypothesis.logprobs[:kept],
        others=hypothesis.others[:kept],
        hidden=None if hidden is None else hidden[:kept],
        alignment=None if alignment is None else alignment[:kept],
    )
