"""``beamless transcribe``, and ``beamless.load``: a model's name to a ready transcriber."""

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape

from beamless.inference.audio_files import probe
from beamless.inference.channels import transcribe_channels
from beamless.inference.devices import require_device
from beamless.inference.errors import BeamlessError
from beamless.inference.inspection import Inspector
from beamless.inference.methods import require_method
from beamless.inference.options import DecodingOptions
from beamless.inference.progress import console
from beamless.inference.subtitles import Layout
from beamless.inference.transcribe import Transcriber
from beamless.inference.transcript import Segment, Transcript
from beamless.inference.writers import output_paths, render, timestamp, write_transcript
from beamless.models.bundle import open_asked
from beamless.models.precision import Profile

Format = Literal["txt", "srt", "vtt", "json", "tsv"]
Channels = Literal["mixed", "separate"]
PLAIN = DecodingOptions()
SECONDS_BETWEEN_LINES = 15.0  # of progress, where there is no terminal to show it on


def load(
    model: str = "tiny.en",
    *,
    device: str = "CPU",
    method: str | None = None,
    language: str | None = None,
    options: DecodingOptions = PLAIN,
    precision: Profile | None = None,
) -> Transcriber:
    """Load a bundle's folder, or a model by any of its names, ready to transcribe.

    ``precision`` is for a model's name: fast by default, or exact to decode token for token as the
    reference does; a bundle says itself what it computes in.

    Raises:
        BeamlessError: the device or the method is none, which is said before anything is loaded; or
            the model is not to be had.
    """
    require_device(device)
    if method is not None:
        require_method(method)
    bundle = open_asked(model, device, precision)
    return Transcriber(bundle, method=method, language=language, options=options)


def transcribe(
    files: list[str],
    *,
    model: str = "tiny.en",
    method: str | None = None,
    device: str = "CPU",
    format: Format = "txt",
    out: str | None = None,
    channels: Channels = "mixed",
    line_length: int = 0,
    line_count: int = 0,
    inspect: Path | None = None,
    precision: Profile | None = None,
    options: DecodingOptions = PLAIN,
) -> None:
    """Write down what recordings say.

    Args:
        files: wav, flac, ogg or mp3, of any rate and length; m4a, mp4, webm and mkv with PyAV.
        model: a bundle's folder, or a model's name.
        method: greedy, corrected, lookahead, greedy-lookahead, or beam1 to beam10; by default
            lookahead, on top of the corrector where the bundle has one.
        device: an OpenVINO device, such as CPU, GPU or NPU.
        format: txt, srt, vtt, json or tsv.
        out: a folder for one file each; to standard output without it.
        channels: mixed to one, or separate, each channel a speaker of its own, side by side.
        line_length: most characters of a line in srt and vtt; 42 is common, 0 is no limit.
        line_count: most lines of a subtitle in srt and vtt; 2 is common, 0 is no limit.
        inspect: a new folder for a picture and a table of each window: sound, attention, and the
            tokens of greedy, corrected and beam side by side.
        precision: of a model that is given by its name: fast (weights as int8, the encoder in what
            the device likes best), by default, or exact.
        options: how to decode.
    """
    terminal = console()
    layout = Layout(line_length, line_count)
    if line_length and format not in ("srt", "vtt"):
        raise BeamlessError(f"a line length is for srt and vtt, not for {format}")
    recordings, folder = _places(files, out)
    for recording in recordings:
        probe(recording)
    if sys.stdout is None and not folder:
        raise BeamlessError("standard output is closed; name a folder with --out")
    paths = output_paths(recordings, folder, format) if folder else [None] * len(recordings)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    if options.timestamps is None and format != "txt":
        options = replace(options, timestamps=True)
    inspector = Inspector(inspect) if inspect else None
    began = time.perf_counter()
    transcriber = load(model, device=device, method=method, options=options, precision=precision)
    ready = _ready(transcriber, model, time.perf_counter() - began)
    terminal.print(ready, markup=False, soft_wrap=True)
    for file, path in zip(recordings, paths, strict=True):
        if inspector:
            transcriber.on_window = inspector.of(file, transcriber.bundle, transcriber.method)
        with warnings.catch_warnings(record=True) as caught, terminal.status(str(file)) as status:
            warnings.simplefilter("always")
            shown = _Shown(file, terminal, status.update)
            if channels == "separate":
                transcript = transcribe_channels(transcriber, file, shown)
            else:
                transcript = transcriber.transcribe(file, on_segment=shown)
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            terminal.print(f"{file}: {message}", markup=False)
        terminal.print(_summary(file, transcript, transcriber.method), markup=False, soft_wrap=True)
        if path:
            write_transcript(transcript, path, format, layout)
        else:
            sys.stdout.write(render(transcript, format, layout))
            sys.stdout.flush()


def _places(files: list[str], out: str | None) -> tuple[list[Path], Path | None]:
    """Return where the recordings are and where texts go; an empty name is not this folder.

    Raises:
        BeamlessError: a name is empty.
    """
    if "" in files:
        raise BeamlessError("the name of a recording is empty; name a file")
    if out == "":
        raise BeamlessError("the name given as --out is empty; name a folder, or . for this one")
    return [Path(file) for file in files], Path(out) if out else None


class _Shown:
    """Shows how far a recording is and its last words: on a terminal, else in a line at times."""

    def __init__(self, file: Path, terminal: Console, update: Callable[[str], None]) -> None:
        self._file, self._terminal, self._update = file, terminal, update
        self._last = time.monotonic()

    def __call__(self, segment: Segment) -> None:
        """Show a segment that has just been written."""
        line = f"{self._file} {timestamp(segment.end, '.')[:-4]} {segment.text[-60:]}"
        self._update(escape(line))
        now = time.monotonic()
        if not self._terminal.is_terminal and now - self._last > SECONDS_BETWEEN_LINES:
            self._terminal.print(line, markup=False, soft_wrap=True)
            self._last = now


def _ready(transcriber: Transcriber, model: str, seconds: float) -> str:
    kept = "from the cache" if transcriber.bundle.from_cache else "compiled"
    return f"{model} on {transcriber.bundle.device}: ready in {seconds:.1f} s, its graphs {kept}"


def _summary(file: Path, transcript: Transcript, method: str) -> str:
    took = f"{method}, {transcript.timings['total']:.2f} s"
    found = f"{file}: {transcript.duration:.1f} s, {took}"
    if transcript.left_out >= 1:
        found += f"; {transcript.left_out:.1f} s without speech left out"
    return found
