"""Subtitle cues out of segments: no line too long, no cue with too many lines."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from beamless.inference.errors import BeamlessError
from beamless.inference.transcript import Segment

ZERO_WIDTH_JOINER = "\u200d"
SPACES = re.compile(r"\s+")
SPACE_THEN_WORD = re.compile(r"\s*\S+")


@dataclass(frozen=True)
class Layout:
    """Limits of a subtitle: characters a line and lines a cue; 0 stands for no limit."""

    line_length: int = 0
    line_count: int = 0

    def __post_init__(self) -> None:
        if self.line_length < 0 or self.line_count < 0:
            raise BeamlessError("line length and line count of subtitles cannot be negative")
        if self.line_count and not self.line_length:
            raise BeamlessError("a line count needs a line length too, for example 42")


@dataclass(frozen=True)
class Cue:
    """Lines that are shown from ``start`` to ``end``, in seconds."""

    start: float
    end: float
    lines: tuple[str, ...]
    speaker: str = ""


@dataclass(frozen=True)
class _Piece:
    """Text with its leading space, too short to be broken, and its times."""

    start: float
    end: float
    text: str


def cues(segment: Segment, layout: Layout, lead: int = 0) -> list[Cue]:
    """Lay a segment's text out; ``lead`` characters of each cue's first line are taken.

    Cues that split a segment take their times from its words; without words, time is shared out
    by characters. A segment without text gives no cue.
    """
    text = " ".join(segment.text.split())
    if not text:
        return []
    if not layout.line_length:
        return [Cue(segment.start, segment.end, (text,), segment.speaker)]
    pieces = _pieces(segment, max(1, layout.line_length - lead))
    lines = _lines(pieces, layout, lead)
    count = layout.line_count or len(lines)
    result = []
    for first in range(0, len(lines), count):
        shown = lines[first : first + count]
        start = segment.start if first == 0 else shown[0][0].start
        end = segment.end if first + count >= len(lines) else shown[-1][-1].end
        texts = tuple("".join(piece.text for piece in line).strip() for line in shown)
        result.append(Cue(start, max(start, end), texts, segment.speaker))
    return result


def _pieces(segment: Segment, limit: int) -> list[_Piece]:
    """Cut a segment into words, and words that are longer than a line into parts of a line."""
    words = [_Piece(w.start, w.end, SPACES.sub(" ", w.text)) for w in segment.words]
    if not words:
        texts = SPACE_THEN_WORD.findall(SPACES.sub(" ", segment.text))
        words = list(_shared(segment.start, segment.end, texts))
    pieces: list[_Piece] = []
    for word in words:
        parts = list(_parts(word.text, limit))
        pieces.extend(_shared(word.start, word.end, parts))
    return pieces


def _shared(start: float, end: float, texts: list[str]) -> Iterator[_Piece]:
    """Share the time from start to end among texts by their numbers of characters."""
    if not texts:
        return
    total = max(1, sum(map(len, texts)))
    ends = [start + (end - start) * done / total for done in accumulate(map(len, texts))]
    ends[-1] = end
    for text, first, last in zip(texts, [start, *ends[:-1]], ends, strict=True):
        yield _Piece(first, last, text)


def _parts(word: str, limit: int) -> Iterator[str]:
    """Cut a word into parts of at most ``limit`` characters, never inside a character's marks."""
    part = ""
    for cluster in clusters(word):
        if part.strip() and len((part + cluster).strip()) > limit:
            yield part
            part = ""
        part += cluster
    if part:
        yield part


def clusters(text: str) -> Iterator[str]:
    """Yield characters together with what must not be parted from them.

    That is marks, joined emoji and, as no line begins with it, closing punctuation.
    """
    cluster = ""
    for character in text:
        category = unicodedata.category(character)
        joined = category[0] == "M" or category in ("Cf", "Sk", "Pe", "Pf", "Po")
        if cluster and not joined and not cluster.endswith(ZERO_WIDTH_JOINER):
            yield cluster
            cluster = ""
        cluster += character
    if cluster:
        yield cluster


def _lines(pieces: list[_Piece], layout: Layout, lead: int) -> list[list[_Piece]]:
    """Fill lines with pieces as long as they fit behind what is taken of a cue's first."""
    lines: list[list[_Piece]] = []
    length = 0
    for piece in pieces:
        if not lines or length + len(piece.text.rstrip()) > layout.line_length:
            opens = not lines or (layout.line_count and len(lines) % layout.line_count == 0)
            lines.append([])
            length = (lead if opens else 0) - len(piece.text) + len(piece.text.lstrip())
        lines[-1].append(piece)
        length += len(piece.text)
    return lines
