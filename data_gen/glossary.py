"""Names and terms, and sentences in which they stand: what ``beamless adapt`` lets voices say."""

import random
from collections.abc import Sequence
from pathlib import Path

from beamless.data_gen.grammar import load_grammar
from beamless.data_gen.recipe_file import read_yaml
from beamless.data_gen.subset import first
from beamless.data_gen.text_lines import TextLine, read_text_lines
from beamless.data_gen.word_errors import normalize_english
from beamless.inference.errors import BeamlessError

CARRIERS = Path(__file__).with_name("glossary.yaml")
LONGEST_TERM = 60  # characters: a name or a term, not a sentence
DIGITS = 4
SPARE = 2  # times as many sentences are drawn as are wanted, since some hold a term


def read_terms(path: Path) -> list[str]:
    """Read a list of names and terms, one a line; blank lines and repetitions count for nothing.

    Raises:
        BeamlessError: there is none, or a line is too long for one or holds no word.
    """
    terms = list(dict.fromkeys(" ".join(line.text.split()) for line in read_text_lines(path)))
    terms = [term for term in terms if term]
    for term in terms:
        if len(term) > LONGEST_TERM or not any(map(str.isalnum, term)):
            raise BeamlessError(f"{path}: {term[:LONGEST_TERM]!r} is no name or term")
    if not terms:
        raise BeamlessError(f"{path} holds no names or terms; write one a line")
    return terms


def sentences_around(
    terms: Sequence[str], own: Sequence[str], count: int, seed: int
) -> tuple[list[TextLine], list[TextLine]]:
    """Return sentences to learn from and others to be judged by; no carrier is in both.

    Args:
        terms: names and terms.
        own: the user's sentences, to learn from, beside those that carriers make.
        count: sentences of each term to learn from; a third as many judge.
        seed: of their choice.
    """
    carriers = read_yaml(CARRIERS)["carriers"]
    draw = random.Random(seed)
    draw.shuffle(carriers)
    aside = carriers[: len(carriers) // 3]
    known = carriers[len(carriers) // 3 :]
    learnt = [(term, said) for term in terms for said in _drawn(known, term, count, draw)]
    judged = [(term, said) for term in terms for said in _drawn(aside, term, count // 3, draw)]
    learnt += [("", sentence) for sentence in own]
    return _lines("learn", learnt), _lines("judge", judged)


def general_sentences(terms: Sequence[str], count: int, seed: int) -> list[TextLine]:
    """Return everyday sentences in which none of the terms stands; fewer where most hold one.

    Args:
        terms: names and terms.
        count: how many are wanted.
        seed: of their choice.
    """
    drawn = load_grammar().sentences(count * SPARE, seed)
    free = (row["text"] for row in drawn if not any(holds(row["text"], term) for term in terms))
    return _lines("general", [("", text) for text in first(free, count)])


def _drawn(carriers: Sequence[str], term: str, count: int, draw: random.Random) -> list[str]:
    chosen = draw.sample(carriers, min(max(1, count), len(carriers)))
    return [carrier.format(term) for carrier in chosen]


def _lines(stem: str, sentences: Sequence[tuple[str, str]]) -> list[TextLine]:
    return [
        TextLine(f"{stem}-{number:0{DIGITS}d}", text, extra={"term": term} if term else {})
        for number, (term, text) in enumerate(sentences, 1)
    ]


def holds(text: str, term: str) -> bool:
    """Tell whether a text holds a term, both after Whisper's normaliser."""
    return f" {normalize_english(term)} " in f" {normalize_english(text)} "
