"""Running the server: its socket, its signals, and a stop that finishes what it began."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from beamless.inference.errors import BeamlessError
from beamless.inference.server.options import ServerOptions

LONGEST_MESSAGE = 1_048_576  # bytes of a WebSocket's message


class Server(uvicorn.Server):
    """Tells when it listens, and ends live streams with their text before it stops."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[int], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        if self.started and sockets:
            self._on_start(sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, finish what was begun, and end."""
        state = getattr(self.config.app, "state").server  # noqa: B009 - any ASGI app, to its type
        state.stopping.set()
        while state.live and not self.force_exit:
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)


def server_of(
    app: FastAPI, options: ServerOptions, on_start: Callable[[int], None] = lambda port: None
) -> Server:
    """Make what runs an application; ``on_start`` is called with the port once it listens."""
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws_max_size=LONGEST_MESSAGE,
    )
    return Server(config, on_start)


def listen_at(options: ServerOptions) -> socket.socket:
    """Open the socket; port 0 takes a free one.

    Raises:
        BeamlessError: the address is taken or is none of this machine's.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        raise BeamlessError(
            f"cannot listen at {options.host}:{options.port} ({error}); choose another --port"
        ) from None


def run(
    app: FastAPI,
    options: ServerOptions,
    listening: socket.socket,
    on_start: Callable[[int], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM and finish what was begun; a second one ends at once."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server_of(app, options, on_start).run(sockets=[listening])
    except (KeyboardInterrupt, SystemExit):
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
