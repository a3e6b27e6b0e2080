"""Ctrl-C that waits until a C library has what it asked of Python.

A KeyboardInterrupt raised in a function that C called, such as the reading of a file for
libsndfile, cannot go through C: it is dropped, the library takes the file to end there, and the
program goes on with half a recording.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Let a Ctrl-C during the block come behind it. Keep the block short.

    Only the main thread hears Ctrl-C, and only where Python handles it: else nothing changes.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
