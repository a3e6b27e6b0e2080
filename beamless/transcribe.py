"""``beamless transcribe``, and ``beamless.load``: a model's name to a ready transcriber."""

import sys
import warnings
from pathlib import Path
from typing import Literal

from beamless.inference.progress import console
from beamless.inference.transcribe import Transcriber
from beamless.inference.writers import output_paths, render, write_transcript
from beamless.models.bundle import open_bundle

Format = Literal["txt", "srt", "vtt", "json", "tsv"]


def load(
    model: str = "tiny.en",
    *,
    device: str = "CPU",
    method: str | None = None,
    language: str = "en",
) -> Transcriber:
    """Load a bundle's folder, or a model by any of its names, ready to transcribe."""
    bundle = open_bundle(model, device)
    return Transcriber(bundle, method=method, language=language)


def transcribe(
    files: list[Path],
    *,
    model: str = "tiny.en",
    method: str | None = None,
    language: str = "en",
    device: str = "CPU",
    format: Format = "txt",
    out: Path | None = None,
) -> None:
    """Write down what recordings say.

    Args:
        files: wav, flac, ogg or mp3, of any rate and length.
        model: a bundle's folder, or a model's name.
        method: greedy, corrected, or beam1 to beam10; corrected where the bundle has a corrector,
            by default.
        language: what is spoken.
        device: an OpenVINO device, such as CPU, GPU or NPU.
        format: txt, srt, vtt, json or tsv.
        out: a folder for one file each; to standard output without it.
    """
    terminal = console()
    paths = output_paths(files, out, format) if out else [None] * len(files)
    transcriber = load(model, device=device, method=method, language=language)
    for file, path in zip(files, paths, strict=True):
        with warnings.catch_warnings(record=True) as caught, terminal.status(f"{file}"):
            warnings.simplefilter("always")
            transcript = transcriber.transcribe(file)
        for warning in caught:
            terminal.print(f"{file}: {warning.message}")
        took = transcript.timings["total"]
        terminal.print(f"{file}: {transcript.duration:.1f} s, {transcriber.method}, {took:.2f} s")
        if path:
            write_transcript(transcript, path, format)
        else:
            sys.stdout.write(render(transcript, format))
            sys.stdout.flush()
