"""Whether the files of a bundle are those that were written; looked at once, not at every start.

Reading some 150 MB to compare hashes takes a quarter of a start. So what was found whole is noted
beside the compiled graphs, by each file's size and time of change, and believed as long as both
are the same.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from beamless.inference.atomic import write_text_atomically
from beamless.inference.errors import BeamlessError


def check_files(folder: Path, files: Mapping[str, str], notes: Path | None) -> None:
    """Refuse a bundle in which a file is missing or was changed.

    Args:
        folder: the bundle's.
        files: each file's SHA-256 by its name.
        notes: a folder to note in what was found whole, and to look that up in; without it all is
            read each time.

    Raises:
        BeamlessError: a file is missing or was changed.
    """
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise BeamlessError(f"bundle {folder} lacks {missing[0]}; export it again")
    seen = {name: _marks(folder / name) for name in files}
    note = None if notes is None else notes / f"whole-{_name_of(folder, files)}.json"
    if note is not None and _noted(note) == seen:
        return
    for name, expected in files.items():
        if file_hash(folder / name) != expected:
            raise BeamlessError(f"bundle {folder}: {name} was changed since; export it again")
    if note is not None:
        _write(note, seen)


def file_hash(path: Path) -> str:
    """Return a file's SHA-256."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _marks(file: Path) -> list[int]:
    about = file.stat()
    return [about.st_size, about.st_mtime_ns]


def _name_of(folder: Path, files: Mapping[str, str]) -> str:
    about = [str(folder.resolve()), sorted(files.items())]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


def _noted(note: Path) -> object:
    try:
        return json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write(note: Path, seen: Mapping[str, list[int]]) -> None:
    """Note it, where there is a place that can be written to."""
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(note, json.dumps(seen))
    except OSError:
        return
