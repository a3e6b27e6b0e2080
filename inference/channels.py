"""Recordings whose channels are speakers: each transcribed alone, then put side by side."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from beamless.inference.audio import audio_blocks
from beamless.inference.audio_files import probe
from beamless.inference.transcribe import BLOCK_SECONDS, Transcriber
from beamless.inference.transcript import Segment, Transcript, side_by_side


def transcribe_channels(
    transcriber: Transcriber,
    path: Path | str,
    on_segment: Callable[[Segment], None] | None = None,
) -> Transcript:
    """Transcribe each channel of a file of any length, and order the segments by time.

    The file is read once for each channel, so that memory stays flat. A file of one channel has
    no speakers.

    Args:
        transcriber: what transcribes.
        path: the recording.
        on_segment: called with each segment as soon as there is one, channel after channel.

    Raises:
        BeamlessError: the file is no audio.
    """
    path = Path(path)
    names = speakers(probe(path).channels)
    if len(names) == 1:
        return transcriber.transcribe(path, on_segment=on_segment)
    transcripts = []
    for channel, name in enumerate(names):
        blocks = audio_blocks(path, BLOCK_SECONDS, channel)
        named = partial(_named, name, on_segment) if on_segment else None
        transcripts.append(transcriber.transcribe(blocks, on_segment=named))
    return side_by_side(transcripts, names)


def speakers(channels: int) -> list[str]:
    """Return the names of a recording's channels."""
    if channels == 2:
        return ["left", "right"]
    return [f"channel {number}" for number in range(1, channels + 1)]


def _named(name: str, tell: Callable[[Segment], None], segment: Segment) -> None:
    tell(replace(segment, speaker=name))
