"""Shapes of a compiled graph's inputs and outputs, some of whose sizes may be open."""

import openvino as ov


def fixed_shape(port: ov.ConstOutput, size: int) -> tuple[int, ...]:
    """Return a port's shape, in which every size that is open is ``size``."""
    shape = port.partial_shape
    return tuple(size if one.is_dynamic else one.get_length() for one in shape)
