"""Rows of a dataclass as a CSV file: the same columns in every line, whatever a row holds."""

import csv
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from beamless.inference.atomic import replaced_atomically


def write_csv(path: Path, kind: type, rows: Iterable[Any]) -> None:
    """Write a file, whole or not at all.

    Args:
        path: where.
        kind: the dataclass, whose fields are the columns.
        rows: of that kind.
    """
    with (
        replaced_atomically(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, [field.name for field in fields(kind)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
