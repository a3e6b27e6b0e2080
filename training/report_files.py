"""An evaluation's files: every row, the figures, a page and a picture."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from beamless.inference.atomic import replaced_atomically, write_text_atomically
from beamless.training.report import Row, Run, parts_of, report
from beamless.training.report_page import markdown
from beamless.training.report_picture import draw_report


def write_report(rows: Sequence[Row], run: Run, out: Path) -> None:
    """Write ``utterances.csv``, ``report.md``, ``report.png`` and ``report.json`` into a folder."""
    with (
        replaced_atomically(out / "utterances.csv") as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    write_text_atomically(out / "report.md", markdown(rows, run))
    draw_report(rows, run, out / "report.png")
    content = report(rows, run)
    if len(run.corpora) > 1:
        content["by_corpus"] = {
            name: report(part, run) for name, part in parts_of(rows, run).items()
        }
    write_text_atomically(out / "report.json", json.dumps(content, indent=2) + "\n")
