"""Correctors that come with Beamless, each for the one model that it was trained on.

They lie in ``models/correctors/``, a folder each: a corrector as ``beamless train`` writes it, in
float16; what ``beamless calibrate`` fitted on its dev speech; and a card that says what it was made
of.
"""

import json
from pathlib import Path
from typing import Any

from beamless.models.corrector import Corrector, load_corrector, read_config

FOLDER = Path(__file__).parent / "correctors"


def pretrained(model_hash: str) -> Corrector | None:
    """Return the corrector for a checkpoint, or None where none comes with Beamless.

    Args:
        model_hash: the checkpoint's.
    """
    folder = _folder_of(model_hash)
    return load_corrector(folder) if folder else None


def pretrained_confidence(corrector: Corrector | None) -> dict[str, Any] | None:
    """Return how the confidence of a corrector that comes with Beamless is calibrated.

    Args:
        corrector: of any origin; None decodes without one.

    Returns:
        What a bundle's manifest holds, or None of any other corrector: numbers that were fitted on
        what one wrote say nothing about what another writes.
    """
    if corrector is None:
        return None
    folder = _folder_of(corrector.config.model_hash)
    if folder is None or load_corrector(folder).hash != corrector.hash:
        return None
    content: dict[str, Any] = json.loads((folder / "confidence.json").read_text(encoding="utf-8"))
    return content


def _folder_of(model_hash: str) -> Path | None:
    folders = sorted(file.parent for file in FOLDER.glob("*/corrector.json"))
    return next((each for each in folders if read_config(each).model_hash == model_hash), None)
