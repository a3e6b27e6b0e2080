"""Numbers as English words, by num2words."""

import re

from beamless.inference.errors import BeamlessError

LONGEST = 15
"""Whole numbers with more digits are read digit by digit."""

_DIGITS = ("oh", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _words(value: int | float, to: str) -> str:
    try:
        from num2words import num2words
    except ImportError:
        raise BeamlessError(
            'spoken forms need num2words; run: pip install "beamless[voices]"'
        ) from None
    return str(num2words(value, to=to)).replace(",", "")


def cardinal(number: str) -> str:
    """Words of a number as written: ``1,200`` or ``0.5``; leading zeros are read one by one."""
    whole, _, decimals = number.replace(",", "").partition(".")
    if len(whole) > LONGEST or (len(whole) > 1 and whole[0] == "0"):
        text = digits(whole)
    else:
        text = _words(int(whole or "0"), "cardinal")
    if decimals:
        text += " point " + digits(decimals).replace("oh", "zero")
    return text


def ordinal(number: str) -> str:
    """Words of a place in an order: ``22`` is twenty-second."""
    return _words(int(number.replace(",", "")), "ordinal")


def year(number: str) -> str:
    """Words of a year: ``1908`` is nineteen oh-eight."""
    return _words(int(number), "year")


def digits(number: str) -> str:
    """Words of each digit, with oh for nought, as telephone numbers are read."""
    return " ".join(_DIGITS[int(d)] for d in re.sub(r"\D", "", number))


def plural(word: str) -> str:
    """The plural of a number's words: ``eighty`` is eighties, ``six`` is sixes."""
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith("x") else "s")


def count(number: str, one: str, many: str) -> str:
    """A number with its unit: ``1`` kilometre, ``2.5`` kilometres."""
    return f"{cardinal(number)} {one if number == '1' else many}"


def from_roman(numeral: str) -> int:
    """Value of a Roman number of the letters I, V, X and L, or 0 where it is none."""
    if not re.fullmatch(r"(?=.)(XL|L?X{0,3})(IX|IV|V?I{0,3})", numeral):
        return 0
    values = [{"I": 1, "V": 5, "X": 10, "L": 50}[letter] for letter in numeral]
    following = [*values[1:], 0]
    return sum(-v if v < after else v for v, after in zip(values, following, strict=True))
