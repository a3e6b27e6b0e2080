"""Written form to spoken form: what a voice is given to say, and what it cannot be given."""

import re
import unicodedata
from dataclasses import dataclass

NOTHING = "nothing to say"

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\xa0": " "})
_DROPPED = {"Cc", "Cf", "Cs", "Co", "Cn", "So", "Sk"}


@dataclass(frozen=True)
class Spoken:
    """A text in both forms; ``reason`` says why it must be set aside, or is empty."""

    written: str
    spoken: str
    reason: str = ""


def clean(text: str) -> str:
    """Return ``text`` in NFC with plain quotes and spaces, without emoji and control signs."""
    plain = unicodedata.normalize("NFC", text).translate(_QUOTES)
    kept = (" " if c.isspace() else c for c in plain if c.isspace() or _is_kept(c))
    return " ".join("".join(kept).split())


def _is_kept(character: str) -> bool:
    return character == "°" or unicodedata.category(character) not in _DROPPED


def spoken_form(text: str, language: str = "en") -> Spoken:
    """Return both forms of one line of text."""
    written = clean(text)
    if not re.search(r"[^\W_]", written):
        return Spoken(written, "", NOTHING)
    return Spoken(written, written)
