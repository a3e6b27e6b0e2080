"""The picture of a window: sound, log-mel, attention, and tokens side by side; readable in grey."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beamless.inference.atomic import replaced_atomically
from beamless.inference.errors import BeamlessError
from beamless.inference.word_times import SECONDS_A_POSITION

if TYPE_CHECKING:
    from beamless.inference.inspection import Reading, View

ACROSS = 14  # tokens beside each other
WIDTH = 13.0  # inches
LINE = 0.36  # inches, of a line of tokens


def require_matplotlib() -> None:
    """Refuse to draw where matplotlib is not installed.

    Raises:
        BeamlessError: it is not.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise BeamlessError(
            'pictures need matplotlib; run: pip install "beamless[inspect]"'
        ) from None


def draw(view: "View", path: Path) -> None:
    """Write the picture of a window."""
    from matplotlib.figure import Figure

    from beamless.inference.inspection import side_by_side

    shown = next(reading for reading in view.readings if reading.method == view.method)
    columns = side_by_side(view.readings)
    lines = -(-len(columns) // ACROSS) * (len(view.readings) + 0.5)
    heights = [1.2, 1.6, max(1.0, 0.16 * len(shown.tokens)), LINE * (lines + 1)]
    figure = Figure(figsize=(WIDTH, sum(heights) + 1.5), layout="constrained")
    sound, mel, attention, text = figure.subplots(4, height_ratios=heights)
    seconds = np.linspace(view.start, view.end, len(view.samples), endpoint=False)
    sound.plot(seconds, view.samples, color="black", linewidth=0.4)
    sound.set(xlim=(view.start, view.end), ylabel="waveform")
    sound.set_title(f"{view.file.name}, {view.start:.2f} to {view.end:.2f} s", loc="left")
    mel.imshow(
        view.mel,
        aspect="auto",
        origin="lower",
        cmap="gray_r",
        extent=(view.start, view.end, 0, len(view.mel)),
    )
    mel.set(ylabel="mel band")
    _attention(attention, view, shown)
    _text(text, view, columns)
    with replaced_atomically(path) as temporary:
        figure.savefig(temporary, dpi=100)


def _attention(axes: Any, view: "View", shown: "Reading") -> None:  # noqa: ANN401 - matplotlib's
    axes.set(ylabel=f"attention, {shown.method}", xlim=(view.start, view.end), yticks=[])
    axes.set_xlabel("seconds")
    if shown.attention is None or not len(shown.attention):
        axes.text(view.start, 0.5, " none is known of this model", va="center")
        return
    heard = max(1, round((view.end - view.start) / SECONDS_A_POSITION))
    weights = shown.attention[:, :heard]
    axes.imshow(
        weights / weights.max(axis=1, keepdims=True).clip(1e-9),
        aspect="auto",
        cmap="gray_r",
        interpolation="nearest",
        extent=(view.start, view.end, len(weights), 0),
    )
    axes.set_yticks(np.arange(len(weights)) + 0.5, map(_plain, shown.texts), fontsize=6)


def _text(axes: Any, view: "View", columns: list[list[list[int]]]) -> None:  # noqa: ANN401
    """Write the tokens, their probabilities under them; what differs stands in a frame."""
    axes.set_axis_off()
    block = len(view.readings) + 0.5
    bottom = -(-len(columns) // ACROSS) * block
    axes.set(xlim=(-1.2, ACROSS), ylim=(bottom, -1))
    axes.text(-1.2, -0.5, "framed: differs from greedy (in greedy: from the last row)", fontsize=7)
    for number, column in enumerate(columns):
        line, across = divmod(number, ACROSS)
        for row, (reading, steps) in enumerate(zip(view.readings, column, strict=True)):
            y = line * block + row
            if across == 0:
                axes.text(-1.2, y + 0.5, reading.method, fontsize=8, va="center", weight="bold")
            if not steps:
                continue
            frame = {"facecolor": "white", "edgecolor": "black", "pad": 1.5}
            axes.text(
                across,
                y + 0.35,
                "".join(_plain(reading.texts[step]) for step in steps),
                fontsize=8,
                va="center",
                bbox=frame if any(reading.differs[step] for step in steps) else None,
            )
            likely = " ".join(f"{reading.probabilities[step]:.2f}" for step in steps)
            axes.text(across, y + 0.8, likely, fontsize=5, va="center", color="0.35")


def _plain(text: str) -> str:
    """Show a token's space, and let no sign of it be taken for mathematics."""
    return text.replace(" ", "·").replace("$", r"\$") or "∅"
