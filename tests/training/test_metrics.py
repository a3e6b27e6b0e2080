"""What a report says about a corpus holds for every corpus, empty references included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.training.metrics import Errors, GapClosed, bootstrap_gap_closed, score, wer

COUNTS = st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12)


def test_b47_pairs_whose_reference_is_or_becomes_empty_do_not_stop_an_evaluation():
    pairs = [("", ""), ("", "hello there"), ("uh", ""), ("red blue", "red blue")]
    found = score(pairs)
    assert found.errors == Errors(insertions=2, words=2)
    assert found.utterances == 4 and found.empty_references == 3
    assert wer(pairs) == 1.0


def test_errors_are_pooled_over_words_and_not_averaged_over_utterances():
    assert wer([("a", "x"), ("b c d e f g h i j", "b c d e f g h i j")]) == pytest.approx(0.1)


def test_case_and_punctuation_are_no_errors():
    assert wer([("HELLO THERE", "Hello, there!")]) == 0.0


def test_a_corpus_without_utterances_has_no_errors():
    assert wer([]) == 0.0


def test_a_report_says_when_it_counts_characters():
    assert score([("你好", "你好")], "zh").unit == "character"
    assert score([("hello", "hello")]).unit == "word"


def test_the_gap_closed_is_the_ratio_of_pooled_errors():
    found = bootstrap_gap_closed([4, 6] * 50, [3, 5] * 50, [2, 4] * 50)
    assert found == GapClosed(0.5, 0.5, 0.5)


def test_the_method_that_is_the_beam_closes_the_gap_and_greedy_closes_none_of_it():
    greedy, beam = [3, 0, 5, 2] * 10, [1, 0, 5, 1] * 10
    assert bootstrap_gap_closed(greedy, beam, beam) == GapClosed(1.0, 1.0, 1.0)
    assert bootstrap_gap_closed(greedy, greedy, beam) == GapClosed(0.0, 0.0, 0.0)


def test_a_worse_method_closes_less_than_nothing():
    assert bootstrap_gap_closed([2] * 9, [3] * 9, [1] * 9).value == -1.0


def test_where_the_beam_gains_nothing_there_is_no_gap():
    assert bootstrap_gap_closed([1, 2], [0, 0], [1, 2]) == GapClosed(None, None, None)
    assert bootstrap_gap_closed([], [], []) == GapClosed(None, None, None)


def test_a_beam_whose_advantage_is_chance_gives_no_bound():
    greedy, beam, method = [5, 0] * 10 + [1], [0, 5] * 10 + [0], [0, 0] * 10 + [0]
    assert bootstrap_gap_closed(greedy, method, beam).high is None


def test_speakers_are_drawn_whole():
    greedy, method, beam = [2] * 40, [1] * 20 + [2] * 20, [1] * 40
    alone = bootstrap_gap_closed(greedy, method, beam)
    by_two = bootstrap_gap_closed(greedy, method, beam, ["a"] * 20 + ["b"] * 20)
    assert (by_two.low, by_two.high) == (0.0, 1.0)
    assert alone.low > 0.2 and alone.high < 0.8
    assert bootstrap_gap_closed(greedy, method, beam, [""] * 40) == alone
    assert bootstrap_gap_closed(greedy, method, beam, ["a"] * 40) == GapClosed(0.5, None, None)


@given(COUNTS, st.integers(0, 3))
def test_the_interval_holds_the_value_and_a_seed_fixes_it(counts, seed):
    greedy, method, beam = map(list, zip(*counts, strict=True))
    found = bootstrap_gap_closed(greedy, method, beam, seed=seed, draws=500)
    assert found == bootstrap_gap_closed(greedy, method, beam, seed=seed, draws=500)
    if found.low is not None and found.high is not None:
        assert found.low <= found.high
    if sum(greedy) > sum(beam):
        expected = (sum(greedy) - sum(method)) / (sum(greedy) - sum(beam))
        assert found.value == pytest.approx(expected)


def test_sequences_of_different_length_are_refused():
    with pytest.raises(ValueError, match="length"):
        bootstrap_gap_closed([1, 2], [1], [1, 2])
