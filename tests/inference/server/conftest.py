"""Servers on free ports of this machine, with real models and a voice of pure tones."""

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from beamless.inference.server.app import create_app
from beamless.inference.server.models import Offer, Speaker, listeners_of
from beamless.inference.server.options import ServerOptions
from beamless.inference.server.run import Server, listen_at, server_of

TRANSCRIPTIONS = "/v1/audio/transcriptions"
CLIENT = httpx.Client(timeout=120, trust_env=False)


class Tones:
    """Says a text as a tone of a tenth of a second a letter."""

    rate = 22050
    speakers = ("low", "high")

    def say(self, text, speaker=None, speed=1.0):
        letters = sum(map(str.isalnum, text))
        times = np.arange(round(letters * 0.1 / speed * self.rate)) / self.rate
        return (
            np.sin(2 * np.pi * (880 if speaker == "high" else 220) * times).astype(np.float32) / 2
        )


@dataclass
class Running:
    """A server that runs."""

    url: str
    state: object
    server: Server

    def post(self, path=TRANSCRIPTIONS, file=None, **fields) -> httpx.Response:
        """Post a form, with the model tiny.en if it names none."""
        fields.setdefault("model", "tiny.en")
        files = None if file is None else {"file": file}
        return CLIENT.post(self.url + path, data=fields, files=files)

    def text(self, file, **fields) -> str:
        """Return what a recording says."""
        answer = self.post(file=file, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()["text"]

    def left(self) -> list[Path]:
        """Return the recordings that lie around a second after."""
        for _ in range(100):
            if not (found := list(self.state.folder.iterdir())):
                break
            time.sleep(0.02)
        return found


@contextmanager
def serving(offer: Offer, **options) -> Iterator[Running]:
    options = replace(ServerOptions(), port=0, **options)
    app, ports = create_app(offer, options), queue.Queue()
    server = server_of(app, options, ports.put)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listen_at(options)]})
    thread.start()
    try:
        yield Running(f"http://127.0.0.1:{ports.get(timeout=30)}", app.state.server, server)
    finally:
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive(), "the server does not stop"
    assert not app.state.server.folder.exists(), "its folder is left"


@pytest.fixture(scope="session")
def offer(tiny_bundle) -> Offer:
    """tiny.en, and tones."""
    return Offer(listeners_of({"tiny.en": tiny_bundle}), {"tones": Speaker("tones", Tones())})


@pytest.fixture(scope="session")
def shared(offer) -> Iterator[Running]:
    """A server for all tests that need none of their own."""
    with serving(offer) as running:
        yield running


@pytest.fixture
def server(shared) -> Iterator[Running]:
    """The shared server; no test may leave a recording in it."""
    yield shared
    assert not shared.left()


@pytest.fixture(scope="session")
def clip_bytes(clip) -> bytes:
    """The clip of ``SENTENCE`` as the bytes of its file."""
    return clip.read_bytes()
