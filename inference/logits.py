"""Rules on the logits, and the choice of a token, on the host."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beamless.inference.cache import cache_folder
from beamless.inference.errors import BeamlessError

Tokens = Sequence[int] | np.ndarray
"""Ids of tokens, one after the other."""


@dataclass(frozen=True)
class Suppression:
    """Tokens that may not come: ``always`` at every step, ``begin`` at a window's first too."""

    always: np.ndarray
    begin: np.ndarray

    @classmethod
    def of(cls, always: tuple[int, ...], begin: tuple[int, ...]) -> "Suppression":
        """Make the rule from Whisper's two lists of ids."""
        return cls(np.array(always, np.int64), np.array([*always, *begin], np.int64))

    def apply(self, logits: np.ndarray, first: bool) -> np.ndarray:
        """Return a copy of logits [B, V] with the suppressed tokens at minus infinity.

        Raises:
            ValueError: the logits are not of rank 2.
            BeamlessError: a logit is not finite; such logits must never become text.
        """
        if logits.ndim != 2:
            raise ValueError(f"logits are [B, V], not of rank {logits.ndim}")
        allowed = logits.astype(np.float32, copy=True)
        if not np.isfinite(allowed.sum()):
            raise not_finite()
        allowed[:, self.begin if first else self.always] = -np.inf
        return allowed


def not_finite() -> BeamlessError:
    """Return what to say of logits that must not become text."""
    return BeamlessError(
        "the decoder gave a logit that is not finite; export it with --decoder_precision f32, or, "
        f"where that is so, remove {cache_folder() / 'graphs'}"
    )


def log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """Return log Σ exp of each row of [B, V], as [B, 1]."""
    highest = logits.max(axis=-1, keepdims=True)
    total: np.ndarray = np.log(np.exp(logits - highest).sum(axis=-1, keepdims=True))
    return highest + total


def probability_of(token: int, logits: np.ndarray) -> float:
    """Return a token's probability by the first row of logits [B, V]."""
    return float(np.exp(logits[0, token] - log_sum_exp(logits[:1])[0, 0]))


def likeliest(logits: np.ndarray, total: float, count: int) -> tuple[tuple[int, float], ...]:
    """Return the best tokens of allowed logits [V] and their log-probabilities, best first.

    ``total`` is their log Σ exp.
    """
    if not count:
        return ()
    return tuple((int(t), float(logits[t]) - total) for t in top_k(logits, count))


def top_k(values: np.ndarray, k: int) -> np.ndarray:
    """Return the indices of the k largest of a flat array, largest first, ties by index."""
    k = min(k, values.size)
    candidates = np.argpartition(-values, k - 1)[:k]
    threshold = values[candidates].min()
    candidates = np.flatnonzero(values >= threshold)
    order = np.argsort(-values[candidates], kind="stable")[:k]
    return candidates[order]
