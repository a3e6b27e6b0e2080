"""``/v1/audio/speech`` and ``/tts/{model_name}``: text to sound."""

import base64
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from beamless.inference.server.encodings import ENCODINGS, encode
from beamless.inference.server.errors import ApiError
from beamless.inference.server.formats import event
from beamless.inference.server.models import Speaker
from beamless.inference.server.state import State
from beamless.inference.server.uploads import body
from beamless.inference.server.workers import Job

MOST_CHARACTERS = 4096
MOST_BYTES = 262_144
UNSAYABLE = re.compile("[\0\ud800-\udfff]")
STOCK = {
    *("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable"),
    *("marin", "nova", "onyx", "sage", "shimmer", "verse"),
}
"""OpenAI's voices, which clients name by default: here they stand for a model's first speaker."""

router = APIRouter()


@router.post("/v1/audio/speech")
async def speech(request: Request) -> Response:
    """Say a text."""
    return await answer(request, None, "mp3")


@router.post("/tts/{model_name:path}")
async def tts(request: Request, model_name: str) -> Response:
    """Say a text: the body, or ``input`` of a JSON object with OpenAI's names."""
    state: State = request.app.state.server
    state.offer.speaker(model_name)
    return await answer(request, model_name, "wav")


async def answer(request: Request, model: str | None, default: str) -> Response:
    """Say what a request asks for, in its turn.

    Raises:
        ApiError: it cannot be met.
        BeamlessError: the voice refuses it.
    """
    state: State = request.app.state.server
    state.workers.refuse_if_full()
    content = await read(request, state)
    name = model or _text(content, "model")
    if not name:
        raise ApiError(400, "the field 'model' is missing; see /v1/models", param="model")
    speaker = state.offer.speaker(name)
    text = _text(content, "input")
    if not text.strip():
        raise ApiError(400, "the field 'input' is empty: there is nothing to say", param="input")
    if len(text) > MOST_CHARACTERS:
        raise ApiError(400, f"input holds {MOST_CHARACTERS} characters at most", param="input")
    if UNSAYABLE.search(text):
        raise ApiError(400, "input holds NUL or half a character; leave it out", param="input")
    kind = _text(content, "response_format") or default
    if kind not in ENCODINGS:
        some = ", ".join(ENCODINGS)
        message = f"there is no response_format {kind!r}; take {some}"
        raise ApiError(400, message, param="response_format")
    streamed = _text(content, "stream_format") or "audio"
    if streamed not in ("audio", "sse"):
        raise ApiError(400, "stream_format is audio or sse", param="stream_format")
    who, speed = voice_of(content, speaker), speed_of(content)
    job: Job[bytes] = Job(speaker.name)
    state.workers.submit(
        job, lambda: encode(said(speaker, text, who, speed), speaker.voice.rate, kind), lambda: None
    )
    sound = await job.result()
    if streamed == "sse":
        return StreamingResponse(events(sound), media_type="text/event-stream")
    return Response(sound, media_type=ENCODINGS[kind])


def said(speaker: Speaker, text: str, who: str | None, speed: float) -> np.ndarray:
    """Return samples [n] within ±1.

    Raises:
        ApiError: the voice finds nothing to say.
    """
    samples = speaker.say(text, who, speed)
    if not len(samples):
        raise ApiError(400, "there is nothing to say in that input", param="input")
    return samples


async def read(request: Request, state: State) -> dict[str, Any]:
    """Read a body: a JSON object, or, under ``/tts``, plain text.

    Raises:
        ApiError: it is too long, or neither.
    """
    found = bytearray()
    async for chunk in body(request, state.options):
        found += chunk
        if len(found) > MOST_BYTES:
            raise ApiError(413, f"a text holds {MOST_BYTES} bytes at most")
    request.state.body_read = True
    try:
        if request.headers.get("content-type", "").startswith("text/plain"):
            return {**dict(request.query_params), "input": found.decode("utf-8")}
        content = json.loads(found)
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is no JSON in UTF-8") from None
    if not isinstance(content, dict):
        raise ApiError(400, "the body is no JSON object")
    return content


def voice_of(content: dict[str, Any], speaker: Speaker) -> str | None:
    """Return who is to speak; None for the first speaker.

    Raises:
        ApiError: nobody of that name can.
    """
    wanted = content.get("voice")
    wanted = wanted.get("id") if isinstance(wanted, dict) else wanted
    speakers = speaker.voice.speakers
    if not isinstance(wanted, str | None):
        raise ApiError(400, "voice is a name", param="voice")
    if wanted is None or wanted in ("", "default") or (wanted in STOCK - {*speakers}):
        return None
    if wanted not in speakers:
        some = ", ".join(speakers[:20])
        message = f"{speaker.name} has no voice {wanted[:40]!r}; it has {some}"
        raise ApiError(400, message, param="voice")
    return wanted


def speed_of(content: dict[str, Any]) -> float:
    """Return how fast to speak.

    Raises:
        ApiError: that is no number from 0.25 to 4.
    """
    given = content.get("speed")
    try:
        speed = 1.0 if given in (None, "") else float(given)
    except (TypeError, ValueError, OverflowError):
        speed = math.nan
    if isinstance(given, bool) or not 0.25 <= speed <= 4:
        raise ApiError(400, "speed is a number from 0.25 to 4", param="speed")
    return speed


def events(sound: bytes, size: int = 24_000) -> Iterator[bytes]:
    """Yield sound as events, the last of which ends it."""
    for at in range(0, len(sound), size):
        part = base64.b64encode(sound[at : at + size]).decode()
        yield event({"type": "speech.audio.delta", "audio": part})
    yield event({"type": "speech.audio.done"})


def _text(content: dict[str, Any], name: str) -> str:
    value = content.get(name)
    value = "" if value is None else value
    if not isinstance(value, str):
        raise ApiError(400, f"{name} is a string", param=name)
    return value
