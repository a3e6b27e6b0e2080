"""Progress on standard error, so that standard output holds results only."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


def console() -> Console:
    """Return a console on standard error."""
    return Console(stderr=True, highlight=False)


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield ``items`` and show how many are done and how long the rest will take."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console()) as progress:
        yield from progress.track(items, total=total, description=description)
