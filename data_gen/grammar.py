"""A grammar of what people say to a machine: requests, dictation, numbers, dates, money, names.

The sentences themselves stand in ``grammar.yaml``; another file of that form serves as well.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beamless.data_gen.recipe_file import read_yaml
from beamless.data_gen.spoken_words import MONTHS
from beamless.inference.errors import BeamlessError

PACKAGED = Path(__file__).with_name("grammar.yaml")
TRIES = 200
"""Draws for one more distinct sentence before the grammar counts as used up."""
MOST = 1_000_000  # sentences: none has so many, and their kinds are drawn before the first

_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
_SLOT = re.compile(r"\{(\w+)\}")
_MONTHS = "January March April May June July August September October December".split()  # noqa: SIM905


def _clock(draw: random.Random) -> str:
    hour, minute = draw.randint(1, 12), draw.choice((0, 0, 5, 10, 15, 20, 30, 40, 45, 50, 55))
    return f"{hour}:{minute:02d}" + draw.choice(("", "", " a.m.", " p.m."))


def _date(draw: random.Random) -> str:
    month, day = draw.choice(MONTHS), draw.randint(1, 28)
    return f"{month} {day}"


def _long_date(draw: random.Random) -> str:
    if draw.random() < 0.3:
        return f"{draw.randint(1, 12)}/{draw.randint(1, 28)}/{draw.randint(1990, 2035)}"
    return f"{_date(draw)}, {draw.randint(1950, 2035)}"


def _money(draw: random.Random) -> str:
    sign = draw.choice("$$$€£")
    cents = draw.choice(("", "", f".{draw.randint(1, 99):02d}"))
    return f"{sign}{draw.choice((draw.randint(2, 99), draw.randint(100, 2500))):,}{cents}"


def _letter(draw: random.Random) -> str:
    return draw.choice("ABCDEFGHJKLMNOPQRSTUVWXYZ")


def _code(draw: random.Random) -> str:
    letters = [_letter(draw) for _ in range(draw.randint(2, 4))]
    return ", ".join(letters + draw.choices("123456789", k=draw.randint(2, 4)))


MAKERS: dict[str, Callable[[random.Random], str]] = {
    "small": lambda draw: str(draw.randint(2, 19)),
    "minutes": lambda draw: str(draw.choice((3, 5, 7, 10, 12, 15, 20, 25, 30, 40, 45, 50, 90))),
    "number": lambda draw: f"{draw.choice((draw.randint(20, 999), draw.randint(1000, 99999))):,}",
    "decimal": lambda draw: f"{draw.randint(0, 99)}.{draw.randint(1, 99)}",
    "percent": lambda draw: f"{draw.randint(1, 99)}%",
    "ordinal": lambda draw: _ordinal(draw.randint(1, 31)),
    "digits": lambda draw: "".join(draw.choices("0123456789", k=draw.randint(3, 5))),
    "phone": lambda draw: (
        f"{draw.randint(201, 989)}-555-{draw.randint(100, 199):04d}"
        if draw.random() < 0.7
        else f"555-{draw.randint(100, 199):04d}"
    ),
    "year": lambda draw: str(draw.randint(1850, 2035)),
    "clock": _clock,
    "date": _date,
    "longdate": _long_date,
    "money": _money,
    "bigmoney": lambda draw: f"${draw.randint(2, 95) / 10:g} million",
    "letter": _letter,
    "code": _code,
}


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 11 <= number <= 13 else last}"


@dataclass(frozen=True)
class Grammar:
    """Patterns of each kind, the lists that they draw from, and the share of each kind."""

    patterns: Mapping[str, Sequence[str]]
    lists: Mapping[str, Sequence[str]]
    shares: Mapping[str, float]

    def sentences(self, count: int, seed: int) -> Iterator[dict[str, str]]:
        """Yield ``count`` distinct sentences as ``{"text", "kind", "source"}``, kinds mixed.

        Raises:
            BeamlessError: the grammar has no so many distinct sentences of a kind.
        """
        if count > MOST:
            raise BeamlessError(f"a grammar gives at most {MOST:,} sentences, not {count}")
        draw = random.Random(seed)
        kinds = [kind for kind, number in self.counts(count).items() for _ in range(number)]
        draw.shuffle(kinds)
        seen: set[str] = set()
        for kind in kinds:
            for _ in range(TRIES):
                text = self.sentence(kind, draw)
                if text not in seen:
                    break
            else:
                raise BeamlessError(
                    f"the grammar has too few distinct sentences of kind {kind!r} for {count} in "
                    "all; ask for fewer, or give it more patterns"
                )
            seen.add(text)
            yield {"text": text, "kind": kind, "source": "grammar"}

    def counts(self, count: int) -> dict[str, int]:
        """Sentences of each kind: its share of ``count``, the largest remainders rounded up."""
        total = sum(self.shares.values())
        exact = {kind: count * share / total for kind, share in self.shares.items()}
        whole = {kind: int(value) for kind, value in exact.items()}
        by_remainder = sorted(exact, key=lambda kind: whole[kind] - exact[kind])
        for kind in by_remainder[: count - sum(whole.values())]:
            whole[kind] += 1
        return whole

    def sentence(self, kind: str, draw: random.Random) -> str:
        """Draw one sentence of a kind."""
        text = draw.choice(self.patterns[kind])
        while found := _CHOICE.search(text):
            text = text[: found.start()] + draw.choice(found[1].split("|")) + text[found.end() :]
        used: list[str] = []
        while found := _SLOT.search(text):
            text = text[: found.start()] + self._fill(found[1], draw, used) + text[found.end() :]
        text = " ".join(text.split())
        # A short form at the end brings its own stop.
        text = re.sub(r"([ap]\.m\.)\.$", r"\1", text)
        return text[0].upper() + text[1:]

    def _fill(self, name: str, draw: random.Random, used: list[str]) -> str:
        """Draw a value for a slot; one sentence does not name the same thing twice."""
        if name == "spelled":
            return "-".join(used[-1].upper())
        if name in MAKERS:
            return MAKERS[name](draw)
        values = [value for value in self.lists[name] if value not in used]
        used.append(draw.choice(values or self.lists[name]))
        return used[-1]


def load_grammar(path: Path = PACKAGED) -> Grammar:
    """Read a grammar file and check that it hangs together.

    Raises:
        BeamlessError: the file is wrong, or a slot or a kind in it is named nowhere.
    """
    stored = read_yaml(path)
    patterns = _lists_of(stored.get("patterns"), "patterns", path)
    lists = _lists_of(stored.get("lists", {}), "lists", path)
    shares = stored.get("shares", dict.fromkeys(patterns, 1.0))
    if not isinstance(shares, dict) or set(shares) != set(patterns):
        raise BeamlessError(f"{path}: 'shares' must name each kind of 'patterns' once")
    if not all(isinstance(share, int | float) and share > 0 for share in shares.values()):
        raise BeamlessError(f"{path}: every share must be a number above 0")
    for text in [text for group in (*patterns.values(), *lists.values()) for text in group]:
        for name in _SLOT.findall(text):
            if name not in (*MAKERS, *lists, "spelled"):
                raise BeamlessError(f"{path}: {{{name}}} in {text!r} is named nowhere")
    return Grammar(patterns, lists, shares)


def _lists_of(value: Any, name: str, path: Path) -> dict[str, list[str]]:  # noqa: ANN401
    good = isinstance(value, dict) and all(
        isinstance(group, list) and group and all(isinstance(text, str) for text in group)
        for group in value.values()
    )
    if not good or (name == "patterns" and not value):
        raise BeamlessError(f"{path}: {name!r} must hold lists of texts by name")
    return dict(value)
