"""One run at a time in one folder: a second one is told so, instead of mixing its files in."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from beamless.inference.cache import cache_folder
from beamless.inference.errors import BeamlessError


def lock(folder: Path) -> FileLock:
    """Take the lock of a folder, a file in the cache; it is let go when its process ends, too.

    Raises:
        BeamlessError: another run holds it.
    """
    folder = folder.resolve()
    taken = FileLock(_file_for(folder))
    try:
        taken.acquire(timeout=0)
    except Timeout:
        raise BeamlessError(
            f"another run is writing into {folder}; let it end, or name another folder"
        ) from None
    return taken


def _file_for(folder: Path) -> Path:
    place = cache_folder() / "locks"
    place.mkdir(parents=True, exist_ok=True)
    return place / hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:24]


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while the block runs; wait for it where another process has it."""
    with FileLock(_file_for(folder)):
        yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while the block runs.

    Raises:
        BeamlessError: another run holds it.
    """
    taken = lock(folder)
    try:
        yield
    finally:
        taken.release()
