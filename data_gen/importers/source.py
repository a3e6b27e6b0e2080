"""Where recordings are imported from, and the checks that every layout shares."""

import gzip
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beamless.data_gen.corpora import json_object, numbered_lines
from beamless.data_gen.importers.recording import Recording
from beamless.inference.errors import BeamlessError

TAKEN = {"id", "file_name", "text", "speaker", "duration", "source", "license", "voice", "augment"}
"""Fields that a corpus has of its own."""


@dataclass(frozen=True)
class Source:
    """What the user named: a place, a part of it, and how its columns are called.

    ``model``, ``device`` and ``language`` are for layouts that need to hear what is said.
    """

    place: str
    subset: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    audio_root: Path | None = None
    model: str = "tiny.en"
    device: str = "CPU"
    language: str = "en"

    def folder(self) -> Path:
        """Return the place as a folder.

        Raises:
            BeamlessError: it is none.
        """
        path = Path(self.place).absolute()
        if not path.is_dir():
            raise BeamlessError(f"there is no folder {path}")
        return path

    def file(self) -> Path:
        """Return the place as a file.

        Raises:
            BeamlessError: it is none.
        """
        path = Path(self.place).absolute()
        if not path.is_file():
            raise BeamlessError(f"there is no file {path}")
        return path


@dataclass(frozen=True)
class Layout:
    """How one kind of data set is read."""

    name: str
    read: Callable[[Source], Iterator[Recording]]
    license: str = ""
    streamed: bool = False
    """Recordings come with their audio: they are taken one by one, not listed first."""


def needed(path: Path, layout: str) -> Path:
    """Return ``path`` if it exists.

    Raises:
        BeamlessError: it does not, so the folder is not of the layout named.
    """
    if not path.exists():
        raise BeamlessError(f"{path.parent} is not of layout {layout}: it has no {path.name}")
    return path


def audio_inside(root: Path, name: str, where: str) -> Path:
    """Return the path of a manifest's audio, relative to ``root`` or absolute, but inside it.

    Raises:
        BeamlessError: it lies outside.
    """
    path = Path(os.path.normpath(root / name))
    if not name or not path.is_relative_to(os.path.normpath(root)):
        raise BeamlessError(
            f"{where}: {name!r} is not inside {root}; --audio-root names the folder of the audio"
        )
    return path


def tidy_id(path: Path, root: Path) -> str:
    """Return an id for an audio file that a manifest gives none: its path without the suffix."""
    return Path(os.path.relpath(path, root)).with_suffix("").as_posix()


def renamed(
    facts: Mapping[str, Any], prefix: str = "source", taken: Collection[str] = ()
) -> dict[str, Any]:
    """Return what else a source says, prefixed where a corpus has a field of that name."""
    unfit = {*TAKEN, "samples", "rate", "self", *taken}
    return {f"{prefix}_{name}" if name in unfit else name: facts[name] for name in facts}


def json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place, as ``FILE, line N``, and the object of each line of a JSONL file.

    Raises:
        BeamlessError: the file is not UTF-8, or a line is not a JSON object.
    """
    for number, line in text_lines(path):
        where = f"{path}, line {number}"
        yield where, json_object(line, where)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbers and the lines that are not blank, of a plain or gzipped text file.

    Raises:
        BeamlessError: the file is not UTF-8, or not gzip though its name says so.
    """
    if path.suffix != ".gz":
        yield from numbered_lines(path)
        return
    try:
        with gzip.open(path, "rt", encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BeamlessError(f"{path} cannot be read: {error}") from None


def field_of(row: Mapping[str, Any], name: str, kind: type | tuple[type, ...], where: str) -> Any:  # noqa: ANN401
    """Return a field that must be there and of one type.

    Raises:
        BeamlessError: it is missing or of another type.
    """
    if name not in row:
        raise BeamlessError(f"{where}: the field {name!r} is missing")
    if not isinstance(row[name], kind) or isinstance(row[name], bool):
        raise BeamlessError(f"{where}: the field {name!r} has the wrong type")
    return row[name]
