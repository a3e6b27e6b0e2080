"""One shard of traces: what it takes to make it, and making it, wherever a worker stands."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
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
        teacher: the file of its texts, if it is one; workers must see it as well.
    """

    model: str
    device: str
    threads: int | None
    recipe: TraceRecipe
    out: Path
    teacher: str = ""

    @property
    def worker(self) -> type["ShardWorker"]:
        """The class of who makes these shards."""
        return ShardWorker


@dataclass(frozen=True)
class Shard:
    """One shard of each of some targets."""

    index: int
    utterances: tuple[Utterance, ...]
    targets: tuple[TargetKind, ...]


@dataclass(frozen=True)
class Made:
    """What became of a shard.

    Attributes:
        refused: utterances left out, by reason.
        spent: seconds of its worker, by what they went to.
        heard: seconds of audio that were decoded.
        rows: traces, of all targets.
    """

    refused: Counter[str] = field(default_factory=Counter)
    spent: Mapping[str, float] = field(default_factory=dict)
    heard: float = 0.0
    rows: int = 0


class ShardWorker:
    """A process's decoders, which make one shard after the other."""

    def __init__(self, job: Job) -> None:
        self._job = job
        bundle = open_bundle(job.model, job.device, job.threads)
        self._collector = Collector(bundle, job.recipe, job.teacher)

    def make(self, shard: Shard) -> Made:
        """Write a shard's files."""
        collector, began = self._collector, time.perf_counter()
        collector.refused.clear()
        collector.spent.clear()
        collector.heard = 0.0
        traces: list[Trace] = []
        for utterance in shard.utterances:
            traces += collector.traces(utterance, shard.targets)
        ids = [utterance.id for utterance in shard.utterances]
        for target in shard.targets:
            rows = [trace for trace in traces if trace.target == target]
            path = shard_path(self._job.out, "teacher_forced", target, shard.index)
            write_shard(path, rows, ids, self._job.recipe, collector.width)
        spent = dict(collector.spent)
        spent["the rest"] = time.perf_counter() - began - sum(spent.values())
        return Made(Counter(collector.refused), spent, collector.heard, len(traces))
