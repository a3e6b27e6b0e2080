"""What an evaluation reports: pooled word errors, and the share of the beam's gain recovered."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beamless.data_gen.word_errors import (
    Errors,
    normalize,
    normalize_english,
    unit,
    word_errors,
)

__all__ = [
    "Errors",
    "GapClosed",
    "Score",
    "bootstrap_gap_closed",
    "normalize",
    "normalize_english",
    "score",
    "unit",
    "wer",
    "word_errors",
]


@dataclass(frozen=True)
class Score:
    """Errors over a corpus: pooled, so that long utterances weigh more than short ones."""

    errors: Errors
    utterances: int
    empty_references: int
    unit: str
    """What is counted: "word", or "character" in a language without spaces."""


class GapClosed(NamedTuple):
    """Share of the errors between greedy and beam that a method removes, with its interval.

    ``None`` stands for no bound; all three are ``None`` where beam is no better than greedy.
    """

    value: float | None
    low: float | None
    high: float | None


def score(pairs: Iterable[tuple[str, str]], language: str = "en") -> Score:
    """Normalise (reference, hypothesis) pairs and pool their errors.

    A reference that is empty, or becomes so, counts the hypothesis' words as insertions.
    """
    errors, utterances, empty = Errors(), 0, 0
    for reference, hypothesis in pairs:
        spoken = normalize(reference, language)
        errors += word_errors(spoken, normalize(hypothesis, language))
        utterances += 1
        empty += not spoken
    return Score(errors, utterances, empty, unit(language))


def wer(pairs: Iterable[tuple[str, str]], language: str = "en") -> float:
    """Return the pooled error rate of (reference, hypothesis) pairs as a fraction."""
    return score(pairs, language).errors.rate


def bootstrap_gap_closed(
    greedy: Sequence[int],
    method: Sequence[int],
    beam: Sequence[int],
    speakers: Sequence[str] | None = None,
    seed: int = 0,
    draws: int = 2000,
) -> GapClosed:
    """Return (greedy - method) / (greedy - beam) and its 95 % paired bootstrap interval.

    The three sequences hold the numbers of errors of each utterance, in the same order; the
    number of reference words cancels out. Whole speakers are drawn with replacement (Bisani and
    Ney 2004); an utterance without a speaker stands for itself. A draw in which beam has no
    advantage counts as unbounded, in the direction of the method's own gain.

    Raises:
        ValueError: the sequences differ in length.
    """
    names = list(speakers) if speakers is not None else [""] * len(greedy)
    if not len(greedy) == len(method) == len(beam) == len(names):
        raise ValueError("greedy, method, beam and speakers differ in length")
    gains = np.array(  # [utterances, 2]: what the method and the beam gain over greedy
        [(g - m, g - b) for g, m, b in zip(greedy, method, beam, strict=True)], dtype=np.int64
    ).reshape(-1, 2)
    own, possible = gains.sum(axis=0)
    if possible <= 0:
        return GapClosed(None, None, None)
    groups = _group_numbers(names)
    sums = np.zeros((groups.max() + 1, 2), np.int64)  # [groups, 2]
    np.add.at(sums, groups, gains)
    value = float(own / possible)
    if len(sums) == 1:
        return GapClosed(value, None, None)
    counts = np.random.default_rng(seed).multinomial(
        len(sums), np.full(len(sums), 1 / len(sums)), size=draws
    )  # [draws, groups]
    drawn = counts @ sums  # [draws, 2]
    unbounded = np.select([drawn[:, 0] > 0, drawn[:, 0] < 0], [math.inf, -math.inf], 0.0)
    shares = np.divide(drawn[:, 0], drawn[:, 1], out=unbounded, where=drawn[:, 1] > 0)
    low = float(np.quantile(shares, 0.025, method="lower"))
    high = float(np.quantile(shares, 0.975, method="higher"))
    return GapClosed(
        value, low if math.isfinite(low) else None, high if math.isfinite(high) else None
    )


def _group_numbers(names: Sequence[str]) -> np.ndarray:
    """Number the speakers from 0; every empty name is a speaker of its own."""
    numbers: dict[str | int, int] = {}
    keys = [name or index for index, name in enumerate(names)]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
