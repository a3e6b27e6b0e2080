"""The recipes in training/configs, against the command that takes them."""

from pathlib import Path

import pytest

from beamless.command_line import build_parser, load_command
from beamless.inference.errors import BeamlessError
from beamless.training import rounds as recipes
from beamless.training.rounds import names_of, rounds

CONFIGS = Path(recipes.__file__).parent / "configs"
RECIPES = sorted(path for path in CONFIGS.glob("*.yaml") if path.stem != "ablations")


def test_there_is_a_recipe_for_each_model_that_is_installed_with_us():
    assert {path.stem for path in RECIPES} == {"tiny.en", "base"}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_understood_by_its_command_and_names_its_own_model(path, tmp_path):
    parser = build_parser(load_command("rounds"), "beamless rounds")
    arguments = [str(tmp_path / "corpus"), str(tmp_path / "out"), "--config", str(path)]
    options = parser.parse_args(arguments)
    assert options.model == path.stem


def test_rounds_without_a_dev_corpus_say_so_before_any_work(tmp_path):
    with pytest.raises(BeamlessError, match="--dev"):
        rounds([tmp_path / "corpus"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rounds_on_a_bundle_which_has_no_weights_say_so_before_any_work(tiny_bundle, tmp_path):
    given = {"model": str(tiny_bundle.folder), "dev": [tmp_path]}
    with pytest.raises(BeamlessError, match="is a bundle; name the model that it was made from"):
        rounds([tmp_path / "corpus"], tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_two_corpora_of_one_name_would_share_traces(tmp_path):
    with pytest.raises(BeamlessError, match="same name"):
        names_of([tmp_path / "a" / "x" / "train", tmp_path / "b" / "x" / "train"])


def test_corpora_are_named_by_their_last_two_folders(tmp_path):
    corpora = [tmp_path / "librispeech" / "train", tmp_path / "librispeech" / "dev"]
    assert list(names_of(corpora)) == ["librispeech-train", "librispeech-dev"]
