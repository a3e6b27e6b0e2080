"""Texts side by side: a hypothesis with the words marked where it leaves the reference."""

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
