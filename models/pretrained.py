"""Correctors that come with Beamless, each for the one model that it was trained on.

They lie in ``models/correctors/``, a folder each: a corrector as ``beamless train`` writes it, in
float16, and a card that says what it was made of.
"""

from pathlib import Path

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
