"""``parity.json`` beside a bundle: whether this very bundle decodes as the reference does.

``beamless check`` writes it; what builds on exact decoding, such as collecting traces, asks for it
first.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from beamless.inference.atomic import write_text_atomically
from beamless.inference.bundle import Bundle
from beamless.inference.cache import cache_folder
from beamless.inference.errors import BeamlessError
from beamless.models.precision import FAST


def write_parity(bundle: Bundle, figures: Mapping[str, Any]) -> Path:
    """Write the figures of a check and the hash of the bundle it was made with; return the file.

    Args:
        bundle: what was checked.
        figures: among them ``passed``, a bool.
    """
    file = bundle.folder / "parity.json"
    record = {"bundle_hash": bundle.hash, **figures}
    write_text_atomically(file, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return file


def read_parity(bundle: Bundle) -> dict[str, Any] | None:
    """Return the record of this very bundle, or None where there is none or it cannot be read."""
    file = bundle.folder / "parity.json"
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("bundle_hash") != bundle.hash:
        return None
    return record


def require_parity(bundle: Bundle) -> None:
    """Refuse a bundle that has not passed the parity gate.

    Raises:
        BeamlessError: no check of this very bundle is on record, or it failed.
    """
    record = read_parity(bundle)
    if record is None:
        raise BeamlessError(
            f"{bundle.folder} was never checked against the reference; "
            f"run 'beamless check {called(bundle)}' first"
        )
    if record.get("passed") is not True:
        raise BeamlessError(
            f"{bundle.folder} does not decode as the reference does; "
            f"see its parity.json and run 'beamless check {called(bundle)}' again"
        )


def called(bundle: Bundle) -> str:
    """Return what to check: the model's name where the bundle is one kept in the cache."""
    if bundle.folder.parent != cache_folder() / "bundles":
        return str(bundle.folder)
    suffix = " --precision fast" if bundle.manifest.precision == FAST else ""
    return bundle.manifest.model["name"] + suffix
