"""Devices by name, and the cache of compiled graphs."""

import time

import openvino as ov
import pytest

from beamless.command_line import run
from beamless.inference import devices
from beamless.inference.bundle import load_bundle
from beamless.inference.devices import NPU_ON_CPU, compile_model, has_plugin
from beamless.inference.errors import BeamlessError
from beamless.models.graphs import decoder_graph


def compiled_from(tiny_bundle, graph_cache):
    return load_bundle(tiny_bundle.folder, graph_cache=graph_cache).compile("decoder")


def test_fault_22_a_second_start_takes_the_compiled_graph_from_the_cache(tiny_bundle, tmp_path):
    first = compiled_from(tiny_bundle, tmp_path)
    second = compiled_from(tiny_bundle, tmp_path)
    assert not first.get_property("LOADED_FROM_CACHE")
    assert second.get_property("LOADED_FROM_CACHE")
    assert list(tmp_path.iterdir())


def test_a_graph_kept_for_one_precision_is_not_taken_for_another(tiny_bundle, tmp_path):
    graph = tiny_bundle.folder / "encoder.xml"
    for precision in ("f32", "default"):
        compiled = compile_model(ov.Core().read_model(graph), "CPU", precision, tmp_path)
        assert not compiled.get_property("LOADED_FROM_CACHE")


def test_b05_a_cache_folder_that_cannot_be_used_is_a_warning_not_a_crash(tiny_bundle, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.warns(UserWarning, match="cannot hold compiled graphs"):
        assert compiled_from(tiny_bundle, tmp_path / "file" / "cache").inputs


def test_b05_another_capacity_is_compiled_anew(tiny_bundle, tmp_path):
    bundle = load_bundle(tiny_bundle.folder, graph_cache=tmp_path)
    bundle.compile("decoder")
    assert not bundle.compile("decoder", capacity=64).get_property("LOADED_FROM_CACHE")


def test_each_graph_is_compiled_once_for_each_shape(tiny_bundle):
    assert tiny_bundle.compile("decoder") is tiny_bundle.compile("decoder", 1, 224)
    assert tiny_bundle.compile("decoder") is not tiny_bundle.compile("decoder", 2)


@pytest.mark.parametrize("device", ["GPU.7", "TPU", "npu", ""])
def test_an_absent_device_is_one_line_that_names_those_present(tiny_bundle, device):
    with pytest.raises(BeamlessError, match=r"present are .*CPU") as caught:
        load_bundle(tiny_bundle.folder, device).compile("decoder")
    assert "\n" not in str(caught.value)


def test_an_unknown_precision_is_one_line(tiny):
    with pytest.raises(BeamlessError, match="cannot compile decoder") as caught:
        compile_model(decoder_graph(tiny, 8), "CPU", "f8")
    assert "\n" not in str(caught.value)


def test_auto_is_a_device(tiny_bundle):
    assert load_bundle(tiny_bundle.folder, "AUTO").compile("decoder").inputs


def test_decoders_compute_in_the_precision_of_the_bundle(tiny_bundle):
    for graph in ("encoder", "decoder", "corrected"):
        hint = tiny_bundle.compile(graph).get_property("INFERENCE_PRECISION_HINT")
        assert hint.to_string() == "f32"


def test_plugins_are_told_from_devices():
    assert has_plugin("CPU")
    assert not has_plugin("GNA")
    assert NPU_ON_CPU == "NPU:CPU"


# --- what a person is told -------------------------------------------------------------------


def test_b05_a_slow_compilation_says_where_it_is_kept_and_how_long_it_took(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr(devices, "SLOW_SECONDS", 0.05)
    with devices.told_if_slow("decoder", "NPU", tmp_path):
        time.sleep(0.3)
    first, last = capsys.readouterr().err.strip().split("\ndecoder was")
    assert first.startswith("compiling decoder for NPU; a first time takes up to some minutes")
    assert first.endswith("for the next start") and str(tmp_path) in first.replace("\n", "")
    assert last == " ready for NPU after 0 s"


def test_a_fast_compilation_says_nothing(capsys, tmp_path):
    with devices.told_if_slow("decoder", "CPU", tmp_path):
        pass
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_b05_a_start_tells_whether_it_used_the_cache(
    tiny_bundle, clip, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("BEAMLESS_CACHE", str(tmp_path))
    model = ("--model", str(tiny_bundle.folder), "--method", "greedy")
    for said in ("compiled", "from the cache"):
        assert run(["transcribe", str(clip), *model]) == 0
        assert f"its graphs {said}" in " ".join(capsys.readouterr().err.split())
