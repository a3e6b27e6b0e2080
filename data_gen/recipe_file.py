"""YAML recipes, read with one-line errors."""

from pathlib import Path
from typing import Any

import yaml

from beamless.inference.errors import BeamlessError


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that is one mapping.

    Raises:
        BeamlessError: the file is missing, is not UTF-8 or YAML, or is something else.
    """
    path = Path(path)
    if not path.is_file():
        raise BeamlessError(f"there is no recipe {path}")
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BeamlessError(f"{path} is not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(loaded, dict) or not all(isinstance(key, str) for key in loaded):
        raise BeamlessError(f"{path} must hold 'name: value' entries")
    return loaded
