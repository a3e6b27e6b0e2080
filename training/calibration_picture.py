"""Confidence as a picture: reliability before and after, and what calling words wrong costs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from beamless.inference.atomic import replaced_atomically
from beamless.training.calibration import precision_and_recall, quality

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = (("0.55", "s", "--"), ("0", "o", "-"))  # raw, calibrated; they differ without colour


def draw_calibration(
    probabilities: Mapping[str, np.ndarray], right: np.ndarray, title: str, path: Path
) -> None:
    """Write a PNG of two pictures, readable in grey.

    Args:
        probabilities: of the same words [N], by what to call them; at most two kinds.
        right: which of the words are right, [N].
        title: what was measured.
        path: the picture's.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, middle = figure.subplots(1, 2)
    for (name, values), style in zip(probabilities.items(), STYLES, strict=False):
        _reliability(left, name, values, right, style)
        _errors_found(middle, name, values, right, style)
    left.plot([0, 1], [0, 1], color="0.8", linewidth=0.8)
    left.set(xlabel="confidence, mean of a bin", ylabel="share of words that are right")
    left.set(xlim=(0, 1), ylim=(0, 1))
    middle.set(xlabel="wrong words found, share (recall)", xlim=(0, 1), ylim=(0, 1))
    middle.set(ylabel="of the words called wrong, share that is (precision)")
    for axes in (left, middle):
        axes.grid(color="0.9")
        axes.legend(fontsize=8)
    figure.suptitle(title, fontsize=9)
    with replaced_atomically(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _reliability(
    axes: "Axes", name: str, values: np.ndarray, right: np.ndarray, style: tuple[str, str, str]
) -> None:
    color, marker, line = style
    judged = quality(values, right)
    confidence = [b.confidence for b in judged.bins]
    sizes = [12 + 90 * b.count / len(right) for b in judged.bins]
    label = f"{name}: expected calibration error {judged.calibration_error:.3f}"
    axes.plot(confidence, [b.right for b in judged.bins], line, color=color, label=label)
    axes.scatter(confidence, [b.right for b in judged.bins], sizes, color=color, marker=marker)


def _errors_found(
    axes: "Axes", name: str, values: np.ndarray, right: np.ndarray, style: tuple[str, str, str]
) -> None:
    color, marker, line = style
    thresholds = np.arange(2, 99) / 100
    points = [precision_and_recall(values, right, float(t)) for t in thresholds]
    found = [(recall, precision) for precision, recall in points if recall]
    if found:
        axes.plot(*zip(*found, strict=True), line, color=color, label=name)
    precision, recall = precision_and_recall(values, right, 0.5)
    axes.scatter([recall], [precision], 40, color=color, marker=marker)
