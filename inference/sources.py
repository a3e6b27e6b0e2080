"""Where live sound comes from: a microphone, what a loudspeaker plays, or a file in their place.

Each gives all sound that has come since it was last asked as one chunk, so that whoever listens
more slowly than it comes does not fall behind further and further.
"""

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beamless.inference.audio import SAMPLE_RATE, audio_blocks
from beamless.inference.audio_files import probe
from beamless.inference.errors import BeamlessError

BLOCK_SECONDS = 0.1
LOOPBACKS = ("monitor", "loopback", "stereo mix", "what u hear", "blackhole", "cable output")
"""What systems call an input that hears what is played."""


@dataclass(frozen=True)
class Source:
    """Sound as it comes: float32 chunks [n] or [n, channels], ``rate`` samples a second."""

    rate: int
    chunks: Iterator[np.ndarray]


def microphone(name: str, stop: threading.Event) -> Source:
    """Open a microphone by its number or a part of its name, or the default one; or play a file.

    Args:
        name: empty for the default one.
        stop: ends the sound when set.

    Raises:
        BeamlessError: there is no such device, or sounddevice is not installed.
    """
    return _file(Path(name), stop) if Path(name).is_file() else _device(name, stop)


def loudspeaker(name: str, stop: threading.Event) -> Source:
    """Open what hears a loudspeaker: by number or name, or the first that is called like one.

    Args:
        name: empty to look for one.
        stop: ends the sound when set.

    Raises:
        BeamlessError: there is none, or sounddevice is not installed.
    """
    if name:
        return microphone(name, stop)
    inputs = _inputs(_sounddevice())
    for number, about in inputs.items():
        if any(each in about["name"].lower() for each in LOOPBACKS):
            return _device(str(number), stop)
    raise BeamlessError(
        "no input hears the loudspeaker; switch Stereo Mix on (Windows), or take a monitor or a "
        f"virtual cable, and name it with --loudspeaker: {_listed(inputs)}"
    )


def _file(path: Path, stop: threading.Event) -> Source:
    probe(path)

    def chunks() -> Iterator[np.ndarray]:
        began, due, held = time.monotonic(), 0.0, list[np.ndarray]()
        for block in audio_blocks(path, BLOCK_SECONDS):
            if stop.is_set():
                break
            held.append(block)
            due += len(block) / SAMPLE_RATE
            wait = began + due - time.monotonic()
            if wait > 0:
                time.sleep(wait)
                yield np.concatenate(held)
                held = []
        if held:
            yield np.concatenate(held)

    return Source(SAMPLE_RATE, chunks())


def _device(name: str, stop: threading.Event) -> Source:
    sounddevice = _sounddevice()
    inputs = _inputs(sounddevice)
    try:
        wanted: int | str | None = int(name) if name.isdecimal() else name or None
        about = sounddevice.query_devices(wanted, "input")
    except (ValueError, sounddevice.PortAudioError):
        raise BeamlessError(
            f"there is no microphone {name!r}; inputs are {_listed(inputs)}"
        ) from None
    rate = round(about["default_samplerate"])
    coming: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()

    def take(samples: np.ndarray, *_: object) -> None:
        coming.put(samples.copy())

    def chunks() -> Iterator[np.ndarray]:
        try:
            with sounddevice.InputStream(
                samplerate=rate,
                blocksize=round(rate * BLOCK_SECONDS),
                device=about["index"],
                channels=min(2, about["max_input_channels"]),
                dtype="float32",
                callback=take,
            ):
                while not stop.is_set():
                    yield from _all_of(coming)
        except sounddevice.PortAudioError as error:
            raise BeamlessError(f"{about['name']} cannot be heard: {error}") from None

    return Source(rate, chunks())


def _all_of(coming: "queue.SimpleQueue[np.ndarray]") -> Iterator[np.ndarray]:
    """Yield all that has come as one chunk; nothing if that takes too long."""
    try:
        held = [coming.get(timeout=BLOCK_SECONDS)]
    except queue.Empty:
        return
    while not coming.empty():
        held.append(coming.get_nowait())
    yield np.concatenate(held)


def _inputs(sounddevice: Any) -> dict[int, dict[str, Any]]:  # noqa: ANN401 - a module
    found = enumerate(sounddevice.query_devices())
    return {number: about for number, about in found if about["max_input_channels"] > 0}


def _listed(inputs: dict[int, dict[str, Any]]) -> str:
    return ", ".join(f"{n} ({about['name']})" for n, about in inputs.items()) or "none"


def _sounddevice() -> Any:  # noqa: ANN401 - a module
    try:
        import sounddevice
    except ImportError:
        raise BeamlessError(
            'listening needs sounddevice; run: pip install "beamless[listen]"'
        ) from None
    except OSError:
        raise BeamlessError(
            "sounddevice finds no PortAudio; install it, as in: apt install libportaudio2"
        ) from None
    return sounddevice
