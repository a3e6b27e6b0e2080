"""Fitting and judging confidence: how often is a word right of which a probability is given?

Symbols: N words or tokens.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from beamless.inference.confidence import applied, log_odds
from beamless.inference.errors import BeamlessError

BINS = 10
STEPS = 100
PULL = 1e-3  # towards zero: keeps the fit finite where right and wrong words part cleanly


@dataclass(frozen=True)
class Sample:
    """Words, or tokens, that are known to be right or wrong.

    Attributes:
        raw: what the model gives them, [N].
        means: the mean log-probability of the window that each is from, [N].
        right: [N].
    """

    raw: np.ndarray
    means: np.ndarray
    right: np.ndarray


@dataclass(frozen=True)
class Bin:
    """Words of nearly the same confidence: their number, its mean, and the share that is right."""

    count: int
    confidence: float
    right: float


@dataclass(frozen=True)
class Quality:
    """How good probabilities are.

    Attributes:
        calibration_error: expected: mean distance between confidence and share of right words,
            over ten bins of equal width, weighted by their words.
        log_loss: mean negative log-likelihood, nats a word.
        ranking: area under the ROC curve of telling wrong words by low confidence.
        threshold: the confidence below which a word is called wrong that gives the best F1.
        precision, recall: of wrong words so called, at that threshold.
        precision_at_half, recall_at_half: the same at a threshold of one half.
        bins: for a reliability plot.
    """

    calibration_error: float
    log_loss: float
    ranking: float
    threshold: float
    precision: float
    recall: float
    precision_at_half: float
    recall_at_half: float
    bins: tuple[Bin, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)


def fit(sample: Sample) -> tuple[float, float, float]:
    """Fit the numbers of ``inference.confidence`` by logistic regression (Newton's method).

    Raises:
        BeamlessError: there are no right words, or no wrong ones.
    """
    wrong = int((~sample.right).sum())
    if not 0 < wrong < len(sample.right):
        raise BeamlessError(
            f"{wrong} of {len(sample.right)} words are wrong: nothing to calibrate on; "
            "give more recordings, or harder ones"
        )
    features = np.stack([np.ones(len(sample.raw)), log_odds(sample.raw), sample.means], axis=1)
    numbers = np.zeros(3)
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-features @ numbers))
        gradient = features.T @ (sample.right - likely) - PULL * numbers
        curvature = (features * (likely * (1 - likely))[:, None]).T @ features + PULL * np.eye(3)
        change = np.linalg.solve(curvature, gradient)
        numbers = numbers + change
        if np.abs(change).max() < 1e-9:
            break
    return float(numbers[0]), float(numbers[1]), float(numbers[2])


def calibrated(numbers: Sequence[float], sample: Sample) -> np.ndarray:
    """Return the calibrated probabilities [N] of a sample."""
    return applied(numbers, log_odds(sample.raw), sample.means)


def quality(probabilities: np.ndarray, right: np.ndarray) -> Quality:
    """Judge probabilities [N] by what was right [N]."""
    kept = np.clip(probabilities, 1e-6, 1 - 1e-6)
    bins = reliability(probabilities, right)
    error = sum(b.count * abs(b.confidence - b.right) for b in bins) / len(right)
    threshold, precision, recall = best_threshold(probabilities, right)
    at_half = precision_and_recall(probabilities, right, 0.5)
    return Quality(
        calibration_error=float(error),
        log_loss=float(-np.log(np.where(right, kept, 1 - kept)).mean()),
        ranking=ranking(probabilities, right),
        threshold=threshold,
        precision=precision,
        recall=recall,
        precision_at_half=at_half[0],
        recall_at_half=at_half[1],
        bins=tuple(bins),
    )


def reliability(probabilities: np.ndarray, right: np.ndarray) -> list[Bin]:
    """Return the bins that hold anything, lowest first."""
    numbers = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    groups = [numbers == number for number in range(BINS)]
    return [
        Bin(int(g.sum()), float(probabilities[g].mean()), float(right[g].mean()))
        for g in groups
        if g.any()
    ]


def ranking(probabilities: np.ndarray, right: np.ndarray) -> float:
    """Return how often a wrong word is less likely than a right one; ties count half."""
    _, places, counts = np.unique(probabilities, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    correct, wrong = int(right.sum()), int((~right).sum())
    if not correct or not wrong:
        return float("nan")
    return float((ranks[right].sum() - correct * (correct + 1) / 2) / (correct * wrong))


def precision_and_recall(
    probabilities: np.ndarray, right: np.ndarray, threshold: float
) -> tuple[float, float]:
    """Return which share of the words called wrong is, and of the wrong ones is called so."""
    called = probabilities < threshold
    hits = int((called & ~right).sum())
    return hits / max(1, int(called.sum())), hits / max(1, int((~right).sum()))


def best_threshold(probabilities: np.ndarray, right: np.ndarray) -> tuple[float, float, float]:
    """Return the threshold with the best F1 of calling words wrong, its precision and recall."""
    best = (0.0, 0.0, 0.0)
    for threshold in np.arange(1, 100) / 100:
        precision, recall = precision_and_recall(probabilities, right, float(threshold))
        if precision * recall / max(1e-9, precision + recall) > best[1] * best[2] / max(
            1e-9, best[1] + best[2]
        ):
            best = (float(threshold), precision, recall)
    return best
