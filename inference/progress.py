"""What a person sees: progress on standard error, so that standard output holds results only."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


def console() -> Console:
    """Return a console on standard error."""
    return Console(stderr=True, highlight=False)


def screen() -> Console:
    """Return a console on standard output; where that is no terminal, wide enough for a table."""
    width = None if sys.stdout.isatty() else 120
    return Console(file=sys.stdout, highlight=False, width=width)


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Show how much of ``total`` is done; the block calls what it is given, for one or for n.

    ``total`` is None where nobody knows it.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console()) as shown:
        task = shown.add_task(description, total=total)
        yield lambda n=1: shown.advance(task, n)


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield ``items`` and show how many are done and how long the rest will take."""
    if total is None:
        items = list(items)
        total = len(items)
    with progress(description, total) as advance:
        for item in items:
            yield item
            advance()
