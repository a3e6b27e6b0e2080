"""Rows of a dataclass as a CSV file: the same columns in every line, whatever a row holds."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from beamless.inference.atomic import replaced_atomically
from beamless.inference.errors import BeamlessError

T = TypeVar("T")

NO_COLUMN: Mapping[str, bool] = {"column": False}
"""The metadata of a field that no file of rows holds."""


def write_csv(path: Path, kind: type, rows: Iterable[Any]) -> None:
    """Write a file, whole or not at all.

    Args:
        path: where.
        kind: the dataclass, whose fields are the columns, but for those that ``NO_COLUMN`` marks.
        rows: of that kind.
    """
    columns = [field.name for field in fields(kind) if field.metadata != NO_COLUMN]
    with (
        replaced_atomically(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def read_csv(path: Path, kind: type[T]) -> list[T]:
    """Read back what ``write_csv`` wrote, of a dataclass of texts and numbers.

    Raises:
        BeamlessError: the file holds rows of another kind.
    """
    hints = get_type_hints(kind)
    with path.open(encoding="utf-8", newline="") as file:
        try:
            return [
                kind(**{name: hints[name](value) for name, value in row.items()})
                for row in csv.DictReader(file)
            ]
        except (KeyError, TypeError, ValueError):
            raise BeamlessError(f"{path} does not hold what is expected there") from None
