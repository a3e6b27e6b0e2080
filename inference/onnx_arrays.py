"""The arrays in an ONNX file, read without the onnx package.

An ONNX file is a protobuf message; of its format (onnx.proto3) only the few fields are needed that
lead to tensors: model.graph, graph.node, graph.initializer, node.attribute, attribute.t/g.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

FLOAT = 1  # TensorProto.DataType
MODEL_GRAPH = 7
GRAPH_NODE, GRAPH_INITIALIZER = 1, 5
NODE_ATTRIBUTE = 5
ATTRIBUTE_TENSOR, ATTRIBUTE_GRAPH = 5, 6
TENSOR_DIMS, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW = 1, 2, 8, 9


def graphs_of_arrays(path: Path) -> list[dict[str, np.ndarray]]:
    """Return the named float32 arrays of each graph of a model, branches of ``If`` included.

    Raises:
        ValueError: the file is not protobuf.
    """
    found: list[dict[str, np.ndarray]] = []
    for field, value in _fields(memoryview(path.read_bytes())):
        if field == MODEL_GRAPH and isinstance(value, memoryview):
            _collect(value, found)
    return found


def _collect(graph: memoryview, found: list[dict[str, np.ndarray]]) -> None:
    """Add a graph's arrays to ``found``, then those of the graphs inside it."""
    tensors = [value for field, value in _messages(graph) if field == GRAPH_INITIALIZER]
    inside = []
    for node in (value for field, value in _messages(graph) if field == GRAPH_NODE):
        for attribute in (value for field, value in _messages(node) if field == NODE_ATTRIBUTE):
            for field, value in _messages(attribute):
                if field == ATTRIBUTE_TENSOR:
                    tensors.append(value)
                elif field == ATTRIBUTE_GRAPH:
                    inside.append(value)
    found.append(dict(pair for tensor in tensors if (pair := _named_array(tensor))))
    for each in inside:
        _collect(each, found)


def _named_array(tensor: memoryview) -> tuple[str, np.ndarray] | None:
    """Return name and array of a float32 tensor; None for other types or without a name."""
    shape: list[int] = []
    name, raw, kind = "", memoryview(b""), 0
    for field, value in _fields(tensor):
        if isinstance(value, int):
            if field == TENSOR_DIMS:
                shape.append(value)
            elif field == TENSOR_TYPE:
                kind = value
        elif field == TENSOR_DIMS:  # packed
            shape.extend(_varints(value))
        elif field == TENSOR_NAME:
            name = bytes(value).decode("utf-8")
        elif field == TENSOR_RAW:
            raw = value
    if not name or kind != FLOAT:
        return None
    return name, np.frombuffer(raw, "<f4").reshape(shape)


def _messages(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    return ((field, value) for field, value in _fields(data) if isinstance(value, memoryview))


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the number and value of each field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind} is not protobuf")
        if at + size > len(data):
            raise ValueError("the file ends inside a field")
        yield key >> 3, data[at : at + size]
        at += size


def _varints(data: memoryview) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the number of variable length at ``at`` and the place behind it."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("the file ends inside a number")
