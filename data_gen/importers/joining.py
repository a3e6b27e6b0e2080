"""What becomes one utterance of the new corpus: a recording, or several joined."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from beamless.data_gen.augment import Join, generator
from beamless.data_gen.importers.recording import (
    RATE,
    Recording,
    Samples,
    UnreadableError,
    samples_of,
    seconds_of,
)


@dataclass(frozen=True)
class Unit:
    """Recordings that follow each other, with ``gaps`` seconds of silence between them."""

    recordings: tuple[Recording, ...]
    gaps: tuple[float, ...] = ()

    @property
    def id(self) -> str:
        """The first recording's id, and how many more follow."""
        more = len(self.recordings) - 1
        return self.recordings[0].id + (f"+{more}" if more else "")

    @property
    def text(self) -> str:
        """What is said in all of them."""
        return " ".join(recording.text.strip() for recording in self.recordings)

    @property
    def extra(self) -> dict[str, Any]:
        """What else is known of all of them; how each was said is put together as the texts are."""
        known = {}
        for name, value in self.recordings[0].extra.items():
            values = [recording.extra.get(name) for recording in self.recordings]
            if values.count(value) == len(values):
                known[name] = value
            elif name == "spoken" and all(values):
                known[name] = " ".join(map(str, values))
        return known

    def samples(self) -> Samples:
        """Return the audio, float32 ``[n]`` at 16 kHz.

        Raises:
            UnreadableError: one of the recordings cannot be used.
        """
        if len(self.recordings) == 1:
            return samples_of(self.recordings[0])
        parts = [samples_of(recording) for recording in self.recordings]
        gaps = [np.zeros(round(gap * RATE), np.float32) for gap in self.gaps]
        return reduce(
            lambda said, pair: np.concatenate([said, *pair]),
            zip(gaps, parts[1:], strict=True),
            parts[0],
        )

    def alone(self) -> list["Unit"]:
        """Return the recordings as units of their own."""
        return [Unit((recording,)) for recording in self.recordings]


def units(
    recordings: Iterable[Recording],
    join: Join | None,
    seed: int,
    side_of: Callable[[Recording], str],
    done: Mapping[str, int],
) -> Iterator[Unit]:
    """Yield what becomes one utterance each.

    Recordings that follow each other are joined up to a length drawn for each unit if they share
    speaker, source, licence, voice and side of the split.

    Args:
        recordings: in their order.
        join: how long units get; each recording is its own if None.
        seed: decides what is drawn.
        side_of: the side of the split that a recording stands on.
        done: units stored by an earlier run, by their first recording, and how many are in each.
            They may be passed over, so that nothing is said again just to know its length.
    """
    if join is None:
        yield from (Unit((recording,)) for recording in recordings)
        return
    pending: list[Recording] = []
    gaps: list[float] = []
    length = wanted = 0.0
    rng = generator(seed)
    passing = 0
    for recording in recordings:
        if not pending and callable(recording.audio) and not recording.fault:
            passing = passing or done.get(recording.id, 0)
            if passing:
                passing -= 1
                continue
        try:
            seconds = seconds_of(recording)
        except UnreadableError:
            yield Unit((recording,))
            continue
        gap = round(float(rng.uniform(*join.gap)), 3)
        alike = pending and _kind(pending[0], side_of) == _kind(recording, side_of)
        if alike and length + gap + seconds <= wanted:
            gaps.append(gap)
            length += gap + seconds
        else:
            if pending:
                yield Unit(tuple(pending), tuple(gaps))
            pending, gaps, length = [], [], seconds
            rng = generator(seed, recording.id, "join")
            wanted = float(rng.uniform(*join.seconds)) if rng.random() < join.p else 0.0
        pending.append(recording)
    if pending:
        yield Unit(tuple(pending), tuple(gaps))


def _kind(recording: Recording, side_of: Callable[[Recording], str]) -> tuple[str, ...]:
    return (
        recording.speaker,
        recording.source,
        recording.license,
        recording.voice,
        side_of(recording),
    )
