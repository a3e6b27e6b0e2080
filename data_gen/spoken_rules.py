"""The ordered rules from written to spoken English: each one a pattern and what it reads as."""

import re
from collections.abc import Callable
from re import Match, Pattern

from beamless.data_gen.spoken_numbers import (
    cardinal,
    count,
    digits,
    from_roman,
    ordinal,
    plural,
    year,
)
from beamless.data_gen.spoken_words import (
    ABBREVIATIONS,
    CODED,
    COINS,
    DAY,
    LETTERED,
    MONTH,
    MONTHS,
    NUMBER,
    NUMBERED,
    RULERS,
    SCALES,
    UNITS,
)

Rule = tuple[Pattern[str], Callable[[Match[str]], str]]


def _money(m: Match[str]) -> str:
    minus, sign, whole, cents, scale = m.groups()
    one, many, coin, coins = COINS[sign]
    minus = "minus " if minus else ""
    if scale:
        amount = whole + (f".{cents}" if cents else "")
        return f"{minus}{cardinal(amount)} {SCALES[scale.lower()]} {many}"
    if not cents:
        return minus + count(whole, one, many)
    if len(cents) != 2:
        return f"{minus}{cardinal(f'{whole}.{cents}')} {many}"
    small = count(str(int(cents)), coin, coins)
    if int(whole.replace(",", "")) == 0:
        return minus + small
    large = minus + count(whole, one, many)
    return large if int(cents) == 0 else f"{large} and {small}"


def _time(m: Match[str]) -> str:
    hour, minute = int(m[1]), int(m[2])
    if hour > 23 or minute > 59:
        return m[0]
    spoken = cardinal(str(hour))
    if minute:
        spoken += (" oh " if minute < 10 else " ") + cardinal(str(minute))
    elif not m[3]:
        spoken += " o'clock" if 1 <= hour <= 12 else " hundred hours"
    return f"{spoken} {_half(m)}" if m[3] else spoken


def _half(m: Match[str]) -> str:
    """Letters of a last group such as ``p.m.``; the stop that ends the text stays."""
    half = m.group(len(m.groups()))
    return f"{half[0].upper()}M" + ("." if half[-1] == "." and m.end() == len(m.string) else "")


def _date(month: int, day: int, number: str, whole: str) -> str:
    """Words of a date, or ``whole`` as it was where there is no such month or day."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return whole
    long = number if len(number) == 4 else ("20" if int(number) < 50 else "19") + number
    return f"{MONTHS[month - 1]} {ordinal(str(day))}, {year(long)}"


def _slashed_date(m: Match[str]) -> str:
    first, second = int(m[1]), int(m[2])
    month, day = (second, first) if first > 12 else (first, second)
    return _date(month, day, m[3], m[0])


def _decade(m: Match[str]) -> str:
    if m[2] != "0":
        return f"{cardinal(m[1])} {plural(cardinal(m[2] + '0'))}"
    return "two thousands" if m[1] == "20" else f"{cardinal(m[1])} hundreds"


def _month(name: str) -> str:
    return next(full for full in MONTHS if full.startswith(name[:3]))


def _numbered(m: Match[str]) -> str:
    """Words of ``World War I``; a single I that may be the pronoun is left as it is."""
    value = from_roman(m[2])
    after = re.match(r" (?!(?:of|in|and|to|is|was)\b)[A-Za-z]", m.string[m.end() :])
    doubtful = m[1][0].islower() or (m[2] == "I" and after and m[1].lower() != "war")
    return m[0] if value == 0 or doubtful else f"{m[1]} {cardinal(str(value))}"


def _roman(m: Match[str]) -> str:
    word, numeral = m[1], m[2]
    value = from_roman(numeral)
    if value == 0:
        return m[0]
    if re.fullmatch(RULERS, word.capitalize()):
        return f"{word} the {ordinal(str(value))}"
    return m[0] if len(numeral) == 1 else f"{word} {cardinal(str(value))}"


def _fraction(m: Match[str]) -> str:
    whole, upper, lower = m[1], int(m[2]), int(m[3])
    if not 0 < upper < lower <= 20:
        return m[0]
    part = {2: "half", 4: "quarter"}.get(lower) or ordinal(str(lower))
    spoken = f"{cardinal(str(upper))} {part if upper == 1 else plural(part)}"
    return f"{cardinal(whole)} and {spoken}" if whole else spoken


def _phone(m: Match[str]) -> str:
    return ", ".join(digits(group) for group in re.findall(r"\d+", m[0]))


def _address(m: Match[str]) -> str:
    return m[0].replace("@", " at ").replace(".", " dot ").replace("_", " underscore ")


def _letters(m: Match[str], between: str = " ") -> str:
    """Letters of a whole match one by one; a comma keeps A from being read as the article."""
    text = between.join(c.upper() for c in m[0] if c.isalpha())
    after = m.string[m.end() : m.end() + 1]
    text = re.sub(r"A(?= )", "A,", text)
    return text + ("," if text[-1] == "A" and after == " " else "")


def _initials(m: Match[str]) -> str:
    return _letters(m) + ("." if m.end() == len(m.string) else "")


def _rules(*pairs: tuple[str, Callable[[Match[str]], str]]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern), reading) for pattern, reading in pairs)


TITLES = _rules(
    (r"\b[Nn]o\.\s?(?=\d)", lambda m: "number "),
    (
        rf"\b({'|'.join(re.escape(a) for a in ABBREVIATIONS)})\.(?=[\s,;:?!]|$)",
        lambda m: ABBREVIATIONS[m[1]] + ("." if m.end() == len(m.string) else ""),
    ),
    (r"\bDr\.(?= [A-Z])", lambda m: "Doctor"),
    (r"\bDr\.(?=\W|$)", lambda m: "Drive"),
    (r"(?:(?<=Mount )|(?<=Fort )|(?<=Port )|(?<![A-Za-z] )\b)St\.(?= [A-Z])", lambda m: "Saint"),
    (r"(?<=[a-z] )St\.(?= [A-Z])(?<![A-Z][a-z] St\.)", lambda m: "Saint"),
    (r"\bSt\.(?=\W|$)", lambda m: "Street"),
)
ADDRESSES = _rules(
    (r"\b[A-Z]{1,3}(?= ?& ?[A-Z]{1,3}\b)|(?<=[A-Z]&)[A-Z]{1,3}\b", _letters),
    (r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", _address),
    (r"\b(?:www\.)?[a-z0-9-]+\.(?:com|org|net|edu|gov|io)\b", _address),
)
DATES = _rules(
    (r"\b(\d{1,2})/(\d{1,2})/(\d{4}|\d\d)\b", _slashed_date),
    (r"\b(\d{4})-(\d\d)-(\d\d)\b", lambda m: _date(int(m[2]), int(m[3]), m[1], m[0])),
    (
        rf"\b({MONTH}) ({DAY})(?:st|nd|rd|th)?\b(?:,? (\d{{4}})\b)?",
        lambda m: f"{_month(m[1])} {ordinal(m[2])}" + (f", {year(m[3])}" if m[3] else ""),
    ),
    (
        rf"\b({DAY})(?:st|nd|rd|th)?(?: of)? ({MONTH})(?: (\d{{4}})\b)?",
        lambda m: f"the {ordinal(m[1])} of {_month(m[2])}" + (f" {year(m[3])}" if m[3] else ""),
    ),
    (rf"\b({MONTH}),? (\d{{4}})\b", lambda m: f"{_month(m[1])} {year(m[2])}"),
    (
        r"\b(1[1-9]|20)(\d)0'?s\b",
        _decade,
    ),
    (r"(?<!\w)'?([2-9]0)s\b", lambda m: plural(cardinal(m[1]))),
    (
        r"\b(1[1-9]\d\d|20\d\d) ?[-–] ?(1[1-9]\d\d|20\d\d)\b",
        lambda m: f"{year(m[1])} to {year(m[2])}",
    ),
    (
        r"(?i:\b(in|since|by|until|from|year|before|after|around|during|between|of)) "
        r"(1[1-9]\d\d|20\d\d)\b(?![,.:/]?\d)",
        lambda m: f"{m[1]} {year(m[2])}",
    ),
)
TIMES = _rules(
    (r"\b(\d{1,2}):(\d\d)(?:\s?(?i:([ap]\.?m\b\.?)))?(?![:\d])", _time),
    (
        r"\b(1[0-2]|[1-9])\s?(?i:([ap]\.?m\b\.?))",
        lambda m: f"{cardinal(m[1])} {_half(m)}",
    ),
)
MONEY = _rules(
    (
        r"([-−])?([$€£])\s?(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?"
        r"(?:\s?(?i:(k|m|bn|b|thousand|million|billion|trillion))\b)?",
        _money,
    ),
)
CODES = _rules(
    (r"(?<!\w)(?:\+?1[- ])?\(?\d{3}\)?[-. ]\d{3}[-.]\d{4}\b", _phone),
    (r"(?<![\w-])\d{3}-\d{4}\b(?!-)", _phone),
    (
        rf"(?i:\b({CODED})(?: is)?) #?(\d{{3,}})\b(?![.,:/]\d)",
        lambda m: m[0].replace("#", "")[: -len(m[2])] + digits(m[2]),
    ),
)
ROMAN = _rules(
    (rf"\b((?i:{NUMBERED})) ([IVXL]+)\b(?!')", _numbered),
    (r"\b([A-Z][A-Za-z]+) ([IVXL]{2,}|V)\b(?!')", _roman),
)
QUANTITIES = _rules(
    (r"(?<!\w)[-−] ?(\d+(?:\.\d+)?) ?°? ?C\b", lambda m: "minus " + count(m[1], *UNITS["°C"])),
    (r"(?<!\w)[-−] ?(\d+(?:\.\d+)?) ?°? ?F\b", lambda m: "minus " + count(m[1], *UNITS["°F"])),
    (r"\b(\d)'(\d{1,2})\"", lambda m: f"{cardinal(m[1])} foot {cardinal(m[2])}"),
    (r"(?<=\d) [-–] (?=\d+(?:\.\d+)? ?=)", lambda m: " minus "),
    (r"(?<=\d) ?[-–] ?(?=\d{1,3}\b(?![-.,]\d))", lambda m: " to "),
    (r"\b(\d+):(\d)\b(?!:)", lambda m: f"{cardinal(m[1])} to {cardinal(m[2])}"),
    (r"(?<=\d) ?[x×] ?(?=\d)", lambda m: " by "),
    (
        rf"({NUMBER}) ?({'|'.join(re.escape(unit) for unit in UNITS)})(?![\w/])",
        lambda m: count(m[1], *UNITS[m[2]]),
    ),
    (r"\b24/7\b", lambda m: "twenty-four seven"),
    (r"(?:\b(\d+) )?\b(\d{1,2})/(\d{1,2})\b(?![/\d])", _fraction),
    (r"\b(\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)\b", lambda m: ordinal(m[1])),
    (r"#(?=\d)", lambda m: "number "),
    (r"(?<!\w)[-−](?=\d)", lambda m: "minus "),
    (r"(?<=\d) ?\+ ?(?=\d)", lambda m: " plus "),
    (r"(?<=\w) ?= ?(?=\w)", lambda m: " equals "),
    (r"\b\d+(?:\.\d+){2,}\b", lambda m: " point ".join(map(cardinal, m[0].split(".")))),
    (r"(?<=[A-Za-z])-?(?=\d)|(?<=\d)-?(?=[A-Za-z])", lambda m: " "),
    (rf"(?<![\w.,:/])(?:{NUMBER})(?![\d/:]|[.,]\d)", lambda m: cardinal(m[0])),
)
SIGNS = _rules(
    (r" ?& ?", lambda m: " and "),
    (r"(?<=[a-z])/(?=[a-z])", lambda m: " "),
    (r"\b(?:[A-Za-z]\.){2,}", _initials),
    (r"\b[A-Za-z](?:-[A-Za-z])+\b", lambda m: _letters(m, ", ")),
    (r"\b[A-Z](?:, [A-Z])+\b", lambda m: _letters(m, ", ")),
    (rf"\b((?i:{LETTERED})) A(?= )", lambda m: f"{m[1]} A,"),
)


RULES: tuple[Rule, ...] = (
    *TITLES,
    *ADDRESSES,
    *DATES,
    *TIMES,
    *MONEY,
    *CODES,
    *ROMAN,
    *QUANTITIES,
    *SIGNS,
)
