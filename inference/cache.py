"""The folder for what can be made again: built bundles, joined models, compiled graphs."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return Beamless's cache folder: ``BEAMLESS_CACHE``, else the system's place for caches."""
    if own := os.environ.get("BEAMLESS_CACHE"):
        return Path(own).expanduser()
    if local := os.environ.get("LOCALAPPDATA"):
        return Path(local) / "beamless"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "beamless"
