"""How recordings, read or said, become a corpus: joined, augmented, each on its side of a split."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from beamless.data_gen.augment import Recipe, augmented
from beamless.data_gen.corpora import Split, split_of
from beamless.data_gen.corpus_writer import RATE, CorpusWriter
from beamless.data_gen.importers.joining import Unit, units
from beamless.data_gen.importers.recording import Recording, UnreadableError
from beamless.data_gen.importers.source import renamed
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import progress

SplitBy = Literal["speaker", "text", "both"]
APART = "speaker and sentence on different sides of the split"


class Intake:
    """Stores recordings through writers that may hold some of them already.

    Attributes:
        writers: by side; the only one is called ``""`` where nothing is split.
        split: what decides the side, or the side itself, or None.
        recipe: the augmentation.
        name: the source of recordings that name none.
        license: the licence of recordings that name none.
    """

    def __init__(
        self,
        writers: Mapping[str, CorpusWriter],
        split: SplitBy | Split | None,
        recipe: Recipe | None,
        name: str,
        license: str,
    ) -> None:
        self.writers, self.split, self.recipe = writers, split, recipe
        self.name, self.license = name, license
        self.done = {side: writer.done_ids for side, writer in writers.items()}

    def run(self, recordings: Iterable[Recording], doing: str, total: int | None = None) -> None:
        """Store all that is not there yet, with progress; one unit at a time is in memory.

        Args:
            recordings: what to store.
            doing: what the progress is called.
            total: how many recordings there are, where it is known.
        """
        join = self.recipe.join if self.recipe else None
        seed = self.recipe.seed if self.recipe else 0
        with progress(doing, total) as advance:
            for unit in units(recordings, join, seed, self.side_of, self._lengths()):
                self.store(unit)
                advance(len(unit.recordings))

    def _lengths(self) -> dict[str, int]:
        """Return the first recording of each unit that is there, and how many are in it."""
        lengths = {}
        for id in (id for done in self.done.values() for id in done):
            first, plus, more = id.rpartition("+")
            joined = bool(plus) and more.isdigit()
            lengths[first if joined else id] = int(more) + 1 if joined else 1
        return lengths

    def side_of(self, recording: Recording) -> str:
        """Return the side of a recording, or ``APART`` where it would stand on two."""
        if self.split is None:
            return ""
        if self.split in ("train", "dev", "test"):
            return self.split
        if self.split != "text" and not recording.speaker:
            raise BeamlessError(f"{recording.id!r} has no speaker; split by text instead")
        if self.split != "speaker" and not any(map(str.isalnum, recording.text)):
            return split_of(recording.speaker or recording.id)
        by_speaker = split_of(recording.speaker) if recording.speaker else ""
        by_text = split_of("", recording.text) if self.split != "speaker" else by_speaker
        if self.split == "text":
            return by_text
        return by_speaker if by_speaker == by_text else APART

    def store(self, unit: Unit) -> None:
        """Store a unit, or refuse it with a reason; a joined one that is damaged, in parts."""
        first = unit.recordings[0]
        side = self.side_of(first)
        apart, side = side == APART, "train" if side == APART else side
        writer = self.writers[side]
        if unit.id in self.done[side]:
            return
        if apart:
            writer.refuse(unit.id, APART)
            return
        try:
            samples = unit.samples()
        except UnreadableError as fault:
            if len(unit.recordings) == 1:
                writer.refuse(unit.id, str(fault))
                return
            for alone in unit.alone():
                self.store(alone)
            return
        record: dict[str, Any] = {"earlier": dict(first.augment)} if first.augment else {}
        if len(unit.recordings) > 1:
            parts = [recording.id for recording in unit.recordings]
            record["joined"] = {"parts": parts, "gaps": list(unit.gaps)}
        if self.recipe:
            samples, done = augmented(samples, RATE, self.recipe, unit.id)
            record |= done
        writer.add(
            unit.id,
            samples,
            RATE,
            unit.text if len(unit.recordings) > 1 else first.text,
            first.speaker,
            first.source or self.name,
            first.license or self.license,
            voice=first.voice,
            augment=record if self.recipe else first.augment,
            **renamed(unit.extra),
        )
