"""Written form to spoken form: what a voice is given to say, and what it cannot be given.

Voices read money, times, dates and Roman numbers in ways that no person would. English texts are
therefore spelled out first; what no rule reads is set aside with a reason, never guessed.
"""

import re
import unicodedata
from dataclasses import dataclass

from beamless.data_gen.spoken_numbers import from_roman
from beamless.data_gen.spoken_rules import RULES
from beamless.data_gen.spoken_words import NUMBERED

NOTHING = "nothing to say"
DIGITS = "digits that no rule reads"
SIGNS = "signs that no rule reads"
ROMAN = "a Roman number in doubt"
LETTERS = "letters of another alphabet"
LONGEST_WORD = 400  # characters without a space: as many as a Piper voice is given at once
LONG = f"a word of more than {LONGEST_WORD} characters"

_QUOTES = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "½": " 1/2", "¼": " 1/4"}
    | {"¾": " 3/4", "…": "...", "−": "-"}
)
_DROPPED = {"Cc", "Cf", "Cs", "Co", "Cn", "So", "Sk"}
_READ = set(" .,;:!?'\"()-–—")


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
    return character in "°^`" or unicodedata.category(character) not in _DROPPED


def spoken_form(text: str, language: str = "en") -> Spoken:
    """Return both forms of one line of text.

    Only English is spelled out; in another language a text with digits or signs is set aside.

    Raises:
        BeamlessError: num2words is not installed.
    """
    written = clean(text)
    if not re.search(r"[^\W_]", written):
        return Spoken(written, "", NOTHING)
    if any(len(word) > LONGEST_WORD for word in written.split()):
        return Spoken(written, "", LONG)
    spoken = written
    if language == "en":
        for pattern, reading in RULES:
            spoken = pattern.sub(reading, spoken)
        spoken = " ".join(spoken.split())
    reason = _fault(spoken, language)
    # Voices spell out words in capitals.
    return Spoken(written, spoken.lower() if written.isupper() else spoken, reason)


def _fault(spoken: str, language: str) -> str:
    """Return why a voice would not say ``spoken`` as it stands, or an empty string."""
    if any(c.isnumeric() for c in spoken):
        return DIGITS
    if any(not c.isalpha() and c not in _READ and not unicodedata.combining(c) for c in spoken):
        return SIGNS
    if language != "en":
        return ""
    if any(c.isalpha() and not unicodedata.name(c, "").startswith("LATIN") for c in spoken):
        return LETTERS
    numerals = re.findall(r"\b[IVXL]{2,}\b", spoken)
    if any(map(from_roman, numerals)) or re.search(rf"\b(?:{NUMBERED}) I\b", spoken):
        return ROMAN
    return ""
