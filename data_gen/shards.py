"""One shard of traces: what it takes to make it, and making it, wherever a worker stands."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from beamless.data_gen.collector import Collector
from beamless.data_gen.corpora import Utterance
from beamless.data_gen.traces import TargetKind, Trace, TraceRecipe, shard_path, write_shard
from beamless.models.bundle import open_bundle


@dataclass(frozen=True)
class Job:
    """What all shards of a run share.

    Attributes:
        model: the bundle's folder.
        threads: CPU threads a worker may use; all if None.
        out: the traces' folder; workers on other machines must see it under the same path.
    """

    model: str
    device: str
    threads: int | None
    recipe: TraceRecipe
    out: Path


@dataclass(frozen=True)
class Shard:
    """One shard of each of some targets."""

    index: int
    utterances: tuple[Utterance, ...]
    targets: tuple[TargetKind, ...]


class ShardWorker:
    """A process's decoders, which make one shard after the other."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._collector = Collector(open_bundle(job.model, job.device, job.threads), job.recipe)

    def make(self, shard: Shard) -> Counter[str]:
        """Write a shard's files; return how many utterances were left out, by reason."""
        self._collector.refused.clear()
        traces: list[Trace] = []
        for utterance in shard.utterances:
            traces += self._collector.traces(utterance, shard.targets)
        ids = [utterance.id for utterance in shard.utterances]
        for target in shard.targets:
            rows = [trace for trace in traces if trace.target == target]
            path = shard_path(self._job.out, "teacher_forced", target, shard.index)
            write_shard(path, rows, ids, self._job.recipe, self._collector.width)
        return Counter(self._collector.refused)

    def make_named(self, shard: Shard) -> tuple[Shard, Counter[str]]:
        """Do as ``make``, and say which shard it was."""
        return shard, self.make(shard)
