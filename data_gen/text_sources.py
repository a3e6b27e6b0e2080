"""Where texts come from: text files, tables, JSONL, and Hugging Face ``datasets``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beamless.data_gen.corpora import json_object, numbered_lines
from beamless.data_gen.importers.hugging_face import open_dataset
from beamless.data_gen.importers.tables import table_rows
from beamless.inference.errors import BeamlessError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (".txt", ".jsonl", *DELIMITERS)

Row = dict[str, Any]


def rows_of_file(path: Path, column: str = "text") -> Iterator[Row]:
    """Yield ``{"text", "kind", "source", "line"}`` for each text of a file.

    Raises:
        BeamlessError: the file is missing, of another kind, or has no such column.
    """
    if not path.is_file():
        raise BeamlessError(f"there is no text file {path}")
    if path.suffix in DELIMITERS:
        rows = list(table_rows(path, DELIMITERS[path.suffix]))
        texts: Iterator[tuple[str, str]] = (
            (where, str(_cell(row, column, where))) for where, row in rows
        )
    elif path.suffix == ".jsonl":
        texts = _jsonl_texts(path, column)
    else:
        texts = ((f"line {number}", line) for number, line in numbered_lines(path))
    for where, text in texts:
        yield {
            "text": text,
            "kind": "file",
            "source": path.name,
            "line": int(where.rpartition("line ")[2]),
        }


def _jsonl_texts(path: Path, column: str) -> Iterator[tuple[str, str]]:
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        yield where, str(_cell(json_object(line, where), column, where))


def _cell(row: dict[str, Any], column: str, where: str) -> Any:  # noqa: ANN401
    if column not in row:
        have = ", ".join(map(repr, row))
        raise BeamlessError(f"{where}: there is no column {column!r}, but {have}; use --column")
    return row[column] or ""


def rows_of_dataset(name: str, subset: str, column: str = "text") -> Iterator[Row]:
    """Yield ``{"text", "kind", "source", "line"}`` for each row of a Hugging Face data set.

    Args:
        name: a name on the hub (streamed), a folder of data files, or one saved to disk.
        subset: its split, or ``configuration:split``.
        column: where the texts are.

    Raises:
        BeamlessError: datasets is not installed, or there is no such data set, split or column.
    """
    data = open_dataset(name, subset)
    if data.column_names is not None and column not in data.column_names:
        have = ", ".join(map(repr, data.column_names))
        raise BeamlessError(f"{name}: there is no column {column!r}, but {have}; use --column")
    try:
        for number, row in enumerate(data.select_columns([column]), 1):
            text = _cell(row, column, f"{name}, row {number}")
            yield {"text": str(text), "kind": "dataset", "source": name, "line": number}
    except (OSError, ValueError, RuntimeError) as error:
        raise BeamlessError(f"{name} cannot be read: {' '.join(str(error).split())}") from None
