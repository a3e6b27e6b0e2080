"""Transcripts as txt, srt, vtt, json and tsv files."""

import dataclasses
import html
import json
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path

from beamless.inference.atomic import write_text_atomically
from beamless.inference.errors import BeamlessError
from beamless.inference.subtitles import Cue, Layout, cues
from beamless.inference.transcript import Segment, Transcript


def write_transcript(
    transcript: Transcript, path: Path, format: str, layout: Layout | None = None
) -> None:
    """Write a transcript in one of ``FORMATS``, whole or not at all, as UTF-8.

    Raises:
        BeamlessError: there is no such format.
    """
    write_text_atomically(path, render(transcript, format, layout))


def render(transcript: Transcript, format: str, layout: Layout | None = None) -> str:
    """Return a transcript as the text of a file in one of ``FORMATS``.

    ``layout`` bounds the lines of srt and vtt.

    Raises:
        BeamlessError: there is no such format.
    """
    if format not in FORMATS:
        raise BeamlessError(f"there is no transcript format {format!r}; take {', '.join(FORMATS)}")
    return FORMATS[format](_clean(transcript), layout or Layout())


def output_paths(inputs: Sequence[Path], folder: Path, format: str) -> list[Path]:
    """Name a transcript file in ``folder`` for each input; nothing there is overwritten.

    The whole stem is kept: ``a.b.c.mp3`` gives ``a.b.c.srt``. Inputs that would share a name
    (``a.wav`` and ``a.mp3``) keep their suffix too, and get a number where that is not enough.

    Raises:
        BeamlessError: one of the files exists already.
    """
    stems = [_folded(path.stem) for path in inputs]
    taken: set[str] = set()
    paths = []
    for path, stem in zip(inputs, stems, strict=True):
        base = path.stem if stems.count(stem) == 1 else path.name
        name, number = base, 1
        while _folded(name) in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(_folded(name))
        paths.append(folder / f"{name}.{format}")
    for path in paths:
        if path.exists():
            raise BeamlessError(f"{path} exists already; move it away or choose another folder")
    return paths


def timestamp(seconds: float, decimal_mark: str) -> str:
    """Return hours:minutes:seconds with three decimals, rounded before it is split."""
    milliseconds = _milliseconds(seconds)
    total, fraction = divmod(milliseconds, 1000)
    minutes, second = divmod(total, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02d}:{minute:02d}:{second:02d}{decimal_mark}{fraction:03d}"


def _milliseconds(seconds: float) -> int:
    return max(0, math.floor(seconds * 1000 + 0.5))


def _folded(name: str) -> str:
    """Return a name as file systems that ignore case and composition compare it."""
    return unicodedata.normalize("NFC", name).casefold()


def _clean(transcript: Transcript) -> Transcript:
    """Drop what no text file should hold: halves of characters and control characters."""

    def cleaned(segment: Segment) -> Segment:
        words = tuple(dataclasses.replace(w, text=_whole(w.text)) for w in segment.words)
        return dataclasses.replace(segment, text=_whole(segment.text), words=words)

    segments = tuple(map(cleaned, transcript.segments))
    return dataclasses.replace(transcript, text=_whole(transcript.text), segments=segments)


def _whole(text: str) -> str:
    return "".join(
        character
        for character in text
        if character != "\ufffd"
        and (character.isspace() or unicodedata.category(character) not in ("Cc", "Cs"))
    )


def _one_line(segment: Segment) -> str:
    text = " ".join(segment.text.split())
    return f"{segment.speaker}: {text}" if segment.speaker and text else text


def _txt(transcript: Transcript, _: Layout) -> str:
    """One segment a line."""
    return "".join(line + "\n" for line in map(_one_line, transcript.segments) if line)


def _tsv(transcript: Transcript, _: Layout) -> str:
    """Milliseconds and text, the columns of openai/whisper."""
    rows = ["start\tend\ttext"]
    for segment in transcript.segments:
        if text := _one_line(segment):
            start, end = _milliseconds(segment.start), _milliseconds(segment.end)
            rows.append(f"{start}\t{end}\t{text}")
    return "\n".join(rows) + "\n"


def _all_cues(transcript: Transcript, layout: Layout, named: bool = False) -> list[Cue]:
    """Return the cues in order of time, each at least a millisecond long.

    ``named`` leaves room for the speaker's name, where a line begins with it.
    """
    segments = transcript.segments
    leads = [len(f"{each.speaker}: ") if named and each.speaker else 0 for each in segments]
    found = [c for s, lead in zip(segments, leads, strict=True) for c in cues(s, layout, lead)]
    found.sort(key=lambda cue: cue.start)
    shortest = (_milliseconds(cue.start) + 1 for cue in found)
    return [
        dataclasses.replace(cue, end=max(_milliseconds(cue.end), least) / 1000)
        for cue, least in zip(found, shortest, strict=True)
    ]


def _srt(transcript: Transcript, layout: Layout) -> str:
    """SubRip: no standard escapes; an arrow inside the text would break the file."""
    blocks = []
    for number, cue in enumerate(_all_cues(transcript, layout, named=True), start=1):
        lines = [line.replace("-->", "->") for line in cue.lines]
        if cue.speaker:
            lines[0] = f"{cue.speaker}: {lines[0]}"
        times = f"{timestamp(cue.start, ',')} --> {timestamp(cue.end, ',')}"
        blocks.append("\n".join([str(number), times, *lines]) + "\n")
    return "\n".join(blocks)


def _vtt(transcript: Transcript, layout: Layout) -> str:
    """WebVTT (W3C): text is escaped, a speaker is a voice span."""
    blocks = ["WEBVTT\n"]
    for cue in _all_cues(transcript, layout):
        text = html.escape("\n".join(cue.lines), quote=False)
        if cue.speaker:
            text = f"<v {html.escape(cue.speaker, quote=False)}>{text}</v>"
        times = f"{timestamp(cue.start, '.')} --> {timestamp(cue.end, '.')}"
        blocks.append(f"{times}\n{text}\n")
    return "\n".join(blocks)


def _json(transcript: Transcript, _: Layout) -> str:
    """Every field of ``Transcript``; numbers that are not finite become null."""
    return json.dumps(_plain(transcript), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _plain(value: object) -> object:
    """Turn dataclasses into what JSON holds; times to the millisecond, the rest to 1e-6."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        times = [key for key in ("start", "end", "duration") if isinstance(plain.get(key), float)]
        return plain | {key: _milliseconds(getattr(value, key)) / 1000 for key in times}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return round(float(value), 6) if math.isfinite(value) else None
    return value


FORMATS: dict[str, Callable[[Transcript, Layout], str]] = {
    "txt": _txt,
    "srt": _srt,
    "vtt": _vtt,
    "json": _json,
    "tsv": _tsv,
}
