"""Operators over a vocabulary: what is done by rows is what would be done to the whole."""

import numpy as np
import openvino as ov
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.models.graphs import graph_input
from beamless.models.operators import largest, sum_of_many

COUNT = 8


def by_rows(size):
    """A function of x [n] → the places of the largest, these themselves, and the sum of all."""
    x = graph_input([size], np.float32, "x")
    places, values = largest(x.output(0), COUNT)
    found = [ov.opset13.result(node) for node in (places, values, sum_of_many(x))]
    graph = ov.Model(found, [x], "by_rows")
    compiled = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda values: [compiled({"x": values})[at].copy() for at in range(3)]


FUNCTIONS = {size: by_rows(size) for size in (3, 64, 65, 100, 101, 121, 2161)}


@pytest.mark.parametrize("size", FUNCTIONS)
@given(seed=st.integers(0, 2**32 - 1), levels=st.integers(1, 5000))
def test_the_largest_by_rows_are_those_of_the_whole(size, seed, levels):
    """Wherever they are, and where many are alike."""
    x = np.random.default_rng(seed).integers(-levels, levels, size).astype(np.float32)
    places, values, _ = FUNCTIONS[size](x)
    assert values.tolist() == sorted(x.tolist(), reverse=True)[:COUNT]
    assert x[places].tolist() == values.tolist()
    assert len(set(places.tolist())) == len(places)


@pytest.mark.parametrize("size", FUNCTIONS)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_sum_by_rows_is_that_of_the_whole(size, seed):
    x = np.random.default_rng(seed).random(size, np.float32)
    assert FUNCTIONS[size](x)[2][0] == pytest.approx(x.sum(dtype=np.float64), rel=1e-5)
