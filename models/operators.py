"""Short names for what graphs are put together from: constants, and sums over a vocabulary."""

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
