"""``beamless curve``: what look-ahead gains for its steps, beside beams.

Look-ahead is one method with two dials: when a step is in question – under which margin or, on a
corrector that has a gate, from which doubt on – and the budget of extra steps a window. Each
setting is a point of decoder steps and word errors; a beam's step decodes as many tokens at once as
the beam is wide, and is counted so many times.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from beamless.inference.atomic import replaced_atomically
from beamless.inference.counts import require_positive
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT, AudioContext
from beamless.models.bundle import open_bundle
from beamless.training.csv_rows import write_csv
from beamless.training.evaluate import evaluate_bundle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ahead = Literal["lookahead", "greedy-lookahead"]


@dataclass(frozen=True)
class Point:
    """One setting; a line of ``curve.csv``. ``wer`` is a fraction, ``rows`` tokens decoded."""

    method: str
    curve: str
    setting: float | None
    wer: float
    steps: int
    rows: int
    seconds: float


def curve(
    bundle: str,
    out: Path,
    corpora: list[Path],
    *,
    ahead: Ahead = "lookahead",
    margins: list[float] = [0.2, 0.4, 0.6, 1.0, 1.5, 2.0],  # noqa: B006
    doubts: list[float] = [0.1, 0.2, 0.3, 0.4, 0.6],  # noqa: B006
    budgets: list[int] = [8, 16, 32],  # noqa: B006
    beams: list[int] = [2, 3, 5],  # noqa: B006
    limit: int | None = None,
    audio_context: AudioContext = DEFAULT_AUDIO_CONTEXT,
) -> None:
    """Decode corpora with look-ahead at many settings and with beams; draw errors against steps.

    Args:
        bundle: a bundle's folder, or a model's name.
        out: a folder for curve.png, curve.csv and the evaluation's own report; a stopped run goes
            on from there.
        corpora: dev corpora; a setting chosen on test speech says nothing about other speech.
        ahead: lookahead, on the corrector; or greedy-lookahead, without it.
        margins: nats below which both tokens are tried, where no gate says when.
        doubts: probabilities of being wrong from which on they are tried, where a gate does.
        budgets: extra steps a window, each with the largest margin or the smallest doubt.
        beams: sizes.
        limit: only so many utterances of each corpus.
        audio_context: short or full.
    """
    for margin in margins:
        require_positive(margin=margin)
    for doubt in doubts:
        require_positive(doubt=doubt)
    opened = open_bundle(bundle)
    corrector = opened.manifest.corrector if ahead == "lookahead" else None
    dial, settings = "margin", sorted(margins)
    if corrector and corrector.get("gate"):
        dial, settings = "doubt", sorted(doubts, reverse=True)
    names = ["greedy", *(["corrected"] if corrector else [])]
    names += [f"{ahead}+{dial}{plain(setting)}" for setting in settings]
    names += [f"{ahead}+{dial}{plain(settings[-1])}+budget{budget}" for budget in budgets]
    names += [f"beam{size}" for size in beams]
    evaluate_bundle(
        opened,
        corpora,
        methods=[*dict.fromkeys(names)],
        limit=limit,
        language="en",
        audio_context=audio_context,
        datastore=[],
        out=out,
    )
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    points = points_of(report["methods"])
    write_csv(out / "curve.csv", Point, points)
    draw_curve(points, f"{report['model']}, {report['corpus']}", out / "curve.png")


def plain(number: float) -> str:
    """Write a number without an exponent, as names of methods have it."""
    return np.format_float_positional(number, trim="-")


def points_of(methods: Mapping[str, Mapping[str, Any]]) -> list[Point]:
    """Return the points of a report's methods; greedy's and the corrector's begin a curve."""
    points = []
    for name, figures in methods.items():
        beam = re.fullmatch(r"beam(\d+)", name)
        budget = re.search(r"\+budget(\d+)", name)
        dial = re.search(r"\+(margin|doubt)([\d.]+)", name)
        kind, setting = name, None
        if beam:
            kind, setting = "beam", float(beam[1])
        elif budget:
            kind, setting = "budget", float(budget[1])
        elif dial:
            kind, setting = dial[1], float(dial[2])
        points.append(
            Point(
                method=name,
                curve=kind,
                setting=setting,
                wer=math.nan if figures["wer"] is None else figures["wer"],
                steps=figures["steps"],
                rows=figures["steps"] * (int(beam[1]) if beam else 1),
                seconds=figures["seconds"],
            )
        )
    return points


def draw_curve(points: Sequence[Point], title: str, path: Path) -> None:
    """Write a PNG of two pictures, readable in grey: errors against steps, and against time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw(left, points, "rows", "tokens decoded: steps, times the beam's size")
    _draw(right, points, "seconds", "time, encoder included, s")
    figure.suptitle(title, fontsize=9)
    with replaced_atomically(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")


def _draw(axes: "Axes", points: Sequence[Point], cost: str, label: str) -> None:
    styles = {
        "margin": "-o",
        "doubt": "-o",
        "budget": ":s",
        "beam": "--D",
        "greedy": "^",
        "corrected": "v",
    }
    for kind in dict.fromkeys(point.curve for point in points):
        own = sorted(
            (point for point in points if point.curve == kind), key=lambda p: p.setting or 0
        )
        places = [(getattr(point, cost), 100 * point.wer) for point in own]
        axes.plot(*zip(*places, strict=True), styles[kind], color="0.2", markersize=5, label=kind)
        for point, place in zip(own, places, strict=True):
            if point.setting is not None:
                axes.annotate(
                    f"{point.setting:g}", place, (4, 4), textcoords="offset points", fontsize=7
                )
    axes.set(xlabel=label, ylabel="word error rate, %")
    axes.grid(color="0.9")
    axes.legend(fontsize=8)
