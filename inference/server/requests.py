"""The fields of a transcription request, checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from beamless.inference.options import DecodingOptions
from beamless.inference.server.errors import ApiError
from beamless.inference.server.models import Listener, Offer
from beamless.inference.transcribe import check_options

FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
TIMED = ("srt", "verbose_json", "vtt")
GRANULARITIES = ("segment", "word")
TRUTHS = {"true": True, "1": True, "false": False, "0": False, "": False}
Task = Literal["transcribe", "translate"]


@dataclass(frozen=True)
class TranscriptionRequest:
    """What a client asks for."""

    listener: Listener
    method: str
    options: DecodingOptions
    response_format: str
    granularities: tuple[str, ...]
    stream: bool


def transcription_request(
    fields: Mapping[str, Sequence[str]], offer: Offer, task: Task, model: str | None = None
) -> TranscriptionRequest:
    """Read the fields of a form or of a query, by OpenAI's names.

    Unknown ones are passed over, as other servers have more. ``method`` is one of ours.

    Raises:
        ApiError: a value is none that can be met.
        BeamlessError: the model cannot do what is asked.
    """

    def last(name: str, default: str = "") -> str:
        return fields[name][-1].strip() if fields.get(name) else default

    name = model or last("model")
    if not name:
        raise ApiError(400, "the field 'model' is missing; see /v1/models", param="model")
    listener = offer.listener(name)
    response_format = last("response_format") or "json"
    if response_format not in FORMATS:
        some = ", ".join(FORMATS)
        message = f"there is no response_format {response_format!r}; take {some}"
        raise ApiError(400, message, param="response_format")
    stream = _truth("stream", last("stream"))
    if stream and response_format in ("srt", "vtt"):
        raise ApiError(
            400, f"{response_format} cannot be streamed; take json", param="response_format"
        )
    granularities = _granularities(fields, response_format)
    temperature = _temperature(last("temperature"))
    options = DecodingOptions(
        language=last("language") or None,
        task=task,
        timestamps=True if response_format in TIMED else None,
        word_times="word" in granularities,
        initial_prompt=last("prompt"),
        temperatures=(temperature,),
    )
    method = listener.method(last("method"))
    check_options(options, listener.bundle, method)
    return TranscriptionRequest(listener, method, options, response_format, granularities, stream)


def live_options(listener: Listener, language: str, prompt: str) -> DecodingOptions:
    """Return how a live stream is decoded.

    Raises:
        BeamlessError: the model does not know the language.
    """
    options = replace(DecodingOptions(), language=language or None, initial_prompt=prompt)
    check_options(options, listener.bundle, listener.methods[0])
    return options


def _granularities(fields: Mapping[str, Sequence[str]], response_format: str) -> tuple[str, ...]:
    wanted = [
        *fields.get("timestamp_granularities[]", ()),
        *fields.get("timestamp_granularities", ()),
    ]
    for each in wanted:
        if each not in GRANULARITIES:
            raise ApiError(
                400,
                f"there is no timestamp granularity {each!r}; take segment or word",
                param="timestamp_granularities[]",
            )
    if wanted and response_format != "verbose_json":
        raise ApiError(
            400,
            "timestamp_granularities[] needs response_format verbose_json",
            param="timestamp_granularities[]",
        )
    return tuple(dict.fromkeys(wanted)) or ("segment",)


def _truth(name: str, value: str) -> bool:
    if value.lower() not in TRUTHS:
        raise ApiError(400, f"{name} is true or false, not {value!r}", param=name)
    return TRUTHS[value.lower()]


def _temperature(value: str) -> float:
    try:
        number = float(value or 0)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise ApiError(
            400, f"temperature is a number from 0 to 1, not {value!r}", param="temperature"
        )
    return number
