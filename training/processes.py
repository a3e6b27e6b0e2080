"""Trainings that several processes share: Lightning starts the same command again for each."""

import torch
from torch import distributed

from beamless.inference.counts import require_between
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import console


def require_devices(devices: int, batch_size: int) -> None:
    """Refuse more processes than there are GPUs, where there are any, or steps in a batch.

    Raises:
        BeamlessError: as said.
    """
    require_between(1, batch_size, devices=devices)
    if torch.cuda.is_available() and devices > (gpus := torch.cuda.device_count()):
        raise BeamlessError(f"--devices {devices}, but this machine has {gpus}; give at most that")


def is_first() -> bool:
    """Tell whether this is the process that the user started, which alone writes."""
    from lightning.pytorch.utilities import rank_zero_only

    return getattr(rank_zero_only, "rank", 0) == 0


def say(text: str) -> None:
    """Print a line on standard error, once for all processes."""
    if is_first():
        console().print(text, soft_wrap=True)


def rank_of_all() -> tuple[int, int]:
    """Return this process's number, and how many there are, once Lightning has joined them."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()
