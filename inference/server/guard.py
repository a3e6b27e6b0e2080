"""Who is answered: checked before anything of a request is read.

A server on one's own machine is reached by every web page that one's browser shows. A page
elsewhere must neither use it nor read its answers: the Origin that browsers send has to be this
server's own, and the Host has to be a name of this machine, lest a page's own name is made to
point here (DNS rebinding).
"""

import ipaddress
import re
import secrets
import socket
import time
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beamless.inference.server.errors import ApiError, answer
from beamless.inference.server.metrics import Metrics
from beamless.inference.server.options import ServerOptions

OPEN = frozenset({"/", "/health"})  # paths that need no key
KEY_PROTOCOL = "openai-insecure-api-key."
"""A WebSocket of a browser cannot send a key but as one of its protocols: OpenAI's way."""
HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII)
HARDENING = (
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Guard:
    """Passes on what may pass, and counts the answers."""

    def __init__(self, app: ASGIApp, options: ServerOptions, metrics: Metrics) -> None:
        self._app, self._options, self._metrics = app, options, metrics
        own = {"localhost", socket.gethostname().lower(), options.host.lower()}
        self._names = own | {name.lower() for name in options.hostnames}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application do it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HARDENING]
            await send(message)

        refusal = self.refusal(HTTPConnection(scope))
        try:
            if refusal is None:
                await self._app(scope, receive, watched)
            elif scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)})
            else:
                await answer(Request(scope, receive), refusal)(scope, receive, watched)
        finally:
            if scope["type"] == "http":
                route = getattr(scope.get("route"), "path", "other")
                self._metrics.requests.labels(route, str(status)).inc()
                took = time.perf_counter() - began
                self._metrics.duration.labels(route).observe(took)

    def refusal(self, connection: HTTPConnection) -> ApiError | None:
        """Return why a request is not answered; None if it is."""
        if connection.app.state.server.stopping.is_set() and connection.url.path != "/health":
            return ApiError(503, "the server stops", headers={"Retry-After": "10"})
        host = connection.headers.get("host", "")
        if not self.is_ours(host):
            name = host[:100]
            return ApiError(403, f"this server is not called {name!r}; see its --hostnames")
        origin = connection.headers.get("origin")
        if origin is not None and not self.is_welcome(origin, host):
            return ApiError(403, "web pages elsewhere may not use this server; see its --origins")
        if (
            self._options.is_locked
            and connection.url.path not in OPEN
            and not self.has_key(connection)
        ):
            return ApiError(
                401,
                "a key is missing or wrong; send Authorization: Bearer KEY",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return None

    def is_ours(self, host: str) -> bool:
        """Tell whether a Host is an address, or a name of this server."""
        found = HOST.fullmatch(host)
        if not found:
            return False
        name = found[1].strip("[]").lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True

    def is_welcome(self, origin: str, host: str) -> bool:
        """Tell whether an Origin is this server's own page, or one that may use it."""
        try:
            return origin in self._options.origins or urlsplit(origin).netloc == host
        except ValueError:  # brackets that hold no address
            return False

    def has_key(self, connection: HTTPConnection) -> bool:
        """Tell whether the key was sent; how long that takes does not tell how much is right."""
        scheme, _, key = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            key = ""
        for protocol in connection.headers.get("sec-websocket-protocol", "").split(","):
            if protocol.strip().startswith(KEY_PROTOCOL):
                key = protocol.strip().removeprefix(KEY_PROTOCOL)
        wanted = self._options.api_key.encode("utf-8")
        return secrets.compare_digest(key.strip().encode("latin-1"), wanted)
