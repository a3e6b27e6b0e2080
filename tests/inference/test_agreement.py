"""What two passes agree on only grows, and a later pass goes on where it belongs."""

from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.agreement import agreed, continuation, plain

WORDS = st.lists(st.sampled_from([" a", " b", " c", " B.", " c,"]), max_size=8)


def test_passes_agree_up_to_the_first_other_word():
    assert agreed([" the", " cat", " sat"], [" The", " cat,", " sits", " down"]) == 2


def test_the_last_word_of_a_pass_is_agreed_on_where_both_end_in_it_as_it_may_be_half_a_word():
    assert agreed([" the", " cat"], [" the", " cat"]) == 2
    assert agreed([" the", " cat", " a"], [" the", " cat"]) == 1
    assert agreed([], []) == agreed([" a"], []) == 0


def test_what_was_told_goes_on_behind_the_same_words():
    assert continuation(["a", "b"], ["a", "b", "c"]) == 2
    assert continuation([], ["a"]) == 0
    assert continuation(["a", "b", "c"], ["a", "b"]) == 2


def test_a_word_that_a_later_pass_hears_otherwise_is_not_told_twice():
    assert continuation([" fox", " jumped", " over"], [" fox", " jumps", " over", " the"]) == 3
    assert continuation([" and", " short"], [" In", " short,", " the", " period"]) == 2


def test_a_word_that_a_later_pass_leaves_out_or_puts_in_moves_the_rest():
    assert continuation(["a", "x", "b"], ["a", "b", "c"]) == 2
    assert continuation(["a", "b"], ["a", "x", "b", "c"]) == 3


def test_words_that_are_said_twice_are_kept_twice():
    assert continuation(["very"], ["very", "very", "good"]) == 1
    assert continuation(["very", "very"], ["very", "very", "good"]) == 2


@given(WORDS, WORDS)
def test_what_is_agreed_on_begins_both_passes(before, now):
    count = agreed(before, now)
    assert count <= min(len(before), len(now))
    assert count < len(now) or len(before) == len(now) or not now
    assert [*map(plain, before[:count])] == [*map(plain, now[:count])]


@given(WORDS, WORDS)
def test_the_continuation_of_a_beginning_is_its_end(told, more):
    assert continuation(told, [*told, *more]) == len(told)


@given(WORDS, WORDS)
def test_the_continuation_is_the_best_match_by_brute_force(told, words):
    def distance(a, b):
        if not a or not b:
            return len(a) + len(b)
        return min(
            distance(a[:-1], b) + 1,
            distance(a, b[:-1]) + 1,
            distance(a[:-1], b[:-1]) + (plain(a[-1]) != plain(b[-1])),
        )

    at = continuation(told[:4], words[:4])
    least = min(distance(told[:4], words[:n]) for n in range(len(words[:4]) + 1))
    assert distance(told[:4], words[:at]) == least
