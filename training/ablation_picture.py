"""Rows of ablations as a picture: word errors against hours of training speech, and of each row."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beamless.inference.atomic import replaced_atomically
from beamless.training.ablation_table import ALL, Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOURS = "hours"
"""The group whose rows make the curve against hours."""

MARKERS = "osD^vP*X<>"


def draw_ablations(lines: Sequence[Line], path: Path) -> None:
    """Write a PNG of two pictures, readable in grey."""
    from matplotlib.figure import Figure

    pooled = [line for line in lines if line.corpus == ALL]
    rows = len({(line.name, line.method) for line in pooled})
    figure = Figure(figsize=(13, max(4.5, 0.2 * rows)), layout="constrained")
    left, right = figure.subplots(1, 2)
    _against_hours(left, pooled)
    _each(right, pooled)
    with replaced_atomically(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")


def _against_hours(axes: "Axes", pooled: Sequence[Line]) -> None:
    curve = [line for line in pooled if line.group == HOURS and line.hours is not None]
    for number, method in enumerate(dict.fromkeys(line.method for line in curve)):
        points = sorted(
            (line.hours or 0, 100 * line.wer) for line in curve if line.method == method
        )
        style = ("-", "--", ":", "-.")[number % 4]
        marker = MARKERS[number % len(MARKERS)]
        axes.plot(*zip(*points, strict=True), style, marker=marker, color="0.2", label=method)
    for number, (name, rate) in enumerate(anchors(pooled).items()):
        axes.axhline(rate, color=str(0.3 + 0.3 * number), linestyle=("--", ":")[number], label=name)
    axes.set(xlabel="training speech, hours", ylabel="word error rate on dev, %")
    axes.grid(color="0.9")
    axes.legend(fontsize=8)


def anchors(pooled: Sequence[Line]) -> dict[str, float]:
    """Return the word error rates, in %, of greedy and beam 5 of the untrained model."""
    plain = {line.method: 100 * line.wer for line in pooled[::-1] if line.parameters is None}
    return {name: plain[name] for name in ("greedy", "beam5") if name in plain}


def _each(axes: "Axes", pooled: Sequence[Line]) -> None:
    methods = list(dict.fromkeys(line.method for line in pooled))
    for place, line in enumerate(reversed(pooled)):
        marker = MARKERS[methods.index(line.method) % len(MARKERS)]
        axes.plot(100 * line.wer, place, marker, color="0.2", markersize=5)
    for number, rate in enumerate(anchors(pooled).values()):
        axes.axvline(rate, color=str(0.3 + 0.3 * number), linestyle=("--", ":")[number])
    names = [f"{line.name}: {line.method}" for line in reversed(pooled)]
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.set(xlabel="word error rate on dev, %")
    axes.grid(axis="x", color="0.9")
