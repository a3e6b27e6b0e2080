"""Windows of at most thirty seconds over the speech of a recording, cut at its pauses."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from beamless.inference.vad import Span, marked_spans

SAMPLE_RATE = 16000
PADDING = 0.4  # s that a window has before and behind its speech
LONG_PAUSE = 5.0  # s of silence that no window holds
FILLED = 2 / 3  # of a window, from where on the longest pause is a good place for a cut
FAR = 2**62  # samples: later than any recording ends

Piece = tuple[int, int]
"""First sample of a stretch of speech, and the first behind it."""


@dataclass(frozen=True)
class Window:
    """A stretch of a recording to decode at once, in seconds; both ends lie on a sample."""

    start: float
    end: float

    @property
    def samples(self) -> slice:
        """The same stretch in samples at 16 kHz."""
        return slice(round(self.start * SAMPLE_RATE), round(self.end * SAMPLE_RATE))


def windows(
    spans: Iterable[tuple[float, float]], duration: float = math.inf, limit: float = 30.0
) -> Iterator[Window]:
    """Gather spans of speech into windows of at most ``limit`` seconds, cut at pauses.

    The windows are in order, do not overlap and cover all speech. One is as full as it can be up
    to its longest pause in the last third; silence of five seconds ends it. No speech, no window.

    Args:
        spans: (start, end) in seconds, in order; empty ones only tell that time has passed.
        duration: of the recording; no window goes past it.
        limit: the longest window.
    """
    longest = math.floor(limit * SAMPLE_RATE)
    last = FAR if math.isinf(duration) else math.floor(duration * SAMPLE_RATE)
    padding = round(PADDING * SAMPLE_RATE)
    previous = 0  # where the window before ends
    for held, following in _gathered(_in_samples(spans, longest, last), longest):
        start, end = held[0][0], held[-1][1]
        room = longest - (end - start)
        before = min(padding, start - previous, room // 2)
        behind = min(padding, (following - end) // 2, room - before)
        previous = min(end + behind, last)
        yield Window((start - before) / SAMPLE_RATE, previous / SAMPLE_RATE)


def window_audio(
    blocks: Iterable[np.ndarray], limit: float = 30.0
) -> Iterator[tuple[Window, np.ndarray]]:
    """Yield each window of a recording with its samples, reading the recording once.

    ``blocks`` are float32 [n] at 16 kHz. What no window needs is dropped as soon as that is known,
    so that memory stays flat however long speech or silence lasts.
    """
    kept: deque[np.ndarray] = deque()
    first = total = 0  # the samples that ``kept`` starts and ends with
    waiting: deque[Span] = deque()  # speech of which no window has come yet

    def drop_before(sample: int) -> None:
        nonlocal first
        while kept and first + len(kept[0]) <= sample:
            first += len(kept.popleft())

    def watched_blocks() -> Iterator[np.ndarray]:
        nonlocal total
        for block in blocks:
            kept.append(block)
            total += len(block)
            yield block

    def watched_spans() -> Iterator[Span]:
        for span in marked_spans(watched_blocks()):
            if span.end > span.start:
                waiting.append(span)
            elif not waiting:
                drop_before(round((span.start - PADDING) * SAMPLE_RATE))
            yield span

    for window in windows(watched_spans(), limit=limit):
        start, stop = window.samples.start, min(window.samples.stop, total)
        drop_before(start)
        samples = np.concatenate(kept)[start - first : stop - first]
        while waiting and waiting[0].end <= window.end:
            waiting.popleft()
        yield Window(window.start, stop / SAMPLE_RATE), samples


def _in_samples(spans: Iterable[tuple[float, float]], longest: int, last: int) -> Iterator[Piece]:
    """Yield spans in samples, disjoint, not past ``last``, cut into equal parts where too long."""
    previous = 0
    for start, end in spans:
        first = min(last, max(previous, math.floor(start * SAMPLE_RATE)))
        heard = end > start  # a mark's time need not be a whole number of samples, as floats go
        previous = min(last, max(first, math.ceil(end * SAMPLE_RATE))) if heard else first
        parts = max(1, math.ceil((previous - first) / longest))
        yield from pairwise(first + (previous - first) * part // parts for part in range(parts + 1))


def _gathered(pieces: Iterable[Piece], longest: int) -> Iterator[tuple[list[Piece], int]]:
    """Yield the pieces of each window, and where the speech that follows it may start."""
    held: list[Piece] = []
    for piece in pieces:
        if held and piece[0] - held[-1][1] > LONG_PAUSE * SAMPLE_RATE:
            yield held, piece[0]
            held = []
        if piece[0] == piece[1]:
            continue
        held.append(piece)
        while held[-1][1] - held[0][0] > longest:
            cut = _cut(held, longest)
            yield held[:cut], held[cut][0]
            held = held[cut:]
    if held:
        yield held, FAR


def _cut(held: list[Piece], longest: int) -> int:
    """Return how many pieces a window takes: up to the longest pause in its last third."""
    fitting = [i for i in range(1, len(held)) if held[i - 1][1] - held[0][0] <= longest]
    late = [i for i in fitting if held[i - 1][1] - held[0][0] >= FILLED * longest]
    return max(late or fitting[-1:], key=lambda i: (held[i][0] - held[i - 1][1], i))
