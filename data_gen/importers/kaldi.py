"""Kaldi data folders: ``wav.scp``, ``text``, ``utt2spk`` and, for long recordings, ``segments``."""

from collections.abc import Iterator
from pathlib import Path

from beamless.data_gen.corpora import numbered_lines
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source, audio_inside, needed
from beamless.inference.errors import BeamlessError


def read(source: Source) -> Iterator[Recording]:
    """Read a data folder; paths of ``wav.scp`` are relative to ``--audio-root`` (itself if none).

    Commands in ``wav.scp`` (lines that end in ``|``) are refused: they are never run.
    """
    folder = source.folder()
    audio = _audio(needed(folder / "wav.scp", "kaldi"), source.audio_root or folder)
    texts = _table(needed(folder / "text", "kaldi"))
    speakers = _table(folder / "utt2spk")
    facts = {name: _table(folder / f"spk2{name}") for name in ("age", "gender")}
    for id, where, recording, start, end in _stretches(folder, audio):
        if recording not in audio:
            raise BeamlessError(f"{where}: recording {recording!r} is not in wav.scp")
        speaker = speakers.get(id, "")
        text = texts.get(id, "")
        yield Recording(
            id,
            audio[recording],
            text,
            speaker=speaker,
            start=start,
            end=end,
            fault="" if text else "no transcript",
            extra={name: table[speaker] for name, table in facts.items() if speaker in table},
        )


def _audio(scp: Path, root: Path) -> dict[str, Path]:
    found = {}
    for id, (where, path) in _entries(scp).items():
        if path.endswith("|"):
            raise BeamlessError(f"{where}: a command, not a file; store its output as wav or flac")
        found[id] = audio_inside(root, path, where)
    return found


def _stretches(
    folder: Path, audio: dict[str, Path]
) -> Iterator[tuple[str, str, str, float, float | None]]:
    """Yield id, place, recording, start and end of each utterance."""
    segments = folder / "segments"
    if not segments.is_file():
        yield from ((id, f"{folder / 'wav.scp'}", id, 0.0, None) for id in audio)
        return
    for id, (where, rest) in _entries(segments).items():
        try:
            recording, start, end = rest.split()
            yield id, where, recording, float(start), float(end)
        except ValueError:
            raise BeamlessError(f"{where}: ID RECORDING START END was expected") from None


def _table(path: Path) -> dict[str, str]:
    return {id: rest for id, (_, rest) in _entries(path).items()} if path.is_file() else {}


def _entries(path: Path) -> dict[str, tuple[str, str]]:
    """Read ``ID rest of the line`` lines: the place and the rest by id."""
    found: dict[str, tuple[str, str]] = {}
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        id, *rest = line.split(maxsplit=1)
        if id in found:
            raise BeamlessError(f"{where}: id {id!r} stands there twice")
        found[id] = where, rest[0].strip() if rest else ""
    return found


LAYOUT = Layout("kaldi", read)
