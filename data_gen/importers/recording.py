"""What every layout is read into: one recording, or a stretch of one, and its text."""

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile

from beamless.inference.audio import (
    AudioWarning,
    audio_duration,
    check_samples,
    load_audio,
    load_channels,
)
from beamless.inference.errors import BeamlessError
from beamless.inference.interrupts import ctrl_c_waits

Samples = npt.NDArray[np.float32]
RATE = 16_000


class UnreadableError(BeamlessError):
    """One recording cannot be used; the others can. Its message is the reason that is counted."""


@dataclass(frozen=True)
class Recording:
    """One utterance of a foreign layout.

    ``audio`` is a file, the bytes of one, or what says it: samples ``[n]`` at 16 kHz. ``start``
    and ``end`` in seconds cut a stretch out of it, ``channel`` takes one channel where each has a
    voice of its own. ``fault`` is the reason why the layout itself says that the utterance is of
    no use.
    """

    id: str
    audio: Path | bytes | Callable[[], Samples]
    text: str
    speaker: str = ""
    start: float = 0.0
    end: float | None = None
    channel: int | None = None
    source: str = ""
    license: str = ""
    voice: str = ""
    augment: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def samples_of(recording: Recording) -> Samples:
    """Return a recording's samples, float32 ``[n]`` at 16 kHz.

    Raises:
        UnreadableError: the file is missing, not audio, damaged, or ends before the stretch does.
        BeamlessError: the decoder that the file needs is not installed.
    """
    if recording.fault:
        raise UnreadableError(recording.fault)
    if callable(recording.audio):
        samples = recording.audio()
    elif isinstance(recording.audio, bytes):
        samples = _decoded(recording.audio)
    else:
        samples = _loaded(recording.audio, recording.channel)
    if recording.start == 0 and recording.end is None:
        return samples
    first = round(recording.start * RATE)
    last = len(samples) if recording.end is None else round(recording.end * RATE)
    if last > len(samples) + RATE // 10:
        raise UnreadableError("audio that ends before its text does")
    return samples[first:last].copy()


def seconds_of(recording: Recording) -> float:
    """Return a recording's length by its times or its header, without decoding it.

    Raises:
        UnreadableError: the file is missing or not audio, or the layout says it is of no use.
        BeamlessError: the decoder that the file needs is not installed.
    """
    if recording.fault:
        raise UnreadableError(recording.fault)
    if recording.end is not None:
        return recording.end - recording.start
    if callable(recording.audio):
        return len(recording.audio()) / RATE - recording.start
    try:
        if isinstance(recording.audio, bytes):
            with ctrl_c_waits():
                seconds = float(soundfile.info(io.BytesIO(recording.audio)).duration)
            return seconds - recording.start
        return audio_duration(recording.audio) - recording.start
    except (soundfile.LibsndfileError, BeamlessError) as error:
        if "pip install" in str(error):
            raise
        raise UnreadableError("audio that cannot be read") from error


@lru_cache(maxsize=1)
def _loaded(path: Path, channel: int | None) -> Samples:
    """Read a file; the last one is kept, since a long recording is cut many times."""
    if not path.is_file():
        raise UnreadableError("audio that is missing")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", AudioWarning)
        try:
            samples = load_audio(path) if channel is None else load_channels(path)[channel]
        except IndexError:
            raise UnreadableError("a channel that the audio does not have") from None
        except BeamlessError as error:
            if "pip install" in str(error):
                raise
            raise UnreadableError("audio that cannot be read") from error
    if any(word in str(warning.message) for warning in told for word in ("cut short", "damaged")):
        raise UnreadableError("audio that is damaged or cut short")
    return samples


def _decoded(content: bytes) -> Samples:
    try:
        with ctrl_c_waits():
            samples, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
        return check_samples(samples, rate)
    except (soundfile.LibsndfileError, BeamlessError):
        raise UnreadableError("audio that cannot be read") from None
