"""A step's matrices as int8, a scale for each row: it reads a quarter of the bytes.

A step of batch one spends its time reading weights, so that smaller ones make it faster; the
encoder, which computes more than it reads, keeps its own. The device multiplies back to floats.
"""

import hashlib
import re
from dataclasses import replace

import numpy as np
import openvino as ov
from openvino import Node
from openvino import opset13 as op

from beamless.models.corrector import Corrector
from beamless.models.whisper import Checkpoint

EMBEDDING = "model.decoder.embed_tokens.weight"
_MATRIX = re.compile(
    r"model\.decoder\.(embed_tokens|layers\.\d+\."
    r"(self_attn\.[qkv]_proj|encoder_attn\.q_proj|\w+_attn\.out_proj|fc[12]))\.weight"
)
LARGEST = 127
WORTH_IT = 1 << 16
"""Numbers of a corrector's matrix from which on it is rounded: those of its last, single rows cost
nothing to read, and a gate is calibrated with them as they are."""


def rounded(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix [rows, columns] as int8 and its scales float32 [rows, 1].

    The largest of a row becomes 127 or -127. Scales fit in float16, as they are stored.
    """
    largest = np.abs(matrix).max(axis=1, keepdims=True).astype(np.float32) / LARGEST
    scale = largest.astype(np.float16).astype(np.float32)
    scale[scale == 0] = 1  # a row of zeros, or of what float16 takes for zero
    whole = np.clip(np.rint(matrix / scale), -LARGEST, LARGEST)
    return whole.astype(np.int8), scale


def rounded_checkpoint(checkpoint: Checkpoint) -> Checkpoint:
    """Return the Whisper that a bundle with int8 weights really is, as floats."""
    arrays = dict(checkpoint.arrays)
    for name in filter(_MATRIX.fullmatch, checkpoint.arrays):
        whole, scale = rounded(arrays[name].astype(np.float32))
        arrays[name] = whole * scale
    return replace(checkpoint, arrays=arrays)


def round_matrices(
    graph: ov.Model, checkpoint: Checkpoint, corrector: Corrector | None = None
) -> None:
    """Let a step graph hold the decoder's matrices as int8, and a corrector's large ones."""
    matrices = [array for name, array in checkpoint.arrays.items() if _MATRIX.fullmatch(name)]
    if corrector is not None:
        matrices += [a for a in corrector.arrays.values() if a.ndim == 2 and a.size >= WORTH_IT]
    known = {_digest(matrix): rounded(matrix.astype(np.float32)) for matrix in matrices}
    shared: dict[str, tuple[Node, Node]] = {}
    for node in graph.get_ordered_ops():
        at = {"MatMul": 1, "Gather": 0}.get(node.get_type_name())
        constant = None if at is None else node.input_value(at).get_node()
        if constant is None or constant.get_type_name() != "Constant" or len(constant.shape) != 2:
            continue
        digest = _digest(constant.get_data())
        if digest not in known:
            continue
        if digest not in shared:
            whole, scale = known[digest]
            shared[digest] = op.constant(whole), op.constant(scale)
        if at == 1:
            node.input(1).replace_source_output(_floats(*shared[digest]).output(0))
        else:
            rows = [op.gather(part, node.input_value(1), op.constant(0)) for part in shared[digest]]
            node.output(0).replace(_floats(*rows).output(0))
    graph.validate_nodes_and_infer_types()
    forbid_rounding(graph)


def forbid_rounding(graph: ov.Model) -> None:
    """Tell OpenVINO's CPU not to round what int8 weights are multiplied with, in groups of 32."""
    graph.set_rt_info("0", ["runtime_options", "DYNAMIC_QUANTIZATION_GROUP_SIZE"])


def _floats(whole: Node, scale: Node) -> Node:
    return op.multiply(op.convert(whole, "f32"), scale)


def _digest(array: np.ndarray) -> str:
    content = np.ascontiguousarray(array, np.float32)
    return hashlib.sha256(content.tobytes()).hexdigest()
