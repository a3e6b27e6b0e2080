"""Correctors as arrays and configuration: saved, read, refused, and the formula of their graph."""

import json
from math import erf

import numpy as np
import openvino as ov
import pytest

from beamless.inference.errors import BeamlessError
from beamless.models.corrector import (
    Corrector,
    CorrectorConfig,
    config_of,
    load_corrector,
    save_corrector,
    shapes_of,
    untrained,
)
from beamless.models.corrector_graphs import shift_of
from beamless.models.graphs import graph_input, graph_output

CONFIG = CorrectorConfig("shift", "a" * 64, width=6, history=2, units=10, provenance={"seed": 7})


def random_corrector(seed=0):
    rng = np.random.default_rng(seed)
    arrays = {
        name: rng.normal(size=array.shape).astype(np.float32)
        for name, array in untrained(CONFIG).arrays.items()
    }
    return Corrector(CONFIG, arrays)


def shift_by_graph(corrector, hidden, history):
    width = corrector.config.width
    state = graph_input([1, 1, width], np.float32, "hidden")
    past = graph_input([len(history), width], np.float32, "history")
    outputs = [graph_output(shift_of(corrector, state, past), "shift")]
    model = ov.Model(outputs, [state, past], "shift")
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled([hidden[None, None], history])[0][0, 0]


def shift_by_hand(corrector, hidden, history):
    """LayerNorm over the state and those before it, oldest first; up; GELU; down."""
    a = {name: array.astype(np.float64) for name, array in corrector.arrays.items()}
    x = np.concatenate([hidden, history.ravel()]).astype(np.float64)
    x = (x - x.mean()) / np.sqrt(x.var() + 1e-5) * a["norm.weight"] + a["norm.bias"]
    x = a["up.weight"] @ x + a["up.bias"]
    x = x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))
    return a["down.weight"] @ x + a["down.bias"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_graph_computes_the_formula(seed):
    rng = np.random.default_rng(seed)
    hidden, history = (rng.normal(size=s).astype(np.float32) for s in (6, (2, 6)))
    corrector = random_corrector(seed)
    found = shift_by_graph(corrector, hidden, history)
    np.testing.assert_allclose(found, shift_by_hand(corrector, hidden, history), atol=1e-4)


def test_an_untrained_corrector_moves_nothing_at_all():
    hidden, history = np.ones(6, np.float32) * 9, np.ones((2, 6), np.float32)
    assert not shift_by_graph(untrained(CONFIG), hidden, history).any()


def test_a_seed_names_an_untrained_corrector():
    assert untrained(CONFIG, 3).hash == untrained(CONFIG, 3).hash
    assert untrained(CONFIG, 3).hash != untrained(CONFIG, 4).hash


def test_saved_and_read_it_is_the_same(tmp_path):
    corrector = random_corrector()
    save_corrector(corrector, tmp_path)
    loaded = load_corrector(tmp_path)
    assert loaded.config == corrector.config
    assert loaded.hash == corrector.hash
    assert loaded.parameters == corrector.parameters == 2 * 18 + 10 * 18 + 10 + 6 * 10 + 6
    assert {f.name for f in tmp_path.iterdir()} == {"corrector.json", "corrector.safetensors"}


@pytest.mark.parametrize("name", ["corrector.json", "corrector.safetensors"])
def test_a_missing_file_is_named(tmp_path, name):
    save_corrector(random_corrector(), tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(BeamlessError, match=f"it holds no {name}"):
        load_corrector(tmp_path)


@pytest.mark.parametrize("name", ["corrector.json", "corrector.safetensors"])
def test_a_damaged_file_is_one_line(tmp_path, name):
    save_corrector(random_corrector(), tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(BeamlessError, match="is damaged") as caught:
        load_corrector(tmp_path)
    assert "\n" not in str(caught.value)


def test_an_unknown_family_is_refused(tmp_path):
    save_corrector(random_corrector(), tmp_path)
    file = tmp_path / "corrector.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, "family": "oracle"}), encoding="utf-8")
    with pytest.raises(BeamlessError, match="family 'oracle' is none of shift, rerank, dense"):
        load_corrector(tmp_path)


def test_a_corrector_of_before_there_were_other_families_is_read_unchanged(tmp_path):
    corrector = random_corrector()
    save_corrector(corrector, tmp_path)
    file = tmp_path / "corrector.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    old = ("family", "model_hash", "width", "history", "units", "provenance")
    file.write_text(json.dumps({name: content[name] for name in old}), encoding="utf-8")
    loaded = load_corrector(tmp_path)
    assert loaded.config == CONFIG
    assert not loaded.config.gate
    assert loaded.hash == corrector.hash


@pytest.mark.parametrize("family", ["shift", "rerank", "dense"])
@pytest.mark.parametrize("gate", [False, True])
def test_every_family_survives_being_saved(tmp_path, family, gate):
    config = config_of(family, "a" * 64, 6, 20, history=2, units=5, candidates=3, gate=gate)
    rng = np.random.default_rng(1)
    arrays = {name: rng.random(shape, np.float32) for name, shape in shapes_of(config).items()}
    save_corrector(Corrector(config, arrays), tmp_path)
    loaded = load_corrector(tmp_path)
    assert loaded.config == config
    assert loaded.hash == Corrector(config, arrays).hash
    assert ("doubt.weight" in loaded.arrays) == gate


@pytest.mark.parametrize(
    ("family", "sizes", "complaint"),
    [
        ("rerank", {}, "takes 2 to 64 candidates, not 0"),
        ("rerank", {"candidates": 1}, "takes 2 to 64 candidates, not 1"),
        ("rerank", {"candidates": 8, "vocabulary": 9}, "a rerank corrector has no vocabulary"),
        ("dense", {}, "must be told the size of the vocabulary"),
        ("dense", {"vocabulary": -1}, "vocabulary is a whole number from 0, not -1"),
        ("shift", {"candidates": 8}, "a shift corrector has no candidates; rerank has"),
        ("shift", {"units": 0}, "units is a whole number from 1, not 0"),
        ("shift", {"history": "two"}, "history is a whole number from 0, not two"),
        ("oracle", {}, "none of shift, rerank, dense"),
    ],
)
def test_sizes_that_a_family_cannot_have_are_refused(tmp_path, family, sizes, complaint):
    config = CorrectorConfig(family, "a" * 64, width=6, **sizes)
    with pytest.raises(BeamlessError, match=complaint):
        untrained(config)
    save_corrector(Corrector(config, {"norm.weight": np.ones(6, np.float32)}), tmp_path)
    with pytest.raises(BeamlessError, match=complaint):
        load_corrector(tmp_path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("down.weight", None),
        ("up.weight", np.zeros((10, 17), np.float32)),
        ("down.bias", np.full(6, np.nan, np.float32)),
    ],
    ids=["missing", "misshaped", "not a number"],
)
def test_arrays_that_do_not_fit_the_configuration_are_refused(tmp_path, name, array):
    corrector = random_corrector()
    arrays = {key: value for key, value in corrector.arrays.items() if key != name}
    if array is not None:
        arrays[name] = array
    save_corrector(Corrector(CONFIG, arrays), tmp_path)
    with pytest.raises(BeamlessError, match=rf"is damaged \(its {name}\)"):
        load_corrector(tmp_path)
