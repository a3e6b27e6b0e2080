"""A corrector as production sees it: arrays, a configuration, and its OpenVINO subgraph.

Families: ``shift`` moves the decoder's last hidden state before the projection to logits. The
torch twin that trains is ``training/networks.py``; the two agree within 1e-3.

Symbols: d width, W hidden states of earlier steps (``history``), m hidden units.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from openvino import Node
from openvino import opset13 as op
from safetensors.numpy import load_file, save_file

from beamless.inference.atomic import replaced_atomically, write_text_atomically
from beamless.inference.errors import BeamlessError

FAMILIES = ("shift",)


@dataclass(frozen=True)
class CorrectorConfig:
    """What a corrector is.

    Attributes:
        family: ``shift``.
        model_hash: the checkpoint that it was trained on; it refuses any other.
        width: d.
        history: W.
        units: m.
        provenance: traces, recipe and figures of its training.
    """

    family: str
    model_hash: str
    width: int
    history: int = 1
    units: int = 1024
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Corrector:
    """A corrector's configuration and arrays."""

    config: CorrectorConfig
    arrays: Mapping[str, np.ndarray]

    @property
    def hash(self) -> str:
        """SHA-256 over its arrays."""
        digest = hashlib.sha256()
        for name in sorted(self.arrays):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.arrays[name], np.float32).tobytes())
        return digest.hexdigest()

    @property
    def parameters(self) -> int:
        """How many numbers it learned."""
        return sum(array.size for array in self.arrays.values())


def shapes_of(config: CorrectorConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a corrector's arrays by name."""
    inputs, units, width = (config.history + 1) * config.width, config.units, config.width
    return {
        "norm.weight": (inputs,),
        "norm.bias": (inputs,),
        "up.weight": (units, inputs),
        "up.bias": (units,),
        "down.weight": (width, units),
        "down.bias": (width,),
    }


def untrained(config: CorrectorConfig, seed: int = 0) -> Corrector:
    """Make a corrector that changes nothing: its last layer is zero."""
    rng = np.random.default_rng(seed)
    arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes_of(config).items()}
    arrays["norm.weight"] += 1
    units, inputs = arrays["up.weight"].shape
    bound = inputs**-0.5
    arrays["up.weight"] = rng.uniform(-bound, bound, (units, inputs)).astype(np.float32)
    return Corrector(config, arrays)


def shift_of(corrector: Corrector, hidden: Node, history: Node) -> Node:
    """Build the corrector: hidden [1, 1, d] and history [W, d] → what to add to hidden."""
    arrays = corrector.arrays
    past = op.reshape(history, np.array([1, 1, -1]), special_zero=False)
    x = op.concat([hidden, past], axis=2)
    x = op.mvn(x, op.constant(np.array([-1], np.int32)), True, 1e-5, "inside_sqrt")
    x = op.add(op.multiply(x, _constant(arrays["norm.weight"])), _constant(arrays["norm.bias"]))
    x = op.matmul(x, _constant(arrays["up.weight"]), False, True)
    x = op.gelu(op.add(x, _constant(arrays["up.bias"])), "erf")
    x = op.matmul(x, _constant(arrays["down.weight"]), False, True)
    return op.add(x, _constant(arrays["down.bias"]))


def save_corrector(corrector: Corrector, folder: Path) -> None:
    """Write ``corrector.safetensors`` and ``corrector.json`` into a folder."""
    with replaced_atomically(folder / "corrector.safetensors") as temporary:
        save_file(
            {name: np.ascontiguousarray(a) for name, a in corrector.arrays.items()}, temporary
        )
    text = json.dumps(asdict(corrector.config), indent=2, ensure_ascii=False)
    write_text_atomically(folder / "corrector.json", text + "\n")


def load_corrector(folder: Path) -> Corrector:
    """Read a corrector's folder.

    Raises:
        BeamlessError: a file is missing or damaged, or the family is unknown.
    """
    config_file, arrays_file = folder / "corrector.json", folder / "corrector.safetensors"
    for file in (config_file, arrays_file):
        if not file.is_file():
            raise BeamlessError(f"{folder} is not a corrector: it holds no {file.name}")
    try:
        config = CorrectorConfig(**json.loads(config_file.read_text(encoding="utf-8")))
        arrays = {name: np.asarray(a, np.float32) for name, a in load_file(arrays_file).items()}
    except Exception as error:  # safetensors and json each raise their own kinds
        raise BeamlessError(f"the corrector in {folder} is damaged ({error})") from None
    if config.family not in FAMILIES:
        raise BeamlessError(f"corrector family {config.family!r} is none of {', '.join(FAMILIES)}")
    expected = shapes_of(config)
    for name in sorted(expected | arrays):
        array = arrays.get(name, np.empty(0))
        if array.shape != expected.get(name) or not np.isfinite(array).all():
            raise BeamlessError(
                f"the corrector in {folder} is damaged (its {name}); train it again"
            )
    return Corrector(config, arrays)


def _constant(array: np.ndarray) -> Node:
    return op.constant(np.asarray(array, np.float32))
