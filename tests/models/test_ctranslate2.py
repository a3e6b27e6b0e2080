"""CTranslate2's weight file: read right, or refused in one line."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beamless.inference.errors import BeamlessError
from beamless.models.ctranslate2 import is_ctranslate2, read_ctranslate2, read_variables, rename

FLOAT, INT8, INT16, INT32, HALF, BFLOAT = range(6)
NUMPY = {FLOAT: "<f4", INT8: "i1", INT16: "<i2", INT32: "<i4", HALF: "<f2"}


def text(value):
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def variable(name, array, dtype):
    content = np.asarray(array).astype(NUMPY.get(dtype, "<u2")).tobytes()
    shape = struct.pack(f"<B{np.ndim(array)}I", np.ndim(array), *np.shape(array))
    return text(name) + shape + struct.pack("<BI", dtype, len(content)) + content


def weight_file(variables, version=6, specification="WhisperSpec"):
    """The bytes of a ``model.bin`` of (array, type) by name."""
    head = struct.pack("<I", version) + text(specification) + struct.pack("<I", 3)
    body = [variable(name, *value) for name, value in variables.items()]
    return head + struct.pack("<I", len(body)) + b"".join(body) + struct.pack("<I", 0)


def linear(rng, name, rows, columns):
    return {
        f"{name}/weight": rng.normal(size=(rows, columns)),
        f"{name}/bias": rng.normal(size=rows),
    }


def norm(rng, name, width):
    return {f"{name}/gamma": rng.normal(size=width), f"{name}/beta": rng.normal(size=width)}


def toy_whisper(dtype=FLOAT, width=4):
    """The variables of a Whisper of one layer on each side."""
    rng = np.random.default_rng(0)
    found = {}
    for side in ("encoder", "decoder"):
        layer = f"{side}/layer_0"
        found[f"{side}/position_encodings/encodings"] = rng.normal(size=(6, width))
        found |= norm(rng, f"{side}/layer_norm", width)
        found |= norm(rng, f"{layer}/self_attention/layer_norm", width)
        found |= norm(rng, f"{layer}/ffn/layer_norm", width)
        found |= linear(rng, f"{layer}/self_attention/linear_0", 3 * width, width)
        found |= linear(rng, f"{layer}/self_attention/linear_1", width, width)
        found |= linear(rng, f"{layer}/ffn/linear_0", 2 * width, width)
        found |= linear(rng, f"{layer}/ffn/linear_1", width, 2 * width)
    found |= norm(rng, "decoder/layer_0/attention/layer_norm", width)
    found |= linear(rng, "decoder/layer_0/attention/linear_0", width, width)
    found |= linear(rng, "decoder/layer_0/attention/linear_1", 2 * width, width)
    found |= linear(rng, "decoder/layer_0/attention/linear_2", width, width)
    for number in (1, 2):
        found[f"encoder/conv{number}/weight"] = rng.normal(size=(width, 3, 3))
        found[f"encoder/conv{number}/bias"] = rng.normal(size=width)
    found["decoder/embeddings/weight"] = rng.normal(size=(9, width))
    variables = {name: (array, dtype) for name, array in found.items()}
    variables["decoder/num_heads"] = (np.int16(2), INT16)
    return variables


def written(folder, content, config='{"suppress_ids": [1, 2]}'):
    folder.mkdir(exist_ok=True)
    (folder / "model.bin").write_bytes(content)
    (folder / "config.json").write_text(config, encoding="utf-8")
    return folder


def refusal(folder):
    with pytest.raises(BeamlessError) as caught:
        read_ctranslate2(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_every_variable_comes_back_under_its_name_in_transformers(tmp_path, dtype):
    variables = toy_whisper(dtype)
    arrays, config = read_ctranslate2(written(tmp_path, weight_file(variables)))
    kind = NUMPY[dtype]
    fused = variables["decoder/layer_0/self_attention/linear_0/weight"][0].astype(kind)
    bias = variables["decoder/layer_0/self_attention/linear_0/bias"][0].astype(kind)
    for at, part in enumerate(("q", "k", "v")):
        name = f"model.decoder.layers.0.self_attn.{part}_proj"
        np.testing.assert_array_equal(arrays[name + ".weight"], fused[4 * at : 4 * at + 4])
        if part == "k":
            assert name + ".bias" not in arrays
        else:
            np.testing.assert_array_equal(arrays[name + ".bias"], bias[4 * at : 4 * at + 4])
    both = variables["decoder/layer_0/attention/linear_1/weight"][0].astype(kind)
    for at, part in enumerate(("k", "v")):
        name = f"model.decoder.layers.0.encoder_attn.{part}_proj.weight"
        np.testing.assert_array_equal(arrays[name], both[4 * at : 4 * at + 4])
    assert config == {"suppress_ids": [1, 2], "heads": 2}


def test_all_names_are_those_of_transformers(tiny, tiny_reference):
    expected = {name for name in tiny_reference.state_dict() if name != "proj_out.weight"}
    assert set(tiny.arrays) == expected


@settings(max_examples=60)
@given(data=st.data())
def test_a_file_that_was_cut_off_anywhere_is_damaged(data, tmp_path_factory):
    content = weight_file(toy_whisper())
    cut = data.draw(st.integers(0, len(content) - 5))  # the empty list of aliases is not read
    with pytest.raises(BeamlessError, match=r"model\.bin is damaged|not read|not a Whisper"):
        read_variables(content[:cut], tmp_path_factory.getbasetemp())


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_refused_and_never_crash(content):
    with pytest.raises(BeamlessError):
        read_variables(content, "folder")


@settings(max_examples=60)
@given(data=st.data())
def test_a_flipped_byte_is_refused_or_gives_arrays_of_the_same_kind(data, tmp_path_factory):
    content = bytearray(weight_file(toy_whisper()))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    try:
        arrays = rename(read_variables(bytes(content), tmp_path_factory.getbasetemp()))
    except (BeamlessError, KeyError):
        return
    assert all(array.dtype.kind == "f" for array in arrays.values())


@pytest.mark.parametrize("version", [0, 5, 7, 2**31])
def test_another_version_is_refused_by_its_number(tmp_path, version):
    folder = written(tmp_path, weight_file(toy_whisper(), version=version))
    assert f"version {version} is not read, only 6" in refusal(folder)


def test_another_kind_of_model_is_refused(tmp_path):
    folder = written(tmp_path, weight_file(toy_whisper(), specification="TransformerSpec"))
    assert "holds a TransformerSpec, not a Whisper" in refusal(folder)


@pytest.mark.parametrize("dtype", [INT8, INT16])
def test_a_quantised_model_is_refused(tmp_path, dtype):
    assert "is quantised; take its float16" in refusal(
        written(tmp_path, weight_file(toy_whisper(dtype)))
    )


def test_a_model_with_quantised_matrices_and_float_convolutions_is_refused(tmp_path):
    """int8 models keep some variables in float: looking at one of them is not enough."""
    variables = toy_whisper()
    name = "encoder/layer_0/ffn/linear_0/weight"
    variables[name] = (variables[name][0], INT8)
    variables[name + "_scale"] = (np.ones(8), FLOAT)
    assert "is quantised" in refusal(written(tmp_path, weight_file(variables)))


def test_an_unknown_type_is_named(tmp_path):
    message = refusal(written(tmp_path, weight_file(toy_whisper(BFLOAT))))
    assert "is of the unknown type 5" in message


@pytest.mark.parametrize("name", ["decoder/num_heads", "encoder/conv2/bias"])
def test_a_missing_variable_is_named(tmp_path, name):
    variables = toy_whisper()
    del variables[name]
    assert name in refusal(written(tmp_path, weight_file(variables)))


@pytest.mark.parametrize("config", ["{", "[1]", "3"])
def test_a_damaged_config_is_named(tmp_path, config):
    folder = written(tmp_path, weight_file(toy_whisper()), config)
    assert "config.json is damaged" in refusal(folder)


def test_a_file_in_two_parts_is_one_file(tmp_path):
    content = weight_file(toy_whisper())
    whole, _ = read_ctranslate2(written(tmp_path / "whole", content))
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "model.bin.part1").write_bytes(content[:1000])
    (parts / "model.bin.part2").write_bytes(content[1000:])
    assert is_ctranslate2(parts)
    joined, _ = read_ctranslate2(parts)
    assert all(np.array_equal(joined[name], array) for name, array in whole.items())


def test_a_folder_without_a_config_still_reads(tmp_path):
    (tmp_path / "model.bin").write_bytes(weight_file(toy_whisper()))
    assert read_ctranslate2(tmp_path)[1] == {"heads": 2}
    assert json.dumps(read_ctranslate2(tmp_path)[1])
