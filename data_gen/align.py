"""Cutting a long recording with a text but no times: what Whisper hears is aligned to the text.

The recording falls into windows at its pauses, each is transcribed, and the words heard are
aligned with the words of the text by edit distance. A window keeps the part of the text between
its borders where both borders are sure and what was heard is close to what is written.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from beamless.data_gen.word_errors import normalize, word_errors
from beamless.inference.errors import BeamlessError

UNSURE = "unsure where its text begins or ends"
DIFFERENT = "heard differently than it is written"
NOTHING = "no words heard"
FARTHEST = 3
"""Words that may be misheard between a border and the nearest word heard rightly."""


@dataclass(frozen=True)
class Heard:
    """What was heard in one window; times in seconds."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Stretch:
    """A window and its part of the text, or the ``fault`` for which it is left out.

    ``wer`` is that of what was heard against the text.
    """

    start: float
    end: float
    text: str
    heard: str
    wer: float
    fault: str = ""


def cut_text(
    text: str, heard: Sequence[Heard], bound: float = 0.3, language: str = "en"
) -> list[Stretch]:
    """Give each window its part of a text.

    Args:
        text: what is said in the whole recording.
        heard: the windows in order.
        bound: the word error rate above which a window is left out.
        language: what is spoken, for the word error rate.

    Raises:
        BeamlessError: rapidfuzz is not installed.
    """
    words = text.split()
    units = [(key, number) for number, word in enumerate(words) for key in _keys(word)]
    spoken = [window for window in heard if _keys(window.text)]
    borders = _borders([key for key, _ in units], [_keys(window.text) for window in spoken])
    at_word = [_word_at(border, units, len(words)) for border in borders]
    parts = {id(window): pair for window, pair in zip(spoken, pairwise(at_word), strict=True)}
    return [_stretch(window, parts.get(id(window)), words, bound, language) for window in heard]


def recall(stretches: Sequence[Stretch], text: str) -> tuple[float, float]:
    """Return the share of a text's words that were placed, and the WER they were heard with."""
    kept = [stretch for stretch in stretches if not stretch.fault]
    placed = sum(len(stretch.text.split()) for stretch in kept)
    errors = sum(stretch.wer * len(stretch.text.split()) for stretch in kept)
    return placed / max(1, len(text.split())), errors / max(1, placed)


def _keys(text: str) -> list[str]:
    """Return the words of a text as they are compared: no case, no punctuation."""
    return re.findall(r"[^\W_]+", re.sub(r"['’]", "", text.casefold()))


def _borders(written: list[str], heard: list[list[str]]) -> list[int | None]:
    """Return, for each border between windows and both ends, its place in the text's words.

    None where it is not sure.
    """
    joined = [key for keys in heard for key in keys]
    match: dict[int, int] = {-1: -1, len(joined): len(written)}
    for block in _matching_blocks(joined, written):
        match |= {block.a + i: block.b + i for i in range(block.size)}
    places: list[int | None] = []
    at = 0
    for keys in [*heard, []]:
        places.append(_border(at, match))
        at += len(keys)
    return places


def _border(at: int, match: dict[int, int]) -> int | None:
    """Return where the heard word ``at`` begins in the text, by the sure words on both sides."""
    left = next((i for i in range(at - 1, at - 2 - FARTHEST, -1) if i in match), None)
    right = next((i for i in range(at, at + FARTHEST + 1) if i in match), None)
    if left is None or right is None:
        return None
    missed_left, missed_right = at - 1 - left, right - at
    between = match[right] - match[left] - 1
    if between == missed_left + missed_right:
        return match[left] + 1 + missed_left
    if missed_left and missed_right:
        return None
    if missed_right:
        return match[left] + 1
    return match[right] if missed_left else None


def _word_at(place: int | None, units: list[tuple[str, int]], total: int) -> int | None:
    """Return the word that begins at a place; None inside of one, as in "forty-two"."""
    if place is None or place == len(units):
        return None if place is None else total
    word = units[place][1]
    if not place:
        return 0
    return word if units[place - 1][1] != word else None


def _stretch(
    window: Heard,
    part: tuple[int | None, int | None] | None,
    words: list[str],
    bound: float,
    language: str,
) -> Stretch:
    if part is None:
        return Stretch(window.start, window.end, "", window.text, 1.0, NOTHING)
    first, last = part
    if first is None or last is None or first >= last:
        return Stretch(window.start, window.end, "", window.text, 1.0, UNSURE)
    text = " ".join(words[first:last])
    error = word_errors(normalize(text, language), normalize(window.text, language)).rate
    fault = DIFFERENT if error > bound else ""
    return Stretch(window.start, window.end, text, window.text, round(error, 4), fault)


def _matching_blocks(heard: list[str], written: list[str]) -> Any:  # noqa: ANN401
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError:
        raise BeamlessError(
            'aligning a text with a recording needs rapidfuzz: pip install "beamless[train]"'
        ) from None
    return Levenshtein.editops(heard, written).as_matching_blocks()
