"""Several correctors averaged into one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from beamless.inference.errors import BeamlessError
from beamless.models.average import average_of
from beamless.models.corrector import (
    NAMED_SCORES,
    Corrector,
    config_of,
    load_corrector,
    save_corrector,
    untrained,
)
from beamless.training.networks import load_arrays, network_of

WIDTH, VOCABULARY, STEPS = 12, 30, 5


def trained(seed: int, family: str = "shift", **kind: object) -> Corrector:
    """Stand for a trained corrector: one whose every number was moved."""
    config = config_of(
        family, "m" * 64, WIDTH, VOCABULARY, **{"units": 7 + seed, "candidates": 4, **kind}
    )
    rng = np.random.default_rng(seed)
    arrays = untrained(config, seed).arrays
    return Corrector(
        config, {n: a + rng.normal(0, 0.3, a.shape).astype(np.float32) for n, a in arrays.items()}
    )


def added(corrector: Corrector) -> np.ndarray:
    """Return what a corrector adds to hidden states or logits, and its gate's logit."""
    network = network_of(corrector.config).eval()
    load_arrays(network, corrector.arrays)
    torch.manual_seed(0)
    states = (torch.randn(STEPS, WIDTH), torch.randn(STEPS, WIDTH))
    candidates = (torch.randn(STEPS, 4, WIDTH), torch.randn(STEPS, 4, NAMED_SCORES + 4))
    seen = {"shift": (), "dense": (torch.arange(VOCABULARY),), "rerank": candidates}
    with torch.no_grad():
        told = [torch.randn(STEPS, WIDTH)] if corrector.config.last_token else []
        told += [torch.rand(STEPS, 1)] if corrector.config.ledger else []
        moved, layer = network(network.seen(*states, told), *seen[corrector.config.family])
        doubt = network.doubted(torch.randn(STEPS, VOCABULARY), layer)
    return (moved if doubt is None else torch.cat([moved, doubt[:, None]], dim=1)).numpy()


@pytest.mark.parametrize("family", ["shift", "dense", "rerank"])
@pytest.mark.parametrize("kind", [{}, {"gate": True}, {"ledger": True}, {"last_token": True}])
def test_it_adds_the_mean_of_what_each_adds(family: str, kind: dict[str, bool]) -> None:
    """Also with a gate, a ledger and the last token, and of members of different widths."""
    members = [trained(seed, family, **kind) for seed in range(3)]
    together = average_of(members)
    assert together.config.units == 7 + 8 + 9
    mean = np.mean([added(member) for member in members], axis=0)
    np.testing.assert_allclose(added(together), mean, atol=1e-5)


def test_an_average_is_kept_and_loaded_as_any_corrector(tmp_path: Path) -> None:
    """With what it was averaged from."""
    save_corrector(average_of([trained(0), trained(1)]), tmp_path)
    assert load_corrector(tmp_path).config.provenance == {"members": [{}, {}]}


def test_a_mean_is_trusted_where_its_members_are() -> None:
    """One that says no language is trusted in all; its mean was in none."""
    members = [trained(0), trained(1)]
    assert "languages" not in average_of(members).config.provenance
    learned = {"languages": ["en"]}
    english = [replace(m, config=replace(m.config, provenance=learned)) for m in members]
    assert average_of(english).config.provenance["languages"] == ["en"]


def test_the_average_of_nothing_is_refused() -> None:
    """As from a pattern that no folder fits."""
    with pytest.raises(BeamlessError, match="name the correctors"):
        average_of([])


def test_correctors_of_two_models_are_refused() -> None:
    """They move different hidden states."""
    other = trained(1)
    config = config_of("shift", "n" * 64, WIDTH, VOCABULARY, units=8)
    with pytest.raises(BeamlessError, match="differ in model_hash"):
        average_of([trained(0), Corrector(config, other.arrays)])
