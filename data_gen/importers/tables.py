"""Plain tables, CSV, TSV or JSONL: one row an utterance, columns named by the user."""

import csv
import io
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source, audio_inside, json_rows, tidy_id
from beamless.inference.errors import BeamlessError

FIELDS = ("audio", "text", "id", "speaker", "start", "end", "license")


def table_rows(
    path: Path, delimiter: str, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place, as ``FILE, line N``, and the row of each line of a table with a heading.

    Raises:
        BeamlessError: the file is not UTF-8, or a row has more or fewer columns than the heading.
    """
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BeamlessError(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    rows = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, quoting=quoting)
    heading: list[str] = []
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if not heading:
            heading = [cell.strip() for cell in row]
            continue
        where = f"{path}, line {rows.line_num}"
        if len(row) != len(heading):
            raise BeamlessError(f"{where}: {len(row)} columns, but the heading has {len(heading)}")
        yield where, dict(zip(heading, row, strict=True))


def read_table(source: Source, delimiter: str) -> Iterator[Recording]:
    """Read a CSV or TSV file."""
    yield from _recordings(source, table_rows(source.file(), delimiter))


def read_jsonl(source: Source) -> Iterator[Recording]:
    """Read a JSONL file."""
    yield from _recordings(source, json_rows(source.file()))


def column_names(source: Source) -> dict[str, str]:
    """Return which column holds each of ``FIELDS``; by default one of the same name."""
    return {name: source.columns.get(name, name) for name in FIELDS}


def other_columns(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns that hold none of ``FIELDS``."""
    read = {*names.values(), "duration"}
    return {name: value for name, value in row.items() if name not in read}


def _recordings(source: Source, rows: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[Recording]:
    names = column_names(source)
    root = source.audio_root or source.file().parent
    for where, row in rows:
        for name in {"audio", "text", *source.columns}:
            if names[name] not in row:
                have = ", ".join(map(repr, row))
                raise BeamlessError(
                    f"{where}: there is no column {names[name]!r} for the {name}, but {have}; "
                    "name it with --columns"
                )
        audio = audio_inside(root, str(row[names["audio"]]), where)
        text = str(row[names["text"]] or "")
        yield Recording(
            id=str(row.get(names["id"]) or tidy_id(audio, root)),
            audio=audio,
            text=text,
            speaker=str(row.get(names["speaker"]) or ""),
            start=_seconds(row.get(names["start"]), where) or 0.0,
            end=_seconds(row.get(names["end"]), where),
            license=str(row.get(names["license"]) or ""),
            extra=other_columns(row, names),
        )


def _seconds(value: object, where: str) -> float | None:
    if value in (None, ""):
        return None
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BeamlessError(f"{where}: {value!r} is not a time in seconds")
    return seconds


CSV = Layout("csv", partial(read_table, delimiter=","))
TSV = Layout("tsv", partial(read_table, delimiter="\t"))
JSONL = Layout("jsonl", read_jsonl)
