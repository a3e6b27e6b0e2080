"""Whisper with beam-search accuracy at greedy cost, on every OpenVINO device.

The public names load on first use, so that ``import beamless`` costs nothing and production
never imports torch.
"""

from importlib import import_module
from pathlib import Path

_HERE = Path(__file__).parent
if not (_HERE / "inference").is_dir():  # run from a checkout, where the rooms stand beside us
    __path__.append(str(_HERE.parent))

__version__ = "0.1.0"

_PUBLIC = {
    "BeamlessError": "beamless.inference.errors",
    "DecodingOptions": "beamless.inference.options",
    "Transcriber": "beamless.inference.transcribe",
    "load": "beamless.transcribe",
    "stream": "beamless.listen",
    "Transcript": "beamless.inference.transcript",
}

__all__ = [
    "BeamlessError",
    "DecodingOptions",
    "Transcriber",
    "Transcript",
    "__version__",
    "load",
    "stream",
]


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'beamless' has no attribute {name!r}")
