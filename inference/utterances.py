"""Utterances in a stream of sound: where speech begins, and where a pause ends it."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from beamless.inference.silero import CHUNK, SpeechDetector
from beamless.inference.vad import ENDS, SAMPLE_RATE, SHORTEST_SPEECH, STARTS

BATCH = 4  # chunks at a time: 0.13 s
PADDING = 12  # chunks kept before an utterance, and of the pause behind it: 0.4 s
BLOCK = BATCH * CHUNK


@dataclass(frozen=True)
class Utterance:
    """A stretch of speech.

    Attributes:
        first: its first sample's number in the stream.
        samples: float32 [n] at 16 kHz.
        cut: speech goes on behind it.
    """

    first: int
    samples: np.ndarray
    cut: bool = False

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / SAMPLE_RATE

    @property
    def start(self) -> float:
        """When it begins, in seconds from the stream's start."""
        return self.first / SAMPLE_RATE

    @property
    def end(self) -> float:
        """When it ends."""
        return self.start + self.seconds


class UtteranceFinder:
    """One stream of sound.

    Args:
        pause: s of silence that end an utterance.
        longest: s after which one is cut where it is least likely to be speech.
    """

    def __init__(self, pause: float, longest: float) -> None:
        self._detector = SpeechDetector(BATCH)
        self._pause, self._longest = round(pause * SAMPLE_RATE), round(longest * SAMPLE_RATE)
        self._waiting = np.zeros(0, np.float32)  # not yet looked at
        self._total = 0  # samples that have come
        self._first = 0  # sample that ``_kept`` begins with
        self._kept: deque[np.ndarray] = deque()
        self._likely: list[float] = []  # probabilities of the chunks in ``_kept``
        self._begun = False
        self._voiced = self._quiet = 0  # chunks of the utterance with speech, and since the last

    @property
    def heard(self) -> float:
        """Seconds of sound so far."""
        return self._total / SAMPLE_RATE

    @property
    def voiced(self) -> float:
        """Seconds of speech in the utterance that goes on."""
        return self._voiced * CHUNK / SAMPLE_RATE

    @property
    def current(self) -> Utterance | None:
        """The utterance that goes on, all sound that has come with it."""
        if not self._begun:
            return None
        return Utterance(self._first, np.concatenate([*self._kept, self._waiting]))

    def feed(self, samples: np.ndarray) -> list[Utterance]:
        """Take the next samples, float32 [n] at 16 kHz; return the utterances that end in them."""
        self._waiting = np.concatenate([self._waiting, samples])
        self._total += len(samples)
        ended = []
        while len(self._waiting) >= BLOCK:
            block, self._waiting = self._waiting[:BLOCK], self._waiting[BLOCK:]
            self._look(block)
            if self._begun and self._quiet * CHUNK >= self._pause:
                ended += self._close()
            elif self._begun and len(self._likely) * CHUNK >= self._longest:
                ended += self._cut()
            elif not self._begun:
                self._forget(PADDING * CHUNK)
        return ended

    def finish(self) -> list[Utterance]:
        """Return the utterance that the stream's end ends."""
        rest = len(self._waiting)
        if rest:
            self._look(np.pad(self._waiting, (0, BLOCK - rest)))
            self._waiting = self._waiting[:0]
        return self._close() if self._begun else []

    def _look(self, block: np.ndarray) -> None:
        self._kept.append(block)
        for probability in self._detector(block).tolist():
            self._likely.append(probability)
            if probability >= (ENDS if self._begun else STARTS):
                self._begun = True
                self._voiced, self._quiet = self._voiced + 1, 0
            elif self._begun:
                self._quiet += 1

    def _close(self) -> list[Utterance]:
        """End the utterance some time behind its last speech; what follows is kept."""
        whole = np.concatenate(self._kept)
        stop = len(whole) - max(0, self._quiet - PADDING) * CHUNK
        found = Utterance(self._first, whole[: min(stop, self._total - self._first)])
        spoken = self._voiced * CHUNK >= SHORTEST_SPEECH * SAMPLE_RATE
        self._begun, self._voiced, self._quiet = False, 0, 0
        self._keep_from(stop, whole)
        return [found] if spoken else []

    def _cut(self) -> list[Utterance]:
        half = len(self._likely) // 2
        at = half + int(np.argmin(self._likely[half:])) + 1
        whole = np.concatenate(self._kept)
        found = Utterance(self._first, whole[: at * CHUNK], cut=True)
        self._keep_from(at * CHUNK, whole)
        self._voiced = len(self._likely)
        self._quiet = min(self._quiet, len(self._likely))
        return [found]

    def _keep_from(self, start: int, whole: np.ndarray) -> None:
        self._first += start
        self._kept = deque([whole[start:]])
        self._likely = self._likely[start // CHUNK :]

    def _forget(self, room: int) -> None:
        """Drop what lies further back than ``room`` samples."""
        while self._kept and len(self._likely) * CHUNK - len(self._kept[0]) >= room:
            gone = len(self._kept.popleft())
            self._first += gone
            self._likely = self._likely[gone // CHUNK :]
