"""``bundle.json`` that somebody edited: one line that names the entry, no traceback later on."""

import json
import math
import shutil
from copy import deepcopy
from dataclasses import replace

import openvino as ov
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spoilt import spoilt_json

from beamless.inference.bundle import LEAST_CAPACITY, Bundle, load_bundle, read_manifest
from beamless.inference.errors import BeamlessError
from beamless.inference.manifest_check import check_graph, check_manifest

FITTED = {"word": [0.1, 0.9, 0.2], "token": [0.1, 0.9, 0.2], "method": "lookahead"}


@pytest.fixture(scope="module")
def content(tiny_bundle):
    """A bundle.json with everything in it that there can be."""
    found = json.loads((tiny_bundle.folder / "bundle.json").read_text(encoding="utf-8"))
    return {**found, "confidence": FITTED}


@pytest.fixture(scope="module")
def graphs(tiny_bundle):
    stems = ("encoder", "decoder", "corrected")
    return {stem: ov.Core().read_model(tiny_bundle.folder / f"{stem}.xml") for stem in stems}


def changed(content, place, value):
    """Put a value at ``sizes/mels``, or take the entry out where it is ``...``."""
    copy = deepcopy(content)
    above, slash, name = place.partition("/")
    inside, name = (copy[above], name) if slash else (copy, above)
    if value is ...:
        del inside[name]
    else:
        inside[name] = value
    return copy


def read(folder, content):
    (folder / "bundle.json").write_text(json.dumps(content), encoding="utf-8")
    return read_manifest(folder)


def test_what_an_export_and_a_calibration_wrote_is_read(content, tmp_path):
    assert read(tmp_path, content).confidence == FITTED


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("sizes", [80, 3000], "sizes must be an object"),
        ("sizes/mels", "80", "sizes.mels must be a whole number"),
        ("sizes/mels", True, "sizes.mels must be a whole number"),
        ("sizes/width", 384.0, "sizes.width must be a whole number"),
        ("sizes/heads", 0, "sizes.heads must be a whole number"),
        ("sizes/heads", 10**30, "sizes.heads must be a whole number"),
        ("sizes/vocabulary", math.nan, "sizes.vocabulary must be a whole number"),
        ("sizes/frames", 2999, "sizes.frames must be twice"),
        ("sizes/heads", 7, "sizes.width must be a multiple"),
        ("sizes/text_positions", ..., "it lacks 'text_positions'"),
        ("capacity", "224", "capacity must be a whole number from 8 to 448"),
        ("capacity", 449, "capacity must be a whole number from 8 to 448"),
        ("capacity", ..., "it lacks 'capacity'"),
        ("model", "tiny.en", "model must be an object"),
        ("model/hash", None, "model.hash must be a text"),
        ("precision/decoder", "f8", "precision.decoder must be one of f32"),
        ("precision/encoder", ["f32"], "precision.encoder must be one of f32"),
        ("precision/weights", ..., "it lacks 'weights'"),
        ("suppress_tokens", 5, "suppress_tokens must be a list of tokens"),
        ("suppress_tokens", "12", "suppress_tokens must be a list of tokens"),
        ("begin_suppress_tokens", [220, 10**9], "begin_suppress_tokens must be a list of tokens"),
        ("alignment_heads", [[1, 0], [2]], "alignment_heads must be a list of"),
        ("alignment_heads", [[1, 99]], "alignment_heads must be a list of"),
        ("corrector", [], "corrector must be an object or null"),
        ("corrector/hash", ..., "it lacks 'hash'"),
        ("files", [], "files must be an object"),
        ("files/decoder.bin", ..., "it lacks 'decoder.bin'"),
        ("files/corrected.xml", ..., "it lacks 'corrected.xml'"),
        ("files/../secret", "0" * 64, "files: '../secret' must be a plain name"),
        ("files/decoder.xml", 7, "files.decoder.xml must be a SHA-256"),
        ("confidence", "high", "confidence must be an object"),
        ("confidence/word", [0.1, 0.9], "confidence.word must be three numbers"),
        ("confidence/word", [0.1, math.nan, 0.2], "confidence.word must be three numbers"),
        ("confidence/token", "123", "confidence.token must be three numbers"),
        ("confidence/token", [1, 2, 10**400], "confidence.token must be three numbers"),
    ],
)
def test_an_entry_of_another_kind_is_named(content, tmp_path, place, value, named):
    with pytest.raises(BeamlessError) as caught:
        read(tmp_path, changed(content, place, value))
    assert f"bundle.json is damaged ({named}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_brackets_without_end_are_no_recursion_error(tmp_path):
    (tmp_path / "bundle.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(BeamlessError, match="is damaged"):
        read_manifest(tmp_path)


@given(data=st.data())
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_edited_is_refused_in_one_line_or_of_use(tmp_path, content, graphs, data):
    edited = data.draw(spoilt_json(content))
    try:
        manifest = read(tmp_path, edited)
    except BeamlessError as error:
        assert "\n" not in str(error)
        return
    bundle = Bundle(tmp_path, manifest)
    assert len(bundle.hash) == 64
    assert bundle.confidence is None or 0 <= bundle.confidence.of_word(0.5, -0.3) <= 1
    for stem, graph in graphs.items():
        try:
            check_graph(stem, graph, manifest.sizes, manifest.capacity)
        except BeamlessError:
            assert manifest.sizes != content["sizes"] or manifest.capacity != content["capacity"]


@pytest.mark.parametrize(
    ("graph", "sizes"),
    [
        ("encoder", {"mels": 128}),
        ("encoder", {"frames": 2000, "audio_positions": 1000}),
        ("decoder", {"width": 768}),
        ("decoder", {"decoder_layers": 5}),
        ("decoder", {"vocabulary": 51865}),
        ("corrected", {"heads": 12}),
    ],
)
def test_sizes_that_are_not_those_of_the_graph_are_refused(tiny_bundle, graph, sizes):
    manifest = tiny_bundle.manifest
    spoilt = replace(manifest, sizes={**manifest.sizes, **sizes})
    with pytest.raises(BeamlessError, match=rf"not those of {graph}\.xml beside it"):
        Bundle(tiny_bundle.folder, spoilt).compile(graph)


def test_a_capacity_that_is_not_that_of_the_graph_is_refused(tiny_bundle):
    spoilt = replace(tiny_bundle.manifest, capacity=100)
    with pytest.raises(BeamlessError, match=r"not those of decoder\.xml beside it"):
        Bundle(tiny_bundle.folder, spoilt).compile("decoder")


def test_a_list_in_place_of_files_is_no_traceback_at_load(content, tiny_bundle, tmp_path):
    folder = tmp_path / "bundle"
    shutil.copytree(tiny_bundle.folder, folder)
    text = json.dumps({**content, "files": ["decoder.xml"]})
    (folder / "bundle.json").write_text(text, encoding="utf-8")
    with pytest.raises(BeamlessError, match="files must be an object"):
        load_bundle(folder)


def test_a_bundle_without_a_corrector_need_not_name_its_graph(content):
    files = {name: digest for name, digest in content["files"].items() if "corrected" not in name}
    check_manifest({**content, "corrector": None, "files": files}, LEAST_CAPACITY)
