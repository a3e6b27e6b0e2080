"""Writing a corpus so that a kill at any moment costs at most the utterance in hand."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from beamless.inference.atomic import (
    PARTIAL,
    is_taken,
    replaced_atomically,
    write_text_atomically,
)
from beamless.inference.errors import BeamlessError
from beamless.inference.lock import lock

METADATA = "metadata.jsonl"
RECIPE = "recipe.json"
COMPLETE = "_COMPLETE"
REFUSED = "_refused.jsonl"
RATE = 16_000
MAX_SECONDS = 30.0
MAX_TOKENS = 224
_PEAK = 32767 / 32768
_ENTRIES: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    METADATA: {"id": str, "file_name": str, "duration": (int, float)},
    REFUSED: {"id": str, "reason": str},
}
_WORDS = re.compile(r"[^\W\d_]+|\d+|(?:[^\w\s]|_)+")
_WINDOWS_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)


def least_tokens(text: str) -> int:
    """Return how many tokens a text has at least, whichever Whisper reads it.

    Whisper's tokenizer first splits into runs of letters, of digits and of other signs; no token
    spans two of them, so their number is a lower bound that needs no tokenizer.
    """
    return len(_WORDS.findall(text))


def summary_of(folder: Path, counts: Mapping[str, Any]) -> str:
    """Return one line: what a corpus holds by ``finish``, and what was refused and why."""
    text = f"{folder}: {counts['utterances']} utterances, {counts['hours']:.2f} h"
    refused = counts["refused"]
    if refused:
        reasons = ", ".join(f"{number} {reason}" for reason, number in refused.items())
        text += f"; refused {sum(refused.values())}: {reasons}"
    return text


class CorpusWriter:
    """A corpus folder being written: new, or one that the same recipe began.

    Each utterance is one FLAC file, written whole or not at all, then one appended line of
    ``metadata.jsonl``. What is refused is one line of ``_refused.jsonl``, so that a resumed run
    neither repeats nor forgets it.
    """

    def __init__(
        self,
        folder: Path,
        recipe: Mapping[str, Any],
        count_tokens: Callable[[str], int] = least_tokens,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        """Open the folder.

        Args:
            folder: where the corpus goes.
            recipe: everything that decides what the corpus will hold, as JSON values; its hash
                tells whether the folder may be resumed.
            count_tokens: tokens of a text. The default is a lower bound, so that it refuses only
                what no Whisper can write; collecting counts exactly.
            max_tokens: texts with more tokens are refused (the decoder's capacity).

        Raises:
            BeamlessError: the folder holds something else, or a corpus of another recipe, or
                another run is writing into it.
        """
        self.folder = Path(folder).resolve()
        self.count_tokens, self.max_tokens = count_tokens, max_tokens
        self.refused: Counter[str] = Counter()
        self._rows: dict[str, bytes] = {}
        self._refused_ids: set[str] = set()
        self._folded: dict[str, str] = {}
        self._lock = lock(self.folder)
        self._open_folder(recipe)
        self._recover()
        self._metadata: BinaryIO = (self.folder / METADATA).open("ab")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; the corpus stays unfinished unless ``finish`` was called."""
        self._metadata.close()
        self._lock.release()

    @property
    def done_ids(self) -> frozenset[str]:
        """The ids that are stored or refused already, which a resumed run need not make again."""
        return frozenset(self._rows) | self._refused_ids

    def add(
        self,
        id: str,
        samples: npt.NDArray[np.float32],
        rate: int,
        text: str,
        speaker: str,
        source: str,
        license: str,
        voice: str = "",
        augment: Mapping[str, Any] | None = None,
        **extra: Any,  # noqa: ANN401
    ) -> bool:
        """Store one utterance as 16 kHz mono FLAC and return whether it was taken.

        An utterance with no samples, with samples that are not finite numbers, longer than 30 s,
        or with more text than the decoder can write is refused and counted by reason, never cut.

        Args:
            id: its name in the corpus.
            samples: float32 ``[n]``, full scale ±1; louder ones are scaled down as a whole.
            rate: samples a second of ``samples``.
            text: what is said.
            speaker: who says it, empty where unknown.
            source: the data set or synthesiser that it comes from.
            license: the licence of the audio.
            voice: the voice's name where it is synthesised.
            augment: what was done to the audio.
            extra: further fields of the metadata line.

        Raises:
            BeamlessError: the id is there already, or differs from another only in case.
        """
        self._claim(id)
        reason = self._fault(samples, rate, text)
        if reason:
            self._refuse(id, reason)
            return False
        stored = _to_stored(samples, rate)
        file_name = _file_name(id)
        with replaced_atomically(self.folder / file_name) as temporary:
            soundfile.write(temporary, stored, RATE, format="FLAC", subtype="PCM_16")
        row: dict[str, Any] = {
            "id": id,
            "file_name": file_name,
            "text": text,
            "speaker": speaker,
            "duration": round(len(stored) / RATE, 4),
            "source": source,
            "license": license,
        }
        row |= {"voice": voice} if voice else {}
        row |= {"augment": dict(augment)} if augment else {}
        line = _line(row | {name: value for name, value in extra.items() if name not in row})
        self._metadata.write(line)
        self._metadata.flush()
        self._rows[id] = line
        return True

    def refuse(self, id: str, reason: str) -> None:
        """Count an utterance that its maker could not give, by a reason of the maker's own."""
        self._claim(id)
        self._refuse(id, reason)

    def discard(self) -> None:
        """Take away a corpus without an utterance; the folder too, unless it was there before."""
        self._metadata.close()
        for name in (METADATA, REFUSED, COMPLETE, RECIPE):
            (self.folder / name).unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
        self._lock.release()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was stored so far."""
        return not self._rows

    def finish(self, order: Iterable[str] | None = None) -> dict[str, Any]:
        """Write the metadata in the order asked, mark the corpus complete, return its counts.

        Args:
            order: ids, of which those never stored are passed over; by default the order in
                which they were added.
        """
        self._metadata.close()
        ids = [id for id in order if id in self._rows] if order is not None else list(self._rows)
        if len(ids) != len(self._rows):
            raise BeamlessError(f"the order names {len(ids)} of {len(self._rows)} utterances")
        _rewrite(self.folder / METADATA, b"".join(self._rows[id] for id in ids))
        counts = _mark_complete(self.folder)
        self._lock.release()
        return counts

    def _open_folder(self, recipe: Mapping[str, Any]) -> None:
        canonical = json.dumps(recipe, sort_keys=True, ensure_ascii=False)
        begun = {"hash": hashlib.sha256(canonical.encode()).hexdigest(), "recipe": recipe}
        path = self.folder / RECIPE
        if self.folder.exists() and not self.folder.is_dir():
            raise BeamlessError(f"{self.folder} is a file; name a folder for the corpus")
        if path.is_file():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))["hash"]
            except (ValueError, KeyError, TypeError):
                found = None
            if found != begun["hash"]:
                raise BeamlessError(
                    f"{self.folder} holds a corpus of another recipe; name a new folder"
                )
            return
        if is_taken(self.folder):
            raise BeamlessError(f"{self.folder} exists and is not empty; name a new folder")
        write_text_atomically(path, json.dumps(begun, indent=2, ensure_ascii=False) + "\n")

    def _recover(self) -> None:
        """Take up what an earlier run stored; a line or a file that it left half is dropped."""
        for leftover in self.folder.rglob(f"{PARTIAL}*"):
            leftover.unlink(missing_ok=True)
        for row, line in _whole_lines(self.folder / METADATA):
            if row["id"] not in self._rows and (self.folder / row["file_name"]).is_file():
                self._rows[row["id"]] = line
                self._folded[row["id"].casefold()] = row["id"]
        _rewrite(self.folder / METADATA, b"".join(self._rows.values()))
        refused = _whole_lines(self.folder / REFUSED)
        for row, _ in refused:
            self._refused_ids.add(row["id"])
            self._folded[row["id"].casefold()] = row["id"]
            self.refused[row["reason"]] += 1
        if refused:
            _rewrite(self.folder / REFUSED, b"".join(line for _, line in refused))

    def _claim(self, id: str) -> None:
        if not id:
            raise BeamlessError("an utterance needs an id")
        other = self._folded.setdefault(id.casefold(), id)
        if id in self._rows or id in self._refused_ids:
            raise BeamlessError(f"two utterances have the id {id!r}; ids must differ")
        if other != id:
            raise BeamlessError(f"the ids {other!r} and {id!r} differ only in case")
        (self.folder / COMPLETE).unlink(missing_ok=True)

    def _fault(self, samples: npt.NDArray[np.float32], rate: int, text: str) -> str:
        if samples.ndim != 1:
            raise BeamlessError(f"samples must be mono [n], not {list(samples.shape)}")
        if not len(samples):
            return "no samples"
        if not np.isfinite(samples).all():
            return "samples that are not numbers"
        if len(samples) / rate > MAX_SECONDS:
            return f"longer than {MAX_SECONDS:.0f} s"
        if self.count_tokens(text) > self.max_tokens:
            return f"text of more than {self.max_tokens} tokens"
        return ""

    def _refuse(self, id: str, reason: str) -> None:
        with (self.folder / REFUSED).open("ab") as journal:
            journal.write(_line({"id": id, "reason": reason}))
        self._refused_ids.add(id)
        self.refused[reason] += 1


def refuse_nothing(writers: Collection[CorpusWriter], complaint: str) -> None:
    """Refuse to finish a corpus all of whose sides are empty, and leave nothing of it behind.

    Raises:
        BeamlessError: they are; the complaint, and why utterances were refused.
    """
    if not all(writer.is_empty for writer in writers):
        return
    refused = sum((writer.refused for writer in writers), Counter[str]())
    for writer in writers:
        writer.discard()
    reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(refused.items()))
    raise BeamlessError(f"{complaint}: {reasons}" if reasons else complaint)


def drop_utterances(folder: Path, ids: Collection[str], reason: str) -> dict[str, Any]:
    """Take utterances out of a complete corpus; they count as refused from then on.

    Stopped in the middle, the same call finishes the work.

    Raises:
        BeamlessError: the corpus was not written by a ``CorpusWriter``.
    """
    if not (folder / RECIPE).is_file() or not (folder / COMPLETE).is_file():
        raise BeamlessError(f"{folder} is not a complete corpus that this program made")
    known = {row["id"] for row, _ in _whole_lines(folder / REFUSED)}
    rows = _whole_lines(folder / METADATA)
    dropped = [row for row, _ in rows if row["id"] in ids]
    with (folder / REFUSED).open("ab") as journal:
        for row in dropped:
            if row["id"] not in known:
                journal.write(_line({"id": row["id"], "reason": reason}))
    _rewrite(folder / METADATA, b"".join(line for row, line in rows if row["id"] not in ids))
    for row in dropped:
        (folder / row["file_name"]).unlink(missing_ok=True)
    return _mark_complete(folder)


def metadata_hash(folder: Path) -> str:
    """Return the SHA-256 of a corpus's ``metadata.jsonl``, empty if there is none."""
    path = folder / METADATA
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def completed_hash(folder: Path) -> str | None:
    """Return the hash that ``metadata.jsonl`` had when the corpus was completed.

    None where there is no marker, or one that cannot be read.
    """
    try:
        return str(json.loads((folder / COMPLETE).read_text(encoding="utf-8"))["metadata_sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _mark_complete(folder: Path) -> dict[str, Any]:
    """Write the completion marker from what the folder holds, and return its counts."""
    rows = [row for row, _ in _whole_lines(folder / METADATA)]
    reasons = Counter(row["reason"] for row, _ in _whole_lines(folder / REFUSED))
    counts = {
        "utterances": len(rows),
        "hours": round(sum(row["duration"] for row in rows) / 3600, 4),
        "refused": dict(sorted(reasons.items())),
        "metadata_sha256": metadata_hash(folder),
    }
    write_text_atomically(folder / COMPLETE, json.dumps(counts, indent=2) + "\n")
    return counts


def _to_stored(samples: npt.NDArray[np.float32], rate: int) -> npt.NDArray[np.float32]:
    """Resample to 16 kHz and scale down what would pass full scale; float32 ``[n]``."""
    at_rate = np.asarray(samples, dtype=np.float32)
    if rate != RATE:
        at_rate = soxr.resample(at_rate, rate, RATE)[: int(MAX_SECONDS * RATE)]
    peak = float(np.abs(at_rate).max(initial=0.0))
    return at_rate if peak <= _PEAK else at_rate * np.float32(_PEAK / peak)


def _file_name(id: str) -> str:
    """Return the audio's path in the corpus.

    256 folders by a hash keep 100,000 utterances at some 400 files a folder. Ids that Windows or
    a URL would trip over get a plain name and a hash.
    """
    digest = hashlib.sha256(id.encode()).hexdigest()
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", id) and not id.endswith(".")
    if not plain or _WINDOWS_DEVICES.match(id):
        id = "u-" + re.sub(r"[^A-Za-z0-9_-]+", "-", id)[:80] + "-" + digest[:12]
    return f"audio/{digest[:2]}/{id}.flac"


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row, ensure_ascii=False) + "\n").encode()


def _whole_lines(path: Path) -> list[tuple[dict[str, Any], bytes]]:
    """Return the rows and bytes of the lines that were written to their end.

    Raises:
        BeamlessError: one of them is damaged.
    """
    content = path.read_bytes() if path.is_file() else b""
    lines = content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
    return [(_row(line, path, number), line) for number, line in enumerate(lines, 1)]


def _row(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    kinds = _ENTRIES[path.name]
    if isinstance(row, dict) and all(isinstance(row.get(name), kinds[name]) for name in kinds):
        return row
    raise BeamlessError(
        f"{path}, line {number} is damaged; remove that line and run the command that makes the "
        "corpus again"
    )


def _rewrite(path: Path, content: bytes) -> None:
    """Replace a file atomically unless it holds ``content`` already."""
    if path.is_file() and path.read_bytes() == content:
        return
    with replaced_atomically(path) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
