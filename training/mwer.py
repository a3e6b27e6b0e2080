"""The corrector's module for the objective ``mwer``: few word errors on average over a list."""

from typing import Any

from torch import Tensor

from beamless.training.lists import ListBatch
from beamless.training.module import DOUBT_WEIGHT, CorrectorModule, doubt_loss, is_right
from beamless.training.objectives import correction_loss, expected_errors, hypothesis_logprobs


class MwerModule(CorrectorModule):
    """Trains on lists: what is expected of each, and a little of the best one's cross-entropy.

    A decoder's states depend on its tokens alone and not on the corrector, so that the corrected
    probability of a whole hypothesis follows exactly from the states along it.
    """

    def __init__(self, *given: Any, cross_entropy_weight: float, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*given, **options)
        self._cross_entropy_weight = cross_entropy_weight

    def training_step(self, batch: ListBatch, index: int) -> Tensor:  # type: ignore[override]
        """Lightning's hook."""
        loss = self.list_loss(batch)
        self.log("loss", loss, prog_bar=True, batch_size=len(batch.members))
        return loss

    def validation_step(self, batch: ListBatch, index: int) -> None:  # type: ignore[override]
        """Log the word errors expected, above those of the mean hypothesis."""
        size = len(batch.members)
        corrected, base, targets, _ = self(batch.steps)
        for name, logits in (("expected", corrected), ("expected_before", base)):
            found = self.expected(logits, targets, batch).mean()
            self.log(name, found, prog_bar=True, batch_size=size)

    def list_loss(self, batch: ListBatch) -> Tensor:
        """Return the loss of a batch: the mean of its lists."""
        corrected, base, targets, doubt = self(batch.steps)
        loss = self.expected(corrected, targets, batch).mean()
        best, right = batch.best, targets[batch.best]
        agrees = batch.steps.agrees[best]
        correction = correction_loss(corrected[best], base[best], right, agrees, self.kl_weight)
        loss = loss + self._cross_entropy_weight * correction
        if doubt is not None:
            loss = loss + DOUBT_WEIGHT * doubt_loss(doubt[best], is_right(corrected[best], right))
        return loss

    def expected(self, logits: Tensor, targets: Tensor, batch: ListBatch) -> Tensor:
        """Return the word errors expected of each list [U] under logits [N, C]."""
        count = int(batch.members.max()) + 1
        logprobs = hypothesis_logprobs(logits, targets, batch.hypothesis, count)
        return expected_errors(logprobs, batch.members, batch.errors)
