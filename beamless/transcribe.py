"""``beamless transcribe``, and ``beamless.load``: a model's name to a ready transcriber."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rich.markup import escape

from beamless.inference.options import DecodingOptions
from beamless.inference.progress import console
from beamless.inference.transcribe import Transcriber
from beamless.inference.transcript import Segment, Transcript
from beamless.inference.writers import output_paths, render, timestamp, write_transcript
from beamless.models.bundle import open_bundle

Format = Literal["txt", "srt", "vtt", "json", "tsv"]
PLAIN = DecodingOptions()


def load(
    model: str = "tiny.en",
    *,
    device: str = "CPU",
    method: str | None = None,
    language: str | None = None,
    options: DecodingOptions = PLAIN,
) -> Transcriber:
    """Load a bundle's folder, or a model by any of its names, ready to transcribe."""
    bundle = open_bundle(model, device)
    return Transcriber(bundle, method=method, language=language, options=options)


def transcribe(
    files: list[Path],
    *,
    model: str = "tiny.en",
    method: str | None = None,
    device: str = "CPU",
    format: Format = "txt",
    out: Path | None = None,
    options: DecodingOptions = PLAIN,
) -> None:
    """Write down what recordings say.

    Args:
        files: wav, flac, ogg or mp3, of any rate and length.
        model: a bundle's folder, or a model's name.
        method: greedy, corrected, lookahead, or beam1 to beam10; corrected where the bundle has a
            corrector, by default.
        device: an OpenVINO device, such as CPU, GPU or NPU.
        format: txt, srt, vtt, json or tsv.
        out: a folder for one file each; to standard output without it.
        options: how to decode.
    """
    terminal = console()
    paths = output_paths(files, out, format) if out else [None] * len(files)
    if out:
        out.mkdir(parents=True, exist_ok=True)
    if options.timestamps is None:
        options = replace(options, timestamps=format != "txt")
    transcriber = load(model, device=device, method=method, options=options)
    for file, path in zip(files, paths, strict=True):
        with warnings.catch_warnings(record=True) as caught, terminal.status(str(file)) as status:
            warnings.simplefilter("always")
            transcript = transcriber.transcribe(file, on_segment=_shown(file, status.update))
        for warning in caught:
            terminal.print(f"{file}: {warning.message}", markup=False)
        terminal.print(_summary(file, transcript, transcriber.method), markup=False)
        if path:
            write_transcript(transcript, path, format)
        else:
            sys.stdout.write(render(transcript, format))
            sys.stdout.flush()


def _shown(file: Path, update: Callable[[str], None]) -> Callable[[Segment], None]:
    """Return what shows how far a recording is, and its last words."""
    return lambda segment: update(
        escape(f"{file} {timestamp(segment.end, '.')[:-4]} {segment.text[-60:]}")
    )


def _summary(file: Path, transcript: Transcript, method: str) -> str:
    took = f"{method}, {transcript.timings['total']:.2f} s"
    found = f"{file}: {transcript.duration:.1f} s, {took}"
    if transcript.left_out >= 1:
        found += f"; {transcript.left_out:.1f} s without speech left out"
    return found
