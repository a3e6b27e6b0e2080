"""Times that never go back: intervals fitted between two bounds."""

from collections.abc import Sequence

SHORTEST = 0.02  # s, what one position of the encoder stands for

Interval = tuple[float, float]
"""Start and end in seconds."""


def fitted(intervals: Sequence[Interval], low: float, high: float) -> list[Interval]:
    """Move intervals as little as is needed, so that low ≤ start < end ≤ high for each of them.

    None begins before the one before it ends. Each keeps at least 0.02 s, or an equal share of the
    room where that is less.

    Raises:
        ValueError: there is no room between the bounds.
    """
    if not high > low:
        raise ValueError(f"nothing fits between {low} and {high} s")
    found: list[Interval] = []
    at = low
    for index, (start, end) in enumerate(intervals):
        waiting = len(intervals) - index  # this one among them
        shortest = min(SHORTEST, (high - at) / waiting)
        latest = high - shortest * waiting
        first = max(at, min(start, latest))
        at = min(high, max(first + shortest, min(end, latest + shortest)))
        found.append((first, at))
    return found
