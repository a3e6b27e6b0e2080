"""Who makes the shards: this process, several of them, or Ray's. The files are the same."""

import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Literal, Protocol

from beamless.data_gen.shards import Made, Shard
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import console

Engine = Literal["local", "ray"]
Done = tuple[Shard, Made]
LIVES = 3  # how often a pool is started again after one of its processes was killed


class Worker(Protocol):
    """A process's decoders, which make one shard after the other."""

    def make(self, shard: Shard) -> Made:
        """Write a shard's files."""


class Job(Protocol):
    """What all shards of a run share, and who makes them."""

    @property
    def threads(self) -> int | None:
        """CPU threads a worker may use; all if None."""

    @property
    def worker(self) -> type[Any]:
        """The class of its workers, which takes the job."""


def shared_threads(workers: int) -> int | None:
    """Return the CPU threads of each worker: an even share of the cores, or None, all of them."""
    return max(1, (os.cpu_count() or 1) // workers) if workers > 1 else None


def make_shards(
    job: Job,
    shards: Sequence[Shard],
    workers: int,
    engine: Engine = "local",
    address: str | None = None,
) -> Iterator[Done]:
    """Make all shards and yield each, with what became of it, as it is done.

    Args:
        job: what they share.
        shards: what is to be made.
        workers: how many at once.
        engine: ``local`` for processes of this machine, ``ray`` for a cluster's.
        address: Ray's; a cluster on this machine alone if None.

    Raises:
        BeamlessError: workers die again and again, or Ray is not to be had.
    """
    if not shards:
        return
    if engine == "ray":
        yield from _by_ray(job, shards, workers, address)
    elif workers == 1:
        worker: Worker = job.worker(job)
        for shard in shards:
            yield shard, worker.make(shard)
    else:
        yield from _by_processes(job, shards, workers)


def _by_processes(job: Job, shards: Sequence[Shard], workers: int) -> Iterator[Done]:
    left = {shard.index: shard for shard in shards}
    for _ in range(LIVES):
        try:
            for done in _by_one_pool(job, list(left.values()), workers):
                del left[done[0].index]
                yield done
            return
        except BrokenProcessPool:
            console().print(f"a worker was killed; starting again with {len(left)} shards left")
    raise BeamlessError("workers were killed again and again; is there memory for so many?")


def _by_one_pool(job: Job, shards: Sequence[Shard], workers: int) -> Iterator[Done]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin, (job,)) as pool:
        running = {pool.submit(_make, shard): shard for shard in shards}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise


_worker: Worker | None = None


def _begin(job: Job) -> None:
    global _worker  # noqa: PLW0603 - a process pool hands over nothing but globals
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    _worker = job.worker(job)


def _make(shard: Shard) -> Made:
    assert _worker is not None
    return _worker.make(shard)


class _Actor:
    """A worker that says which shard it made: Ray's pool gives back nothing else."""

    def __init__(self, job: Job) -> None:
        self._worker: Worker = job.worker(job)

    def make(self, shard: Shard) -> Done:
        return shard, self._worker.make(shard)


def _by_ray(job: Job, shards: Sequence[Shard], workers: int, address: str | None) -> Iterator[Done]:
    try:
        import ray
        from ray.util import ActorPool
    except ImportError:
        raise BeamlessError('the engine ray needs Ray: pip install "beamless[ray]"') from None
    try:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError):  # nobody there, or no address at all
        raise BeamlessError(f"there is no Ray cluster at {address}") from None
    try:
        actor = ray.remote(num_cpus=job.threads or 1, max_restarts=LIVES, max_task_retries=LIVES)(
            _Actor
        )
        pool = ActorPool([actor.remote(job) for _ in range(workers)])
        yield from pool.map_unordered(lambda worker, shard: worker.make.remote(shard), list(shards))
    finally:
        ray.shutdown()
