"""What a bundle's encoder makes of thirty seconds of silence, kept from one start to the next."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from beamless.inference.atomic import replaced_atomically
from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV


def silence_of(bundle: Bundle, encode: Callable[[], CrossKV]) -> CrossKV:
    """Return the cross-KV [1, H, S, e] of silence: as it was kept, else by ``encode``.

    It lies beside the compiled graphs, where the bundle has a place for these, so that a start
    with short windows alone never needs the full encoder. A file that is damaged is made again.
    """
    if bundle.graph_cache is None:
        return encode()
    device = bundle.device.replace(":", "-")
    file = bundle.graph_cache / f"silence-{bundle.hash[:16]}-{device}.npy"
    sizes = bundle.manifest.sizes
    layers, heads = range(sizes["decoder_layers"]), sizes["heads"]
    names = [f"cross_{part}.{layer}" for layer in layers for part in ("key", "value")]
    shape = (len(names), 1, heads, sizes["audio_positions"], sizes["width"] // heads)
    kept = _read(file)
    if kept is None or kept.shape != shape or kept.dtype != np.float32:
        silence = encode()
        kept = np.stack([silence[name] for name in names])
        _write(file, kept)
    return dict(zip(names, kept, strict=True))


def _read(file: Path) -> np.ndarray | None:
    try:
        kept: np.ndarray = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return kept


def _write(file: Path, silence: np.ndarray) -> None:
    """Keep it, where there is a place that can be written to."""
    try:
        with replaced_atomically(file) as temporary, temporary.open("wb") as content:
            np.save(content, silence)
    except OSError:
        return
