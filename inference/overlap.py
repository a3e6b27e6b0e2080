"""Windows that hear a little of their neighbours, and which of their words are their own.

What two windows both heard is told apart by the times of words alone: the same words said twice are
two pairs of times, and stay in the text twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from beamless.inference.tokenizer import Tokenizer
from beamless.inference.transcript import Segment
from beamless.inference.word_times import trimmed, words_of

if TYPE_CHECKING:
    from beamless.inference.longform import Window


def overlapping(windows: "Iterable[Window]", size: int) -> "Iterator[Window]":
    """Let each window hear so many samples of those before and behind that touch it.

    What was its own before stays its ``own``. Each comes when the next one is known.
    """
    before: Window | None = None
    here: Window | None = None
    for following in chain(windows, [None]):
        if here is not None:
            yield _among(before, here, following, size)
        before, here = here, following


def _among(
    before: "Window | None", window: "Window", following: "Window | None", size: int
) -> "Window":
    start, stop = window.first, window.first + len(window.samples)
    parts = [window.samples]
    if before is not None and before.first + len(before.samples) == start:
        parts.insert(0, before.samples[-size:])
        start -= len(parts[0])
    if following is not None and following.first == stop:
        parts.append(following.samples[:size])
    return window._replace(first=start, samples=np.concatenate(parts), own=(window.first, stop))


def border_between(segments: Sequence[Segment], border: float, reach: float, after: float) -> float:
    """Return where, near a border, the words of the window before it end and the next one's begin.

    That is as far as can be from the middle of any word, so that it does not matter that two
    windows time the same word a little differently; and behind the last word where there is none
    beyond the border, so that what the next window hears before it is kept.

    Args:
        segments: what the window before it heard.
        border: s; where the next window's own sound begins.
        reach: s from the border that are heard well by both windows.
        after: s; where the words of the windows before end.
    """
    words = [word for segment in segments for word in segment.words or (segment,)]
    middles = [(word.start + word.end) / 2 for word in words]
    if not middles or middles[-1] < border:
        return max(after, words[-1].end) if words else after
    places = [(a + b) / 2 for a, b in pairwise(middles)]
    near = [place for place in places if abs(place - border) <= reach]
    return max([border, *near], key=lambda place: min(abs(place - m) for m in middles))


def own_words(
    segments: Sequence[Segment],
    after: float,
    before: float,
    tokenizer: Tokenizer,
    language: str,
) -> list[Segment]:
    """Return segments with those words alone whose middle lies from ``after`` on, up to ``before``.

    A segment without words is kept or not as a whole.

    Args:
        segments: as the window heard them.
        after, before: s; what ``border_between`` returned for both of its borders.
        tokenizer, language: what the words were made with.
    """
    found = []
    for segment in segments:
        timed = segment.words or (segment,)
        inside = [after <= (each.start + each.end) / 2 < before for each in timed]
        if not any(inside):
            continue
        if not segment.words:
            found.append(segment)
            continue
        first, stop = inside.index(True), len(inside) - inside[::-1].index(True)
        words, tokens = list(segment.words[first:stop]), segment.tokens
        confidences = segment.confidences
        if len(words) < len(inside):
            steps = [step for step, token in enumerate(tokens) if token < tokenizer.end]
            parts = trimmed(words_of([tokens[step] for step in steps], tokenizer, language))
            steps = steps[parts[first].first : parts[stop - 1].stop]
            tokens = tuple(tokens[step] for step in steps)
            confidences = tuple(confidences[step] for step in steps) if confidences else ()
            words[0] = replace(words[0], text=words[0].text.lstrip())
            words[-1] = replace(words[-1], text=words[-1].text.rstrip())
        found.append(
            replace(
                segment,
                start=words[0].start,
                end=words[-1].end,
                text="".join(word.text for word in words),
                tokens=tokens,
                confidences=confidences,
                words=tuple(words),
            )
        )
    return found
