"""What a server offers: Whispers that listen, and voices that speak, by name."""

import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from beamless.inference.bundle import Bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.methods import DEFAULT_METHOD
from beamless.inference.server.errors import ApiError
from beamless.inference.transcribe import Transcriber

LISTENING_ALIASES = ("whisper-1",)
SPEAKING_ALIASES = ("tts-1",)
STARTED = int(time.time())


class Voice(Protocol):
    """Whatever says text; the server's maker hands it in, as ``data_gen.voices`` has them."""

    @property
    def rate(self) -> int:
        """Samples a second."""

    @property
    def speakers(self) -> tuple[str, ...]:
        """Who can speak; the first by default."""

    def say(self, text: str, speaker: str | None = None, speed: float = 1.0) -> np.ndarray:
        """Return mono samples [n] within ±1."""


@dataclass
class Listener:
    """A Whisper on offer.

    Transcribers of one method share its compiled graphs and have infer requests of their own. They
    are made when first needed, and each is lent to one request at a time.

    Attributes:
        methods: what clients may choose from; the first is used where they choose none.
    """

    name: str
    bundle: Bundle
    methods: tuple[str, ...]
    _idle: dict[str, list[Transcriber]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def method(self, wanted: str) -> str:
        """Return the method asked for.

        Raises:
            ApiError: it is not on offer.
        """
        if wanted and wanted not in self.methods:
            some = ", ".join(self.methods)
            raise ApiError(400, f"there is no method {wanted!r} here; take {some}", param="method")
        return wanted or self.methods[0]

    def borrow(self, method: str) -> Transcriber:
        """Return a transcriber that nobody uses."""
        with self._lock:
            idle = self._idle.setdefault(method, [])
            return idle.pop() if idle else Transcriber(self.bundle, method=method)

    def give_back(self, transcriber: Transcriber) -> None:
        """Let others use it."""
        transcriber.decoder.on_step = None
        with self._lock:
            self._idle[transcriber.method].append(transcriber)


@dataclass
class Speaker:
    """A voice on offer; it says one text at a time."""

    name: str
    voice: Voice
    lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str, speaker: str | None, speed: float) -> np.ndarray:
        """Return mono samples [n] within ±1."""
        with self.lock:
            return self.voice.say(text, speaker, speed)


@dataclass(frozen=True)
class Offer:
    """All models of a server; the first of a kind also goes by OpenAI's name."""

    listeners: Mapping[str, Listener]
    speakers: Mapping[str, Speaker]

    def listener(self, name: str) -> Listener:
        """Find a Whisper.

        Raises:
            ApiError: there is none of that name.
        """
        if name in LISTENING_ALIASES and name not in self.listeners:
            name = next(iter(self.listeners), name)
        if name not in self.listeners:
            raise unknown(name, self.listeners)
        return self.listeners[name]

    def speaker(self, name: str) -> Speaker:
        """Find a voice.

        Raises:
            ApiError: there is none of that name.
        """
        if name in SPEAKING_ALIASES and name not in self.speakers:
            name = next(iter(self.speakers), name)
        if name not in self.speakers:
            raise unknown(name, self.speakers)
        return self.speakers[name]

    def listing(self) -> list[dict[str, Any]]:
        """Return what ``/v1/models`` lists."""
        about: dict[str, dict[str, Any]] = {}
        for name, listener in self.listeners.items():
            languages = list(listener.bundle.tokenizer.languages) or ["en"]
            about[name] = {
                "task": "speech-to-text",
                "methods": list(listener.methods),
                "languages": languages,
            }
        for name, speaker in self.speakers.items():
            about[name] = {"task": "text-to-speech", "voices": list(speaker.voice.speakers)}
        return [
            {"id": name, "object": "model", "created": STARTED, "owned_by": "beamless", **more}
            for name, more in about.items()
        ]


def unknown(name: str, known: Mapping[str, Any]) -> ApiError:
    """Return the error of a name that no model has."""
    some = ", ".join(known) or "none of that kind"
    message = f"there is no model {name[:100]!r} here; there is {some}"
    return ApiError(404, message, code="model_not_found", param="model")


def listeners_of(bundles: Mapping[str, Bundle], methods: Sequence[str] = ()) -> dict[str, Listener]:
    """Make Whispers out of bundles; by default they offer their own method, greedy and beam5.

    Raises:
        BeamlessError: a name is none, or a bundle does not have a method.
    """
    found = {}
    for name, bundle in bundles.items():
        check_name(name)
        own = tuple(dict.fromkeys(methods or (DEFAULT_METHOD, "greedy", "beam5")))
        found[name] = Listener(name, bundle, own)
        ready = found[name].borrow(own[0])
        ready.warm_up()
        found[name].give_back(ready)
    return found


def name_and_place(model: str) -> tuple[str, str]:
    """Return a model's name on the server and what it is opened by: ``NAME=PLACE`` or ``PLACE``."""
    name, equals, place = model.partition("=")
    if equals:
        return name, place
    folder = Path(model)
    return (folder.resolve().name if folder.is_dir() else model), model


def check_names(names: Sequence[str]) -> None:
    """Refuse names that cannot stand in an address, and one that comes twice.

    Raises:
        BeamlessError: the first of them.
    """
    for name in names:
        check_name(name)
        if names.count(name) > 1:
            raise BeamlessError(f"two are called {name!r}; give one of them as OTHER-NAME=PLACE")


def check_name(name: str) -> None:
    """Refuse what cannot stand in an address.

    Raises:
        BeamlessError: the name has other characters than a hub id.
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w.:-]*(/[A-Za-z0-9][\w.:-]*)?", name, re.ASCII):
        raise BeamlessError(
            f"{name!r} cannot be a model's name in an address; give NAME={name}, NAME in letters, "
            "digits, dots, dashes"
        )
