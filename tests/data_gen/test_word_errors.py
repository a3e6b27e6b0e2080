"""Word errors are counted as Whisper's authors count them, and none is forgotten."""

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.data_gen.word_errors import (
    Errors,
    normalize,
    normalize_english,
    unit,
    word_errors,
)

TEXTS = st.lists(st.sampled_from("abcd"), max_size=8).map(" ".join)


def brute_force_distance(reference: list[str], hypothesis: list[str]) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = reference[i - 1] == hypothesis[j - 1]
        return min(
            distance(i - 1, j - 1) + (not same), distance(i - 1, j) + 1, distance(i, j - 1) + 1
        )

    return distance(len(reference), len(hypothesis))


@given(TEXTS, TEXTS)
def test_the_edit_distance_is_the_least_possible(reference, hypothesis):
    wanted = brute_force_distance(reference.split(), hypothesis.split())
    assert word_errors(reference, hypothesis).total == wanted


@given(TEXTS, TEXTS)
def test_deletions_and_insertions_change_places_with_the_texts(reference, hypothesis):
    there, back = word_errors(reference, hypothesis), word_errors(hypothesis, reference)
    assert there.total == back.total
    assert there.insertions - there.deletions == back.deletions - back.insertions
    assert there.insertions - there.deletions == len(hypothesis.split()) - len(reference.split())
    assert there.words == len(reference.split())


@given(TEXTS, TEXTS, TEXTS)
def test_the_distance_is_a_distance(a, b, c):
    assert word_errors(a, a).total == 0
    assert word_errors(a, c).total <= word_errors(a, b).total + word_errors(b, c).total


def test_deletions_are_counted():
    assert word_errors("a b c d", "a d") == Errors(deletions=2, words=4)


def test_insertions_and_substitutions_are_counted():
    assert word_errors("a b", "a x b") == Errors(insertions=1, words=2)
    assert word_errors("a b", "a x") == Errors(substitutions=1, words=2)


def test_an_empty_reference_counts_the_hypothesis_as_insertions():
    assert word_errors("", "hello there") == Errors(insertions=2)
    assert word_errors("", "") == Errors()


def test_an_empty_hypothesis_counts_the_reference_as_deletions():
    assert word_errors("hello there", " ") == Errors(deletions=2, words=2)


def test_word_lists_are_refused():
    with pytest.raises(TypeError, match="strings"):
        word_errors(["hello"], ["hello"])


def test_rates_of_parts_are_pooled_and_never_nan():
    assert (Errors(1, 0, 0, 2) + Errors(0, 1, 1, 8)) == Errors(1, 1, 1, 10)
    assert (Errors(1, 0, 0, 2) + Errors(0, 1, 1, 8)).rate == pytest.approx(0.3)
    assert Errors().rate == 0.0
    assert json.dumps(Errors(insertions=2).rate, allow_nan=False) == "2.0"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Mr. Jones won't pay $49.95!", "mister jones will not pay $49.95"),
        ("the colour of twenty-one apples", "the color of 21 apples"),
        ("Uh, hmm", ""),
        ("[music] (laughs) hello", "hello"),
        ("fear is often the cause of violence", "fear is often the cause of violence"),
        ("I dunno, kinda", "i dunno kinda"),
    ],
)
def test_english_is_normalised_by_whispers_own_rules(text, wanted):
    assert normalize_english(text) == wanted == normalize(text, "en")


def test_b50_hindi_words_keep_their_vowel_signs():
    right, wrong = "आज मौसम बहुत अच्छा है दोस्त।", "आज मौसम बहुत बुरा है दोस्त।"
    assert word_errors(normalize(right, "hi"), normalize(wrong, "hi")) == Errors(1, 0, 0, 6)


@pytest.mark.parametrize(
    ("language", "right", "wrong", "characters"),
    [("zh", "今天天气很好。", "今天天汽很好", 6), ("th", "วันนี้ดี", "วันนี้ตี", 4)],
)
def test_b50_languages_without_spaces_are_counted_by_characters(language, right, wrong, characters):
    assert unit(language) == "character" and unit("en") == unit("hi") == "word"
    found = word_errors(normalize(right, language), normalize(wrong, language))
    assert (found.total, found.words) == (1, characters)
