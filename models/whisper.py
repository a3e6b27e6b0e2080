"""A Whisper checkpoint as NumPy arrays, whatever it was stored as.

Arrays carry the names of transformers' ``WhisperForConditionalGeneration``, float16 or float32.
Dimension symbols here and in ``graphs.py``: M mel bands, F mel frames, S encoder positions,
P decoder positions, d width, H heads, e = d/H, L layers, V vocabulary, C cache capacity, B batch.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from beamless.inference.errors import BeamlessError
from beamless.models.ctranslate2 import is_ctranslate2, read_ctranslate2
from beamless.models.sources import locate


@dataclass(frozen=True)
class Sizes:
    """Every size of one Whisper, read from its arrays and configuration."""

    mels: int
    frames: int
    audio_positions: int
    text_positions: int
    width: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    vocabulary: int


@dataclass(frozen=True)
class Checkpoint:
    """One Whisper: its arrays, its tokenizer and what decoding needs to know of it."""

    name: str
    arrays: Mapping[str, np.ndarray]
    heads: int
    tokenizer_json: str
    suppress_tokens: tuple[int, ...]
    begin_suppress_tokens: tuple[int, ...]
    alignment_heads: tuple[tuple[int, int], ...]

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes that follow from the arrays' shapes."""
        width, mels, _ = self.arrays["model.encoder.conv1.weight"].shape
        positions = len(self.arrays["model.encoder.embed_positions.weight"])
        return Sizes(
            mels=mels,
            frames=2 * positions,
            audio_positions=positions,
            text_positions=len(self.arrays["model.decoder.embed_positions.weight"]),
            width=width,
            heads=self.heads,
            encoder_layers=self._layers("encoder"),
            decoder_layers=self._layers("decoder"),
            vocabulary=len(self.arrays["model.decoder.embed_tokens.weight"]),
        )

    def _layers(self, side: str) -> int:
        norm = "self_attn_layer_norm.weight"
        names = [n for n in self.arrays if n.startswith(f"model.{side}.layers.")]
        return sum(name.endswith(norm) for name in names)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all arrays as float16: the same for every format of the same weights."""
        digest = hashlib.sha256()
        for name in sorted(self.arrays):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.arrays[name], np.float16).tobytes())
        return digest.hexdigest()


def load_checkpoint(name: str) -> Checkpoint:
    """Load a Whisper by hub id, local transformers or CTranslate2 folder, or short name.

    Raises:
        BeamlessError: there is no such model, or its files are not a Whisper's.
    """
    folder = locate(name)
    if is_ctranslate2(folder):
        arrays, config = read_ctranslate2(folder)
        heads = int(config["heads"])
        suppress, begin = config.get("suppress_ids", []), config.get("suppress_ids_begin", [])
    else:
        arrays, config = read_transformers(folder)
        if "decoder_attention_heads" not in config:
            raise BeamlessError(f"{folder / 'config.json'} lacks decoder_attention_heads")
        heads = int(config["decoder_attention_heads"])
        suppress = config.get("suppress_tokens") or []
        begin = config.get("begin_suppress_tokens") or []
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise BeamlessError(f"{folder} holds no tokenizer.json; add the one of this Whisper")
    return Checkpoint(
        name=name,
        arrays=arrays,
        heads=heads,
        tokenizer_json=tokenizer.read_text(encoding="utf-8"),
        suppress_tokens=tuple(t for t in suppress if t >= 0),
        begin_suppress_tokens=tuple(begin),
        alignment_heads=tuple((int(x), int(y)) for x, y in config.get("alignment_heads") or ()),
    )


def read_transformers(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read a transformers folder: ``model.safetensors`` (or its shards) and its two configs.

    Raises:
        BeamlessError: a file is missing, or the model is not a Whisper.
    """
    config_file = folder / "config.json"
    if not config_file.is_file():
        raise BeamlessError(f"{folder} holds no config.json; it is not a model's folder")
    config = _json(config_file)
    if config.get("model_type") != "whisper":
        raise BeamlessError(f"{folder} holds a {config.get('model_type')!r} model, not a Whisper")
    generation = folder / "generation_config.json"
    if generation.is_file():
        config |= _json(generation)
    whole = folder / "model.safetensors"
    files = [whole] if whole.is_file() else sorted(folder.glob("model-*.safetensors"))
    if not files:
        raise BeamlessError(f"{folder} holds no model.safetensors; other weight files are not read")
    arrays: dict[str, np.ndarray] = {}
    for file in files:
        try:
            arrays |= load_file(file)
        except Exception as error:  # safetensors raises its own kind, NumPy others
            raise BeamlessError(f"{file} cannot be read ({error}); fetch it again") from None
    arrays.pop("proj_out.weight", None)  # tied to the token embedding
    return {name: array.astype(np.float32) for name, array in arrays.items()}, config


def _json(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise BeamlessError(f"{file} is damaged ({error}); fetch it again") from None
