"""The corrector as a Lightning module: one training step, one validation step, one optimiser."""

from typing import Any

import lightning
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from beamless.models.corrector import CorrectorConfig
from beamless.models.whisper import Checkpoint
from beamless.training.networks import network_of
from beamless.training.objectives import correction_loss
from beamless.training.steps import Batch

DOUBT_WEIGHT = 0.1  # of the gate's loss, in units of the cross-entropy


class CorrectorModule(lightning.LightningModule):
    """Trains a corrector's network against a frozen output projection [V, d]."""

    embedding: Tensor
    always: Tensor
    begin: Tensor

    def __init__(
        self,
        checkpoint: Checkpoint,
        config: CorrectorConfig,
        *,
        learning_rate: float,
        weight_decay: float,
        dropout: float,
        kl_weight: float,
        seed: int,
    ) -> None:
        super().__init__()
        self.network = network_of(config, dropout, seed)
        self._rate, self._decay, self.kl_weight = learning_rate, weight_decay, kl_weight
        self._seed = seed
        embedding = checkpoint.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)
        self.register_buffer("embedding", torch.from_numpy(embedding), persistent=False)
        always = _bias(checkpoint.sizes.vocabulary, checkpoint.suppress_tokens)
        begin = _bias(checkpoint.sizes.vocabulary, checkpoint.begin_suppress_tokens)
        self.register_buffer("always", always, persistent=False)
        self.register_buffer("begin", begin, persistent=False)

    def candidates(self, batch: Batch) -> Tensor:
        """Return the tokens that a batch is normalised over, sorted.

        They are the K likeliest and the right tokens of all its steps, and as many others drawn
        from the vocabulary: all the competition that a step has, at a fortieth of the cost of
        the full softmax.
        """
        likely = torch.cat([batch.top_ids.flatten(), batch.targets[batch.targets >= 0]]).unique()
        others = torch.randint(len(self.embedding), (len(likely),), device=likely.device)
        return torch.cat([likely, others]).unique()

    def logits(self, hidden: Tensor, first: Tensor, candidates: Tensor) -> Tensor:
        """Project hidden states [N, d] to candidates' logits, suppressed ones at minus infinity."""
        logits = hidden @ self.embedding[candidates].T + self.always[candidates]
        return torch.where(first[:, None], logits + self.begin[candidates], logits)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Return corrected and base logits [N, C] over a batch's candidates, and the targets there.

        The targets are places among the candidates [N, A], filled up with -1. Last comes the
        gate's logit [N] that the corrected choice is wrong, where there is a gate.
        """
        candidates = self.candidates(batch)
        places = torch.searchsorted(candidates, batch.targets.clamp(min=0))
        places = torch.where(batch.targets < 0, batch.targets, places)
        with torch.no_grad():
            base = self.logits(batch.hidden, batch.first, candidates)
        corrected, doubt = self.network.correct(
            batch, candidates, base, self.logits, self.embedding
        )
        return corrected, base, places, doubt

    def on_train_batch_start(self, batch: Batch, index: int) -> None:
        """Fix dropout and candidates by the step, so that a resumed training is the same one."""
        torch.manual_seed(self._seed * 1_000_003 + self.global_step)

    def training_step(self, batch: Batch, index: int) -> Tensor:
        """Lightning's hook."""
        corrected, base, targets, doubt = self(batch)
        loss = correction_loss(corrected, base, targets, batch.agrees, self.kl_weight)
        if doubt is not None:
            loss = loss + DOUBT_WEIGHT * doubt_loss(doubt, is_right(corrected, targets))
        self.log("loss", loss, prog_bar=True, batch_size=len(batch.targets))
        return loss

    def validation_step(self, batch: Batch, index: int) -> None:
        """Log the loss and how many differing steps are fixed and agreeing ones harmed."""
        size = len(batch.targets)
        corrected, base, targets, doubt = self(batch)
        loss = correction_loss(corrected, base, targets, batch.agrees, self.kl_weight)
        right = is_right(corrected, targets)
        if doubt is not None:
            self.log("doubt_loss", doubt_loss(doubt, right), prog_bar=True, batch_size=size)
        self.log("dev_loss", loss, prog_bar=True, batch_size=size)
        for name, value, rows in (
            ("fixed", right, ~batch.agrees),
            ("harmed", ~right, batch.agrees),
        ):
            count = int(rows.sum())
            if count:
                self.log(name, value[rows].float().mean(), prog_bar=True, batch_size=count)

    def configure_optimizers(self) -> Any:  # noqa: ANN401 - Lightning's own union of types
        """AdamW, its rate falling to zero along a cosine over the whole training."""
        optimizer = torch.optim.AdamW(
            self.network.parameters(), self._rate, weight_decay=self._decay
        )
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps))
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def is_right(logits: Tensor, targets: Tensor) -> Tensor:
    """Tell for each step [N] whether the best of logits [N, C] is one of its targets [N, A]."""
    return (logits.argmax(dim=1, keepdim=True) == targets).any(dim=1)


def doubt_loss(doubt: Tensor, right: Tensor) -> Tensor:
    """Return the binary cross-entropy of the gate's logits [N] against what was wrong [N]."""
    return binary_cross_entropy_with_logits(doubt, (~right).to(doubt.dtype))


def _bias(vocabulary: int, tokens: tuple[int, ...]) -> Tensor:
    bias = torch.zeros(vocabulary)
    bias[list(tokens)] = -torch.inf
    return bias
