"""An evaluation as a page: the tables, and the texts that a method mended and harmed most."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beamless.training.report import (
    COLUMNS,
    STEP_COLUMNS,
    Reports,
    Row,
    Run,
    cells,
    counted,
    step_cells,
    step_note,
)

EXAMPLES = 5


def markdown(rows: Sequence[Row], run: Run, found: Reports) -> str:
    """Return ``report.md``."""
    lines = [f"# {run.model}, {run.device}", ""]
    for name, content in found.by_corpus.items():
        lines += [f"## {name}", "", *_table(content), ""]
    if len(found.by_corpus) > 1:
        lines += ["## All", "", *_table(found.whole), ""]
    lines += ["## Steps and confidence", "", *_step_table(found.whole), ""]
    for method in run.methods[1:]:
        lines += _examples(rows, run.methods[0], method)
    return "\n".join(lines)


def _table(content: Mapping[str, Any]) -> Iterator[str]:
    about = f"{content['utterances']} utterances, {content['hours']:.2f} h"
    yield f"{about}, {counted(content)}."
    yield from _lines(COLUMNS, {name: cells(f) for name, f in content["methods"].items()})


def _step_table(content: Mapping[str, Any]) -> Iterator[str]:
    yield step_note(content)
    yield from _lines(STEP_COLUMNS, {name: step_cells(f) for name, f in content["methods"].items()})


def _lines(columns: Sequence[str], lines: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield ""
    yield "| method | " + " | ".join(columns) + " |"
    yield "| --- |" + " ---: |" * len(columns)
    for method, line in lines.items():
        yield f"| {method} | " + " | ".join(line) + " |"


def _examples(rows: Sequence[Row], first: str, method: str) -> list[str]:
    """Show the utterances in which a method's errors differ most from the first method's."""
    before = {(row.corpus, row.id): row for row in rows if row.method == first}
    pairs = [(before[row.corpus, row.id], row) for row in rows if row.method == method]
    pairs = [(a, b) for a, b in pairs if a.errors != b.errors]
    pairs.sort(key=lambda pair: pair[1].errors - pair[0].errors)
    mended = [pair for pair in pairs[:EXAMPLES] if pair[1].errors < pair[0].errors]
    harmed = [pair for pair in pairs[::-1][:EXAMPLES] if pair[1].errors > pair[0].errors]
    lines = []
    for title, chosen in (("mends", mended), ("harms", harmed)):
        if chosen:
            lines += [f"## What {method} {title} most", ""]
        for a, b in chosen:
            lines += [
                f"* `{b.id}` ({b.corpus}), {a.errors} errors to {b.errors}",
                f"  * reference: {b.reference}",
                f"  * {first}: {a.hypothesis}",
                f"  * {method}: {b.hypothesis}",
            ]
        if chosen:
            lines.append("")
    return lines
