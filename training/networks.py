"""The torch twins of the correctors in ``models/corrector_graphs.py``: these train, those run.

Symbols: N steps, d width, V vocabulary, W history, m units, K candidates, F scores of a candidate,
C tokens that a batch is normalised over.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, one_hot

from beamless.models.corrector import (
    CANDIDATES,
    DOUBT_SCORES,
    NAMED_SCORES,
    Corrector,
    CorrectorConfig,
    inputs_of,
    untrained,
)
from beamless.models.corrector_graphs import LEAST_LOGPROB, LEAST_ODDS, LOGITS, NATS
from beamless.training.steps import Batch

Project = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Hidden states [N, d], first [N] and tokens [C] to their logits [N, C]."""


class Network(nn.Module):
    """What all families share: the normalised states, dropout, and the gate."""

    def __init__(self, config: CorrectorConfig, dropout: float = 0.0, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.norm = nn.LayerNorm((config.history + 1) * config.width)
        self.dropout = nn.Dropout(dropout)
        self._build(config)
        self.doubt = nn.Linear(DOUBT_SCORES + config.units, 1) if config.gate else None
        load_arrays(self, untrained(config, seed).arrays)

    def _build(self, config: CorrectorConfig) -> None:
        raise NotImplementedError

    def seen(self, hidden: Tensor, history: Tensor, told: Sequence[Tensor] = ()) -> Tensor:
        """Normalise states [N, d] and [N, W·d] together; what else it is told stands behind."""
        return torch.cat([self.norm(torch.cat([hidden, history], dim=1)), *told], dim=1)

    def seen_of(self, batch: Batch, embedding: Tensor) -> Tensor:
        """Return what the network sees of a batch, given the token embedding [V, d].

        ``models/corrector_graphs.told_of`` says what it is told.
        """
        told = []
        if self.config.last_token:
            last = embedding[batch.last.clamp(min=0)]
            told.append(layer_norm(last, last.shape[-1:]) * (batch.last >= 0)[:, None])
        if self.config.ledger:
            told.append(batch.spent[:, None])
        return self.seen(batch.hidden, batch.history, told)

    def doubted(self, logits: Tensor, layer: Tensor) -> Tensor | None:
        """Return the logit [N] of the best token being wrong; None without a gate.

        Args:
            logits: corrected logits [N, C]; the gate does not train what they come from.
            layer: hidden units [N, m].
        """
        if self.doubt is None:
            return None
        top = logits.detach().topk(self.config.candidates or CANDIDATES, dim=1).values
        logit: Tensor = self.doubt(torch.cat([doubt_scores(top), layer], dim=1))[:, 0]
        return logit

    def correct(
        self, batch: Batch, tokens: Tensor, base: Tensor, project: Project, embedding: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Correct a batch.

        Args:
            batch: N steps.
            tokens: the ids [C] that it is normalised over, sorted, all candidates among them.
            base: the base model's logits of them [N, C].
            project: the base model's own projection.
            embedding: the model's token embedding [V, d].

        Returns:
            The corrected logits [N, C], and the gate's logit [N] where there is a gate.
        """
        raise NotImplementedError


class ShiftNetwork(Network):
    """Hidden states to a shift of the last one."""

    def _build(self, config: CorrectorConfig) -> None:
        self.up = nn.Linear(inputs_of(config), config.units)
        self.down = nn.Linear(config.units, config.width)

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return what to add to hidden states [N, d], given what is ``seen``; and its units."""
        layer = _layer(self, self.up, seen)
        return self.down(layer), layer

    def correct(
        self, batch: Batch, tokens: Tensor, base: Tensor, project: Project, embedding: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Project the moved hidden states."""
        shift, layer = self(self.seen_of(batch, embedding))
        logits = project(batch.hidden + shift, batch.first, tokens)
        return logits, self.doubted(logits, layer)


class DenseNetwork(Network):
    """Hidden states to what is added to the logits."""

    def _build(self, config: CorrectorConfig) -> None:
        self.up = nn.Linear(inputs_of(config), config.units)
        self.down = nn.Linear(config.units, config.vocabulary)

    def forward(self, seen: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return what to add to the logits of ``tokens`` [C], as [N, C]; and the hidden units."""
        layer = _layer(self, self.up, seen)
        added = layer @ self.down.weight[tokens].T + self.down.bias[tokens]
        return added, layer

    def correct(
        self, batch: Batch, tokens: Tensor, base: Tensor, project: Project, embedding: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Add to the base model's logits."""
        added, layer = self(self.seen_of(batch, embedding), tokens)
        return base + added, self.doubted(base + added, layer)


class RerankNetwork(Network):
    """Each candidate by itself to what is added to its logit."""

    def _build(self, config: CorrectorConfig) -> None:
        units = config.units
        self.state = nn.Linear(inputs_of(config), units)
        self.token = nn.Linear(config.width, units, bias=False)
        self.score = nn.Linear(NAMED_SCORES + config.candidates, units, bias=False)
        self.up = nn.Linear(units, units)
        self.down = nn.Linear(units, 1, bias=False)

    def forward(self, seen: Tensor, embedded: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return what to add to the candidates' logits [N, K], and the mean of their units [N, m].

        Args:
            seen: what is seen of each step.
            embedded: the candidates' embeddings [N, K, d].
            scores: what ``scores_of`` returned, [N, K, F].
        """
        state = self.state(self.dropout(seen))[:, None]  # [N, 1, m]
        token = self.token(layer_norm(embedded, embedded.shape[-1:]))  # [N, K, m]
        x = self.dropout(gelu(state + token + self.score(scores) + state * token))
        x = self.dropout(gelu(self.up(x)))
        return self.down(x)[..., 0], x.mean(dim=1)

    def correct(
        self, batch: Batch, tokens: Tensor, base: Tensor, project: Project, embedding: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Add to the candidates' logits and leave all others as they are."""
        top = batch.top_ids[:, : self.config.candidates]
        logprobs = batch.top_logprobs[:, : self.config.candidates]
        scores = scores_of(logprobs, batch.log_sum_exp, batch.first, batch.text_position)
        added, layer = self(self.seen_of(batch, embedding), embedding[top], scores)
        places = torch.searchsorted(tokens, top)
        logits = base.scatter_add(1, places, added)
        return logits, self.doubted(logits.gather(1, places), layer)


NETWORKS: Mapping[str, type[Network]] = {
    "shift": ShiftNetwork,
    "rerank": RerankNetwork,
    "dense": DenseNetwork,
}


def network_of(config: CorrectorConfig, dropout: float = 0.0, seed: int = 0) -> Network:
    """Make the untrained network of a corrector's family."""
    return NETWORKS[config.family](config, dropout, seed)


def scores_of(
    logprobs: Tensor, log_sum_exp: Tensor, first: Tensor, text_position: Tensor
) -> Tensor:
    """Return the scores [N, K, F] of candidates with log-probabilities [N, K], best first.

    ``models/corrector_graphs.scores_of`` says what they are.
    """
    clipped = logprobs.clamp(min=LEAST_LOGPROB)
    entropy = -(clipped.exp() * clipped).sum(dim=1, keepdim=True)
    columns = [
        clipped / NATS,
        (clipped[:, :1] - clipped) / NATS,
        entropy,
        log_sum_exp[:, None] / LOGITS,
        (logprobs[:, :1] + log_sum_exp[:, None]) / LOGITS,
        first[:, None].float(),
        torch.log1p(text_position.float())[:, None] / NATS,
    ]
    count = logprobs.shape[1]
    named = torch.stack([column.expand(-1, count) for column in columns], dim=2)
    ranks = one_hot(torch.arange(count, device=logprobs.device)).to(named.dtype)
    return torch.cat([named, ranks.expand(len(named), -1, -1)], dim=2)


def doubt_scores(top: Tensor) -> Tensor:
    """Return what the gate sees [N, 3] of the K highest logits [N, K], best first.

    ``models/corrector_graphs.doubt_of`` says what it is.
    """
    behind = (top - top[:, :1]).clamp(min=LEAST_LOGPROB)
    odds = behind.exp().sum(dim=1, keepdim=True) - 1
    own = behind - torch.log1p(odds)
    entropy = -(own.exp() * own).sum(dim=1, keepdim=True)
    return torch.cat([odds.clamp(min=LEAST_ODDS).log(), -behind[:, 1:2] / NATS, entropy], dim=1)


def load_arrays(network: nn.Module, arrays: Mapping[str, np.ndarray]) -> None:
    """Copy a corrector's arrays into its network."""
    network.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in arrays.items()})


def to_corrector(network: Network, provenance: Mapping[str, Any]) -> Corrector:
    """Take the arrays of a trained network, with where they come from."""
    arrays = {name: t.detach().cpu().numpy().copy() for name, t in network.state_dict().items()}
    return Corrector(replace(network.config, provenance=dict(provenance)), arrays)


def _layer(network: Network, up: nn.Linear, seen: Tensor) -> Tensor:
    """Return the hidden units [N, m] of ``shift`` and ``dense``."""
    layer: Tensor = network.dropout(gelu(up(network.dropout(seen))))
    return layer
