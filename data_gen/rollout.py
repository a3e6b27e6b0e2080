"""``beamless rollout``: let the decoder run freely and label every prefix that it visits.

Teacher forcing shows a corrector only the target's own prefixes; in use it stands on its own, its
mistakes among them. These traces are of policy ``on_policy``.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from beamless.data_gen.completion import optimal_next_tokens
from beamless.data_gen.corpora import Utterance, read_corpus
from beamless.data_gen.labeller import Labeller
from beamless.data_gen.subset import spread
from beamless.data_gen.traces import (
    TargetKind,
    Trace,
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
    """
    require_positive(shard_size=shard_size)
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
    encoder = WindowEncoder(bundle)
    chooser = Corrected(bundle) if corrector else Greedy(bundle)
    labeller = Labeller(bundle, recipe.top_k, recipe.language)
    end = bundle.tokenizer.end

    def trace(utterance: Utterance) -> Trace:
        samples = load_audio(utterance.audio)
        budget = budget_for(samples, recipe.language, None)
        if isinstance(chooser, Corrected):
            chooser.budget = budget
        cross_kv = encoder(samples, recipe.audio_context)
        free = greedy(chooser, cross_kv, recipe.prompt, end, record=True)
        wanted = targets[utterance.id]
        optimal = optimal_next_tokens(free.tokens, wanted, end)[: len(free.logprobs)]
        assert free.hidden is not None
        seen = labeller.describe(free.hidden)
        labels = [_label(ids, best) for ids, best in zip(seen["top_ids"], optimal, strict=True)]
        errors = labeller.errors(free.tokens, utterance).total
        return labeller.trace(
            utterance, target, free.tokens, labels, seen, errors, "on_policy", optimal, budget
        )

    with locked(out):
        open_traces(out, recipe)
        plan = pending_shards(out, "on_policy", target, known, shard_size)
        with progress("utterances", sum(map(len, plan.values()))) as advance:
            for index, ids in plan.items():
                made = []
                for identifier in ids:
                    made.append(trace(utterances[identifier]))
                    advance()
                path = shard_path(out, "on_policy", target, index)
                write_shard(path, made, ids, recipe, bundle.manifest.sizes["width"])


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
