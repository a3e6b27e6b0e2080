"""Live streams over a WebSocket: 16-bit samples in, events of ``streaming.py`` out.

The client sends binary messages (little-endian 16-bit mono), or OpenAI's
``input_audio_buffer.append`` with base64; ``input_audio_buffer.commit`` says that this was all.
"""

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState

from beamless.inference.audio import SAMPLE_RATE
from beamless.inference.errors import BeamlessError
from beamless.inference.server.errors import LOG, ApiError
from beamless.inference.server.requests import live_options
from beamless.inference.server.state import State
from beamless.inference.server.workers import Cancelled
from beamless.inference.streaming import StreamEvent, stream

MOST_WAITING = 16  # messages; more stay with the client until there is room
RATES = (8000, 192_000)  # Hz
LONGEST_RATE = 9  # digits

router = APIRouter()


class Line:
    """The sound that has come and was not yet heard, and the events that were not yet sent.

    Attributes:
        sound: samples int16 [n]; None at their end.
        events: None at their end.
        broken: nobody listens any more.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.sound: asyncio.Queue[np.ndarray | None] = asyncio.Queue()
        self.events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()
        self.broken = False

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the sound, in the thread that decodes: all that has come since as one chunk.

        Raises:
            Cancelled: nobody listens any more.
        """
        last = False
        while not last:
            found, last = asyncio.run_coroutine_threadsafe(self._take(), self._loop).result()
            self.stop_if_broken()
            if found:
                yield np.concatenate(found)

    def stop_if_broken(self) -> None:
        """End the decoding where nobody listens any more.

        Raises:
            Cancelled: nobody does.
        """
        if self.broken:
            raise Cancelled

    async def _take(self) -> tuple[list[np.ndarray], bool]:
        """Wait for sound; return all that has come, and whether it is the last."""
        found = [await self.sound.get()]
        while not self.sound.empty():
            found.append(self.sound.get_nowait())
        return [each for each in found if each is not None], found[-1] is None

    def tell(self, event: StreamEvent | None) -> None:
        """Send an event, from the thread that decodes."""
        self._loop.call_soon_threadsafe(self.events.put_nowait, event)


@router.websocket("/v1/audio/transcriptions")
async def live(websocket: WebSocket) -> None:
    """Hear a live stream with the model of the query."""
    await answer(websocket, websocket.query_params.get("model", ""))


@router.websocket("/stt/{model_name:path}")
async def stt(websocket: WebSocket, model_name: str) -> None:
    """Hear a live stream."""
    await answer(websocket, model_name)


async def answer(websocket: WebSocket, model: str) -> None:
    """Hear one stream to its end, and say what was wrong with it, if anything was."""
    offered = websocket.scope.get("subprotocols") or [None]
    await websocket.accept(subprotocol=offered[0])
    state: State = websocket.app.state.server
    try:
        try:
            with state.live_place():
                await hear(websocket, state, model)
        except BeamlessError as error:
            raise ApiError(400, str(error)) from None
    except ApiError as error:
        code = 1013 if error.status in (429, 503) else 1008
        await end(websocket, code, {"type": "error", **error.body})
    except WebSocketDisconnect:
        pass
    except Exception as error:
        LOG.error("a live stream failed", exc_info=error)
        body = ApiError(500, "the server failed; its log says why").body
        await end(websocket, 1011, {"type": "error", **body})
    else:
        await end(websocket, 1000)


async def end(websocket: WebSocket, code: int, message: dict[str, Any] | None = None) -> None:
    """Say a last word and close, where somebody is still there."""
    with suppress(RuntimeError, WebSocketDisconnect):
        if websocket.client_state is WebSocketState.CONNECTED:
            if message:
                await websocket.send_json(message)
            await websocket.close(code)


async def hear(websocket: WebSocket, state: State, model: str) -> None:
    """Decode a stream in a thread of its own, while its sound comes in and its events go out.

    Raises:
        ApiError: the stream cannot be met.
        BeamlessError: the options or the sound are of no use.
        WebSocketDisconnect: the client broke off.
    """
    query = websocket.query_params
    listener = state.offer.listener(model)
    rate = rate_of(query.get("rate", ""))
    options = live_options(listener, query.get("language", ""), query.get("prompt", ""))
    method = listener.method(query.get("method", ""))
    line = Line()

    def decode() -> None:
        transcriber = listener.borrow(method)
        try:
            transcriber.options = options
            transcriber.decoder.on_step = line.stop_if_broken
            for event in stream(line.chunks(), transcriber, rate):
                line.tell(event)
        except Cancelled:
            pass
        finally:
            listener.give_back(transcriber)
            line.tell(None)

    decoding = asyncio.get_running_loop().run_in_executor(state.live_pool, decode)
    reading = asyncio.ensure_future(read(websocket, state, line, rate))
    sending = asyncio.ensure_future(send(websocket, state, line, listener.name))
    try:
        await asyncio.wait({reading, sending}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
        await sending
        await decoding
    finally:
        line.broken = True
        line.sound.put_nowait(None)
        reading.cancel()
        sending.cancel()
        await asyncio.wait({decoding})


async def read(websocket: WebSocket, state: State, line: Line, rate: int) -> None:
    """Pass sound on until the client says that this was all, or the server stops.

    Raises:
        ApiError: a message is of no use, the stream too long, or the client silent.
        WebSocketDisconnect: the client broke off.
    """
    samples = 0
    stopping = asyncio.ensure_future(state.stopping.wait())
    try:
        while True:
            coming = asyncio.ensure_future(websocket.receive())
            await asyncio.wait(
                {coming, stopping},
                timeout=state.options.max_idle,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not coming.done():
                coming.cancel()
                if not stopping.done():
                    raise ApiError(408, f"nothing was sent for {state.options.max_idle:g} s")
            sound = None if not coming.done() else sound_of(coming.result())
            line.sound.put_nowait(sound)
            if sound is None:
                return
            samples += len(sound)
            if samples > state.options.max_seconds * rate:
                raise ApiError(413, f"a stream lasts {state.options.max_minutes:g} minutes at most")
            while line.sound.qsize() >= MOST_WAITING:
                await asyncio.sleep(0.02)
    finally:
        stopping.cancel()


async def send(websocket: WebSocket, state: State, line: Line, model: str) -> None:
    """Pass events on to the client until their end."""
    told = -1.0
    while (event := await line.events.get()) is not None:
        if event.type == "transcript.text.delta" and event.start > told:
            told = event.end
            state.metrics.first_partial.labels(model).observe(event.heard - event.start)
        await websocket.send_json(event.message())


def sound_of(message: Mapping[str, Any]) -> np.ndarray | None:
    """Return a message's samples, int16 [n]; None where it says that this was all.

    Raises:
        ApiError: it is of no use.
        WebSocketDisconnect: the client broke off.
    """
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1006))
    content = message.get("bytes")
    if content is None:
        try:
            said = json.loads(message.get("text") or "")
            if said["type"] == "input_audio_buffer.commit":
                return None
            if said["type"] != "input_audio_buffer.append":
                raise ValueError
            content = base64.b64decode(said["audio"], validate=True)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ApiError(
                400, "a message is sound, or input_audio_buffer.append or .commit in JSON"
            ) from None
    if len(content) % 2:
        raise ApiError(400, "a message of 16-bit samples has an even number of bytes")
    return np.frombuffer(content, "<i2").astype(np.int16)


def rate_of(text: str) -> int:
    """Return samples a second; Whisper's own by default.

    Raises:
        ApiError: no such rate.
    """
    low, high = RATES
    if not text:
        return SAMPLE_RATE
    if not text.isdecimal() or len(text) > LONGEST_RATE or not low <= int(text) <= high:
        raise ApiError(400, f"rate is a number from {low} to {high}", param="rate")
    return int(text)
