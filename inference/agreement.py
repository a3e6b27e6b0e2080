"""What two passes over a growing recording agree on, and what a later pass adds to it.

The policy is LocalAgreement-2 (Liu et al. 2020, arXiv 2005.11185; Macháček et al. 2023,
arXiv 2307.14743): words are told once two passes in a row begin with them. What was told is never
taken back; where a later pass sees it otherwise, that pass goes on behind the best match.
"""

from collections.abc import Sequence


def plain(word: str) -> str:
    """Return a word as passes compare it: without case, punctuation and spaces."""
    return "".join(character for character in word.casefold() if character.isalnum())


def agreed(before: Sequence[str], now: Sequence[str]) -> int:
    """Return how many words at the beginning two passes share.

    The last word of ``now`` counts only where it was the last one of ``before`` too: the end of the
    audio may have cut a word in two, and two such halves are seldom heard alike.
    """
    count = 0
    for left, right in zip(before, now, strict=False):
        if plain(left) != plain(right):
            break
        count += 1
    half = count == len(now) < len(before)
    return max(0, count - half)


def continuation(told: Sequence[str], words: Sequence[str]) -> int:
    """Return where in ``words`` goes on what was told: behind the beginning most like it.

    Likeness is the edit distance of words; of beginnings as like, one that ends in the same word,
    then the one of most equal length.
    """
    row = list(range(len(words) + 1))  # distances from the words told so far to each beginning
    heard = [plain(word) for word in words]
    for done, word in enumerate(map(plain, told), start=1):
        diagonal, row[0] = row[0], done
        for at, other in enumerate(heard, start=1):
            best = min(row[at] + 1, row[at - 1] + 1, diagonal + (word != other))
            diagonal, row[at] = row[at], best
    last = plain(told[-1]) if told else ""

    def preference(at: int) -> tuple[int, bool, int]:
        return row[at], at == 0 or heard[at - 1] != last, abs(at - len(told))

    return min(range(len(row)), key=preference)
