"""Texts to be spoken, one a line: plain text, or the JSONL that ``beamless texts`` writes."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beamless.data_gen.corpora import json_object, numbered_lines
from beamless.inference.errors import BeamlessError

DIGITS = 6
"""Least width of the number in an id, so that ids sort as the lines do."""


@dataclass(frozen=True)
class TextLine:
    """One text to be spoken.

    ``spoken`` is its spoken form where the source gives one; ``extra`` holds where it comes from.
    """

    id: str
    text: str
    spoken: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def read_text_lines(path: Path) -> list[TextLine]:
    """Read every line of a text file, blank ones too, so that line n has the number n.

    A byte order mark and CRLF are fine. A ``.jsonl`` file has objects with ``text`` and maybe
    ``spoken``; their other fields are kept in ``extra``.

    Raises:
        BeamlessError: the file is missing, empty, or not UTF-8, or a line is not what it must be.
    """
    path = Path(path)
    if not path.is_file():
        raise BeamlessError(f"there is no text file {path}")
    rows = _jsonl_rows(path) if path.suffix == ".jsonl" else _plain_rows(path)
    if not rows:
        raise BeamlessError(f"{path} holds no texts")
    width = max(DIGITS, len(str(rows[-1][0])))
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-") or "text"
    return [
        TextLine(f"{stem}-{number:0{width}d}", text, spoken, extra)
        for number, text, spoken, extra in rows
    ]


Row = tuple[int, str, str, Mapping[str, Any]]


def _plain_rows(path: Path) -> list[Row]:
    try:
        with path.open(encoding="utf-8-sig") as lines:
            return [(number, line.rstrip("\n"), "", {}) for number, line in enumerate(lines, 1)]
    except UnicodeDecodeError as error:
        raise BeamlessError(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from None


def _jsonl_rows(path: Path) -> list[Row]:
    rows: list[Row] = []
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        row = json_object(line, where)
        text, spoken = row.get("text"), row.get("spoken", "")
        if not isinstance(text, str) or not isinstance(spoken, str):
            raise BeamlessError(f"{where}: 'text' must be a string")
        extra = {name: row[name] for name in row if name not in ("id", "text", "spoken")}
        rows.append((number, text, spoken, extra))
    return rows


def digest_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
