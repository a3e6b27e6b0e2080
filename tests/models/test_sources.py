"""Where a model's name leads: folders, installed packages, the hub."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

from beamless.inference.bundle import load_bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Greedy, greedy
from beamless.models import sources
from beamless.models.bundle import write_bundle
from beamless.models.sources import from_package, locate
from beamless.models.whisper import load_checkpoint


def transformers_folder(folder, checkpoint, dtype=np.float32, shards=1):
    """Write a checkpoint as transformers stores it."""
    folder.mkdir(parents=True)
    arrays = {name: np.asarray(array, dtype) for name, array in checkpoint.arrays.items()}
    arrays["proj_out.weight"] = arrays["model.decoder.embed_tokens.weight"].copy()
    names = sorted(arrays)
    for number in range(shards):
        part = {name: np.ascontiguousarray(arrays[name]) for name in names[number::shards]}
        name = f"model-{number + 1:05}-of-{shards:05}" if shards > 1 else "model"
        save_file(part, folder / f"{name}.safetensors")
    config = {"model_type": "whisper", "decoder_attention_heads": checkpoint.heads}
    generation = {
        "suppress_tokens": list(checkpoint.suppress_tokens),
        "begin_suppress_tokens": list(checkpoint.begin_suppress_tokens),
        "alignment_heads": [list(pair) for pair in checkpoint.alignment_heads],
    }
    for name, content in (("config", config), ("generation_config", generation)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "tokenizer.json").write_text(checkpoint.tokenizer_json, encoding="utf-8")
    return folder


def refusal(name):
    with pytest.raises(BeamlessError) as caught:
        load_checkpoint(str(name))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_transformers_folder_gives_the_hash_and_tokens_of_the_ctranslate2_one(
    tiny, tiny_bundle, tiny_window, tmp_path
):
    folder = transformers_folder(tmp_path / "whisper", tiny)
    checkpoint = load_checkpoint(str(folder))
    assert checkpoint.hash == tiny.hash
    assert checkpoint.sizes == tiny.sizes
    assert checkpoint.suppress_tokens == tiny.suppress_tokens
    assert checkpoint.begin_suppress_tokens == tiny.begin_suppress_tokens
    assert checkpoint.alignment_heads == tiny.alignment_heads
    write_bundle(checkpoint, tmp_path / "bundle")
    bundle = load_bundle(tmp_path / "bundle")
    rule = (tiny_window, bundle.tokenizer.prompt(), bundle.tokenizer.end)
    assert greedy(Greedy(bundle), *rule).tokens == greedy(Greedy(tiny_bundle), *rule).tokens


def test_float16_and_sharded_folders_are_the_same_model(tiny, tmp_path):
    folder = transformers_folder(tmp_path / "whisper", tiny, np.float16, shards=3)
    assert load_checkpoint(str(folder)).hash == tiny.hash


def test_a_second_set_of_weights_in_the_folder_is_not_read(tiny, tmp_path):
    """Some repositories keep ``model.fp32-….safetensors`` beside ``model.safetensors``."""
    folder = transformers_folder(tmp_path / "whisper", tiny, np.float16)
    (folder / "model.fp32-00001-of-00002.safetensors").write_bytes(b"not read at all")
    assert load_checkpoint(str(folder)).hash == tiny.hash


def test_no_two_models_have_the_same_hash(tiny, base):
    assert tiny.hash != base.hash


def test_sizes_are_those_of_the_model(tiny, base):
    assert (tiny.sizes.width, tiny.sizes.heads, tiny.sizes.decoder_layers) == (384, 6, 4)
    assert (base.sizes.width, base.sizes.heads, base.sizes.decoder_layers) == (512, 8, 6)
    assert (tiny.sizes.vocabulary, base.sizes.vocabulary) == (51864, 51865)
    assert {tiny.sizes.text_positions, base.sizes.text_positions} == {448}
    assert (base.sizes.mels, base.sizes.frames, base.sizes.audio_positions) == (80, 3000, 1500)


def test_a_model_in_two_packages_is_joined_once(base, cache):
    joined = cache / "models" / "base"
    assert {"model.bin", "tokenizer.json", "config.json"} <= {f.name for f in joined.iterdir()}
    written = (joined / "model.bin").stat().st_mtime_ns
    assert from_package("base") == joined
    assert (joined / "model.bin").stat().st_mtime_ns == written


def test_a_model_in_one_package_is_read_where_it_lies(tiny, cache):
    assert cache not in locate("tiny.en").parents
    assert not (cache / "models" / "tiny.en" / "model.bin").exists()


def test_weights_are_hashed_once_and_then_known(tiny, monkeypatch):
    """The second start reads no weights to hash them."""

    def refused(*_):
        raise AssertionError("hashed again")

    monkeypatch.setattr(sources.hashlib, "sha256", refused)
    assert from_package("tiny.en")


def test_package_weights_of_another_hash_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BEAMLESS_CACHE", str(tmp_path))
    places, _ = sources.PACKAGES["tiny.en"]
    monkeypatch.setitem(sources.PACKAGES, "tiny.en", (places, "0" * 64))
    assert "installed weights of tiny.en are damaged" in refusal("tiny.en")


def test_a_package_that_is_not_installed_leaves_the_hub(monkeypatch):
    monkeypatch.setitem(sources.PACKAGES, "tiny.en", (("no_such_package/model",), "0" * 64))
    assert from_package("tiny.en") is None


@pytest.mark.parametrize("name", ["small.en", "someone/some-whisper", "someone/other@main"])
def test_a_hub_that_does_not_answer_is_one_clear_line(name, tmp_path):
    """In a program of its own: the hub's client reads its address once, when it is imported."""
    program = f"from beamless.models.whisper import load_checkpoint; load_checkpoint({name!r})"
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **nowhere},
        timeout=120,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("beamless.inference.errors.BeamlessError: ")
    assert "could not be fetched from the hub" in last
    assert "or give the folder of a model" in last


@pytest.mark.parametrize("name", ["whisper", "./nowhere", "/no/where", "a/b/c"])
def test_a_name_of_nothing_is_one_clear_line(name):
    assert "give a folder, a hub id or one of tiny.en" in refusal(name)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "holds no config.json"),
        (lambda f: (f / "tokenizer.json").unlink(), "holds no tokenizer.json"),
        (lambda f: (f / "model.safetensors").unlink(), "holds no model.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 90), "model.safetensors cannot"),
        (lambda f: (f / "config.json").write_text("{", encoding="utf-8"), "config.json is damaged"),
        (
            lambda f: (f / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8"),
            "a 'bert' model, not a Whisper",
        ),
        (
            lambda f: (f / "config.json").write_text('{"model_type": "whisper"}', encoding="utf-8"),
            "lacks decoder_attention_heads",
        ),
    ],
    ids=["config", "tokenizer", "weights", "damaged", "json", "bert", "heads"],
)
def test_a_spoilt_folder_says_what_is_wrong(tiny, tmp_path, spoil, message):
    folder = transformers_folder(tmp_path / "whisper", tiny, np.float16)
    spoil(folder)
    assert message in refusal(folder)


def test_nothing_is_unpickled(tmp_path):
    """A folder with torch's pickled weights only is refused, never loaded."""
    (tmp_path / "config.json").write_text('{"model_type": "whisper"}', encoding="utf-8")
    (tmp_path / "pytorch_model.bin").write_bytes(b"cposix\nsystem\n(S'touch owned'\ntR.")
    assert "other weight files are not read" in refusal(tmp_path)
