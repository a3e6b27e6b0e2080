"""Several correctors as one: what they add, averaged, is again what a corrector adds.

``shift`` adds W₂·gelu(W₁·x + b₁) + b₂ to a hidden state, ``dense`` to logits. The mean of several
is the same formula with their hidden units side by side, so that an ensemble of seeds becomes one
wider corrector, without a change to the graph. ``rerank`` has one more layer between, whose
weights become those of the members along a diagonal. And since logits are linear in the hidden
state, the mean of shifts is the mean of corrected logits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from beamless.inference.errors import BeamlessError
from beamless.models.corrector import DOUBT_SCORES, Corrector, check_config


def average_of(correctors: Sequence[Corrector]) -> Corrector:
    """Make the one corrector that adds the mean of what several add.

    Its units are those of all, a gate's logit is the mean of theirs, and it says of each (in
    ``members``) where it comes from.

    Raises:
        BeamlessError: there are none, or they are not all of one model, kind and language.
    """
    if not correctors:
        raise BeamlessError("name the correctors to average")
    first = correctors[0].config
    kinds = [asdict(replace(one.config, units=1, provenance={})) for one in correctors]
    if apart := [name for name in kinds[0] if any(k[name] != kinds[0][name] for k in kinds)]:
        raise BeamlessError(
            "only correctors of one model and kind can be averaged; these differ in "
            + ", ".join(apart)
        )
    origins = [dict(one.config.provenance) for one in correctors]
    languages = [origin.get("languages") for origin in origins]
    if any(learned != languages[0] for learned in languages):
        raise BeamlessError("these correctors learned different languages; average those of one")
    provenance: dict[str, Any] = {"members": origins}
    if languages[0] is not None:
        provenance["languages"] = languages[0]
    units = sum(one.config.units for one in correctors)
    config = replace(first, units=units, provenance=provenance)
    check_config(config)
    each = [one.arrays for one in correctors]
    entry = "state" if first.family == "rerank" else "up"
    entries = [_with_norm(arrays, entry) for arrays in each]
    norm = each[0]["norm.weight"]
    arrays = {
        "norm.weight": np.ones_like(norm),
        "norm.bias": np.zeros_like(norm),
        entry + ".weight": np.concatenate([weight for weight, _ in entries]),
        entry + ".bias": np.concatenate([bias for _, bias in entries]),
        "down.weight": _side_by_side([one["down.weight"] for one in each]),
    }
    if first.family == "rerank":
        for name in ("token.weight", "score.weight", "up.bias"):
            arrays[name] = np.concatenate([one[name] for one in each])
        arrays["up.weight"] = _along_a_diagonal([one["up.weight"] for one in each])
    else:
        arrays["down.bias"] = _mean([one["down.bias"] for one in each])
    if first.gate:
        doubts = [one["doubt.weight"] for one in each]
        scores = _mean([doubt[:, :DOUBT_SCORES] for doubt in doubts])
        seen = _side_by_side([doubt[:, DOUBT_SCORES:] for doubt in doubts])
        arrays["doubt.weight"] = np.concatenate([scores, seen], axis=1)
        arrays["doubt.bias"] = _mean([one["doubt.bias"] for one in each])
    return Corrector(config, arrays)


def _with_norm(arrays: Mapping[str, np.ndarray], entry: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the first layer's weight [m, inputs] and bias [m], the norm's own in them."""
    scale, offset = arrays["norm.weight"], arrays["norm.bias"]
    weight = arrays[entry + ".weight"].copy()
    bias = arrays[entry + ".bias"] + weight[:, : len(offset)] @ offset
    weight[:, : len(scale)] *= scale
    return weight, bias


def _along_a_diagonal(arrays: Sequence[np.ndarray]) -> np.ndarray:
    size, start = sum(map(len, arrays)), 0
    whole = np.zeros((size, size), np.float32)
    for array in arrays:
        end = start + len(array)
        whole[start:end, start:end] = array
        start = end
    return whole


def _mean(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack(arrays).mean(axis=0, dtype=np.float32)


def _side_by_side(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return weights of units side by side that give the mean of what each array gives of its."""
    whole: np.ndarray = np.concatenate(arrays, axis=1) / np.float32(len(arrays))
    return whole
