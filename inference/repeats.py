"""Texts that end in a passage said over and over: how a decoder that has lost its way looks."""

from collections.abc import Sequence

LONGEST_PASSAGE = 12  # tokens
TIMES = 3


def repeated_tail(tokens: Sequence[int], shortest: int = 1, times: int = TIMES) -> int:
    """Return how many tokens at the end say again what was said before them.

    That is all behind the first time that a passage was said, where it was said so many times or
    more, whole, up to the end or cut short by it; 0 where the text does not end so.

    Args:
        tokens: a text.
        shortest: tokens of the shortest passage looked for; the longest has twelve.
        times: how often at least.
    """
    for period in range(shortest, LONGEST_PASSAGE + 1):
        same = 0
        while same + period < len(tokens) and tokens[-1 - same] == tokens[-1 - same - period]:
            same += 1
        if same + period >= times * period:
            return same
    return 0


def cycles(tokens: Sequence[int]) -> bool:
    """Tell whether a text ends with the same passage three times over.

    One token repeated thrice is no cycle: digits are spoken so.
    """
    return repeated_tail(tokens, shortest=2) > 0


def stutters(tokens: Sequence[int], start: int) -> bool:
    """Tell whether a text says anything twice in a row, with the second end behind ``start``."""
    ends = range(start + 1, len(tokens) + 1)
    tails = (tokens[max(0, end - 2 * LONGEST_PASSAGE) : end] for end in ends)
    return any(repeated_tail(tail, times=2) for tail in tails)
