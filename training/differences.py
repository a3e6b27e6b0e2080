"""Texts side by side: what they share, and a hypothesis marked where it leaves the reference."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from rich.text import Text

from beamless.data_gen.word_errors import normalize_english


def marked(reference: str, hypothesis: str) -> Text:
    """Return the hypothesis; words that differ are reversed, missing ones stand as ``[-word-]``.

    Words are compared after Whisper's normaliser, so casing and punctuation are no difference.
    """
    wanted, given = reference.split(), hypothesis.split()
    matcher = SequenceMatcher(
        None, [_bare(word) for word in wanted], [_bare(word) for word in given], autojunk=False
    )
    text = Text()
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind in ("replace", "delete"):
            text.append(f"[-{' '.join(wanted[i:j])}-] ", style="dim")
        if k < m:
            text.append(" ".join(given[k:m]), style="" if kind == "equal" else "reverse")
            text.append(" ")
    text.rstrip()
    return text


def _bare(word: str) -> str:
    return normalize_english(word) or word.strip(".,;:!?—-").lower()


def common_words(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of the words that two texts share in the same order, in each of them."""
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    return [(block.a + n, block.b + n) for block in blocks for n in range(block.size)]
