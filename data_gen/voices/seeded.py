"""ONNX voices whose noise depends on their input alone, so that audio can be made again.

Voices draw random numbers inside their graph, from a state that each call moves on. A corpus
resumed after a stop would then differ from an undisturbed one. Here those nodes read from a
table that is an input of the graph, and the table is drawn from a hash of the other inputs.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beamless.inference.errors import BeamlessError

if TYPE_CHECKING:
    import onnx

TABLE = 1 << 19
"""Random numbers in the table: about what a Piper voice draws for 30 s of speech."""

KINDS = {"RandomNormalLike": "beamless_normal", "RandomUniformLike": "beamless_uniform"}


def draw_from_table(graph: "onnx.GraphProto") -> set[str]:
    """Replace the graph's random nodes by reads from input tables; return the tables' names."""
    from onnx import TensorProto, helper

    tables: set[str] = set()
    nodes = []
    for number, node in enumerate(list(graph.node)):
        if node.op_type not in KINDS:
            nodes.append(node)
            continue
        table = KINDS[node.op_type]
        tables.add(table)
        nodes += _table_nodes(graph, node, table, offset=number * 7919 % TABLE)
    for table in sorted(tables):
        graph.input.append(helper.make_tensor_value_info(table, TensorProto.FLOAT, [TABLE]))
    del graph.node[:]
    graph.node.extend(nodes)
    return tables


def _table_nodes(
    graph: "onnx.GraphProto", node: "onnx.NodeProto", table: str, offset: int
) -> list["onnx.NodeProto"]:
    """Nodes that fill the shape of ``node``'s input from ``table``, round and round."""
    from onnx import TensorProto, helper

    prefix = node.output[0] + "_table_"
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "RandomNormalLike":
        scale, shift = attributes.get("scale", 1.0), attributes.get("mean", 0.0)
    else:
        shift = attributes.get("low", 0.0)
        scale = attributes.get("high", 1.0) - shift
    whole = {"zero": 0, "one": 1, "offset": offset, "size": TABLE}
    for name, value in whole.items():
        graph.initializer.append(helper.make_tensor(prefix + name, TensorProto.INT64, [], [value]))
    for name, real in {"scale": scale, "shift": shift}.items():
        graph.initializer.append(helper.make_tensor(prefix + name, TensorProto.FLOAT, [], [real]))
    steps = [
        ("Shape", [node.input[0]], "shape"),
        ("ReduceProd", [prefix + "shape"], "count"),
        ("Range", [prefix + "zero", prefix + "count", prefix + "one"], "range"),
        ("Add", [prefix + "range", prefix + "offset"], "moved"),
        ("Mod", [prefix + "moved", prefix + "size"], "index"),
        ("Gather", [table, prefix + "index"], "flat"),
        ("Mul", [prefix + "flat", prefix + "scale"], "scaled"),
        ("Add", [prefix + "scaled", prefix + "shift"], "shifted"),
    ]
    made = [helper.make_node(kind, inputs, [prefix + out]) for kind, inputs, out in steps]
    made[1].attribute.append(helper.make_attribute("keepdims", 0))
    shaped = helper.make_node("Reshape", [prefix + "shifted", prefix + "shape"], node.output)
    return [*made, shaped]


class SeededSession:
    """An onnxruntime session that gives the same output for the same input, always.

    It stands in for ``onnxruntime.InferenceSession`` where a library takes one.
    """

    def __init__(self, model: bytes, origin: str) -> None:
        """Load a graph from its bytes; errors call it ``origin``.

        Raises:
            BeamlessError: it is not an ONNX model, or onnxruntime refuses it.
        """
        try:
            import onnx
            import onnxruntime
        except ImportError:
            raise BeamlessError(
                'voices need their packages; run: pip install "beamless[voices]"'
            ) from None
        try:
            loaded = onnx.load_from_string(model)
            self._tables = draw_from_table(loaded.graph)
            self._session = onnxruntime.InferenceSession(
                loaded.SerializeToString(), providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            raise BeamlessError(f"{origin} is not a usable ONNX voice ({reason})") from None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._session, name)

    def get_inputs(self) -> list[Any]:
        """Return the graph's own inputs, without the tables."""
        return [i for i in self._session.get_inputs() if i.name not in self._tables]

    def run(
        self, outputs: Sequence[str] | None, feeds: dict[str, NDArray[Any]]
    ) -> list[NDArray[Any]]:
        """Run the graph; ``outputs`` None means all of them."""
        digest = blake2b(digest_size=8)
        for name in sorted(feeds):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(feeds[name]).tobytes())
        random = np.random.default_rng(int.from_bytes(digest.digest(), "big"))
        values = {
            "beamless_normal": random.standard_normal(TABLE, np.float32),
            "beamless_uniform": random.random(TABLE, np.float32),
        }
        drawn = {name: values[name] for name in self._tables}
        result: list[NDArray[Any]] = self._session.run(outputs, {**feeds, **drawn})
        return result
