"""Work on the next item in a thread while the caller is still busy with the last one."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def ahead(items: Iterable[T], work: Callable[[T], U]) -> Iterator[tuple[T, U]]:
    """Yield each item with what ``work`` makes of it, in order.

    Both the items and the work come from one thread, which is one item ahead and no more, so that
    memory stays flat. What they raise is raised here, behind the items before.
    """
    iterator = iter(items)

    def following() -> tuple[T, U] | None:
        for item in iterator:
            return item, work(item)
        return None

    with ThreadPoolExecutor(1, "ahead") as thread:
        future = thread.submit(following)
        while (pair := future.result()) is not None:
            future = thread.submit(following)
            yield pair
