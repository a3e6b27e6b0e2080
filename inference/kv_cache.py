"""The static cache of keys and values: fixed buffers, one slot a token, and the mask over them.

B hypotheses, H heads, C capacity (C - 1 slots and the current token), e width of a head.
"""

from collections.abc import Sequence

import numpy as np


def attention_mask(position: int, capacity: int) -> np.ndarray:
    """Return the mask [1, C] for the token at ``position``: 1 = attend.

    The filled slots 0 … position-1 are visible, and the last index, where the graph puts the
    current token; everything else is hidden.

    Raises:
        ValueError: the position is not inside the capacity.
    """
    if not 0 <= position < capacity:
        raise ValueError(f"position {position} is outside a capacity of {capacity} tokens")
    mask = np.zeros((1, capacity), np.float32)
    mask[0, :position] = 1
    mask[0, -1] = 1
    return mask


class KeyValueCache:
    """One buffer [B, H, C-1, e] for each name, written slot by slot."""

    def __init__(self, names: Sequence[str], shape: Sequence[int]) -> None:
        self.slots = int(shape[2])
        self.buffers = {name: np.zeros(tuple(shape), np.float32) for name in names}

    def clear(self) -> None:
        """Start a window: every slot holds zeros."""
        for buffer in self.buffers.values():
            buffer.fill(0)

    def write(self, name: str, slot: int, present: np.ndarray) -> None:
        """Write one token's keys or values, [B, H, 1, e], into a slot.

        Raises:
            IndexError: there is no such slot; NumPy's own slices would write nothing, silently.
            ValueError: the shape is not that of one token.
        """
        buffer = self.buffers[name]
        if not 0 <= slot < self.slots:
            raise IndexError(f"{name} has slots 0 to {self.slots - 1}, not {slot}")
        expected = (*buffer.shape[:2], 1, buffer.shape[3])
        if present.shape != expected:
            raise ValueError(f"{name} takes a token of shape {expected}, not {present.shape}")
        buffer[:, :, slot] = present[:, :, 0]

    def reorder(self, parents: Sequence[int], length: int) -> int:
        """Let row b go on from row ``parents[b]``; only the ``length`` filled slots move.

        Returns:
            The number of rows that had to be copied, at most B.
        """
        moved = [(row, parent) for row, parent in enumerate(parents) if row != parent]
        if moved and length:
            rows, sources = (list(side) for side in zip(*moved, strict=True))
            for buffer in self.buffers.values():
                buffer[rows, :, :length] = buffer[sources, :, :length]
        return len(moved)
