"""Samples out of any audio file, block by block, as the file holds them.

libsndfile reads wav, flac, ogg and mp3; PyAV, where installed, reads m4a, mp4, webm, mkv and
their kin. What a file is decides its content, never its name.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import soundfile

from beamless.inference.errors import BeamlessError
from beamless.inference.interrupts import ctrl_c_waits
from beamless.inference.native_noise import without_native_noise

BLOCK_SECONDS = 0.1
CONTAINER_MARKS: tuple[tuple[int, bytes], ...] = (
    (4, b"ftyp"),  # mp4, m4a, mov, 3gp
    (0, b"\x1a\x45\xdf\xa3"),  # webm, mkv
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"),  # wma, asf
    (0, b"\xff\xf1"),  # aac
    (0, b"\xff\xf9"),  # aac
    (0, b"FLV\x01"),
    (0, b"#!AMR"),
    (8, b"AVI "),
    (8, b"WAVE"),  # wav whose codec libsndfile lacks
    (0, b"OggS"),  # ogg whose codec libsndfile lacks
)


class _Unnamed(io.BufferedReader):
    """An open file without a name: decoders would believe its suffix more than its bytes."""

    name = ""


class AudioWarning(UserWarning):
    """Something is wrong with a recording, but it can be used."""


@dataclass(frozen=True)
class AudioFile:
    """What a file says about itself before it is decoded."""

    path: Path
    rate: int
    channels: int
    seconds: float | None
    """Length by the header; None where the container does not say."""
    needs_av: bool


def probe(path: Path) -> AudioFile:
    """Look at a file without decoding it.

    Raises:
        BeamlessError: there is no such file, it is not audio, or its decoder is not installed.
    """
    if not path.exists():
        raise BeamlessError(f"{path}: there is no such file")
    if not path.is_file():
        raise BeamlessError(f"{path} is not a file; give a recording")
    try:
        with _open(path) as file:
            head = file.read(16)
            file.seek(0)
            if not head:
                raise BeamlessError(f"{path} has 0 bytes: not an audio file")
            with (
                suppress(soundfile.LibsndfileError),
                _libsndfile(head),
                soundfile.SoundFile(file) as sound,
            ):
                seconds = sound.frames / sound.samplerate
                return AudioFile(path, sound.samplerate, sound.channels, seconds, needs_av=False)
    except OSError as error:
        raise BeamlessError(f"{path} cannot be read: {error.strerror or error}") from None
    if not any(head[at : at + len(mark)] == mark for at, mark in CONTAINER_MARKS):
        raise BeamlessError(
            f"{path} is not an audio file: neither wav, flac, ogg, mp3, m4a nor webm"
        )
    return _probe_container(path)


def raw_blocks(audio: AudioFile) -> Iterator[np.ndarray]:
    """Yield float32 [n, channels] blocks at the file's own rate, all of about 0.1 s.

    Damage does not stop the reading where a later part can be read: an AudioWarning names the
    place, and the gap is filled with zeros so that times stay true (mp3 and the containers of
    PyAV lose the damaged part instead). Another one tells of a file that ends too early.
    """
    blocks = _container_blocks(audio) if audio.needs_av else _sound_blocks(audio)
    read = 0
    for block in blocks:
        read += len(block)
        yield block
    seconds = read / audio.rate
    if audio.seconds is not None and seconds < audio.seconds - 2 * BLOCK_SECONDS:
        warn(audio, f"cut short or damaged: {seconds:.1f} s of {audio.seconds:.1f} s can be read")
    elif not audio.needs_av:
        _warn_of_missing_end(audio, seconds)


def warn(audio: AudioFile, text: str) -> None:
    """Say what is wrong with a file; the caller of the reading function is named as the source."""
    warnings.warn(f"{audio.path.name}: {text}", AudioWarning, stacklevel=2)


def _open(path: Path) -> _Unnamed:
    return _Unnamed(io.FileIO(path))


def _sound_blocks(audio: AudioFile) -> Iterator[np.ndarray]:
    """Read with libsndfile; at damage, open the file again behind it and go on."""
    position, step = 0, BLOCK_SECONDS
    broken_at: int | None = None
    size = max(1, round(BLOCK_SECONDS * audio.rate))
    total = round((audio.seconds or 0.0) * audio.rate)
    while True:
        try:
            for block in _sound_blocks_from(audio.path, position, size):
                if broken_at is not None:
                    _warn_of_gap(audio, broken_at, position)
                    yield np.zeros((position - broken_at, audio.channels), np.float32)
                    broken_at, step = None, BLOCK_SECONDS
                position += len(block)
                yield block
            return
        except soundfile.LibsndfileError:
            broken_at = position if broken_at is None else broken_at
            position += max(1, round(step * audio.rate))
            step *= 2
            if position >= total:
                return


def _sound_blocks_from(path: Path, position: int, size: int) -> Iterator[np.ndarray]:
    with _open(path) as file:
        head = file.read(4)
        file.seek(0)
        with _libsndfile(head):
            sound = soundfile.SoundFile(file)
        with sound:
            if position:
                with _libsndfile(head):
                    sound.seek(position)
            while True:
                with _libsndfile(head):
                    block = sound.read(size, dtype="float32", always_2d=True)
                if not len(block):
                    return
                yield block


@contextmanager
def _libsndfile(head: bytes) -> Iterator[None]:
    """Read a file with this head: Ctrl-C waits, and what mp3's decoder prints is dropped."""
    tagged = head[:3] == b"ID3"
    is_mp3 = tagged or (head[:1] == b"\xff" and len(head) > 1 and head[1] >= 0xE0)
    with ctrl_c_waits(), without_native_noise() if is_mp3 else nullcontext():
        yield


def _warn_of_gap(audio: AudioFile, start: int, end: int) -> None:
    at, length = start / audio.rate, (end - start) / audio.rate
    warn(audio, f"damaged at {at:.1f} s: {length:.1f} s could not be read and stand as silence")


def _warn_of_missing_end(audio: AudioFile, seconds: float) -> None:
    """Warn where wav or ogg data stop before their header's length or their end mark."""
    with _open(audio.path) as file:
        head = file.read(12)
        file.seek(0, 2)
        size = file.tell()
        if head[:4] == b"OggS":
            file.seek(max(0, size - 65_536))
            tail = file.read()
            page = tail.rfind(b"OggS")
            ended = page >= 0 and len(tail) > page + 5 and bool(tail[page + 5] & 4)
            if not ended:
                warn(audio, f"cut short: it stops at {seconds:.1f} s without an end mark")
        elif head[:4] == b"RIFF" and head[8:] == b"WAVE":
            missing = _wav_bytes_missing(file, size)
            if missing:
                warn(
                    audio, f"cut short at {seconds:.1f} s: {missing} bytes of its data are missing"
                )


def _wav_bytes_missing(file: BinaryIO, size: int) -> int:
    """Return by how many bytes a wav's data chunk ends before its header says it does.

    Programs that write to a pipe leave the length at 0 or near its maximum: that is no damage.
    """
    file.seek(12)
    while len(chunk := file.read(8)) == 8:
        length = int.from_bytes(chunk[4:], "little")
        if chunk[:4] == b"data":
            return max(0, file.tell() + length - size) if length < 0x7FFF_0000 else 0
        file.seek(length + length % 2, 1)
    return 0


def _import_av(path: Path) -> Any:  # noqa: ANN401 - a module
    try:
        import av
    except ImportError:
        raise BeamlessError(
            f"{path} needs PyAV to be decoded (m4a, mp4, webm, mkv): "
            'pip install "beamless[av]", or turn the file into wav, flac, ogg or mp3'
        ) from None
    return av


def _probe_container(path: Path) -> AudioFile:
    av = _import_av(path)
    try:
        with _open(path) as file, av.open(file, metadata_errors="ignore") as container:
            if not container.streams.audio:
                raise BeamlessError(f"{path} holds no sound")
            stream = container.streams.audio[0]
            seconds = None
            if stream.duration is not None:
                seconds = float(stream.duration * stream.time_base)
            elif container.duration is not None:
                seconds = container.duration / av.time_base
            codec = stream.codec_context
            rate, channels = (codec.sample_rate, codec.channels) if codec else (0, 0)
    except (av.FFmpegError, ValueError) as error:
        raise BeamlessError(f"{path} is not an audio file that can be read: {error}") from None
    if not rate or not channels:
        raise BeamlessError(f"{path} holds sound of an unknown kind")
    return AudioFile(path, rate, channels, seconds, needs_av=True)


def _container_blocks(audio: AudioFile) -> Iterator[np.ndarray]:
    """Decode the first sound track with PyAV; a packet that cannot be decoded is passed over."""
    av = _import_av(audio.path)
    read, damaged = 0, False
    with _open(audio.path) as file, av.open(file, metadata_errors="ignore") as container:
        stream = container.streams.audio[0]
        resampler = av.AudioResampler(
            format="fltp", layout=stream.codec_context.layout, rate=audio.rate
        )
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets)
                frames = packet.decode()
            except StopIteration:
                return
            except av.FFmpegError:
                if not damaged:
                    warn(audio, f"damaged at {read / audio.rate:.1f} s")
                damaged = True
                continue
            for frame in frames:
                for part in resampler.resample(frame):
                    block = part.to_ndarray().T  # [n, channels]
                    read += len(block)
                    yield np.ascontiguousarray(block, dtype=np.float32)
