"""Keeping a C library's own messages off standard error, which is for ours."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_ONE_AT_A_TIME = RLock()


@contextmanager
def without_native_noise() -> Iterator[None]:
    """Drop whatever is written to standard error while the block runs, by any thread.

    libmpg123 tells of every odd frame there, and nobody can turn that off through libsndfile. Keep
    the block short: what others write meanwhile is lost too.
    """
    with _ONE_AT_A_TIME:
        try:
            kept = os.dup(2)
        except OSError:  # there is no standard error, as under pythonw
            yield
            return
        if sys.stderr is not None:
            sys.stderr.flush()
        try:
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device, not a path
                os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
