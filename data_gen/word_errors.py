"""Word errors of one hypothesis against its reference, after Whisper's normalisers."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from beamless.inference.errors import BeamlessError

WITHOUT_SPACES = frozenset({"zh", "yue", "ja", "th", "lo", "my", "km", "bo"})


@dataclass(frozen=True)
class Errors:
    """Errors against ``words`` words of reference (characters where a language has no spaces)."""

    substitutions: int = 0
    insertions: int = 0
    deletions: int = 0
    words: int = 0

    @property
    def total(self) -> int:
        """The edit distance."""
        return self.substitutions + self.insertions + self.deletions

    @property
    def rate(self) -> float:
        """Errors a reference word, as a fraction; a reference without words counts as one."""
        return self.total / max(1, self.words)

    def __add__(self, other: "Errors") -> "Errors":
        return Errors(
            self.substitutions + other.substitutions,
            self.insertions + other.insertions,
            self.deletions + other.deletions,
            self.words + other.words,
        )


def word_errors(reference: str, hypothesis: str) -> Errors:
    """Align two normalised texts by words and count what differs.

    An empty reference counts every word of the hypothesis as an insertion, an empty hypothesis
    every word of the reference as a deletion.

    Raises:
        TypeError: a text is not a string (a list of words would be counted wrongly).
        BeamlessError: jiwer is not installed.
    """
    if not isinstance(reference, str) or not isinstance(hypothesis, str):
        raise TypeError("word_errors takes two strings, not lists of words")
    spoken, heard = reference.split(), hypothesis.split()
    if not spoken or not heard:
        return Errors(insertions=len(heard), deletions=len(spoken), words=len(spoken))
    jiwer = imported("jiwer")
    found = jiwer.process_words(" ".join(spoken), " ".join(heard))
    return Errors(found.substitutions, found.insertions, found.deletions, len(spoken))


def normalize(text: str, language: str = "en") -> str:
    """Bring a text to the form in which words are compared.

    English goes through Whisper's English normaliser. Other languages go through the basic one,
    which keeps combining marks here: without vowel signs a Hindi word falls into pieces. Languages
    without spaces are split into characters.
    """
    if language == "en":
        return normalize_english(text)
    return str(_basic_normalizer(language in WITHOUT_SPACES)(text)).strip()


def unit(language: str = "en") -> str:
    """Return what ``normalize`` splits a language into: "word" or "character"."""
    return "character" if language in WITHOUT_SPACES else "word"


@lru_cache(maxsize=65_536)
def normalize_english(text: str) -> str:
    """Return the text after Whisper's English normaliser (arXiv 2212.04356, appendix C)."""
    return str(_english_normalizer()(text)).strip()


@cache
def _english_normalizer() -> Any:  # noqa: ANN401 - a callable of an optional library
    """Return transformers' normaliser, which needs the spelling list of whisper-normalizer.

    The normaliser of whisper-normalizer itself adds rules to Whisper's: it makes "the cause"
    into "the because".
    """
    spellings = imported("whisper_normalizer.english").EnglishSpellingNormalizer().mapping
    normalizer = imported("transformers.models.whisper.english_normalizer")
    return normalizer.EnglishTextNormalizer(spellings)


@cache
def _basic_normalizer(characters: bool) -> Any:  # noqa: ANN401 - a callable of an optional library
    basic = imported("whisper_normalizer.basic").BasicTextNormalizer
    return basic(split_letters=characters, preserve_marks=True)


def imported(module: str) -> Any:  # noqa: ANN401 - a module
    """Import what counting word errors needs.

    Raises:
        BeamlessError: it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0].replace("_", "-")
        raise BeamlessError(
            f'counting word errors needs {package}: pip install "beamless[train]"'
        ) from None
