"""lhotse manifests: a file of cuts, or a folder with recordings and supervisions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import (
    Layout,
    Source,
    audio_inside,
    field_of,
    json_rows,
    needed,
)
from beamless.inference.errors import BeamlessError

KEPT = ("gender", "language")


def read(source: Source) -> Iterator[Recording]:
    """Read a cuts file (JSONL, gzipped or not), or a folder's recordings and supervisions.

    In a folder, ``--subset NAME`` picks ``recordings_NAME.jsonl.gz``. Paths are relative to
    ``--audio-root`` (the manifest's own folder if none).
    """
    place = Path(source.place).absolute()
    root = source.audio_root or (place if place.is_dir() else place.parent)
    if place.is_dir():
        yield from _pair(place, source.subset, root)
        return
    for where, cut in json_rows(source.file()):
        recording = field_of(cut, "recording", dict, where)
        start = float(field_of(cut, "start", (int, float), where))
        for supervision in field_of(cut, "supervisions", list, where):
            yield _recording(supervision, recording, start, root, where)


def _pair(folder: Path, subset: str, root: Path) -> Iterator[Recording]:
    recordings = {
        field_of(row, "id", str, where): row
        for where, row in json_rows(_manifest(folder, "recordings", subset))
    }
    for where, row in json_rows(_manifest(folder, "supervisions", subset)):
        name = field_of(row, "recording_id", str, where)
        if name not in recordings:
            raise BeamlessError(f"{where}: recording {name!r} is not in the recordings")
        yield _recording(row, recordings[name], 0.0, root, where)


def _manifest(folder: Path, kind: str, subset: str) -> Path:
    stem = f"{kind}_{subset}" if subset else kind
    plain = folder / f"{stem}.jsonl"
    return plain if plain.is_file() else needed(folder / f"{stem}.jsonl.gz", "lhotse")


def _recording(
    supervision: Mapping[str, Any],
    recording: Mapping[str, Any],
    cut_start: float,
    root: Path,
    where: str,
) -> Recording:
    """Read a supervision; its times count from the start of the cut."""
    sources = field_of(recording, "sources", list, where)
    if len(sources) != 1 or sources[0].get("type") != "file":
        raise BeamlessError(f"{where}: a recording must be one file, not a command, URL or several")
    start = cut_start + float(field_of(supervision, "start", (int, float), where))
    end = start + float(field_of(supervision, "duration", (int, float), where))
    text = str(supervision.get("text") or "")
    several = len(sources[0].get("channels") or [0]) > 1
    channel = supervision.get("channel", 0)
    if isinstance(channel, list):
        channel = channel[0]
    return Recording(
        str(field_of(supervision, "id", str, where)),
        audio_inside(root, field_of(sources[0], "source", str, where), where),
        text,
        speaker=str(supervision.get("speaker") or ""),
        start=max(0.0, start),
        end=end,
        channel=channel if several else None,
        fault="" if text.strip() else "no transcript",
        extra={name: supervision[name] for name in KEPT if supervision.get(name)},
    )


LAYOUT = Layout("lhotse", read)
