"""The rules on logits, and the choice of tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from beamless.inference.errors import BeamlessError
from beamless.inference.logits import Suppression, log_sum_exp, top_k

LOGITS = arrays.arrays(
    np.float32, st.integers(1, 40), elements=st.floats(-50, 50, width=32) | st.sampled_from([0, 1])
)


@given(LOGITS, st.integers(1, 50))
def test_top_k_is_the_head_of_a_stable_sort(values, k):
    expected = np.argsort(-values, kind="stable")[:k]
    assert top_k(values, k).tolist() == expected.tolist()


@given(LOGITS)
def test_top_1_is_argmax(values):
    assert top_k(values, 1)[0] == values.argmax()


def test_top_k_ranks_suppressed_tokens_last():
    values = np.array([-np.inf, 2, -np.inf, 3, 1], np.float32)
    assert top_k(values, 4).tolist() == [3, 1, 4, 0]


@given(LOGITS)
def test_probabilities_sum_to_one(values):
    logits = values[None]
    assert np.exp(logits - log_sum_exp(logits)).sum() == pytest.approx(1, abs=1e-4)


def test_log_sum_exp_of_great_logits_does_not_overflow():
    total = log_sum_exp(np.array([[1e4, 1e4]], np.float32))[0, 0]
    assert total == pytest.approx(1e4 + np.log(2), rel=1e-6)


@pytest.mark.parametrize("shape", [(6,), (1, 1, 6), (2, 1, 6)])
def test_fault_08_logits_of_another_rank_raise(shape):
    rule = Suppression.of((1,), (2,))
    with pytest.raises(ValueError, match=r"\[B, V\]"):
        rule.apply(np.zeros(shape, np.float32), False)


def test_suppressed_tokens_never_come_and_begin_ones_not_first():
    rule = Suppression.of((1, 4), (2,))
    logits = np.arange(6, dtype=np.float32)[None].repeat(2, axis=0)
    first, later = rule.apply(logits, True), rule.apply(logits, False)
    assert np.flatnonzero(np.isinf(first[1])).tolist() == [1, 2, 4]
    assert np.flatnonzero(np.isinf(later[1])).tolist() == [1, 4]
    np.testing.assert_array_equal(logits[0], np.arange(6))  # the graph's own array stays


def test_without_lists_nothing_is_suppressed():
    logits = np.ones((1, 3), np.float32)
    np.testing.assert_array_equal(Suppression.of((), ()).apply(logits, True), logits)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_logit_that_is_not_finite_stops_the_decode(bad):
    logits = np.zeros((2, 9), np.float32)
    logits[1, 5] = bad
    with pytest.raises(BeamlessError, match="not finite"):
        Suppression.of((), ()).apply(logits, False)
