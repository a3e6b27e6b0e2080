"""Where speech is in a recording."""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from beamless.inference.silero import CHUNK, speech_probabilities

SAMPLE_RATE = 16000
STARTS = 0.5  # probability at which speech begins, and below ENDS that it ends: Silero's own
ENDS = 0.35
SHORTEST_PAUSE = 0.1  # s
SHORTEST_SPEECH = 0.1  # s; Silero's 0.25 loses short answers
LONGEST_SPEECH = 28.0  # s without any pause


class Span(NamedTuple):
    """A stretch of speech in seconds from the recording's start.

    An empty one (start = end) is a mark: no speech goes on at that time.
    """

    start: float
    end: float


def speech_spans(audio: np.ndarray | Iterable[np.ndarray]) -> Iterator[Span]:
    """Yield where there is speech, in order, without padding.

    ``audio`` is float32 [n] at 16 kHz or blocks of it; blocks are taken as they come, so that
    memory stays flat and spans come while a recording is still being read. Speech that goes on for
    28 s without a pause is cut where it is least likely to be speech.
    """
    blocks = [audio] if isinstance(audio, np.ndarray) else audio
    return (span for span in marked_spans(blocks) if span.end > span.start)


def marked_spans(blocks: Iterable[np.ndarray]) -> Iterator[Span]:
    """Yield what ``speech_spans`` does, and a mark every four seconds of silence."""
    return spans_of(part.tolist() for part in speech_probabilities(blocks))


def spans_of(parts: Iterable[list[float]]) -> Iterator[Span]:
    """Turn the probabilities of consecutive chunks into spans of speech.

    A mark is yielded at the end of each part in which no speech goes on.
    """
    pause, shortest, longest = (
        math.ceil(seconds * SAMPLE_RATE / CHUNK)
        for seconds in (SHORTEST_PAUSE, SHORTEST_SPEECH, LONGEST_SPEECH)
    )
    count = quiet = 0  # chunks seen, and since speech was last likely
    heard: list[float] = []  # probabilities since speech began
    for part in parts:
        for p in part:
            count += 1
            if not heard and p < STARTS:
                continue
            heard.append(p)
            quiet = quiet + 1 if p < ENDS or (quiet and p < STARTS) else 0
            if quiet >= pause:
                if len(heard) - quiet >= shortest:
                    yield _span(count - len(heard), count - quiet)
                heard, quiet = [], 0
            elif len(heard) >= longest:
                cut = longest // 2 + int(np.argmin(heard[longest // 2 :]))
                yield _span(count - len(heard), count - len(heard) + cut)
                heard = heard[cut:]
                quiet = min(quiet, len(heard))
        if not heard:
            yield _span(count, count)
    if len(heard) - quiet >= shortest:
        yield _span(count - len(heard), count - quiet)


def _span(first: int, last: int) -> Span:
    return Span(first * CHUNK / SAMPLE_RATE, last * CHUNK / SAMPLE_RATE)
