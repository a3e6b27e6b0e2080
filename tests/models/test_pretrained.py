"""The correctors that come with Beamless: whose they are, and that they are used."""

import json

import pytest

from beamless.inference.whole import file_hash
from beamless.models.bundle import open_bundle, with_corrector
from beamless.models.corrector import untrained
from beamless.models.pretrained import FOLDER, pretrained, pretrained_confidence

SHIPPED = sorted(path.name for path in FOLDER.iterdir())


def test_tiny_en_is_corrected_with_no_training(tiny):
    corrector = pretrained(tiny.hash)
    assert corrector is not None
    assert corrector.config.model_hash == tiny.hash
    bundle = open_bundle("tiny.en")
    assert bundle.manifest.corrector["hash"] == corrector.hash


def test_weights_that_nobody_trained_for_have_no_corrector():
    assert pretrained("0" * 64) is None


def test_a_kept_bundle_with_another_corrector_is_built_again(tiny):
    bundle = open_bundle("tiny.en")
    file = bundle.folder / "bundle.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, "corrector": None}), encoding="utf-8")
    assert open_bundle("tiny.en").manifest.corrector == bundle.manifest.corrector


def test_a_kept_bundle_whose_manifest_was_spoilt_is_built_again(tiny):
    bundle = open_bundle("tiny.en")
    (bundle.folder / "bundle.json").write_text('{"format_version": 3}', encoding="utf-8")
    assert open_bundle("tiny.en").manifest.sizes == bundle.manifest.sizes


def test_a_models_own_confidence_is_calibrated_with_no_run_of_calibrate(tiny):
    bundle = open_bundle("tiny.en")
    assert bundle.manifest.confidence == pretrained_confidence(pretrained(tiny.hash))
    assert bundle.confidence_in("en").of_word(0.99, -0.1) > 0.9
    assert bundle.confidence_in("en").of_word(0.3, -1.0) < 0.3


def test_numbers_fitted_on_one_language_say_nothing_about_another(tiny):
    assert open_bundle("tiny.en").confidence_in("sv") is None


def test_another_corrector_does_not_inherit_a_fitted_confidence(tiny):
    bundle = open_bundle("tiny.en")
    other = untrained(pretrained(tiny.hash).config, seed=1)
    assert pretrained_confidence(other) is None
    assert with_corrector(bundle, tiny, other).confidence is None


def test_a_kept_bundle_that_was_built_before_its_confidence_was_known_is_built_again():
    bundle = open_bundle("tiny.en")
    file = bundle.folder / "bundle.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    del content["confidence"]
    file.write_text(json.dumps(content), encoding="utf-8")
    assert open_bundle("tiny.en").confidence is not None


@pytest.mark.parametrize("name", SHIPPED)
def test_each_has_a_confidence_that_says_what_it_was_fitted_on(name):
    content = json.loads((FOLDER / name / "confidence.json").read_text(encoding="utf-8"))
    assert content["language"] == "en"
    assert all("dev" in corpus for corpus in content["corpora"])


@pytest.mark.parametrize("name", SHIPPED)
def test_each_names_the_hash_of_its_arrays(name):
    content = json.loads((FOLDER / name / "corrector.json").read_text(encoding="utf-8"))
    assert content["sha256"] == file_hash(FOLDER / name / "corrector.safetensors")


@pytest.mark.parametrize("name", SHIPPED)
def test_each_has_a_card_that_says_what_it_was_made_of_and_its_limits(name):
    card = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    for part in ("**Made of**", "**Limits.**", "CC0-1.0"):
        assert part in card


@pytest.mark.parametrize("name", SHIPPED)
def test_each_is_a_few_megabytes(name):
    assert sum(file.stat().st_size for file in (FOLDER / name).iterdir()) < 8e6


def test_base_is_corrected_in_english_alone(base):
    bundle = open_bundle("base")
    assert bundle.manifest.corrector["hash"] == pretrained(base.hash).hash
    assert bundle.corrects("en")
    assert not bundle.corrects("sv")
    assert not bundle.corrects("en", "translate")
