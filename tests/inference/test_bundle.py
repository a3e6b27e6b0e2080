"""A bundle's folder: what is in it, what is refused, and how one is found by a model's name."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest
from conftest import SENTENCE

from beamless.inference.bundle import FORMAT_VERSION, load_bundle, read_manifest
from beamless.inference.corrected import Corrected
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.transcribe import Transcriber
from beamless.models.bundle import builder, open_asked, open_bundle, with_corrector, write_bundle
from beamless.models.corrector import CorrectorConfig, untrained
from beamless.models.parity_record import read_parity, require_parity, write_parity
from beamless.models.pretrained import pretrained
from beamless.models.sources import locate
from beamless.models.whisper import load_checkpoint


@pytest.fixture
def copied(tiny_bundle, tmp_path):
    """A copy of the bundle, to be spoilt."""
    folder = tmp_path / "copied"
    shutil.copytree(tiny_bundle.folder, folder)
    return folder


def rewrite(folder, **changes):
    file = folder / "bundle.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, **changes}), encoding="utf-8")


def refusal(folder):
    """The one line that loading a folder gives."""
    with pytest.raises(BeamlessError) as caught:
        load_bundle(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_bundle_holds_what_production_needs_and_nothing_else(tiny_bundle):
    names = {file.name for file in tiny_bundle.folder.iterdir()}
    stems = ("encoder", "decoder", "corrected")
    graphs = {f"{stem}.{kind}" for stem in stems for kind in ("xml", "bin")}
    assert names == {*graphs, "tokenizer.json", "bundle.json"}
    assert set(tiny_bundle.manifest.files) == names - {"bundle.json"}


def test_the_manifest_comes_back_as_it_was_written(tiny_bundle, tiny):
    manifest = read_manifest(tiny_bundle.folder)
    assert asdict(manifest) == asdict(tiny_bundle.manifest)
    assert manifest.model == {"name": "tiny.en", "hash": tiny.hash}
    assert manifest.precision == {"encoder": "f32", "decoder": "f32", "weights": "f16"}
    assert manifest.capacity == 224
    assert manifest.sizes["width"] == 384
    assert manifest.begin_suppress_tokens == (220, 50256)
    assert tiny.alignment_heads == manifest.alignment_heads != ()


def test_two_bundles_of_the_same_parts_have_the_same_hash(tiny_bundle, copied):
    assert load_bundle(copied).hash == tiny_bundle.hash


@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1, "1", None])
def test_a_bundle_of_another_version_is_refused(copied, version):
    rewrite(copied, format_version=version)
    message = refusal(copied)
    assert f"of version {version!r}" in message
    assert f"reads version {FORMAT_VERSION}" in message


@pytest.mark.parametrize("name", ["decoder.bin", "encoder.xml", "tokenizer.json"])
def test_a_changed_file_is_refused_by_its_name(copied, name):
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)
    assert f"{name} was changed" in refusal(copied)


@pytest.mark.parametrize("name", ["decoder.xml", "corrected.bin", "tokenizer.json"])
def test_a_missing_file_is_refused_by_its_name(copied, name):
    (copied / name).unlink()
    assert f"lacks {name}" in refusal(copied)


@pytest.mark.parametrize("text", ["", "{", "[]", "[1, 2]", '"bundle"', "{}", "\ufffe"])
def test_a_damaged_manifest_is_refused(copied, text):
    (copied / "bundle.json").write_text(text, encoding="utf-8")
    assert "is damaged" in refusal(copied)


def test_a_manifest_with_an_unknown_field_is_refused(copied):
    rewrite(copied, colour="green")
    assert "is damaged" in refusal(copied)


def test_a_folder_that_is_no_bundle_is_refused(tmp_path):
    assert "holds no bundle.json" in refusal(tmp_path)
    assert "holds no bundle.json" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize("capacity", [0, 7, 449, -1])
def test_a_capacity_that_the_model_has_not_is_refused(tiny, tiny_bundle, tmp_path, capacity):
    expected = f"a capacity of {capacity} is not within 8 and the model's 448"
    with pytest.raises(BeamlessError, match=expected):
        tiny_bundle.compile("decoder", capacity=capacity)
    with pytest.raises(BeamlessError, match=expected):
        write_bundle(tiny, tmp_path / "bundle", capacity=capacity)
    assert not (tmp_path / "bundle").exists()


def test_a_bundle_of_the_largest_capacity_decodes_the_same(
    tiny, tiny_bundle, tiny_window, tmp_path
):
    write_bundle(tiny, tmp_path / "bundle", capacity=448)
    bundle = load_bundle(tmp_path / "bundle")
    rule = (tiny_window, bundle.tokenizer.prompt(), bundle.tokenizer.end)
    expected = greedy(Greedy(tiny_bundle), *rule).tokens
    chooser = Greedy(bundle)
    assert chooser.decoder.capacity == 448
    assert greedy(chooser, *rule).tokens == expected


def test_float32_weights_take_twice_the_room_and_give_the_same_tokens(
    tiny, tiny_bundle, tiny_window, tmp_path
):
    write_bundle(tiny, tmp_path / "bundle", precision={"weights": "f32"})
    bundle = load_bundle(tmp_path / "bundle")
    halves = (tiny_bundle.folder / "decoder.bin").stat().st_size
    assert (bundle.folder / "decoder.bin").stat().st_size == pytest.approx(2 * halves, rel=0.05)
    rule = (tiny_window, bundle.tokenizer.prompt(), bundle.tokenizer.end)
    assert greedy(Greedy(bundle), *rule).tokens == greedy(Greedy(tiny_bundle), *rule).tokens


def test_another_corrector_shares_all_graphs_but_its_own(tiny, tiny_bundle):
    for graph in ("decoder", "corrected"):
        tiny_bundle.compile(graph)
    config = CorrectorConfig("shift", tiny.hash, tiny.sizes.width, units=8)
    other = with_corrector(tiny_bundle, tiny, untrained(config))
    assert other.compile("decoder") is tiny_bundle.compile("decoder")
    assert other.compile("corrected") is not tiny_bundle.compile("corrected")
    assert other.manifest.corrector["hash"] != tiny_bundle.manifest.corrector["hash"]


def test_a_copy_with_something_changed_has_nothing_compiled(tiny_bundle):
    tiny_bundle.compile("decoder")
    copy = replace(tiny_bundle, threads=1)
    assert not copy.from_cache
    assert copy.compile("decoder") is not tiny_bundle.compile("decoder")


def test_an_existing_folder_is_never_written_over(tiny, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "note.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BeamlessError, match="kept exists"):
        write_bundle(tiny, tmp_path / "kept")
    assert [file.name for file in (tmp_path / "kept").iterdir()] == ["note.txt"]


def test_a_corrector_of_another_model_is_refused(tiny, tmp_path):
    other = untrained(CorrectorConfig("shift", "0" * 64, tiny.sizes.width))
    with pytest.raises(BeamlessError, match="trained on another model"):
        write_bundle(tiny, tmp_path / "bundle", other)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing_behind(tiny, tmp_path, monkeypatch):
    from beamless.models import bundle as module

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "file_hash", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_bundle(tiny, tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_models_bundle_is_built_once_and_kept(cache):
    first = open_bundle("tiny.en")
    written = (first.folder / "bundle.json").stat().st_mtime_ns
    second = open_bundle("tiny.en")
    assert second.folder == first.folder
    assert cache in first.folder.parents
    assert (second.folder / "bundle.json").stat().st_mtime_ns == written


def test_a_bundles_own_folder_is_opened_as_it_is(tiny_bundle):
    opened = open_bundle(str(tiny_bundle.folder))
    assert opened.folder == tiny_bundle.folder
    assert opened.hash == tiny_bundle.hash


def test_a_bundle_that_other_code_has_built_is_built_again():
    """An upgrade whose graphs are faster must not go on with the old ones."""
    bundle = open_bundle("tiny.en")
    file = bundle.folder / "bundle.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, "builder": "an older one"}), encoding="utf-8")
    assert load_bundle(bundle.folder).hash == bundle.hash
    assert open_bundle("tiny.en").manifest.builder == builder() == content["builder"]


def test_a_kept_bundle_that_lost_a_file_is_built_again():
    (open_bundle("tiny.en").folder / "decoder.bin").unlink()
    assert (open_bundle("tiny.en").folder / "decoder.bin").is_file()


def test_two_processes_that_need_the_same_bundle_build_it_once(cache):
    """The second one waits for the first."""
    shutil.rmtree(open_bundle("tiny.en").folder)
    program = "from beamless.models.bundle import open_bundle; open_bundle('tiny.en')"
    made = [
        subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [process.communicate()[1] for process in made]
    assert [process.returncode for process in made] == [0, 0], told
    assert sum("building the bundle" in text for text in told) == 1


def test_a_models_fast_bundle_is_kept_beside_the_exact_one():
    exact, fast = open_bundle("tiny.en"), open_bundle("tiny.en", precision="fast")
    assert exact.manifest.precision == {"encoder": "f32", "decoder": "f32", "weights": "f16"}
    assert fast.manifest.precision == {"encoder": "default", "decoder": "f32", "weights": "int8"}
    assert fast.folder != exact.folder
    assert fast.manifest.corrector == exact.manifest.corrector
    files = [b.folder / "decoder.bin" for b in (fast, exact)]
    assert files[0].stat().st_size < 0.6 * files[1].stat().st_size


def test_a_bundles_own_folder_keeps_its_own_precision(tiny_bundle):
    opened = open_bundle(str(tiny_bundle.folder), precision="fast")
    assert opened.manifest.precision == tiny_bundle.manifest.precision


def test_a_bundle_is_not_opened_as_what_it_is_not(tiny_bundle):
    exact = str(tiny_bundle.folder)
    assert open_asked(exact, "CPU", None).hash == open_asked(exact, "CPU", "exact").hash
    with pytest.raises(BeamlessError, match="a precision of its own"):
        open_asked(exact, "CPU", "fast")
    assert open_asked("tiny.en", "CPU", None).manifest.precision["weights"] == "int8"


@pytest.mark.parametrize("method", ["greedy", "corrected", "lookahead", "beam5"])
def test_every_method_hears_the_same_sentence_in_the_fast_bundle(speech, method):
    transcriber = Transcriber(open_bundle("tiny.en", precision="fast"), method=method)
    assert transcriber.transcribe(speech).text.lower() == SENTENCE.lower()


def test_a_corrector_joins_a_fast_bundle_with_its_rounded_weights(tiny, tiny_window):
    """In memory, as training does it: the same choices as those of the bundle on disk."""
    fast = open_bundle("tiny.en", precision="fast")
    joined = with_corrector(fast, tiny, pretrained(tiny.hash))
    prompt, end = fast.tokenizer.prompt(), fast.tokenizer.end
    found = [greedy(Corrected(b), tiny_window, prompt, end) for b in (fast, joined)]
    assert found[0].tokens == found[1].tokens
    np.testing.assert_allclose(found[0].logprobs, found[1].logprobs, atol=2e-3)


def model_folder(folder, spoilt=False):
    """tiny.en in a folder of its own, some of its weights others where ``spoilt``."""
    shutil.copytree(locate("tiny.en"), folder, dirs_exist_ok=True)
    if spoilt:
        content = bytearray((folder / "model.bin").read_bytes())
        content[-2_000_000] ^= 64
        (folder / "model.bin").write_bytes(content)


def test_a_kept_bundle_is_that_of_the_folder_meant_as_it_is_now(tiny, tmp_path, monkeypatch):
    """One relative name from two places, and other weights in one of them later."""
    hashes = []
    for place, spoilt in (("here", False), ("there", True)):
        model_folder(tmp_path / place / "model", spoilt)
        monkeypatch.chdir(tmp_path / place)
        hashes.append(open_bundle("model").manifest.model["hash"])
    assert hashes[0] == tiny.hash
    assert hashes[1] != tiny.hash
    model_folder(tmp_path / "here" / "model", spoilt=True)  # other weights in the same place
    monkeypatch.chdir(tmp_path / "here")
    assert open_bundle("model").manifest.model["hash"] == hashes[1]


def test_weights_that_lack_an_array_are_named(tiny, tmp_path):
    name = "model.decoder.layers.2.fc1.weight"
    arrays = {key: array for key, array in tiny.arrays.items() if key != name}
    with pytest.raises(BeamlessError, match=f"tiny.en lack .*{name}"):
        write_bundle(replace(tiny, arrays=arrays), tmp_path / "bundle")


def test_an_unknown_model_is_one_line(tmp_path):
    with pytest.raises(BeamlessError, match="there is no model 'huge': give a folder"):
        open_bundle("huge")
    with pytest.raises(BeamlessError, match="there is no model"):
        load_checkpoint(str(tmp_path / "nowhere" / "at" / "all"))


def test_nothing_passes_the_gate_unchecked(copied):
    bundle = load_bundle(copied)
    with pytest.raises(BeamlessError, match=r"never checked .* run 'beamless check"):
        require_parity(bundle)
    write_parity(bundle, {"passed": False})
    with pytest.raises(BeamlessError, match="does not decode as the reference"):
        require_parity(bundle)
    write_parity(bundle, {"passed": True, "recordings": 3})
    require_parity(load_bundle(copied))
    assert read_parity(bundle)["recordings"] == 3


def test_the_record_of_another_bundle_does_not_count(copied, tiny, tmp_path):
    write_parity(load_bundle(copied), {"passed": True})
    write_bundle(tiny, tmp_path / "other")
    shutil.copy(copied / "parity.json", tmp_path / "other")
    with pytest.raises(BeamlessError, match="never checked"):
        require_parity(load_bundle(tmp_path / "other"))


@pytest.mark.parametrize("text", ["", "[]", "null", '{"passed": true}'])
def test_a_damaged_record_does_not_count(copied, text):
    (copied / "parity.json").write_text(text, encoding="utf-8")
    with pytest.raises(BeamlessError, match="never checked"):
        require_parity(load_bundle(copied))


def test_sizes_are_read_from_the_model(tiny_bundle, base_bundle):
    small, large = (bundle.compile("decoder") for bundle in (tiny_bundle, base_bundle))
    assert tuple(small.input("past_key.0").shape) == (1, 6, 223, 64)
    assert tuple(large.input("past_key.5").shape) == (1, 8, 223, 64)
    assert tuple(small.output("logits").shape) == (1, 1, 51864)
    assert tuple(large.output("logits").shape) == (1, 1, 51865)
    assert np.dtype(small.input("input_ids").element_type.to_dtype()) == np.int32


@pytest.fixture
def kept():
    """The folder of tiny.en's fast bundle in the cache."""
    return open_bundle("tiny.en", precision="fast").folder


def test_a_damaged_bundle_in_the_cache_is_built_again(kept, capsys):
    content = (kept / "corrected.bin").read_bytes()
    (kept / "corrected.bin").unlink()  # the file itself may be mapped
    (kept / "corrected.bin").write_bytes(content[: len(content) // 2])
    opened = open_bundle("tiny.en", precision="fast")
    assert "building the bundle of tiny.en" in capsys.readouterr().err
    assert load_bundle(kept).hash == opened.hash
    assert (kept / "corrected.bin").read_bytes() == content


@pytest.mark.parametrize("name", ["tiny.en-fast", "-fast"])
def test_a_model_whose_name_ends_as_a_fast_bundle_does_is_no_other(kept, name):
    with pytest.raises(BeamlessError, match=f"there is no model '{name}'"):
        open_bundle(name)


def test_a_bundle_in_the_cache_is_found_by_its_models_own_name_alone(kept):
    shutil.copytree(kept, kept.with_name(kept.name.replace("tiny.en", "openai--tiny")))
    with pytest.raises(BeamlessError, match="there is no model 'openai--tiny'"):
        open_bundle("openai--tiny", precision="fast")
