"""Written to spoken English: what voices misread is spelled out or set aside, never guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.data_gen import spoken
from beamless.data_gen.spoken import spoken_form
from beamless.data_gen.spoken_numbers import from_roman

READINGS = {
    "money": {
        "It cost $49.95.": "It cost forty-nine dollars and ninety-five cents.",
        "Just $0.99!": "Just ninety-nine cents!",
        "I have $1 and £3.01.": "I have one dollar and three pounds and one penny.",
        "€1,200.50 a month": "one thousand two hundred euros and fifty cents a month",
        "a $3.5 million house": "a three point five million dollars house",
        "He paid $5. Then -$6, too.": "He paid five dollars. Then minus six dollars, too.",
        "$1,000,000": "one million dollars",
        "$5k or $2bn": "five thousand dollars or two billion dollars",
    },
    "times": {
        "Come at 8:00.": "Come at eight o'clock.",
        "It is 7:05 a.m. now": "It is seven oh five AM now",
        "Wake me at 6:30 PM": "Wake me at six thirty PM",
        "from 8am to 5 p.m.": "from eight AM to five PM.",
        "at 13:00 and 23:59": "at thirteen hundred hours and twenty-three fifty-nine",
    },
    "dates": {
        "on 3/1/1908": "on March first, nineteen oh-eight",
        "on 25/12/2024": "on December twenty-fifth, twenty twenty-four",
        "2024-03-01": "March first, twenty twenty-four",
        "Jan. 5, 2024": "January fifth, twenty twenty-four",
        "May 5th and 31st of Dec": "May fifth and the thirty-first of December",
        "14 Feb 2023": "the fourteenth of February twenty twenty-three",
    },
    "years": {
        "in 1999": "in nineteen ninety-nine",
        "1914-1918": "nineteen fourteen to nineteen eighteen",
        "the 1980s": "the nineteen eighties",
        "March 2020": "March twenty twenty",
    },
    "Roman numbers": {
        "World War II": "World War two",
        "World War I was long.": "World War one was long.",
        "Louis XIV and Henry V": "Louis the fourteenth and Henry the fifth",
        "Chapter IX": "Chapter nine",
        "Super Bowl LVII": "Super Bowl fifty-seven",
    },
    "titles and short forms": {
        "Mr. and Mrs. Brown, Jr.": "Mister and Missus Brown, Junior.",
        "Dr. Smith of Elm Dr. agrees": "Doctor Smith of Elm Drive agrees",
        "St. John lives on Baker St. now": "Saint John lives on Baker Street now",
        "cats vs. dogs, e.g. mine": "cats versus dogs, for example mine",
        "the U.S.A. and A.I. today": "the U S A, and A, I today",
    },
    "letters": {
        "Anna, A-N-N-A.": "Anna, A, N, N, A.",
        "Type B, A, 7.": "Type B, A, seven.",
        "vitamin A is a vitamin": "vitamin A, is a vitamin",
    },
    "units and signs": {
        "72°F today, -5 C tomorrow": (
            "seventy-two degrees Fahrenheit today, minus five degrees Celsius tomorrow"
        ),
        "3 kg at 1 km/h": "three kilograms at one kilometer an hour",
        "25% of 1/2 cup": "twenty-five percent of one half cup",
        "3/4 of 2 1/2": "three quarters of two and one half",
        "AT&T and R&D": "A, T and T and R and D",
        "5 - 3 = 2": "five minus three equals two",
        "mail joe@site.com": "mail joe at site dot com",
    },
    "numbers": {
        "1st, 22nd, 103rd": "first, twenty-second, one hundred and third",
        "room 90210": "room nine oh two one oh",
        "call 555-1234": "call five five five, one two three four",
        "(212) 555-0187": "two one two, five five five, oh one eight seven",
        "agent 007": "agent oh oh seven",
        "0.05 or 1,234": "zero point zero five or one thousand two hundred and thirty-four",
        "5-10 people": "five to ten people",
        "version 2.0.1 of MP3": "version two point zero point one of MP three",
        "No. 5 and #1": "number five and number one",
    },
}


@pytest.mark.parametrize("kind", READINGS)
def test_what_a_voice_misreads_is_spelled_out(kind):
    read = {written: spoken_form(written).spoken for written in READINGS[kind]}
    assert read == READINGS[kind]


def test_b35_the_reported_sentence_has_both_forms():
    text = "Mr. Jr. paid $49.95 at 8:00 on 3/1/1908 in World War II, room 90210, -5 C."
    forms = spoken_form(text)
    assert forms.written == text
    assert forms.spoken == (
        "Mister Junior paid forty-nine dollars and ninety-five cents at eight o'clock on "
        "March first, nineteen oh-eight in World War two, room nine oh two one oh, "
        "minus five degrees Celsius."
    )
    assert forms.reason == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("on 99/99/2020", spoken.DIGITS),
        ("at 25:99", spoken.DIGITS),
        ("1,23", spoken.DIGITS),
        ("x²", spoken.DIGITS),
        ("C++ or C#", spoken.SIGNS),
        ("see https://foo.com/x", spoken.SIGNS),
        ("a * b", spoken.SIGNS),
        ("2^3", spoken.SIGNS),
        ("size XL", spoken.ROMAN),
        ("Chapter I read twice", spoken.ROMAN),
        ("Привет", spoken.LETTERS),
        ("I like 寿司", spoken.LETTERS),
        ("", spoken.NOTHING),
        ("   ", spoken.NOTHING),
        ("...", spoken.NOTHING),
        ("\U0001f600\U0001f44d\U0001f3fd", spoken.NOTHING),
        ("\ufeff", spoken.NOTHING),
        ("__", spoken.NOTHING),
    ],
)
def test_what_no_rule_reads_is_set_aside_with_its_reason(text, reason):
    assert spoken_form(text).reason == reason


@pytest.mark.parametrize(
    "text",
    [
        "I think I'll go, won't you?",
        "In May I may march home",
        "The US and I, the IT people: vitamin C for Malcolm X!",
        "He said no. One left.",
        "naïve café",
    ],
)
def test_plain_words_stay_as_they_are(text):
    assert spoken_form(text).spoken == text


def test_capitals_are_lowered_since_voices_spell_them():
    assert spoken_form("TURN ON THE LIGHT").spoken == "turn on the light"


def test_emoji_bom_and_curly_quotes_leave_both_forms():
    forms = spoken_form("\ufeffIt\u2019s \U0001f600 fine\u00a0now\u200b")
    assert (forms.written, forms.spoken) == ("It's fine now", "It's fine now")


def test_other_languages_are_never_spelled_in_english():
    assert spoken_form("Guten Tag", "de").spoken == "Guten Tag"
    assert spoken_form("um 8:00", "de").reason == spoken.DIGITS


@given(st.text(alphabet="0123456789.,:/-$€£%°'\" abIVXLKmpsthCSt#&@+=()½é\u00a0😀", max_size=40))
def test_a_spoken_form_never_holds_digits_or_signs(text):
    forms = spoken_form(text)
    assert forms.reason or not any(c.isnumeric() or c in "$€£%°#&@+=/" for c in forms.spoken)


@given(st.text(max_size=60))
def test_any_text_has_a_spoken_form_or_a_reason(text):
    forms = spoken_form(text)
    assert forms.reason or any(c.isalpha() for c in forms.spoken)


@given(st.integers(1, 89))
def test_roman_numbers_have_their_value(value):
    tens, ones = divmod(value, 10)
    numeral = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX"][tens]
    numeral += ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"][ones]
    assert from_roman(numeral) == value


@pytest.mark.parametrize("word", ["", "IIII", "VX", "ILL", "VIVID", "IC"])
def test_other_words_are_no_roman_numbers(word):
    assert from_roman(word) == 0
