"""Teacher forcing: walk the static decoder along known tokens and keep what it saw."""

from collections.abc import Sequence

import numpy as np

from beamless.inference.decoder import CrossKV, StaticDecoder
from beamless.inference.greedy import room_for_text


def teacher_forcing(
    decoder: StaticDecoder, cross_kv: CrossKV, prompt: Sequence[int], tokens: Sequence[int]
) -> np.ndarray:
    """Return the hidden states [T, d] from which each of ``tokens`` [T] would be predicted.

    Args:
        decoder: a step graph of batch one.
        cross_kv: the window, encoded.
        prompt: the ids that open it.
        tokens: the known text, its end token last.

    Raises:
        BeamlessError: the prompt leaves no room for text.
        IndexError: prompt and tokens are longer than the capacity.
    """
    room_for_text(decoder.capacity, prompt)
    decoder.start(cross_kv)
    hidden = [decoder.prefill(prompt).hidden[0].copy()]
    for token in tokens[:-1]:
        hidden.append(decoder.step([token]).hidden[0].copy())
    return np.stack(hidden)
