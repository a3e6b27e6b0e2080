"""How far a word can be trusted: its raw probability, calibrated on speech whose text is known.

A model's own probabilities are too high, more so where the whole window is hard to make out. Here
the log-odds of being right are a linear function of the raw probability's log-odds and of the
window's mean log-probability, three numbers that ``beamless calibrate`` fits (Platt scaling).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SUREST = 1e-4  # raw probabilities are kept this far from 0 and 1, whose log-odds are infinite


@dataclass(frozen=True)
class Confidence:
    """The numbers of a bundle: offset, slope of the raw log-odds, slope of the window's mean.

    Attributes:
        word: for words, whose raw probability is the mean of their tokens'.
        token: for single tokens; a token is right where its word is.
    """

    word: tuple[float, float, float]
    token: tuple[float, float, float]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Confidence":
        """Read it from what a bundle's manifest holds."""
        word, token = (tuple(map(float, stored[name])) for name in ("word", "token"))
        return cls((word[0], word[1], word[2]), (token[0], token[1], token[2]))

    def of_word(self, raw: float, avg_logprob: float) -> float:
        """Return how likely a word is right, by its raw probability and its window's mean."""
        return float(applied(self.word, *_scores([raw], [avg_logprob]))[0])

    def of_tokens(self, logprobs: Sequence[float], avg_logprob: float) -> np.ndarray:
        """Return how likely each token [T] is right, by its log-probability."""
        raw = np.exp(np.asarray(logprobs, np.float64))
        return applied(self.token, *_scores(raw, np.full(len(raw), avg_logprob)))


def applied(numbers: Sequence[float], log_odds: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return probabilities [N] from raw log-odds [N] and windows' mean log-probabilities [N]."""
    offset, slope, mean_slope = numbers
    probabilities: np.ndarray = 1 / (1 + np.exp(-(offset + slope * log_odds + mean_slope * means)))
    return probabilities


def log_odds(raw: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return log p / (1 - p) of probabilities [N]."""
    kept = np.clip(np.asarray(raw, np.float64), SUREST, 1 - SUREST)
    odds: np.ndarray = np.log(kept) - np.log1p(-kept)
    return odds


def _scores(
    raw: Sequence[float] | np.ndarray, means: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    return log_odds(raw), np.asarray(means, np.float64)
