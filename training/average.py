"""``beamless average``: trainings that differ in their seed to one corrector of their mean."""

from pathlib import Path

from beamless.inference.atomic import is_taken
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import console
from beamless.models.average import average_of
from beamless.models.corrector import load_corrector, save_corrector


def average(correctors: list[Path], out: Path) -> None:
    """Make of several correctors one that adds the mean of what they add.

    What one training learned by luck of its order and its first weights, another did not: their
    mean is surer than either, and costs a step what a corrector of all their units costs.

    Args:
        correctors: folders that train made, of one model, family and history.
        out: the mean's folder; new.
    """
    if is_taken(out):
        raise BeamlessError(f"{out} exists; name another folder, or remove it")
    mean = average_of([load_corrector(folder) for folder in correctors])
    save_corrector(mean, out)
    console().print(f"wrote {out} ({mean.parameters:,} parameters)")
