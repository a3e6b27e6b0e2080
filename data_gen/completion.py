"""Optimal completion: which next tokens keep a prefix as close to the target as it can still be.

Sabour et al. 2019 (arXiv 1810.01398): of all texts that go on from a prefix, those with the
smallest edit distance to the target go on with a token that follows one of the target's prefixes
nearest to it.
"""

from collections.abc import Sequence


def optimal_next_tokens(
    decoded: Sequence[int], target: Sequence[int], end: int
) -> list[tuple[int, ...]]:
    """Return the optimal next tokens behind each prefix of a decode.

    Args:
        decoded: the tokens that were decoded, without the end token.
        target: the tokens that should have been, without the end token.
        end: the end token.

    Returns:
        One tuple for each of the prefixes ``decoded[:0]`` … ``decoded[:T]``, in the target's order.
    """
    distances = list(range(len(target) + 1))
    found = [_nearest(distances, target, end)]
    for token in decoded:
        row = [distances[0] + 1]
        for j, wanted in enumerate(target):
            replaced = distances[j] + (token != wanted)
            row.append(min(replaced, distances[j + 1] + 1, row[j] + 1))
        distances = row
        found.append(_nearest(distances, target, end))
    return found


def _nearest(distances: Sequence[int], target: Sequence[int], end: int) -> tuple[int, ...]:
    least = min(distances)
    at = [j for j, distance in enumerate(distances) if distance == least]
    return tuple(dict.fromkeys(target[j] if j < len(target) else end for j in at))
