"""A bounded queue, and the threads that work it off."""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from beamless.inference.server.errors import ApiError
from beamless.inference.server.metrics import Metrics

T = TypeVar("T")
FORGETTING = 0.8  # what part of the mean time of work the times before the last one are


class Cancelled(Exception):  # noqa: N818 - no fault
    """Nobody waits for the answer any more."""


class Job(Generic[T]):
    """Work in the queue or under way; ``await job.result()`` for what it gives.

    Attributes:
        cancelled: set when nobody waits for it any more; the work looks at it now and then.
    """

    def __init__(self, model: str) -> None:
        self.model, self.submitted = model, time.perf_counter()
        self.began = False
        self.cancelled = threading.Event()
        self.future: Future[T] = Future()

    def cancel(self) -> None:
        """Take it out of the queue, or let it stop soon."""
        self.cancelled.set()
        self.future.cancel()

    def stop_if_cancelled(self) -> None:
        """End the work where nobody waits for it any more.

        Raises:
            Cancelled: nobody does.
        """
        if self.cancelled.is_set():
            raise Cancelled

    async def result(self) -> T:
        """Wait for what it gives; it is cancelled with whoever waits."""
        try:
            return await asyncio.wrap_future(self.future)
        except asyncio.CancelledError:
            self.cancel()
            raise


class Workers:
    """So many threads, and so many places before them."""

    def __init__(self, count: int, places: int, metrics: Metrics) -> None:
        self._count, self._places, self._metrics = count, places, metrics
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="beamless-worker")
        self._lock = threading.Lock()
        self._inside = 0  # waiting or under way
        self._mean = 1.0  # s of work

    def refuse_if_full(self) -> None:
        """Refuse where the queue has no place; before an upload too, to spare it.

        Raises:
            ApiError: 429, and when to come again.
        """
        if self._inside >= self._count + self._places:
            after = math.ceil(min(120.0, max(1.0, self._mean * self._inside / self._count)))
            raise ApiError(
                429,
                f"{self._inside} recordings are before yours already; try again in {after} s",
                code="rate_limit_exceeded",
                headers={"Retry-After": str(after)},
            )

    def submit(self, job: Job[T], work: Callable[[], T], after: Callable[[], None]) -> None:
        """Put work into the queue; ``after`` is called when it is over, however it ended.

        Raises:
            ApiError: 429, the queue is full.
        """
        with self._lock:
            self.refuse_if_full()
            self._inside += 1
        self._metrics.waiting.inc()
        job.submitted = time.perf_counter()
        job.future = self._pool.submit(self._run, job, work)
        job.future.add_done_callback(lambda _: self._leave(job, after))

    def close(self) -> None:
        """End the threads, once they have done what they began."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: Job[T], work: Callable[[], T]) -> T:
        job.began = True
        began = time.perf_counter()
        self._metrics.waiting.dec()
        self._metrics.busy.inc()
        self._metrics.queue_wait.labels(job.model).observe(began - job.submitted)
        try:
            job.stop_if_cancelled()
            return work()
        finally:
            took = time.perf_counter() - began
            self._mean = FORGETTING * self._mean + (1 - FORGETTING) * took
            self._metrics.work.labels(job.model).observe(took)
            self._metrics.busy.dec()

    def _leave(self, job: Job[T], after: Callable[[], None]) -> None:
        with self._lock:
            self._inside -= 1
        if not job.began:
            self._metrics.waiting.dec()
        after()
