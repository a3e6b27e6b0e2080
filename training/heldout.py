"""``beamless steps``: what correctors and baselines mend and harm, counted on held-out steps.

It decodes nothing: each step stands on the target's own prefix, as traces have it. That is no
measure of a decode, where mistakes follow from mistakes, but it compares thousands of steps in a
minute where a decode compares a hundred utterances.

Symbols: N steps, V vocabulary, d the decoder's width.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beamless.data_gen.traces import Steps
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import track
from beamless.models.corrector import load_corrector
from beamless.models.whisper import Checkpoint, load_checkpoint
from beamless.training.baselines import (
    Rule,
    read_datastore,
    second_where_unsure,
    with_neighbours,
)
from beamless.training.contenders import contender

BATCH = 256  # steps


@dataclass(frozen=True)
class Count:
    """Of the steps that greedy misses, how many are mended; of the others, how many harmed."""

    name: str
    mended: int
    missed: int
    harmed: int
    right: int


def heldout(
    traces: list[Path],
    *,
    correctors: list[Path] = [],  # noqa: B006
    baselines: list[str] = [],  # noqa: B006
    datastore: list[Path] = [],  # noqa: B006
    limit: int | None = None,
) -> None:
    """Count what correctors and baselines mend and harm on traces that they did not see.

    Args:
        traces: teacher-forced traces towards best, of utterances that nothing here learned from.
        correctors: folders that train made.
        baselines: as in evaluate: greedy+second1.5, knn16+mix0.1+temperature10000.
        datastore: traces in which knn looks its neighbours up.
        limit: only so many utterances of each folder.
    """
    from beamless.training.steps import concatenate, read_training_steps, require_sizes

    parts, model, model_hash = read_training_steps(traces, ["best"], ["teacher_forced"], limit)
    checkpoint = load_checkpoint(model)
    require_sizes(parts, checkpoint.sizes)
    steps = concatenate(parts)
    write = sys.stdout.write
    write(f"| {len(steps.target_ids)} steps of {len(steps.rows)} utterances | mended | harmed |\n")
    write("| --- | --- | --- |\n")
    counts = [corrected(steps, checkpoint, folder) for folder in correctors]
    for name in baselines:
        one = contender(name, "short")
        if one.second is not None:
            rule = second_where_unsure(one.second)
        elif one.neighbours:
            rule = with_neighbours(read_datastore(datastore, model_hash), one.neighbours)
        else:
            raise BeamlessError(f"{name} is no baseline; take greedy+second1.5 or knn16+mix0.1")
        counts.append(ruled(steps, checkpoint, name, rule))
    for count in counts:
        write(f"| {count.name} | {count.mended} of {count.missed} ")
        write(f"| {count.harmed} of {count.right} |\n")


def counted(name: str, steps: Steps, best: np.ndarray) -> Count:
    """Compare tokens [N] with the acceptable ones, and with what greedy takes."""
    before = (steps.top_ids[:, :1] == steps.acceptable).any(axis=1)
    after = (best[:, None] == steps.acceptable).any(axis=1)
    mended, harmed = (after & ~before).sum(), (~after & before).sum()
    return Count(name, int(mended), int((~before).sum()), int(harmed), int(before.sum()))


def corrected(steps: Steps, checkpoint: Checkpoint, folder: Path) -> Count:
    """Count what a corrector does, over the likeliest and the right tokens of a batch's steps."""
    import torch

    from beamless.training.module import CorrectorModule
    from beamless.training.networks import load_arrays
    from beamless.training.steps import StepsDataset, require_seen

    corrector = load_corrector(folder)
    if corrector.config.model_hash != checkpoint.hash:
        raise BeamlessError(f"{folder} is a corrector of another model than the traces'")
    require_seen([steps], corrector.config)
    fitting = {"learning_rate": 1.0, "weight_decay": 0.0, "dropout": 0.0, "kl_weight": 0.0}
    module = CorrectorModule(checkpoint, corrector.config, seed=0, **fitting).eval()
    load_arrays(module.network, corrector.arrays)
    data = StepsDataset(steps, corrector.config.history)
    best = []
    for at in _batches(len(data), str(folder)):
        batch = data.batch(range(at.start, at.stop))
        right = batch.targets[batch.targets >= 0]
        tokens = torch.cat([batch.top_ids.flatten(), right]).unique()
        with torch.no_grad():
            base = module.logits(batch.hidden, batch.first, tokens)
            logits, _ = module.network.correct(batch, tokens, base, module.logits, module.embedding)
        best.append(tokens[logits.argmax(dim=1)].numpy())
    return counted(str(folder), steps, np.concatenate(best))


def ruled(steps: Steps, checkpoint: Checkpoint, name: str, rule: Rule) -> Count:
    """Count what a rule of ``baselines.py`` does."""
    logprobs_of = _model(checkpoint)
    first = np.zeros(len(steps.target_ids), bool)
    first[steps.starts[:-1]] = True
    best = []
    for at in _batches(len(first), name):
        hidden = steps.hidden[at].astype(np.float32)
        for state, logprobs in zip(hidden, logprobs_of(hidden, first[at]), strict=True):
            best.append(int(rule(logprobs, state).argmax()))
    return counted(name, steps, np.array(best))


def _model(checkpoint: Checkpoint) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return the function from hidden states [N, d] and first [N] to log-probabilities [N, V]."""
    embedding = checkpoint.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)

    def logprobs(hidden: np.ndarray, first: np.ndarray) -> np.ndarray:
        logits = hidden @ embedding.T
        logits[:, list(checkpoint.suppress_tokens)] = -np.inf
        logits[np.ix_(first, np.array(checkpoint.begin_suppress_tokens, int))] = -np.inf
        highest = logits.max(axis=1, keepdims=True)
        total = highest + np.log(np.exp(logits - highest).sum(axis=1, keepdims=True))
        return np.asarray(logits - total)

    return logprobs


def _batches(count: int, name: str) -> Iterator[slice]:
    starts = range(0, count, BATCH)
    for start in track(starts, name, len(starts)):
        yield slice(start, min(count, start + BATCH))
