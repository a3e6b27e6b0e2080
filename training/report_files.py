"""An evaluation's files: every row, the figures, a page and a picture."""

import json
from collections.abc import Sequence
from pathlib import Path

from beamless.inference.atomic import write_text_atomically
from beamless.training.csv_rows import write_csv
from beamless.training.report import Reports, Row, Run
from beamless.training.report_page import markdown
from beamless.training.report_picture import draw_report


def write_report(rows: Sequence[Row], run: Run, found: Reports, out: Path) -> None:
    """Write ``utterances.csv``, ``report.md``, ``report.png`` and ``report.json`` into a folder."""
    write_csv(out / "utterances.csv", Row, rows)
    write_text_atomically(out / "report.md", markdown(rows, run, found))
    draw_report(rows, run, found, out / "report.png")
    content = found.whole
    if len(found.by_corpus) > 1:
        content = {**content, "by_corpus": found.by_corpus}
    write_text_atomically(out / "report.json", json.dumps(content, indent=2) + "\n")
