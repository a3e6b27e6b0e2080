"""Which audio contexts the traces of a training are of, and a word where they differ.

A warning and no refusal: hidden states of the same words differ little between the two, a corrector
for tiny.en that learned from both was as good, and traces cost far more than a training.
"""

from collections.abc import Sequence
from pathlib import Path

from beamless.data_gen.traces import read_recipe
from beamless.inference.options import AudioContext


def context_warning(folders: Sequence[Path], used_under: AudioContext) -> str:
    """Return one line where traces are of two contexts, or of another than they will be used under.

    Args:
        folders: the traces.
        used_under: what dev corpora are decoded under, as the corrector will be.
    """
    contexts = {folder: read_recipe(folder).audio_context for folder in folders}
    others = [str(folder) for folder, context in contexts.items() if context != used_under]
    if not others:
        return ""
    other = "full" if used_under == "short" else "short"
    some = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    which = "these traces are" if len(others) == len(contexts) else "some of these traces are"
    return (
        f"{which} of the {other} audio context, not {used_under}: {some}; "
        "fine if it is meant, else collect them again or set --audio-context"
    )
