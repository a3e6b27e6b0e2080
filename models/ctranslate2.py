"""Reading CTranslate2's Whisper folders, the layout that faster-whisper users have on disk.

``model.bin``, binary version 6: the specification's name and revision, then for each variable
its name, shape, type and bytes, then aliases; little-endian throughout. Self-attention stores q,
k and v in one matrix (k with a bias of zeros), cross-attention q in one and k, v in another.
"""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from beamless.inference.errors import BeamlessError

VERSION = 6
_DTYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


def is_ctranslate2(folder: Path) -> bool:
    """Tell whether a folder holds CTranslate2's weight file, whole or in the parts of two."""
    return bool(model_parts(folder))


def model_parts(folder: Path) -> list[Path]:
    """Return ``model.bin``, or its parts in order, or nothing."""
    whole = folder / "model.bin"
    return [whole] if whole.is_file() else sorted(folder.glob("model.bin.part*"))


def read_ctranslate2(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read a CTranslate2 Whisper folder.

    Returns:
        The arrays under transformers' names, and ``config.json`` with ``heads`` added.

    Raises:
        BeamlessError: the file is damaged, of another version, or not a float Whisper.
    """
    content = b"".join(part.read_bytes() for part in model_parts(folder))
    variables = read_variables(content, folder)
    config_file = folder / "config.json"
    try:
        text = config_file.read_text(encoding="utf-8") if config_file.is_file() else "{}"
        config = dict(json.loads(text), heads=int(variables["decoder/num_heads"]))
        return rename(variables), config
    except KeyError as error:
        raise BeamlessError(f"{folder}: model.bin has no {error}; it is not a Whisper's") from None
    except (ValueError, TypeError) as error:
        raise BeamlessError(f"{config_file} is damaged ({error}); fetch it again") from None


def read_variables(content: bytes, source: Path) -> dict[str, np.ndarray]:
    """Parse the bytes of ``model.bin`` into its named arrays."""
    reader = _Reader(content)
    try:
        version = reader.number("I")
        if version != VERSION:
            raise BeamlessError(f"{source}: CTranslate2 version {version} is not read, only 6")
        specification = reader.text()
        if specification != "WhisperSpec":
            raise BeamlessError(f"{source} holds a {specification}, not a Whisper")
        reader.number("I")
        return dict(reader.variable() for _ in range(reader.number("I")))
    except (struct.error, ValueError) as error:
        raise BeamlessError(f"{source}: model.bin is damaged ({error}); fetch it again") from None


class _Reader:
    """Reads the pieces of ``model.bin`` one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from("<" + kind, self.content, self.place)
        self.place += struct.calcsize("<" + kind)
        return int(value)

    def text(self) -> str:
        length = self.number("H")
        self.place += length
        return self.content[self.place - length : self.place - 1].decode("utf-8")

    def variable(self) -> tuple[str, np.ndarray]:
        name = self.text()
        shape = [self.number("I") for _ in range(self.number("B"))]
        stored = self.number("B")
        if stored not in _DTYPES:
            raise ValueError(f"{name} is of the unknown type {stored}")
        dtype = np.dtype(_DTYPES[stored])
        count = self.number("I") // dtype.itemsize
        array = np.frombuffer(self.content, dtype, count, self.place).reshape(shape)
        self.place += array.nbytes
        return name, array


def rename(variables: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Map CTranslate2's variables onto transformers' names, splitting the fused matrices.

    Raises:
        BeamlessError: the weights are quantised (8 or 16 bit integers).
    """
    if any(array.ndim > 1 and array.dtype.kind != "f" for array in variables.values()):
        raise BeamlessError("this CTranslate2 model is quantised; take its float16 or float32 form")
    arrays: dict[str, np.ndarray] = {}
    for side in ("encoder", "decoder"):
        old, new = side + "/", f"model.{side}."
        position = variables[old + "position_encodings/encodings"]
        arrays[new + "embed_positions.weight"] = position
        _norm(arrays, new + "layer_norm", variables, old + "layer_norm")
        layer = 0
        while f"{old}layer_{layer}/ffn/linear_0/weight" in variables:
            _layer(arrays, f"{new}layers.{layer}.", variables, f"{old}layer_{layer}/")
            layer += 1
    for convolution in ("conv1", "conv2"):
        for part in ("weight", "bias"):
            value = variables[f"encoder/{convolution}/{part}"]
            arrays[f"model.encoder.{convolution}.{part}"] = value
    arrays["model.decoder.embed_tokens.weight"] = variables["decoder/embeddings/weight"]
    return arrays


def _norm(arrays: dict[str, np.ndarray], new: str, old: dict[str, np.ndarray], name: str) -> None:
    arrays[new + ".weight"], arrays[new + ".bias"] = old[name + "/gamma"], old[name + "/beta"]


def _layer(arrays: dict[str, np.ndarray], new: str, old: dict[str, np.ndarray], name: str) -> None:
    _norm(arrays, new + "self_attn_layer_norm", old, name + "self_attention/layer_norm")
    _norm(arrays, new + "final_layer_norm", old, name + "ffn/layer_norm")
    _linear(arrays, new + "self_attn.", "qkv", old, name + "self_attention/linear_0")
    _linear(arrays, new + "self_attn.", "o", old, name + "self_attention/linear_1")
    if name + "attention/linear_0/weight" in old:
        _norm(arrays, new + "encoder_attn_layer_norm", old, name + "attention/layer_norm")
        _linear(arrays, new + "encoder_attn.", "q", old, name + "attention/linear_0")
        _linear(arrays, new + "encoder_attn.", "kv", old, name + "attention/linear_1")
        _linear(arrays, new + "encoder_attn.", "o", old, name + "attention/linear_2")
    for number in (0, 1):
        for part in ("weight", "bias"):
            arrays[f"{new}fc{number + 1}.{part}"] = old[f"{name}ffn/linear_{number}/{part}"]


def _linear(
    arrays: dict[str, np.ndarray], new: str, parts: str, old: dict[str, np.ndarray], name: str
) -> None:
    weights = np.split(old[name + "/weight"], len(parts))
    biases = np.split(old[name + "/bias"], len(parts))
    for part, weight, bias in zip(parts, weights, biases, strict=True):
        target = new + ("out_proj" if part == "o" else f"{part}_proj")
        arrays[target + ".weight"] = weight
        if part != "k":
            arrays[target + ".bias"] = bias
