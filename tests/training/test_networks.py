"""The corrector that trains and the one that runs are one function."""

import numpy as np
import openvino as ov
import pytest
import torch
from openvino import opset13 as op

from beamless.models.corrector import Corrector, CorrectorConfig, config_of, shapes_of, untrained
from beamless.models.corrector_graphs import shift_of
from beamless.training.networks import (
    NETWORKS,
    ShiftNetwork,
    load_arrays,
    network_of,
    scores_of,
    to_corrector,
)
from beamless.training.steps import Batch

CONFIG = CorrectorConfig("shift", "hash", width=24, history=2, units=40)


def trained_looking(config: CorrectorConfig) -> Corrector:
    rng = np.random.default_rng(5)
    arrays = untrained(config).arrays
    return Corrector(
        config, {n: rng.standard_normal(a.shape).astype(np.float32) for n, a in arrays.items()}
    )


def test_an_untrained_network_shifts_nothing():
    network = ShiftNetwork(CONFIG)
    shift, _ = network(network.seen(torch.randn(3, 24), torch.randn(3, 48)))
    assert not shift.any()


@pytest.mark.parametrize("history", [0, 1, 2])
def test_torch_equals_openvino_within_a_thousandth(history):
    config = CorrectorConfig("shift", "hash", width=24, history=history, units=40)
    corrector = trained_looking(config)
    network = ShiftNetwork(config).eval()
    load_arrays(network, corrector.arrays)
    rng = np.random.default_rng(6)
    hidden = rng.standard_normal((1, 1, 24)).astype(np.float32)
    past = rng.standard_normal((max(1, history), 24)).astype(np.float32)[:history]
    inputs = [op.parameter([1, 1, 24], np.float32), op.parameter([history, 24], np.float32)]
    graph = ov.Model([shift_of(corrector, *inputs)], inputs, "corrector")
    compiled = ov.compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    ours = compiled([hidden, past])[0].reshape(-1)
    with torch.no_grad():
        states = torch.from_numpy(hidden[0]), torch.from_numpy(past.reshape(1, -1))
        theirs, _ = network(network.seen(*states))
    assert np.abs(ours - theirs.numpy().reshape(-1)).max() < 1e-3


def test_arrays_survive_the_way_through_torch():
    corrector = trained_looking(CONFIG)
    network = ShiftNetwork(CONFIG)
    load_arrays(network, corrector.arrays)
    back = to_corrector(network, {"steps": 3})
    assert back.hash == corrector.hash
    assert back.config.provenance == {"steps": 3}


def batch_of(steps: int, seed: int = 0) -> Batch:
    """Random steps of a model with 24 numbers a state and 50 tokens."""
    generator = torch.Generator().manual_seed(seed)
    top = torch.stack([torch.randperm(50, generator=generator)[:4] for _ in range(steps)])
    return Batch(
        hidden=torch.randn(steps, 24, generator=generator),
        history=torch.randn(steps, 48, generator=generator),
        targets=top[:, 1:2],
        agrees=torch.zeros(steps, dtype=torch.bool),
        first=torch.zeros(steps, dtype=torch.bool),
        top_ids=top,
        top_logprobs=torch.log_softmax(torch.randn(steps, 9, generator=generator), 1)
        .sort(dim=1, descending=True)
        .values[:, :4],
        log_sum_exp=torch.full((steps,), 20.0),
        text_position=torch.arange(steps),
        spent=torch.arange(steps) / 40,
        last=torch.arange(steps) - 1,
    )


def correct(network, batch):
    embedding = torch.randn(50, 24, generator=torch.Generator().manual_seed(9))
    tokens = torch.arange(50)

    def project(hidden, first, tokens):
        return hidden @ embedding[tokens].T

    base = project(batch.hidden, batch.first, tokens)
    return base, *network.correct(batch, tokens, base, project, embedding)


def small(family: str, gate: bool = True):
    sizes = {"history": 2, "units": 16, "candidates": 4}
    return config_of(family, "hash", 24, 50, gate=gate, **sizes)


@pytest.mark.parametrize("family", list(NETWORKS))
def test_an_untrained_network_of_any_family_changes_no_logit(family):
    batch = batch_of(5)
    base, corrected, doubt = correct(network_of(small(family)), batch)
    assert torch.equal(corrected, base)
    likeliest = base.gather(1, batch.top_ids) if family == "rerank" else base.topk(8).values
    left = 1 - likeliest.softmax(1).max(1).values  # what is left for all but the best
    assert torch.allclose(torch.sigmoid(doubt), left, atol=1e-5)


@pytest.mark.parametrize("family", list(NETWORKS))
def test_without_a_gate_there_is_no_doubt(family):
    assert correct(network_of(small(family, gate=False)), batch_of(2))[2] is None


@pytest.mark.parametrize("family", list(NETWORKS))
def test_a_few_steps_are_learned_by_every_family(family):
    network, batch = network_of(small(family)), batch_of(12)
    optimizer = torch.optim.Adam(network.parameters(), 0.03)
    for _ in range(120):
        _, corrected, doubt = correct(network, batch)
        loss = torch.nn.functional.cross_entropy(corrected, batch.targets[:, 0])
        optimizer.zero_grad()
        (loss + doubt.square().sum() * 0).backward()
        optimizer.step()
    assert (corrected.argmax(1) == batch.targets[:, 0]).all()


def test_rerank_touches_the_candidates_alone():
    network, batch = network_of(small("rerank")), batch_of(6)
    load_arrays(network, trained_looking(network.config).arrays)
    base, corrected, _ = correct(network, batch)
    changed = corrected != base
    expected = torch.zeros_like(changed).scatter(1, batch.top_ids, True)
    assert torch.equal(changed, expected)


def test_rerank_judges_a_candidate_by_itself():
    """Another candidate's token makes no difference to it."""
    network = network_of(small("rerank")).eval()
    load_arrays(network, trained_looking(network.config).arrays)
    rng = torch.Generator().manual_seed(4)
    state = (torch.randn(1, 24, generator=rng), torch.randn(1, 48, generator=rng))
    embedded = torch.randn(1, 4, 24, generator=rng)
    scores = torch.randn(1, 4, 11, generator=rng)
    seen = network.seen(*state)
    added, _ = network(seen, embedded, scores)
    embedded[0, 2, 0] += 1
    other, _ = network(seen, embedded, scores)
    assert torch.equal((added != other)[0], torch.tensor([False, False, True, False]))


def test_a_suppressed_candidates_score_is_a_number():
    logprobs = torch.tensor([[-0.1, -3.0, -torch.inf]])
    scores = scores_of(logprobs, torch.tensor([20.0]), torch.tensor([True]), torch.tensor([0]))
    assert scores.shape == (1, 3, 7 + 3)
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("family", list(NETWORKS))
def test_every_family_survives_the_way_through_torch(family):
    config = small(family)
    corrector = trained_looking(config)
    network = network_of(config)
    load_arrays(network, corrector.arrays)
    back = to_corrector(network, {"steps": 3})
    assert back.hash == corrector.hash
    assert {n: a.shape for n, a in back.arrays.items()} == shapes_of(config)
