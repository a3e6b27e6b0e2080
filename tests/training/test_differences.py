"""Marked differences: nothing of the hypothesis is lost, and only real differences stand out."""

from hypothesis import given
from hypothesis import strategies as st

from beamless.training.differences import marked

words = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=6).map(" ".join)


def test_casing_and_punctuation_are_no_difference():
    assert marked("it was the best of times,", "It was the best of times.").spans == []


def test_a_wrong_word_stands_beside_the_right_one():
    text = marked("the worst of times", "the worst of time")
    assert text.plain == "the worst of [-times-] time"
    assert any(span.style == "reverse" for span in text.spans)


def test_a_missing_word_is_shown():
    assert marked("we were all going", "we all going").plain == "we [-were-] all going"


@given(reference=words, hypothesis=words)
def test_nothing_of_the_hypothesis_is_lost(reference, hypothesis):
    shown = marked(reference, hypothesis).plain
    rest = shown.replace("[-", "\0").replace("-]", "\0").split("\0")[::2]
    assert " ".join("".join(rest).split()) == hypothesis
