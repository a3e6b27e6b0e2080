"""Long recordings with a text beside each but no times: NAME.wav and NAME.txt."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from beamless.data_gen.align import Heard, cut_text, recall
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source
from beamless.inference.atomic import write_text_atomically
from beamless.inference.audio import audio_blocks
from beamless.inference.cache import cache_folder
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import console
from beamless.inference.windows import window_audio

AUDIO = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".m4a")
LONGEST = 20.0
"""Seconds of a window: short enough that one doubtful border does not cost much."""


def read(source: Source) -> Iterator[Recording]:
    """Read every recording that has a text, also in subfolders, whose name is then the speaker.

    Each is transcribed by ``--model`` once (what was heard is kept in the cache) and cut at its
    pauses. Stretches whose text is doubtful are counted as such; how much of each text was
    placed is told on standard error.
    """
    folder = source.folder()
    pairs = [(path, path.with_suffix(".txt")) for path in sorted(folder.rglob("*"))]
    pairs = [(a, t) for a, t in pairs if a.suffix.lower() in AUDIO and t.is_file()]
    if not pairs:
        raise BeamlessError(f"{folder} is not of layout long: no recording has a .txt beside it")
    for audio, transcript in pairs:
        try:
            text = " ".join(transcript.read_text(encoding="utf-8-sig").split())
        except UnicodeDecodeError as error:
            raise BeamlessError(f"{transcript} is not UTF-8 ({error.reason})") from None
        yield from _stretches(audio, text, source, folder)


def _stretches(audio: Path, text: str, source: Source, folder: Path) -> Iterator[Recording]:
    heard = heard_windows(audio, source.model, source.device, source.language)
    stretches = cut_text(text, heard, language=source.language)
    share, error = recall(stretches, text)
    console().print(f"{audio.name}: {share:.1%} of its text placed, heard with {error:.1%} WER")
    name = audio.relative_to(folder).with_suffix("").as_posix()
    for stretch in stretches:
        yield Recording(
            f"{name}-{round(stretch.start * 1000):08d}",
            audio,
            stretch.text,
            speaker=audio.parent.name if audio.parent != folder else "",
            start=stretch.start,
            end=stretch.end,
            fault=stretch.fault,
            extra={"heard": stretch.heard, "wer": stretch.wer},
        )


def heard_windows(audio: Path, model: str, device: str, language: str) -> list[Heard]:
    """Transcribe a recording window by window, or read from the cache what was heard before.

    Raises:
        BeamlessError: the recording or the model is not to be had.
    """
    transcriber = _transcriber(model, device, language)
    with audio.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    about = f"{digest} {transcriber.bundle.hash} {language} {LONGEST}"
    kept = cache_folder() / "heard" / f"{hashlib.sha256(about.encode()).hexdigest()[:24]}.json"
    if kept.is_file():
        return [Heard(**row) for row in json.loads(kept.read_text(encoding="utf-8"))]
    heard = [
        Heard(window.start, window.end, transcriber.transcribe(samples).text)
        for window, samples in window_audio(audio_blocks(audio, 30.0), LONGEST)
    ]
    write_text_atomically(kept, json.dumps([asdict(window) for window in heard]))
    return heard


@cache
def _transcriber(model: str, device: str, language: str) -> Any:  # noqa: ANN401
    from beamless.inference.transcribe import Transcriber
    from beamless.models.bundle import open_bundle

    return Transcriber(open_bundle(model, device), method="greedy", language=language)


LAYOUT = Layout("long", read, streamed=True)
