"""What the requests of one server share."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beamless.inference.server.errors import ApiError
from beamless.inference.server.metrics import Metrics
from beamless.inference.server.models import Offer
from beamless.inference.server.options import ServerOptions
from beamless.inference.server.workers import Job, Workers

MOST_UPLOADS = 64


@dataclass
class State:
    """One server.

    Attributes:
        folder: where recordings lie while they are used.
        stopping: set when it takes no more work and finishes what it has.
    """

    options: ServerOptions
    offer: Offer
    folder: Path
    metrics: Metrics
    workers: Workers
    live_pool: ThreadPoolExecutor
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    uploads: int = 0
    live: int = 0

    @contextmanager
    def upload_place(self) -> Iterator[None]:
        """Take one of the places for bodies that come in.

        Raises:
            ApiError: 429, there is none.
        """
        if self.uploads >= MOST_UPLOADS:
            raise ApiError(429, "too many uploads at once", headers={"Retry-After": "2"})
        self.uploads += 1
        self.metrics.uploading.inc()
        try:
            yield
        finally:
            self.uploads -= 1
            self.metrics.uploading.dec()

    @contextmanager
    def live_place(self) -> Iterator[None]:
        """Take one of the places for live streams.

        Raises:
            ApiError: 429, there is none; 503, the server stops.
        """
        if self.stopping.is_set():
            raise ApiError(503, "the server stops")
        if self.live >= self.options.max_live:
            raise ApiError(429, f"{self.live} live streams are heard already; try again later")
        self.live += 1
        self.metrics.live.inc()
        try:
            yield
        finally:
            self.live -= 1
            self.metrics.live.dec()

    def first_token(self, job: Job[Any]) -> Callable[[], None]:
        """Return what is called whenever a job has text; the first time is measured."""
        told = False

        def tell() -> None:
            nonlocal told
            if not told:
                took = time.perf_counter() - job.submitted
                self.metrics.first_token.labels(job.model).observe(took)
            told = True

        return tell
