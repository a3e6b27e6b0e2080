"""An evaluation as a picture: what each method costs and gains, where, and how sure it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beamless.data_gen.word_errors import normalize
from beamless.inference.atomic import replaced_atomically
from beamless.training.report import Reports, Row, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIFTHS = 5
LEAST_SHARE, MOST_SHARE = -150.0, 350.0  # %, where a bar without a bound ends
MARKERS = "osD^vP*X<>"
GREYS = ("0.0", "0.45", "0.25", "0.6")
LEAST = 10  # words in a bin that is drawn
ORACLE = "-oracle"
Look = dict[str, Any]  # what matplotlib draws a method with


def draw_report(rows: Sequence[Row], run: Run, found: Reports, path: Path) -> None:
    """Write a PNG of four pictures, readable in grey."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    (costs, gains), (places, sureness) = figure.subplots(2, 2)
    looks = looks_of(run.methods)
    _errors_against_steps(costs, found.whole["methods"], looks)
    _gaps(gains, found.by_corpus, looks)
    _places(places, rows, run, looks)
    _reliability(sureness, found.whole["methods"], looks)
    utterances = len({(row.corpus, row.id) for row in rows})
    title = f"{run.model} on {run.device}, {', '.join(run.corpora)}: {utterances} utterances"
    figure.suptitle(title, fontsize=9)
    with replaced_atomically(path) as temporary:
        figure.savefig(temporary, dpi=130)


def looks_of(methods: Sequence[str]) -> dict[str, Look]:
    """Give each method one marker and grey, the same in all pictures."""
    return {
        name: {"marker": MARKERS[number % len(MARKERS)], "color": GREYS[number % len(GREYS)]}
        for number, name in enumerate(methods)
    }


def _errors_against_steps(
    axes: "Axes", methods: Mapping[str, Any], looks: Mapping[str, Look]
) -> None:
    if any(figures["wer"] is None for figures in methods.values()):
        axes.text(0.5, 0.5, "no words in the references", ha="center", transform=axes.transAxes)
        return
    for name, figures in methods.items():
        point = ([figures["steps"]], [100 * figures["wer"]])
        axes.plot(*point, linestyle="none", markersize=8, label=name, **looks[name])
    axes.legend(fontsize=7)
    axes.set(xlabel="decoder steps (a beam's steps decode several at once)")
    axes.set(ylabel="word error rate, %")
    axes.grid(color="0.9")


def _gaps(axes: "Axes", parts: Mapping[str, Mapping[str, Any]], looks: Mapping[str, Look]) -> None:
    """Draw the share of the gap closed, with its interval, for each corpus and method."""
    found: dict[str, list[tuple[str, float, float, float]]] = {}
    for corpus, content in parts.items():
        for name, figures in content["methods"].items():
            gap = figures.get("gap_closed")
            if gap and gap["value"] is not None and ORACLE not in name:
                low = LEAST_SHARE if gap["low"] is None else 100 * gap["low"]
                high = MOST_SHARE if gap["high"] is None else 100 * gap["high"]
                found.setdefault(name, []).append((corpus, 100 * gap["value"], low, high))
    step = min(0.12, 0.8 / max(1, len(found)))  # between two methods
    for number, (name, gaps) in enumerate(found.items()):
        at = [list(parts).index(corpus) + step * number for corpus, *_ in gaps]
        values = np.array([bounds for _, *bounds in gaps])  # [corpora, 3]
        spread = np.abs(values[:, 1:] - values[:, :1]).T
        axes.errorbar(at, values[:, 0], spread, linestyle="none", label=name, **looks[name])
    axes.axhline(100, color="0.6", linestyle="--", linewidth=1)
    axes.axhline(0, color="0.6", linewidth=1)
    axes.set_xticks(range(len(parts)), list(parts), fontsize=7)
    axes.set(ylabel="gap from greedy to beam 5 closed, % (95 %)")
    axes.set_ylim(LEAST_SHARE, MOST_SHARE)
    axes.set_xlim(-0.5, len(parts))
    if found:
        axes.legend(fontsize=7)


def _reliability(axes: "Axes", methods: Mapping[str, Any], looks: Mapping[str, Look]) -> None:
    """Draw the share of right words against their confidence, calibrated where that was fitted."""
    axes.plot([0, 1], [0, 1], color="0.8", linewidth=1)
    for name, figures in methods.items():
        words = figures["confidence"]
        if words is None or is_varied(name):
            continue
        judged = words["calibrated"] or words["raw"]
        points = [(b["confidence"], b["right"]) for b in judged["bins"] if b["count"] >= LEAST]
        label = f"{name}: {judged['calibration_error']:.3f}"
        if points:
            axes.plot(*zip(*points, strict=True), label=label, **looks[name])
    axes.set(xlabel="confidence of a word, mean of a bin", xlim=(0, 1), ylim=(0, 1))
    axes.set(ylabel="share of words that are right")
    axes.grid(color="0.9")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, title="expected calibration error", title_fontsize=7)


def is_varied(method: str) -> bool:
    """Tell whether something is changed about a method; such ones have their places in tables."""
    return "+" in method or ORACLE in method


def _places(axes: "Axes", rows: Sequence[Row], run: Run, looks: Mapping[str, Look]) -> None:
    """Draw where in the sentence words are lost, as each method decodes it."""
    for method in run.methods:
        if is_varied(method):
            continue
        shares = errors_by_place([row for row in rows if row.method == method], run.language)
        axes.plot(range(1, FIFTHS + 1), 100 * shares, label=method, **looks[method])
    axes.set_xticks(range(1, FIFTHS + 1))
    axes.set(xlabel="fifth of the sentence", ylabel="reference words mangled or lost, %")
    axes.grid(color="0.9")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7)


def errors_by_place(rows: Sequence[Row], language: str = "en") -> np.ndarray:
    """Return what share of the reference's words is substituted or deleted, by fifths [5]."""
    import jiwer

    wrong, words = np.zeros(FIFTHS), np.zeros(FIFTHS)
    for row in rows:
        spoken = normalize(row.reference, language).split()
        if not spoken:
            continue
        place = np.arange(len(spoken)) * FIFTHS // len(spoken)
        heard = normalize(row.hypothesis, language)
        right = np.zeros(len(spoken), bool)
        if heard:
            found = jiwer.process_words(" ".join(spoken), heard)
            for chunk in found.alignments[0]:
                if chunk.type == "equal":
                    right[chunk.ref_start_idx : chunk.ref_end_idx] = True
        np.add.at(words, place, 1)
        np.add.at(wrong, place, ~right)
    return np.asarray(wrong / np.maximum(words, 1))
