"""The corrector that trains and the one that runs are one function."""

import numpy as np
import openvino as ov
import pytest
import torch
from openvino import opset13 as op

from beamless.models.corrector import Corrector, CorrectorConfig, shift_of, untrained
from beamless.training.networks import ShiftNetwork, load_arrays, to_corrector

CONFIG = CorrectorConfig("shift", "hash", width=24, history=2, units=40)


def trained_looking(config: CorrectorConfig) -> Corrector:
    rng = np.random.default_rng(5)
    arrays = untrained(config).arrays
    return Corrector(
        config, {n: rng.standard_normal(a.shape).astype(np.float32) for n, a in arrays.items()}
    )


def test_an_untrained_network_shifts_nothing():
    network = ShiftNetwork(CONFIG)
    assert not network(torch.randn(3, 24), torch.randn(3, 48)).any()


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
        theirs = network(torch.from_numpy(hidden[0]), torch.from_numpy(past.reshape(1, -1)))
    assert np.abs(ours - theirs.numpy().reshape(-1)).max() < 1e-3


def test_arrays_survive_the_way_through_torch():
    corrector = trained_looking(CONFIG)
    network = ShiftNetwork(CONFIG)
    load_arrays(network, corrector.arrays)
    back = to_corrector(network, {"steps": 3})
    assert back.hash == corrector.hash
    assert back.config.provenance == {"steps": 3}
