"""``beamless traces``: what a folder of traces holds."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from rich.table import Table

from beamless.data_gen.traces import SHARDS, Steps, read_recipe, read_steps
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import screen


@dataclass(frozen=True)
class TraceSummary:
    """One policy and target of a folder.

    Attributes:
        differing: steps at which greedy's token is not a right one.
        coverage: k → share of the differing steps at which a right token is among greedy's top k.
        wer, greedy_wer: of the text that the steps stand on, and of the free greedy decode.
        megabytes: on disk.
    """

    policy: str
    target: str
    utterances: int
    steps: int
    differing: int
    coverage: dict[int, float]
    wer: float
    greedy_wer: float
    megabytes: float


def traces(action: Literal["info"], folder: Path) -> None:
    """Show what a folder of traces holds.

    Args:
        action: what to do; info is all there is.
        folder: what collect or rollout made.
    """
    recipe = read_recipe(folder)
    output = screen()
    for name, value in asdict(recipe).items():
        output.print(f"{name:>15}  {value}", soft_wrap=True)
    summaries = summarize_traces(folder)
    table = Table()
    table.add_column("traces", no_wrap=True)
    for column in ("utterances", "steps", "differing", "share"):
        table.add_column(column, justify="right")
    ranks = sorted(summaries[0].coverage)
    for column in (*(f"in top {k}" for k in ranks), "WER", "greedy WER", "MB"):
        table.add_column(column, justify="right")
    for s in summaries:
        table.add_row(
            f"{s.policy}/{s.target}",
            str(s.utterances),
            str(s.steps),
            str(s.differing),
            f"{s.differing / max(1, s.steps):.1%}",
            *(f"{s.coverage[k]:.0%}" for k in ranks),
            f"{s.wer:.2%}",
            f"{s.greedy_wer:.2%}",
            f"{s.megabytes:.1f}",
        )
    output.print(table)


def summarize_traces(folder: Path) -> list[TraceSummary]:
    """Summarise each policy and target of a folder.

    Raises:
        BeamlessError: it holds no traces, or none yet.
    """
    read_recipe(folder)
    parts = sorted({shard.parent for shard in folder.glob(f"*/*/{SHARDS}")})
    if not parts:
        raise BeamlessError(f"{folder} holds no shards yet; run collect again")
    return [_summary(folder, part) for part in parts]


def _summary(folder: Path, part: Path) -> TraceSummary:
    policy, target = part.parts[-2:]
    steps = read_steps(folder, [target], [policy])
    words = max(1, sum(row["words"] for row in steps.rows))
    return TraceSummary(
        policy=policy,
        target=target,
        utterances=len({row["id"] for row in steps.rows}),
        steps=len(steps.target_ids),
        differing=int((~_right_within(steps, 1)).sum()),
        coverage=coverage(steps),
        wer=sum(row["errors"] for row in steps.rows) / words,
        greedy_wer=sum(row["greedy_errors"] for row in steps.rows) / words,
        megabytes=sum(shard.stat().st_size for shard in part.glob(SHARDS)) / 1e6,
    )


def coverage(steps: Steps) -> dict[int, float]:
    """Return k → share of the differing steps with a right token among greedy's top k."""
    differing = ~_right_within(steps, 1)
    ranks = [k for k in (2, 4, 8, 16, 32, 64) if k <= steps.top_ids.shape[1]]
    count = max(1, int(differing.sum()))
    return {k: float(_right_within(steps, k)[differing].sum()) / count for k in ranks}


def _right_within(steps: Steps, k: int) -> np.ndarray:
    """Tell for each step [N] whether a right token is among the top k."""
    top = steps.top_ids[:, :k, None] == steps.acceptable[:, None, :]
    right: np.ndarray = top.any(axis=(1, 2))
    return right
