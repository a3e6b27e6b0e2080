"""``beamless export``: a model, and a corrector where there is one, to a bundle."""

from pathlib import Path
from typing import Literal

from beamless.inference.bundle import DEFAULT_CAPACITY
from beamless.inference.progress import console
from beamless.models.bundle import write_bundle
from beamless.models.corrector import load_corrector
from beamless.models.whisper import load_checkpoint

Precision = Literal["f32", "f16", "bf16", "default"]


def export(
    model: str,
    out: Path,
    *,
    corrector: Path | None = None,
    capacity: int = DEFAULT_CAPACITY,
    encoder_precision: Precision = "f32",
    decoder_precision: Precision = "f32",
    weights: Literal["f16", "f32", "int8"] = "f16",
) -> None:
    """Make the folder that production loads.

    Args:
        model: a folder, a short name such as tiny.en, or a hub id.
        out: the bundle's folder; it must not exist.
        corrector: a trained corrector's folder.
        capacity: tokens that a window may hold, the prompt among them; up to 448.
        encoder_precision: what the encoder computes in; default is the device's own choice.
        decoder_precision: the same for the decoder; faster ones change tokens on some devices,
            which 'beamless check' shows.
        weights: how weights are stored; int8 makes the bundle a third smaller and a step faster,
            and rounds: 'beamless evaluate' shows the price.
    """
    precision = {"encoder": encoder_precision, "decoder": decoder_precision, "weights": weights}
    loaded = load_corrector(corrector) if corrector else None
    write_bundle(load_checkpoint(model), out, loaded, capacity, precision)
    size = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    console().print(f"wrote {out} ({size:.0f} MB)")
