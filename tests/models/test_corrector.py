"""Correctors as arrays and configuration: saved, read, refused, and the formula of their graph."""

import json
import math
from math import erf

import numpy as np
import openvino as ov
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from spoilt import spoilt_json

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
        ("shift", {"history": "two"}, "history is a whole number from 0, not 'two'"),
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
    with pytest.raises(BeamlessError, match=rf"is damaged \(its '{name}'\)"):
        load_corrector(tmp_path)


def config_edited(folder, **changes):
    """Save a corrector into a folder, with some entries of its configuration others."""
    save_corrector(random_corrector(), folder)
    file = folder / "corrector.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, **changes}), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_hash", 5),
        ("gate", "yes"),
        ("provenance", ["seed"]),
        ("provenance", {"languages": "en"}),
        ("provenance", {"languages": [1]}),
        ("width", True),
        ("width", "6"),
        ("history", 1.0),
        ("history", 449),
        ("units", 10**30),
        ("units", math.nan),
        ("family", ["shift"]),
        ("sha256", 7),
        ("colour", "green"),
    ],
)
def test_an_entry_of_another_kind_is_one_line(tmp_path, name, value):
    config_edited(tmp_path, **{name: value})
    with pytest.raises(BeamlessError) as caught:
        load_corrector(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"the corrector in {tmp_path} is damaged")
    assert not any(noise in message for noise in ("\n", "__init__", "argument"))


@pytest.mark.parametrize("text", ["[]", "[1]", "null", "7", '"shift"', "{}", "[" * 100_000])
def test_json_that_is_no_corrector_is_one_line(tmp_path, text):
    save_corrector(random_corrector(), tmp_path)
    (tmp_path / "corrector.json").write_text(text, encoding="utf-8")
    with pytest.raises(BeamlessError, match="is damaged") as caught:
        load_corrector(tmp_path)
    assert "argument" not in str(caught.value)


@given(data=st.data())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_edited_is_refused_in_one_line_or_is_the_same_arrays(tmp_path, data):
    corrector = random_corrector()
    save_corrector(corrector, tmp_path)
    file = tmp_path / "corrector.json"
    edited = data.draw(spoilt_json(json.loads(file.read_text(encoding="utf-8"))))
    file.write_text(json.dumps(edited), encoding="utf-8")
    try:
        loaded = load_corrector(tmp_path)
    except BeamlessError as error:
        assert "\n" not in str(error)
    else:
        assert loaded.hash == corrector.hash
        assert isinstance(dict(loaded.config.provenance), dict)
        assert loaded.config.model_hash[:12] is not None


def test_arrays_of_another_corrector_are_refused(tmp_path):
    save_corrector(random_corrector(0), tmp_path / "one")
    save_corrector(random_corrector(1), tmp_path / "other")
    name = "corrector.safetensors"
    (tmp_path / "one" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(BeamlessError, match=f"{name} is not the one that its corrector.json names"):
        load_corrector(tmp_path / "one")


def test_a_weight_that_float16_cannot_hold_is_not_written(tmp_path):
    corrector = random_corrector()
    name = next(iter(corrector.arrays))
    large = {**corrector.arrays, name: np.full_like(corrector.arrays[name], 1e6)}
    with pytest.raises(BeamlessError, match="does not fit into float16"):
        save_corrector(Corrector(corrector.config, large), tmp_path / "made", half=True)
    assert not (tmp_path / "made").exists()
    save_corrector(Corrector(corrector.config, large), tmp_path / "made")


def test_a_bit_that_fell_over_in_the_arrays_is_noticed(tmp_path):
    save_corrector(random_corrector(), tmp_path)
    file = tmp_path / "corrector.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(BeamlessError, match="is damaged"):
        load_corrector(tmp_path)


@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.uint8, np.bool_])
def test_arrays_of_numbers_that_no_training_writes_are_refused(tmp_path, dtype):
    arrays = {name: array.astype(dtype) for name, array in random_corrector().arrays.items()}
    config_edited(tmp_path, sha256=None)
    save_file(arrays, tmp_path / "corrector.safetensors")
    with pytest.raises(BeamlessError, match=r"is damaged \(its "):
        load_corrector(tmp_path)


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 100, -1])
def test_arrays_cut_short_are_one_line_without_a_hash_too(tmp_path, kept):
    config_edited(tmp_path, sha256=None)
    file = tmp_path / "corrector.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(BeamlessError, match="is damaged") as caught:
        load_corrector(tmp_path)
    assert "\n" not in str(caught.value)
