"""A Whisper as the one file that whisper.cpp loads, so that both run the very same weights.

The file, little-endian throughout: a mark; eleven sizes; the mel filters; the text tokens' bytes by
id; then each array with its name, its type and its shape, last axis first. Matrices are float16,
as in the files that whisper.cpp's users have.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from beamless.inference.atomic import replaced_atomically
from beamless.inference.features import mel_filters
from beamless.inference.tokenizer import Tokenizer
from beamless.models.whisper import Checkpoint

MARK = 0x67676D6C  # "ggml"
FLOAT32, FLOAT16 = 0, 1
NAMES = {  # transformers' to whisper.cpp's, which are openai/whisper's
    "model.encoder.embed_positions.weight": "encoder.positional_embedding",
    "model.decoder.embed_positions.weight": "decoder.positional_embedding",
    "model.decoder.embed_tokens.weight": "decoder.token_embedding.weight",
}
PARTS = {
    "model.encoder.layer_norm": "encoder.ln_post",
    "model.decoder.layer_norm": "decoder.ln",
    "model.": "",
    "layers.": "blocks.",
    "self_attn_layer_norm": "attn_ln",
    "encoder_attn_layer_norm": "cross_attn_ln",
    "final_layer_norm": "mlp_ln",
    "self_attn": "attn",
    "encoder_attn": "cross_attn",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "out",
    "fc1": "mlp.0",
    "fc2": "mlp.2",
}


def write_ggml(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint as whisper.cpp's model file, whole or not at all."""
    sizes = checkpoint.sizes
    header = (
        sizes.vocabulary,
        sizes.audio_positions,
        sizes.width,
        sizes.heads,
        sizes.encoder_layers,
        sizes.text_positions,
        sizes.width,
        sizes.heads,
        sizes.decoder_layers,
        sizes.mels,
        FLOAT16,
    )
    with replaced_atomically(path) as temporary, temporary.open("wb") as file:
        _write(file, MARK, *header)
        filters = mel_filters(sizes.mels)
        _write(file, *filters.shape)
        file.write(filters.astype("<f4").tobytes())
        tokens = list(token_bytes(checkpoint))
        _write(file, len(tokens))
        for token in tokens:
            _write(file, len(token))
            file.write(token)
        for name, array in checkpoint.arrays.items():
            _write_array(file, name, array)


def ggml_name(name: str) -> str:
    """Return whisper.cpp's name for one of transformers' arrays."""
    if name in NAMES:
        return NAMES[name]
    for old, new in PARTS.items():
        name = name.replace(old, new)
    return name


def token_bytes(checkpoint: Checkpoint) -> Iterator[bytes]:
    """Yield the bytes that each text token stands for, in the order of the ids."""
    end = Tokenizer(checkpoint.tokenizer_json, checkpoint.sizes.vocabulary).end
    vocabulary = json.loads(checkpoint.tokenizer_json)["model"]["vocab"]
    of_character = byte_alphabet()
    for token, identifier in sorted(vocabulary.items(), key=lambda item: item[1]):
        if identifier < end:
            yield bytes(of_character[character] for character in token)


def byte_alphabet() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for (GPT-2's).

    Printable characters stand for themselves; the others were moved behind U+0100 in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    moved = {chr(0x100 + index): byte for index, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | moved


def _write(file: BinaryIO, *numbers: int) -> None:
    file.write(struct.pack(f"<{len(numbers)}i", *numbers))


def _write_array(file: BinaryIO, name: str, array: np.ndarray) -> None:
    plain = array.ndim < 2 or "positional_embedding" in ggml_name(name)
    if name.endswith(("conv1.bias", "conv2.bias")):
        array = array.reshape(-1, 1)
    encoded = ggml_name(name).encode()
    _write(file, array.ndim, len(encoded), FLOAT32 if plain else FLOAT16)
    _write(file, *reversed(array.shape))
    file.write(encoded)
    file.write(array.astype("<f4" if plain else "<f2").tobytes())
