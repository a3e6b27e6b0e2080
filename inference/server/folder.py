"""The folder of a server's uploads: its own, gone when it ends, and swept up after a kill.

Nobody can clean up behind SIGKILL or a power cut. So each folder holds a lock that its server
keeps, and that the system lets go of with the process: a later server removes what is not locked.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

PREFIX = "beamless-uploads-"
LOCK = "server.lock"
BEGINNING = 60.0  # s in which a server may have made its lock without holding it yet


@contextmanager
def upload_folder() -> Iterator[Path]:
    """Remove what dead servers left, and yield a new folder that lasts as long as the block."""
    remove_abandoned()
    place = Path(tempfile.mkdtemp(prefix=PREFIX))
    held = FileLock(place / LOCK)
    held.acquire()
    try:
        folder = place / "recordings"
        folder.mkdir()
        yield folder
    finally:
        held.release()
        shutil.rmtree(place, ignore_errors=True)


def remove_abandoned() -> list[Path]:
    """Remove the folders of servers of this user that do not run any more; return them."""
    found = sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))
    abandoned = [place for place in found if _is_abandoned(place)]
    for place in abandoned:
        shutil.rmtree(place, ignore_errors=True)
    return abandoned


def _is_abandoned(place: Path) -> bool:
    """Tell whether a folder is this user's, has a server's lock, and nobody holds it."""
    try:
        about, lock = place.lstat(), place / LOCK
        if not place.is_dir() or place.is_symlink() or about.st_uid != _user():
            return False
        if time.time() - lock.lstat().st_mtime < BEGINNING:
            return False
        with FileLock(lock).acquire(timeout=0):
            return True
    except (OSError, Timeout):
        return False


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0  # Windows has a temporary folder a user
