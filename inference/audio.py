"""Recordings as Whisper hears them: float32, one channel, 16 kHz."""

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import soxr

from beamless.inference.audio_files import AudioFile, AudioWarning, probe, raw_blocks, warn
from beamless.inference.errors import BeamlessError

__all__ = [
    "SAMPLE_RATE",
    "AudioWarning",
    "audio_blocks",
    "audio_duration",
    "check_samples",
    "load_audio",
    "load_channels",
]

SAMPLE_RATE = 16000
WINDOW_SECONDS = 30.0  # what Whisper's encoder reads at once
ABSURD = 1e12  # beyond this a float32 power spectrum overflows
CANCELLED = 0.01  # power left of the channels' own when they are averaged: -20 dB
AUDIBLE = 1e-7  # power of -70 dB under full scale


def load_audio(path: Path) -> np.ndarray:
    """Read a recording of any rate and number of channels as float32 [n] at 16 kHz.

    A file with a valid header and no samples gives an empty array. Damage, an early end and
    channels that cancel each other are told by an ``AudioWarning`` that names the place.

    Raises:
        BeamlessError: no such file, not audio, no decoder for it, or a sample that is not finite.
    """
    return _joined(audio_blocks(path, 30.0))


def audio_blocks(path: Path, seconds: float, channel: int | None = None) -> Iterator[np.ndarray]:
    """Yield a recording as float32 blocks of ``seconds`` at 16 kHz; the last may be shorter.

    The file is decoded as a stream: memory does not grow with its length. Joined, the blocks are
    what ``load_audio`` returns, or one of ``load_channels`` where a channel is asked for.

    Raises:
        BeamlessError: as ``load_audio``.
    """
    audio = probe(Path(path))
    blocks = _checked(raw_blocks(audio), audio.rate, str(path))
    if channel is None:
        mono = _mixed(blocks, audio)
    else:
        mono = (block[:, channel : channel + 1] for block in blocks)
    yield from _regrouped(_resampled(mono, audio.rate, 1), round(seconds * SAMPLE_RATE))


def load_channels(path: Path) -> list[np.ndarray]:
    """Read each channel of a recording as an array of its own, float32 [n] at 16 kHz.

    Raises:
        BeamlessError: as ``load_audio``.
    """
    audio = probe(Path(path))
    blocks = _checked(raw_blocks(audio), audio.rate, str(path))
    joined = _joined(_resampled(blocks, audio.rate, audio.channels))
    joined = joined.reshape(-1, audio.channels)
    return [np.ascontiguousarray(joined[:, channel]) for channel in range(audio.channels)]


def audio_duration(path: Path) -> float:
    """Return the length of a recording in seconds, by its header where that has it.

    Raises:
        BeamlessError: no such file, not audio, or no decoder for it.
    """
    audio = probe(Path(path))
    if audio.seconds is not None:
        return audio.seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AudioWarning)
        return sum(map(len, raw_blocks(audio))) / audio.rate


def check_samples(array: np.ndarray, rate: int = SAMPLE_RATE) -> np.ndarray:
    """Turn samples that a caller holds into float32 [n] at 16 kHz.

    ``array`` is [n], [n, channels] or [channels, n], float or int16, int32, uint8 as in a wav
    file; integers are scaled to -1..1.

    Raises:
        BeamlessError: another shape or type, a rate that is not positive, or a sample that is
            not finite.
    """
    if rate <= 0:
        raise BeamlessError(f"a sample rate of {rate} Hz is not possible")
    samples = _as_float(np.asarray(array))
    if samples.ndim == 1:
        samples = samples[:, None]
    channels, length = sorted(samples.shape) if samples.ndim == 2 else (0, 0)
    if samples.ndim != 2 or channels > 8 or (not channels and length > 8):
        raise BeamlessError(f"samples have shape {np.shape(array)}; give [n] or [n, channels]")
    if samples.shape[1] > 8:
        samples = samples.T
    audio = AudioFile(Path("samples"), rate, samples.shape[1], None, needs_av=False)
    blocks = _regrouped(iter([samples]), rate)
    mono = _mixed(_checked(blocks, rate, "samples"), audio)
    return _joined(_resampled(mono, rate, 1))


def _as_float(array: np.ndarray) -> np.ndarray:
    """Return float32 samples; integers of a wav file's types are scaled to -1..1."""
    if np.issubdtype(array.dtype, np.floating):
        with np.errstate(over="ignore"):
            return array.astype(np.float32, copy=False)
    if array.dtype == np.uint8:
        return (array.astype(np.float32) - 128.0) / 128.0
    if array.dtype in (np.int16, np.int32):
        return array.astype(np.float32) / -float(np.iinfo(array.dtype).min)
    raise BeamlessError(f"samples are {array.dtype}; give float32, int16, int32 or uint8")


def _checked(blocks: Iterable[np.ndarray], rate: int, name: str) -> Iterator[np.ndarray]:
    """Pass [n, channels] blocks on as long as every sample is finite."""
    position = 0
    for block in blocks:
        good = np.abs(block) <= ABSURD  # false for NaN
        if not good.all():
            row = int(np.argmin(good.all(axis=1)))
            value = block[row][~good[row]][0]
            at = position + row
            raise BeamlessError(
                f"{name}: sample {at}, at {at / rate:.3f} s, is {value:g}; "
                "repair or cut the recording there"
            )
        position += len(block)
        yield block


def _mixed(blocks: Iterable[np.ndarray], audio: AudioFile) -> Iterator[np.ndarray]:
    """Average [n, channels] blocks to [n, 1], second by second.

    Where the average has lost 20 dB of the channels' power they cancel each other: one of them
    is taken instead, and a warning names the first place.
    """
    if audio.channels == 1:
        yield from blocks
        return
    position, warned = 0, False
    for block in _regrouped(blocks, audio.rate):
        mixed = block.mean(axis=1, keepdims=True)
        power = np.mean(np.square(block), axis=0)
        if power.mean() > AUDIBLE and np.mean(np.square(mixed)) < CANCELLED * power.mean():
            channel = int(np.argmax(power >= power.max() / 2))
            mixed = block[:, channel : channel + 1]
            if not warned:
                at = position / audio.rate
                warn(audio, f"its channels cancel each other from {at:.0f} s; one is used there")
            warned = True
        position += len(block)
        yield mixed


def _resampled(blocks: Iterable[np.ndarray], rate: int, channels: int) -> Iterator[np.ndarray]:
    """Turn [n, channels] blocks into blocks at 16 kHz, [n] where there is one channel."""
    if rate == SAMPLE_RATE:
        yield from (block[:, 0] if channels == 1 else block for block in blocks)
        return
    stream = soxr.ResampleStream(rate, SAMPLE_RATE, channels, dtype="float32")
    for block in blocks:
        shaped = np.ascontiguousarray(block[:, 0] if channels == 1 else block)
        yield stream.resample_chunk(shaped)
    nothing = np.zeros(0 if channels == 1 else (0, channels), np.float32)
    yield stream.resample_chunk(nothing, last=True)


def _regrouped(blocks: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """Cut blocks of any length, joined along their first axis, into blocks of ``size``."""
    held: list[np.ndarray] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += len(block)
        if count >= size:
            joined = np.concatenate(held)
            whole = count - count % size
            yield from (joined[start : start + size] for start in range(0, whole, size))
            held, count = [joined[whole:]], count - whole
    if count:
        yield np.concatenate(held)


def _joined(blocks: Iterable[np.ndarray]) -> np.ndarray:
    parts = list(blocks)
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)
