"""A bench's figures as a table, and as CSV, JSON, Markdown and a picture."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from beamless.inference.atomic import replaced_atomically, write_text_atomically
from beamless.inference.progress import screen
from beamless.training.bench.figures import COLUMNS, Figures, Line
from beamless.training.csv_rows import write_csv

LEGEND = """\
Seconds are of work for all recordings, by the clock; CPU s are those of all cores together; RTF \
is seconds of work for a second of audio; cold and cached are from starting the process to the \
first recording's text (of a long one its first half minute's), with nothing kept from before and \
with what starts keep."""


@dataclass(frozen=True)
class Run:
    """What was measured on what, and on which machine."""

    model: str
    model_hash: str
    corpora: tuple[str, ...]
    clips: int
    seconds: float
    language: str
    threads: int
    repeats: int
    limit: int | None
    longest: float | None
    join: float | None
    processor: str
    implementations: tuple[str, ...]

    @property
    def title(self) -> str:
        """One line on the run."""
        what = f"{self.clips} recordings of {', '.join(self.corpora)}, {self.seconds:.0f} s"
        return f"{self.model}, {what}, {self.threads} threads, median of {self.repeats}"


def print_figures(found: Sequence[Figures], run: Run, left_out: Mapping[str, str]) -> None:
    """Print the table, and who is not in it."""
    output = screen()
    table = Table(title=run.title, title_justify="left")
    for number, head in enumerate(COLUMNS):
        table.add_column(head, justify="right" if number else "left", no_wrap=not number)
    for figures in found:
        table.add_row(*(cell(figures) for cell in COLUMNS.values()))
    output.print(table)
    for name, reason in left_out.items():
        output.print(f"left out: {name}: {reason}", markup=False, soft_wrap=True)


def write_figures(
    found: Sequence[Figures],
    lines: Sequence[Line],
    run: Run,
    left_out: Mapping[str, str],
    out: Path,
) -> None:
    """Write ``clips.csv``, ``bench.csv``, ``bench.json``, ``bench.md`` and ``bench.png``."""
    write_csv(out / "clips.csv", Line, lines)
    write_csv(out / "bench.csv", Figures, found)
    write_text_atomically(out / "bench.md", markdown(found, run, left_out))
    draw(found, run, out / "bench.png")
    content = {
        "run": asdict(run),
        "implementations": [asdict(figures) for figures in found],
        "left_out": dict(left_out),
    }
    write_text_atomically(out / "bench.json", json.dumps(content, indent=2) + "\n")


def markdown(found: Sequence[Figures], run: Run, left_out: Mapping[str, str]) -> str:
    """Return the table for a page."""
    rows = [list(COLUMNS), ["---", *("---:" for _ in list(COLUMNS)[1:])]]
    rows += [[cell(figures) for cell in COLUMNS.values()] for figures in found]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    missing = "".join(f"\n* left out: {name}: {reason}" for name, reason in left_out.items())
    about = f"{run.title}; {run.processor}\n\n{LEGEND}"
    return f"{about}\n\n{table}\n{missing}\n" if missing else f"{about}\n\n{table}\n"


def draw(found: Sequence[Figures], run: Run, path: Path) -> None:
    """Draw time and errors side by side, a row for each, fastest first; readable in grey."""
    from matplotlib.figure import Figure

    rows = sorted(found, key=lambda figures: figures.real_time_factor, reverse=True)
    colors = ["0.25" if row.implementation.startswith("beamless:") else "0.8" for row in rows]
    figure = Figure(figsize=(8, 1.4 + 0.26 * len(rows)), layout="constrained")
    time, errors = figure.subplots(1, 2, sharey=True)
    names = [row.implementation for row in rows]
    time.barh(names, [row.real_time_factor for row in rows], color=colors, edgecolor="black")
    time.set(xlabel="seconds of work for a second of audio")
    wer = [100 * row.wer for row in rows]
    errors.scatter(wer, names, color=colors, edgecolor="black", zorder=2)
    errors.set(xlabel="word error rate, %")
    for axes in (time, errors):
        axes.tick_params(labelsize=8)
        axes.set_axisbelow(True)
        axes.grid(color="0.85", axis="both" if axes is errors else "x")
    figure.suptitle(run.title, fontsize=8)
    with replaced_atomically(path) as temporary:
        figure.savefig(temporary, dpi=110)
