"""An evaluation's files: every row, the figures, a page and a picture."""

import json
from collections.abc import Sequence
from pathlib import Path

from beamless.inference.atomic import write_text_atomically
from beamless.training.csv_rows import write_csv
from beamless.training.report import Row, Run, parts_of, report
from beamless.training.report_page import markdown
from beamless.training.report_picture import draw_report


def write_report(rows: Sequence[Row], run: Run, out: Path) -> None:
    """Write ``utterances.csv``, ``report.md``, ``report.png`` and ``report.json`` into a folder."""
    write_csv(out / "utterances.csv", Row, rows)
    write_text_atomically(out / "report.md", markdown(rows, run))
    draw_report(rows, run, out / "report.png")
    content = report(rows, run)
    if len(run.corpora) > 1:
        content["by_corpus"] = {
            name: report(part, run) for name, part in parts_of(rows, run).items()
        }
    write_text_atomically(out / "report.json", json.dumps(content, indent=2) + "\n")
