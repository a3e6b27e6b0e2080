"""Ctrl-C during training: noted when it comes, obeyed behind the batch in hand.

A KeyboardInterrupt may be raised anywhere, also where Python ignores exceptions, and be lost.
"""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import lightning
from torch import Tensor

from beamless.training.steps import Batch


class StopBetweenBatches(lightning.Callback):
    """Raises KeyboardInterrupt behind the batch during which Ctrl-C came."""

    def __init__(self) -> None:
        self.asked = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        self.asked = True

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        module: lightning.LightningModule,
        outputs: Tensor | Mapping[str, Any] | None,
        batch: Batch,
        index: int,
    ) -> None:
        """Lightning's hook."""
        if self.asked:
            raise KeyboardInterrupt


@contextmanager
def listening(stop: StopBetweenBatches) -> Iterator[None]:
    """Let ``stop`` note Ctrl-C while the block runs; only the main thread can hear it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop.note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
