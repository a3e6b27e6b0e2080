"""What went wrong, as OpenAI's clients read it: ``{"error": {"message", "type", …}}``."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from beamless.inference.errors import BeamlessError

LINGERING = 2.0  # s for which an early answer reads on what the client still sends
LOG = logging.getLogger("beamless.server")


class ApiError(Exception):
    """An answer that is an error; ``status`` is HTTP's."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body: dict[str, Any] = {
            "error": {"message": message, "type": kind, "param": param, "code": code}
        }


class EarlyAnswer(JSONResponse):
    """An answer to a request whose body nobody read.

    What the client still sends is thrown away for a while, so that it gets to read the answer
    before the connection ends.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer whole, read on, and end."""
        headers = [*self.raw_headers, (b"connection", b"close")]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        try:
            async with asyncio.timeout(LINGERING):
                while (await receive()).get("more_body", False):
                    pass
        except TimeoutError:
            pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def answer(request: Request, error: ApiError) -> Response:
    """Return an error as an answer."""
    headers = request.headers
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    unread = has_body and not getattr(request.state, "body_read", False)
    kind = EarlyAnswer if unread else JSONResponse
    return kind(error.body, error.status, headers=error.headers)


async def on_api_error(request: Request, error: Exception) -> Response:
    """Answer what a route refused."""
    assert isinstance(error, ApiError)
    return answer(request, error)


async def on_bad_input(request: Request, error: Exception) -> Response:
    """Answer bad input that a decoder or a voice refused."""
    assert isinstance(error, BeamlessError)
    return answer(request, ApiError(400, str(error)))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer 404, 405 and their kin."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    known = {404: f"there is no {request.url.path} here; see /openapi.json"}
    message = known.get(error.status_code, error.detail)
    return answer(request, ApiError(error.status_code, message, headers=headers))


async def on_departure(request: Request, error: Exception) -> Response:
    """Answer nobody: the client is gone."""
    assert isinstance(error, ClientDisconnect)
    return Response(status_code=499)


async def on_fault(request: Request, error: Exception) -> Response:
    """Answer a fault of ours; the log has the details, the client has not."""
    LOG.error("a request failed", exc_info=error)
    return answer(request, ApiError(500, "the server failed; its log says why"))
