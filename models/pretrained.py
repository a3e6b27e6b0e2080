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
    for file in sorted(FOLDER.glob("*/corrector.json")):
        if read_config(file.parent).model_hash == model_hash:
            return load_corrector(file.parent)
    return None


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
    for file in sorted(FOLDER.glob("*/confidence.json")):
        known = read_config(file.parent).model_hash == corrector.config.model_hash
        if known and load_corrector(file.parent).hash == corrector.hash:
            content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return content
    return None
