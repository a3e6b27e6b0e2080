"""Dev windows that are encoded once and decoded by many trainings of one model."""

import hashlib
from collections.abc import Collection
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from beamless.inference.atomic import replaced_atomically
from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV
from beamless.inference.options import AudioContext
from beamless.inference.window_encoder import WindowEncoder


class KeptWindows:
    """A bundle's encoder that keeps each window's cross-KV in a folder, in float32.

    What is kept counts for one model alone: a decoder's own cross-attention is in it. In tiny.en
    a window of the full audio context takes 18 MB.
    """

    def __init__(self, bundle: Bundle, folder: Path) -> None:
        self._encoder = WindowEncoder(bundle)
        self._folder = folder / str(bundle.manifest.model["hash"])[:16]

    def __call__(self, samples: np.ndarray, audio_context: AudioContext) -> CrossKV:
        """Encode a window, float32 [n] at 16 kHz, or read what was made of the same samples."""
        name = hashlib.sha256(samples.tobytes()).hexdigest()[:32]
        path = self._folder / f"{name}.{audio_context}.safetensors"
        if path.is_file():
            kept: CrossKV = load_file(path)
            return kept
        cross_kv = self._encoder(samples, audio_context)
        with replaced_atomically(path) as temporary:
            save_file(dict(cross_kv), temporary)
        return cross_kv

    def prepare(self, audio_contexts: Collection[AudioContext]) -> None:
        """Compile nothing before it is needed: perhaps all windows are kept."""
