"""Transcripts as OpenAI's interface answers them: bodies, and events of a stream."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from beamless.inference.languages import NAMES, WITHOUT_SPACES
from beamless.inference.options import DecodingOptions
from beamless.inference.transcript import Segment, Transcript, Word
from beamless.inference.window_decoder import compression_ratio
from beamless.inference.writers import render

TEXT_TYPES = {"text": "text/plain", "srt": "application/x-subrip", "vtt": "text/vtt"}


def response(
    transcript: Transcript,
    response_format: str,
    options: DecodingOptions,
    granularities: Sequence[str],
) -> Response:
    """Return a transcript in one of the formats."""
    if response_format == "verbose_json":
        return JSONResponse(verbose(transcript, options, granularities))
    if response_format == "json":
        return JSONResponse({"text": transcript.text, "usage": _usage(transcript)})
    if response_format == "text":
        content = transcript.text + "\n"
    else:
        content = render(transcript, response_format)
    return PlainTextResponse(content, media_type=TEXT_TYPES[response_format])


def verbose(
    transcript: Transcript, options: DecodingOptions, granularities: Sequence[str]
) -> dict[str, Any]:
    """Return a transcript with all that is known of it."""
    name = NAMES.get(transcript.language, transcript.language).split(" ")[0]
    found: dict[str, Any] = {
        "task": options.task,
        "language": name,
        "duration": round(transcript.duration, 3),
        "text": transcript.text,
        "usage": _usage(transcript),
    }
    if "segment" in granularities:
        found["segments"] = [
            _segment(number, segment, options) for number, segment in enumerate(transcript.segments)
        ]
    if "word" in granularities:
        found["words"] = [_word(word) for each in transcript.segments for word in each.words]
    return found


def _usage(transcript: Transcript) -> dict[str, Any]:
    return {"type": "duration", "seconds": round(transcript.duration, 3)}


def _segment(number: int, segment: Segment, options: DecodingOptions) -> dict[str, Any]:
    return {
        "id": number,
        "seek": round(segment.start * 100),
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
        "tokens": list(segment.tokens),
        "temperature": options.temperatures[0],
        "avg_logprob": round(segment.avg_logprob, 6),
        "compression_ratio": round(compression_ratio(segment.text), 6),
        "no_speech_prob": round(segment.no_speech_prob, 6),
    }


def _word(word: Word) -> dict[str, Any]:
    return {
        "word": word.text.strip(),
        "start": round(word.start, 3),
        "end": round(word.end, 3),
        "probability": round(word.probability, 4),
    }


class Events:
    """The events of one recording's stream; all deltas joined are the text of the end."""

    def __init__(self, verbosely: bool) -> None:
        self._verbosely = verbosely
        self._count = 0
        self._told = False

    def of(self, segment: Segment, language: str) -> list[bytes]:
        """Return the events that tell a segment."""
        events = []
        if text := segment.text.strip():
            space = " " if self._told and language not in WITHOUT_SPACES else ""
            self._told = True
            events.append(event({"type": "transcript.text.delta", "delta": space + text}))
        if self._verbosely:
            words = {"words": [_word(word) for word in segment.words]} if segment.words else {}
            about = {
                "type": "transcript.text.segment",
                "id": f"seg_{self._count:03d}",
                "start": round(segment.start, 3),
                "end": round(segment.end, 3),
                "text": segment.text,
                "speaker": segment.speaker,
            }
            events.append(event({**about, **words}))
        self._count += 1
        return events

    def done(self, text: str, more: Mapping[str, Any]) -> bytes:
        """Return the one event that ends the stream."""
        return event({**more, "type": "transcript.text.done", "text": text})


def event(content: Mapping[str, Any]) -> bytes:
    """Return a server-sent event."""
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()
