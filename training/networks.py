"""The torch twins of the correctors in ``models/corrector.py``: these train, those run."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from beamless.models.corrector import Corrector, CorrectorConfig, untrained


class ShiftNetwork(nn.Module):
    """Hidden states to a shift of the last one; zero until trained.

    Symbols: N steps, d width, W history, m units.
    """

    def __init__(self, config: CorrectorConfig, dropout: float = 0.0, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        inputs = (config.history + 1) * config.width
        self.norm = nn.LayerNorm(inputs)
        self.up = nn.Linear(inputs, config.units)
        self.down = nn.Linear(config.units, config.width)
        self.dropout = nn.Dropout(dropout)
        load_arrays(self, untrained(config, seed).arrays)

    def forward(self, hidden: Tensor, history: Tensor) -> Tensor:
        """Return what to add to ``hidden`` [N, d], given ``history`` [N, W·d]."""
        x = self.norm(torch.cat([hidden, history], dim=1))
        x = self.dropout(nn.functional.gelu(self.up(self.dropout(x))))
        shift: Tensor = self.down(x)
        return shift


def load_arrays(network: nn.Module, arrays: Mapping[str, np.ndarray]) -> None:
    """Copy a corrector's arrays into its network."""
    network.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in arrays.items()})


def to_corrector(network: ShiftNetwork, provenance: Mapping[str, Any]) -> Corrector:
    """Take the arrays of a trained network, with where they come from."""
    arrays = {name: t.detach().cpu().numpy().copy() for name, t in network.state_dict().items()}
    config = network.config
    kept = CorrectorConfig(
        config.family,
        config.model_hash,
        config.width,
        config.history,
        config.units,
        dict(provenance),
    )
    return Corrector(kept, arrays)
