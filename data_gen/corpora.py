"""The corpus format, read and written: a Hugging Face audiofolder with one line an utterance.

A corpus is a folder with ``metadata.jsonl`` and the audio beside it, so that
``datasets.load_dataset("audiofolder", data_dir=...)`` reads it as well.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

import soundfile

from beamless.data_gen.corpus_writer import COMPLETE, METADATA, RECIPE, CorpusWriter
from beamless.inference.errors import BeamlessError

__all__ = ["CorpusWriter", "Split", "Utterance", "read_corpus", "split_of"]

Split = Literal["train", "dev", "test"]
LONGEST = 1e9  # s that an utterance may last


@dataclass(frozen=True)
class Utterance:
    """One recording and its text; ``audio`` is an absolute path, ``duration`` in seconds."""

    id: str
    audio: Path
    text: str
    speaker: str
    duration: float
    source: str
    license: str
    voice: str = ""
    augment: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


_OWN = {"id", "file_name", "text", "speaker", "duration", "source", "license", "voice", "augment"}


def corpus_name(corpus: Path) -> str:
    """Return a corpus's name in reports: its folder and the one above, as in ``ljspeech/test``."""
    return "/".join(corpus.resolve().parts[-2:])


def named(corpora: Iterable[Path]) -> dict[str, Path]:
    """Return corpora by their names.

    Raises:
        BeamlessError: two have the same name.
    """
    names: dict[str, Path] = {}
    for corpus in corpora:
        name = corpus_name(corpus)
        if name in names:
            raise BeamlessError(f"two corpora are called {name}: {names[name]} and {corpus}")
        names[name] = corpus
    return names


def read_corpus(folder: Path) -> list[Utterance]:
    """Read the utterances of a corpus in the order of its ``metadata.jsonl``.

    Blank lines, a byte order mark and CRLF are fine. ``speaker``, ``source`` and ``license``
    may be missing; a missing ``duration`` is read from the audio's header. Unknown fields are
    kept in ``extra``.

    Raises:
        BeamlessError: no corpus there, an unfinished one, or a line that is wrong (named by its
            number): broken JSON, a field missing or of another type, an id seen before, an
            audio file that is missing or outside the folder.
    """
    folder = Path(folder).resolve()
    if (folder / RECIPE).is_file() and not (folder / COMPLETE).is_file():
        raise BeamlessError(f"corpus {folder} is unfinished; run the command that makes it again")
    utterances: list[Utterance] = []
    for entry in scan_corpus(folder):
        if isinstance(entry, BeamlessError):
            raise entry
        utterances.append(entry)
    if not utterances:
        raise BeamlessError(f"{folder / METADATA} holds no utterances")
    return utterances


def scan_corpus(folder: Path) -> Iterator[Utterance | BeamlessError]:
    """Yield each line of a corpus, or what is wrong with it.

    Raises:
        BeamlessError: there is no ``metadata.jsonl``, or it is not UTF-8.
    """
    metadata = folder / METADATA
    if not metadata.is_file():
        raise BeamlessError(_no_corpus(folder))
    line_of: dict[str, int] = {}
    for number, line in numbered_lines(metadata):
        where = f"{metadata}, line {number}"
        try:
            utterance = _utterance(json_object(line, where), folder, where)
        except BeamlessError as error:
            yield error
            continue
        first = line_of.setdefault(utterance.id, number)
        if first == number:
            yield utterance
        else:
            yield BeamlessError(f"{where}: id {utterance.id!r} is that of line {first} as well")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that are not blank, with their numbers.

    Raises:
        BeamlessError: the file is not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise BeamlessError(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from None


def json_object(line: str, where: str) -> dict[str, Any]:
    """Read a line that is one JSON object.

    Raises:
        BeamlessError: it is not; the message begins with ``where``.
    """
    try:
        row = json.loads(line)
        if "\\ud" in line.lower():
            json.dumps(row, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BeamlessError(f"{where}: half a character, which is no text") from None
    except (ValueError, RecursionError) as error:
        raise BeamlessError(f"{where}: not JSON ({error})") from None
    if not isinstance(row, dict):
        raise BeamlessError(f"{where}: a JSON object was expected, not {type(row).__name__}")
    return row


def _no_corpus(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no corpus folder {folder}"
    inner = sorted(path.parent.name for path in folder.glob(f"*/{METADATA}"))
    hint = f"; its subfolders {', '.join(inner)} do, name one of them" if inner else ""
    return f"{folder} has no {METADATA}{hint}"


def _utterance(row: dict[str, Any], folder: Path, where: str) -> Utterance:
    strings = {"speaker": "", "source": "", "license": "", "voice": ""} | row
    for name in ("id", "file_name", "text", "speaker", "source", "license", "voice"):
        if name not in strings:
            raise BeamlessError(f"{where}: the field {name!r} is missing")
        if not isinstance(strings[name], str):
            raise BeamlessError(f"{where}: the field {name!r} must be a string")
    if not row["id"]:
        raise BeamlessError(f"{where}: the id is empty")
    augment = row.get("augment") or {}
    if not isinstance(augment, dict):
        raise BeamlessError(f"{where}: the field 'augment' must be an object")
    audio = _inside(folder, row["file_name"], where)
    return Utterance(
        id=row["id"],
        audio=audio,
        text=row["text"],
        speaker=strings["speaker"],
        duration=_duration(row.get("duration"), audio, where),
        source=strings["source"],
        license=strings["license"],
        voice=strings["voice"],
        augment=augment,
        extra={name: value for name, value in row.items() if name not in _OWN},
    )


def _inside(folder: Path, file_name: str, where: str) -> Path:
    """Return the audio's path; it may not leave the folder, on Linux or on Windows."""
    pure = PureWindowsPath(file_name)
    if not file_name or pure.drive or pure.root or ".." in pure.parts:
        raise BeamlessError(f"{where}: {file_name!r} is not a path inside {folder}")
    audio = folder / file_name
    if not audio.is_file():
        raise BeamlessError(f"{where}: the audio {file_name!r} is missing")
    return audio


def _duration(value: object, audio: Path, where: str) -> float:
    if value is None:
        try:
            return float(soundfile.info(audio).duration)
        except (soundfile.LibsndfileError, TypeError) as error:
            raise BeamlessError(f"{where}: {audio.name} is not audio ({error})") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BeamlessError(f"{where}: the duration must be a number of seconds")
    if not 0 <= value <= LONGEST:
        raise BeamlessError(f"{where}: {value!s:.20} is not a duration")
    return float(value)


def split_of(speaker: str, text: str = "") -> Split:
    """Return the side that a speaker, or where ``text`` is given a sentence, always stands on.

    80 % are train, 10 % dev and 10 % test, by a hash that never moves. Give the text where the
    same sentences are read by several people: then the sentence decides, whatever its case and
    punctuation, and ``speaker`` is not looked at.

    Raises:
        BeamlessError: there is neither a speaker nor a text to go by.
    """
    words = " ".join(re.findall(r"\w+", text.casefold()))
    if not words and not speaker:
        raise BeamlessError("an utterance without speaker and text cannot be put on a side")
    key = f"text:{words}" if words else f"speaker:{speaker}"
    part = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % 10
    if part < 8:
        return "train"
    return "dev" if part == 8 else "test"
