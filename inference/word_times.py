"""When each word was said: dynamic time warping over the attention that wrote it.

The method is that of openai/whisper: the cross-attention of a few heads that follow the audio,
normalised over the tokens, smoothed over time and averaged; the cheapest way through it that goes
forward in both tells at which position of the encoder each token begins. The attention is that of
the decoding itself: no second run.

Symbols: T steps, N of them for text, A alignment heads, S encoder positions, M of them heard.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from beamless.inference.languages import WITHOUT_SPACES
from beamless.inference.tokenizer import Tokenizer

SECONDS_A_POSITION = 0.02
MEDIAN_WIDTH = 7  # positions
OPENING = "\"'“¿([{-"  # what belongs to the word behind it
CLOSING = "\"'.。,，!！?？:：”)]}、"  # what belongs to the word before it
BROKEN = "\ufffd"  # stands for bytes that make no character
SLACK = 0.1  # s that a word may reach beyond the speech that was detected


@dataclass(frozen=True)
class TokenWord:
    """A word and its tokens: ``tokens[first:stop]`` of the list that it came from.

    ``spoken`` is where its punctuation behind it begins, which takes no time.
    """

    text: str
    first: int
    spoken: int
    stop: int


def words_of(tokens: Sequence[int], tokenizer: Tokenizer, language: str) -> list[TokenWord]:
    """Part text tokens into words; joined, they give the decoded text without broken characters.

    Args:
        tokens: ids of text only.
        tokenizer: the model's.
        language: its code; where words are not parted by spaces each run of tokens that makes whole
            characters is one.
    """
    found: list[TokenWord] = []
    for text, first, stop in _characters(tokens, tokenizer):
        alone = text.startswith(" ") or text.strip() in string.punctuation
        if alone or language in WITHOUT_SPACES or not found:
            found.append(TokenWord(text, first, stop, stop))
        else:
            found[-1] = _merged(found[-1], TokenWord(text, first, stop, stop))
    return _with_punctuation(found)


def _characters(tokens: Sequence[int], tokenizer: Tokenizer) -> list[tuple[str, int, int]]:
    """Return the shortest runs of tokens that make whole characters: text, first, stop.

    What is broken in the whole text too is left out.
    """
    whole = tokenizer.decode(tokens)
    found: list[tuple[str, int, int]] = []
    first = at = 0
    for stop in range(1, len(tokens) + 1):
        text = tokenizer.decode(tokens[first:stop])
        broken = text.find(BROKEN)
        if broken >= 0 and whole[at + broken : at + broken + 1] != BROKEN and stop < len(tokens):
            continue
        found.append((text.replace(BROKEN, ""), first, stop))
        first, at = stop, at + len(text)
    return found


def _merged(left: TokenWord, right: TokenWord, silent: bool = False) -> TokenWord:
    spoken = left.spoken if silent else right.spoken
    return TokenWord(left.text + right.text, left.first, spoken, right.stop)


def _with_punctuation(words: list[TokenWord]) -> list[TokenWord]:
    """Join opening marks to the word behind them, and closing marks to the word before."""
    found: list[TokenWord] = []
    opening: TokenWord | None = None
    for word in words:
        mark = word.text.strip()
        closes = mark and all(c in CLOSING for c in mark) and not word.text.startswith(" ")
        if closes and found and opening is None:
            found[-1] = _merged(found[-1], word, silent=True)
            continue
        joined = word if opening is None else _merged(opening, word)
        opening = None
        if word.text.startswith(" ") and mark and all(c in OPENING for c in mark):
            opening = joined
        else:
            found.append(joined)
    return found if opening is None else [*found, opening]


def trimmed(parts: Sequence[TokenWord]) -> list[TokenWord]:
    """Take the space before the first word and behind the last away, as from the segment's text."""
    found = list(parts)
    while len(found) > 1 and not found[0].text.strip():
        found.pop(0)
    while len(found) > 1 and not found[-1].text.strip():
        found.pop()
    found[0] = replace(found[0], text=found[0].text.lstrip())
    found[-1] = replace(found[-1], text=found[-1].text.rstrip())
    return found


def token_times(alignment: np.ndarray, seconds: float) -> np.ndarray:
    """Return when each step's token begins, and last when the audio ends: [T + 1] s, never falling.

    Args:
        alignment: attention [T, A, S] of the steps that wrote the tokens of a text and its end.
        seconds: how much of the window holds audio.
    """
    heard = max(1, min(alignment.shape[2], round(seconds / SECONDS_A_POSITION)))
    weights = alignment[:, :, :heard].astype(np.float32)  # [T, A, M]
    weights /= weights.sum(axis=2, keepdims=True) + 1e-12
    spread = weights.std(axis=0, keepdims=True)
    weights = (weights - weights.mean(axis=0, keepdims=True)) / (spread + 1e-9)
    matrix = median_filter(weights, MEDIAN_WIDTH).mean(axis=1)  # [T, M]
    rows, columns = cheapest_path(-matrix)
    begins = columns[np.searchsorted(rows, np.arange(len(matrix)))]
    return np.append(begins, heard) * SECONDS_A_POSITION


def median_filter(values: np.ndarray, width: int) -> np.ndarray:
    """Return the running median over the last axis, mirrored at both ends; ``width`` is odd."""
    half, length = width // 2, values.shape[-1]
    if length <= half:
        return values
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(half, half)], mode="reflect")
    layers = [padded[..., at : at + length] for at in range(width)]
    for done in range(half + 1):  # the largest goes to the end, then the second largest, …
        for at in range(width - 1 - done):
            low, high = layers[at], layers[at + 1]
            layers[at], layers[at + 1] = np.minimum(low, high), np.maximum(low, high)
    return layers[half]


def cheapest_path(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the cheapest way from the first to the last cell of [T, M].

    A way goes one row on, one column on, or both at once. Costs are summed up diagonal by
    diagonal, so that NumPy does the work.
    """
    height, width = costs.shape
    total = np.full((height + 1, width + 1), np.inf)  # with a border in front
    total[0, 0] = 0
    for diagonal in range(height + width - 1):
        row = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        column = diagonal - row
        before = np.minimum(total[row, column], total[row, column + 1])
        before = np.minimum(before, total[row + 1, column])
        total[row + 1, column + 1] = costs[row, column] + before
    row_at, column_at = height - 1, width - 1
    way = [(row_at, column_at)]
    while row_at or column_at:
        both = total[row_at, column_at]
        up, left = total[row_at, column_at + 1], total[row_at + 1, column_at]
        if both <= min(up, left):
            row_at, column_at = row_at - 1, column_at - 1
        elif up < left:
            row_at -= 1
        else:
            column_at -= 1
        way.append((row_at, column_at))
    rows, columns = np.array(way[::-1]).T
    return rows, columns


def spoken_interval(
    start: float, end: float, speech: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Return what of a word lies in the stretch of speech that it shares most with.

    The path gives all silence to one of the words beside it.
    """
    best = max(speech, key=lambda s: min(end, s[1]) - max(start, s[0]), default=None)
    if best is None:
        return start, end
    first, last = max(start, best[0] - SLACK), min(end, best[1] + SLACK)
    return (first, last) if first < last else (start, end)
