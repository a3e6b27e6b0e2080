"""``/v1/audio/transcriptions``, ``/v1/audio/translations`` and ``/stt/{model_name}``."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from beamless.inference.audio import SAMPLE_RATE, audio_blocks
from beamless.inference.audio_files import probe
from beamless.inference.errors import BeamlessError
from beamless.inference.server.errors import LOG, ApiError
from beamless.inference.server.formats import Events, event, response, verbose
from beamless.inference.server.requests import Task, TranscriptionRequest, transcription_request
from beamless.inference.server.state import State
from beamless.inference.server.uploads import Upload, receive
from beamless.inference.server.workers import Job
from beamless.inference.transcribe import BLOCK_SECONDS
from beamless.inference.transcript import Segment, Transcript

Told = tuple[Segment, str]
"""A segment, and the language of what was heard."""

router = APIRouter()
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "model"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "model": {"type": "string"},
                        "language": {"type": "string"},
                        "prompt": {"type": "string"},
                        "response_format": {"type": "string", "default": "json"},
                        "temperature": {"type": "number", "default": 0},
                        "timestamp_granularities[]": {
                            "type": "array",
                            "items": {"type": "string"},
                        },
                        "stream": {"type": "boolean", "default": False},
                        "method": {"type": "string"},
                    },
                }
            }
        },
    }
}


@router.post("/v1/audio/transcriptions", openapi_extra=FORM)
async def transcriptions(request: Request) -> Response:
    """Write down what a recording says."""
    return await answer(request, "transcribe")


@router.post("/v1/audio/translations", openapi_extra=FORM)
async def translations(request: Request) -> Response:
    """Write down in English what a recording says."""
    return await answer(request, "translate")


@router.post("/stt/{model_name:path}")
async def stt(request: Request, model_name: str) -> Response:
    """Write down what the body says: a recording, with fields in the query, or a form."""
    state: State = request.app.state.server
    state.offer.listener(model_name)
    return await answer(request, "transcribe", model_name)


async def answer(request: Request, task: Task, model: str | None = None) -> Response:
    """Take a recording in, decode it when its turn has come, and answer.

    Raises:
        ApiError: the request cannot be met.
        BeamlessError: the recording or the options are of no use.
    """
    state: State = request.app.state.server
    state.workers.refuse_if_full()
    with state.upload_place():
        upload = await receive(request, state.folder, state.options)
    try:
        wanted = transcription_request(upload.fields, state.offer, task, model)
        await asyncio.to_thread(check_recording, upload, state.options.max_seconds)
        told: asyncio.Queue[Told | None] = asyncio.Queue()
        job = submit(state, upload, wanted, told)
    except BaseException:
        upload.delete()
        raise
    if wanted.stream:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        events = stream(job, wanted, told)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)
    transcript = await unless_gone(request, job)
    return response(transcript, wanted.response_format, wanted.options, wanted.granularities)


def check_recording(upload: Upload, most: float) -> None:
    """Look at a recording before it waits in the queue.

    Raises:
        ApiError: it is too long by its own word.
        BeamlessError: it is no recording.
    """
    with speaking_of_uploads(upload.path):
        seconds = probe(upload.path).seconds
    if seconds is not None and seconds > most:
        raise too_long(most)


def too_long(most: float) -> ApiError:
    """Return the error of a recording that is too long."""
    return ApiError(413, f"a recording lasts {most / 60:g} minutes at most here")


class speaking_of_uploads:  # noqa: N801 - read as a statement
    """Let errors within name no file of the server's."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BeamlessError):
            told = str(error).replace(str(self._path), "the file")
            raise BeamlessError(told.replace(self._path.name, "the file")) from None


def submit(
    state: State,
    upload: Upload,
    wanted: TranscriptionRequest,
    told: asyncio.Queue[Told | None],
) -> Job[Transcript]:
    """Put a recording into the queue; it is deleted when that is over, however it ended.

    Raises:
        ApiError: 429, the queue is full.
    """
    loop = asyncio.get_running_loop()
    job: Job[Transcript] = Job(wanted.listener.name)

    def tell(item: Told | None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(told.put_nowait, item)

    def after() -> None:
        upload.delete()
        tell(None)

    state.workers.submit(job, lambda: listen(state, upload, wanted, job, tell), after)
    return job


def listen(
    state: State,
    upload: Upload,
    wanted: TranscriptionRequest,
    job: Job[Transcript],
    tell: Callable[[Told], None],
) -> Transcript:
    """Decode a recording, in a worker's thread.

    Raises:
        ApiError: it is too long.
        BeamlessError: it is damaged beyond reading.
        Cancelled: nobody waits for it any more.
    """
    transcriber = wanted.listener.borrow(wanted.method)
    first = state.first_token(job)

    def on_segment(segment: Segment) -> None:
        first()
        tell((segment, transcriber.language))

    try:
        transcriber.options, transcriber.language = wanted.options, ""
        transcriber.decoder.on_step = job.stop_if_cancelled
        with (
            speaking_of_uploads(upload.path),
            closing(watch(upload.path, job, state.options.max_seconds)) as blocks,
        ):
            transcript = transcriber.transcribe(blocks, on_segment=on_segment)
        first()
        state.metrics.audio.labels(job.model).inc(transcript.duration)
        return transcript
    finally:
        wanted.listener.give_back(transcriber)


def watch(path: Path, job: Job[Transcript], most: float) -> Generator[np.ndarray]:
    """Yield a recording, float32 [n] at 16 kHz, as long as somebody waits and it is not too long.

    Raises:
        ApiError: it is.
        Cancelled: nobody waits.
        BeamlessError: it is damaged beyond reading.
    """
    read = 0
    for block in audio_blocks(path, BLOCK_SECONDS):
        job.stop_if_cancelled()
        read += len(block)
        if read > most * SAMPLE_RATE:
            raise too_long(most)
        yield block
    if not read and (stated := probe(path).seconds or 0.0) * SAMPLE_RATE >= 1:
        raise BeamlessError(f"{path} is damaged: nothing of its {stated:.1f} s can be read")


async def unless_gone(request: Request, job: Job[Transcript]) -> Transcript:
    """Wait for a job's end, or cancel it when the client goes away.

    Raises:
        ApiError: the job failed with it; 499 where nobody is there to be answered.
        BeamlessError: the job failed with it.
    """

    async def departure() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    gone, result = asyncio.ensure_future(departure()), asyncio.ensure_future(job.result())
    try:
        await asyncio.wait({gone, result}, return_when=asyncio.FIRST_COMPLETED)
        if not result.done():
            raise ApiError(499, "the client is gone")
        return result.result()
    finally:
        gone.cancel()
        result.cancel()


async def stream(
    job: Job[Transcript], wanted: TranscriptionRequest, told: asyncio.Queue[Told | None]
) -> AsyncIterator[bytes]:
    """Yield a recording's events; the job is cancelled where nobody reads them any more."""
    verbosely = wanted.response_format == "verbose_json"
    events = Events(verbosely)
    try:
        while (item := await told.get()) is not None:
            for each in events.of(*item):
                yield each
        try:
            transcript = await job.result()
        except ApiError as error:
            yield event(error.body)
        except BeamlessError as error:
            yield event(ApiError(400, str(error)).body)
        except Exception as error:
            LOG.error("a request failed", exc_info=error)
            yield event(ApiError(500, "the server failed; its log says why").body)
        else:
            more = verbose(transcript, wanted.options, wanted.granularities) if verbosely else {}
            yield events.done(transcript.text, more)
    finally:
        job.cancel()
