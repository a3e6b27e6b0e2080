"""``beamless rollout``: let the decoder run freely and label every prefix that it visits.

Teacher forcing shows a corrector only the target's own prefixes; in use it stands on its own, its
mistakes among them. These traces are of policy ``on_policy``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from beamless.data_gen.completion import optimal_next_tokens
from beamless.data_gen.corpora import Utterance, read_corpus
from beamless.data_gen.engines import make_shards, shared_threads
from beamless.data_gen.labeller import Labeller
from beamless.data_gen.shards import Made, Shard
from beamless.data_gen.subset import spread
from beamless.data_gen.traces import (
    TargetKind,
    Trace,
    TraceRecipe,
    open_traces,
    pending_shards,
    read_recipe,
    read_steps,
    shard_path,
    write_shard,
)
from beamless.inference.audio import load_audio
from beamless.inference.budget import budget_for
from beamless.inference.corrected import Corrected
from beamless.inference.counts import require_positive
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.lock import locked
from beamless.inference.options import AudioContext
from beamless.inference.progress import progress
from beamless.inference.window_encoder import WindowEncoder
from beamless.models.bundle import open_bundle
from beamless.models.parity_record import require_parity


def rollout(
    corpus: Path,
    traces: Path,
    out: Path,
    *,
    model: str,
    target: TargetKind = "best",
    audio_context: AudioContext | None = None,
    device: str = "CPU",
    limit: int | None = None,
    shard_size: int = 50,
    workers: int = 1,
) -> None:
    """Decode a corpus freely and record, at every step, the tokens that would be best there.

    Args:
        corpus: the corpus that the traces are of.
        traces: what collect made of it; the targets come from there.
        out: a folder for the new traces, new or of the same bundle.
        model: a bundle, corrected where it has a corrector.
        target: which of the collected targets to steer to.
        audio_context: short or full; as the traces were made, by default.
        device: an OpenVINO device.
        limit: only so many utterances, those that collect takes first.
        shard_size: utterances in a shard.
        workers: how many decode at once, with the cores shared evenly; the shards are the same.
    """
    require_positive(shard_size=shard_size, workers=workers)
    utterances = {u.id: u for u in spread(read_corpus(corpus), limit)}
    targets = _targets(traces, target)
    bundle = open_bundle(model, device)
    require_parity(bundle)
    recipe = read_recipe(traces)
    if recipe.model_hash != bundle.manifest.model["hash"]:
        raise BeamlessError(f"{traces} holds traces of another model than {model}")
    corrector = bundle.manifest.corrector
    recipe = replace(
        recipe,
        corrector=corrector["hash"] if corrector else "",
        audio_context=audio_context or recipe.audio_context,
    )
    known = [identifier for identifier in utterances if identifier in targets]
    if not known:
        raise BeamlessError(f"{traces} holds traces of no utterance of {corpus}")
    threads = shared_threads(workers)
    job = RolloutJob(str(bundle.folder), device, threads, recipe, out.resolve(), targets)
    with locked(out):
        open_traces(out, recipe)
        plan = pending_shards(out, "on_policy", target, known, shard_size)
        shards = [
            Shard(index, tuple(utterances[i] for i in ids), (target,))
            for index, ids in plan.items()
        ]
        with progress("utterances", sum(map(len, plan.values()))) as advance:
            for shard, _ in make_shards(job, shards, workers):
                advance(len(shard.utterances))


@dataclass(frozen=True)
class RolloutJob:
    """What all shards of a run share.

    Attributes:
        model: the bundle's folder.
        threads: CPU threads a worker may use; all if None.
        out: the new traces' folder.
        wanted: each utterance's target tokens, without the end token.
    """

    model: str
    device: str
    threads: int | None
    recipe: TraceRecipe
    out: Path
    wanted: Mapping[str, tuple[int, ...]]

    @property
    def worker(self) -> type["RolloutWorker"]:
        """The class of who makes these shards."""
        return RolloutWorker


class RolloutWorker:
    """A process's decoder, which makes one shard after the other."""

    def __init__(self, job: RolloutJob) -> None:
        self._job = job
        bundle = open_bundle(job.model, job.device, job.threads)
        self._encoder = WindowEncoder(bundle)
        self._chooser = Corrected(bundle) if bundle.has_corrector else Greedy(bundle)
        self._labeller = Labeller(bundle, job.recipe.top_k, job.recipe.language)
        self._end, self._width = bundle.tokenizer.end, bundle.manifest.sizes["width"]

    def make(self, shard: Shard) -> Made:
        """Write a shard."""
        (target,) = shard.targets
        made = [self._trace(utterance, target) for utterance in shard.utterances]
        ids = [utterance.id for utterance in shard.utterances]
        path = shard_path(self._job.out, "on_policy", target, shard.index)
        write_shard(path, made, ids, self._job.recipe, self._width)
        return Made(rows=len(made))

    def _trace(self, utterance: Utterance, target: TargetKind) -> Trace:
        recipe, end, chooser, labeller = self._job.recipe, self._end, self._chooser, self._labeller
        samples = load_audio(utterance.audio)
        budget = budget_for(samples, recipe.language, None)
        if isinstance(chooser, Corrected):
            chooser.budget = budget
        cross_kv = self._encoder(samples, recipe.audio_context)
        free = greedy(chooser, cross_kv, recipe.prompt, end, record=True)
        wanted = self._job.wanted[utterance.id]
        optimal = optimal_next_tokens(free.tokens, wanted, end)[: len(free.logprobs)]
        assert free.hidden is not None
        seen = labeller.describe(free.hidden)
        labels = [_label(ids, best) for ids, best in zip(seen["top_ids"], optimal, strict=True)]
        return labeller.trace(
            utterance,
            target,
            free.tokens,
            labels,
            seen,
            labeller.errors(free.tokens, utterance).total,
            "on_policy",
            optimal,
            budget,
            (*free.tokens, end)[: len(labels)],
        )


def _targets(traces: Path, target: TargetKind) -> dict[str, tuple[int, ...]]:
    """Return each utterance's target tokens, without the end token.

    Raises:
        BeamlessError: the target is a list, and so no one text to steer to.
    """
    if target == "list":
        raise BeamlessError("a list is nothing to steer to; take the target best")
    steps = read_steps(traces, [target])
    parts = np.split(steps.target_ids, steps.starts[1:-1])
    return {row["id"]: tuple(part[:-1]) for row, part in zip(steps.rows, parts, strict=True)}


def _label(top_ids: np.ndarray, optimal: tuple[int, ...]) -> int:
    """Return the likeliest of the optimal tokens."""
    ranks = {int(token): rank for rank, token in enumerate(top_ids)}
    return min(optimal, key=lambda token: ranks.get(token, len(ranks)))
