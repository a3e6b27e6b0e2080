"""The rows of an evaluation that is not finished yet: a line an utterance, read back with care."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_type_hints

from beamless.inference.atomic import write_text_atomically
from beamless.inference.errors import BeamlessError
from beamless.training.report import Row

KINDS: dict[str, type] = {
    name: list if name == "judged" else kind for name, kind in get_type_hints(Row).items()
}


def read_rows(kept: Path, methods: Sequence[str]) -> list[Row]:
    """Read the rows of a stopped run; a last line that a kill cut short is dropped.

    Args:
        kept: a JSON list a line: an utterance's rows, one for each method, or none.
        methods: those of the run, in their order.

    Raises:
        BeamlessError: a line is damaged, or of a Beamless that told other things of a row.
    """
    if not kept.is_file():
        return []
    try:
        lines = kept.read_text(encoding="utf-8").split("\n")
        whole = lines[:-1]
        rows = [row for line in whole for row in _rows_of(json.loads(line), methods)]
    except (ValueError, TypeError, RecursionError):
        raise BeamlessError(
            f"{kept} is damaged, or another Beamless wrote it; remove it, and all is decoded again"
        ) from None
    if lines[-1]:
        write_text_atomically(kept, "".join(line + "\n" for line in whole))
    return rows


def _rows_of(line: Any, methods: Sequence[str]) -> list[Row]:  # noqa: ANN401 - whatever JSON holds
    """Return an utterance's rows (ValueError: they are none)."""
    rows = [Row(**_checked(row)) for row in line]
    if rows and [row.method for row in rows] != list(methods):
        raise ValueError("a method's row is missing")
    return rows


def _checked(row: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON holds
    if not isinstance(row, dict) or row.keys() != KINDS.keys():
        raise ValueError("a field is missing, or one too many")
    for name, kind in KINDS.items():
        fits = isinstance(row[name], (int, float) if kind is float else kind)
        if not fits or isinstance(row[name], bool):
            raise ValueError(f"{name} is of another kind")
    for word in row["judged"]:
        if len(word) != 3 or not all(math.isfinite(n) and 0 <= n <= 1 for n in word):
            raise ValueError("a probability is none")
    return row
