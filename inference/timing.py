"""How long a call takes."""

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def timed(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
    """Return what a call gives, and its wall-clock seconds."""
    began = time.perf_counter()
    result = call(*args, **kwargs)
    return result, time.perf_counter() - began
