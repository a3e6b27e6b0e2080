"""Fitted times are positive in length, in order and inside their bounds, and move no further."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.intervals import SHORTEST, fitted

TIMES = st.floats(-10, 400, allow_nan=False)
INTERVALS = st.lists(st.tuples(TIMES, TIMES), max_size=60)


@given(INTERVALS, st.floats(0, 300), st.floats(0.01, 30))
def test_every_interval_has_a_length_follows_the_one_before_and_stays_inside(wanted, low, seconds):
    high = low + seconds
    found = fitted(wanted, low, high)
    assert len(found) == len(wanted)
    assert all(low <= start < end <= high for start, end in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))


@given(st.lists(st.floats(SHORTEST, 5), max_size=12))
def test_what_fits_already_stays_where_it_is(lengths):
    wanted, at = [], 1.0
    for length in lengths:
        wanted.append((at, at + length))
        at += 2 * length
    assert fitted(wanted, 0.0, at) == wanted


def test_an_interval_behind_the_bound_comes_back_to_it():
    assert fitted([(29.0, 30.0)], 0.0, 4.0) == [(3.98, 4.0)]


def test_nothing_fits_between_bounds_that_touch():
    with pytest.raises(ValueError, match="nothing fits"):
        fitted([(0, 1)], 2.0, 2.0)
