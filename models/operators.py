"""Short names for what graphs are put together from: constants, a vocabulary's sum and largest."""

import math
from collections.abc import Sequence

import numpy as np
from openvino import Node, Output
from openvino import opset13 as op


def scalar(value: float) -> Node:
    """Make a float32 constant []."""
    return op.constant(np.float32(value))


def floats(values: np.ndarray | Sequence[float]) -> Node:
    """Make a float32 constant of any shape."""
    return op.constant(np.asarray(values, np.float32))


def ints(values: Sequence[int]) -> Node:
    """Make an int32 constant [n]."""
    return op.constant(np.array(values, np.int32))


def index(value: int) -> Node:
    """Make an int32 constant []."""
    return op.constant(np.int32(value))


def flattened(x: Node | Output) -> Node:
    """[…] → [n]."""
    return op.reshape(x, np.array([-1]), special_zero=False)


def odds_beside(logits: Node | Output, one: Node | Output) -> Node:
    """Return how likely tokens are beside one whose logit is given, [1]."""
    return op.exp(op.subtract(logits, one))


def sum_of(x: Node | Output) -> Node:
    """Return the sum of [n] as [1]."""
    return op.reduce_sum(x, ints([0]), keep_dims=True)


def sum_of_many(x: Node | Output) -> Node:
    """Return the sum of [n] as [1], of a vocabulary in half the time."""
    rows, rest = in_rows(x)
    return op.add(sum_of(op.reduce_sum(rows, ints([1]))), sum_of(rest))


def largest(x: Output, count: int) -> tuple[Output, Output]:
    """Find the largest of [n], which may be fewer than ``count``.

    They lie in as many rows, those whose own largest are the largest, so that only these are
    searched: a fifth of the time that a vocabulary takes otherwise.

    Returns:
        Their places, int32, and themselves, best first; ties are in any order.
    """
    count = min(count, int(x.get_shape()[0]))
    rows, rest = in_rows(x)
    height, width = rows.get_output_shape(0)
    if height <= count:
        return _top(x, count)
    highest = op.reduce_max(rows, ints([1]))
    chosen, _ = _top(highest.output(0), count)
    found = op.concat([flattened(op.gather(rows, chosen, index(0))), rest], axis=0)
    begins = op.unsqueeze(op.multiply(chosen, index(width)), ints([1]))
    places = op.add(begins, ints(range(width)))
    left_over = ints(range(height * width, int(x.get_shape()[0])))
    places = op.concat([flattened(places), left_over], axis=0)
    at, values = _top(found.output(0), count)
    return op.gather(places, at, index(0)).output(0), values


def in_rows(x: Node | Output) -> tuple[Node, Output]:
    """Return [n] as rows [h, w], nearly a square, and the last one to w of it, which fill no row.

    A CPU goes through rows in parallel.
    """
    (size,) = (x.output(0) if isinstance(x, Node) else x).get_shape()
    width = math.isqrt(size)
    height = (size - 1) // width
    rows, rest = op.variadic_split(x, index(0), ints([height * width, -1])).outputs()
    return op.reshape(rows, np.array([height, width]), special_zero=False), rest


def _top(x: Output, count: int) -> tuple[Output, Output]:
    found = op.topk(x, index(count), 0, "max", "value", index_element_type="i32")
    return found.output(1), found.output(0)
