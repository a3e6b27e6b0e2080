"""Trainings of several seeds averaged, alone and in the rounds of a recipe."""

import json
import shutil
from pathlib import Path

import pytest
import soundfile as sf
from conftest import OTHER_SENTENCE, SENTENCE

from beamless.inference.atomic import begin
from beamless.inference.bundle import load_bundle
from beamless.inference.errors import BeamlessError
from beamless.models.bundle import open_bundle
from beamless.models.corrector import config_of, load_corrector, save_corrector, untrained
from beamless.models.parity_record import write_parity
from beamless.training.average import average
from beamless.training.fitting import Fitting
from beamless.training.rounds import rounds


def saved(folder: Path, language: str) -> Path:
    config = config_of("shift", "m" * 64, 8, 20, units=4)
    corrector = untrained(config)
    corrector.config.provenance["languages"] = [language]
    save_corrector(corrector, folder)
    return folder


def test_a_folder_with_something_in_it_is_not_written_over(tmp_path):
    member = saved(tmp_path / "member", "en")
    with pytest.raises(BeamlessError, match="exists"):
        average([member, member], tmp_path)


def test_correctors_of_two_languages_are_not_averaged(tmp_path):
    members = [saved(tmp_path / language, language) for language in ("en", "de")]
    with pytest.raises(BeamlessError, match="different languages"):
        average(members, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_a_round_of_two_members_keeps_their_mean(tiny_bundle, speech, other_speech, tmp_path):
    corpus = tmp_path / "said" / "train"
    corpus.mkdir(parents=True)
    said = {"fox": (speech, SENTENCE), "other": (other_speech, OTHER_SENTENCE)}
    with (corpus / "metadata.jsonl").open("w", encoding="utf-8") as file:
        for name, (samples, text) in said.items():
            sf.write(corpus / f"{name}.wav", samples, 16000)
            file.write(json.dumps({"id": name, "file_name": f"{name}.wav", "text": text}) + "\n")
    made = tmp_path / "made"
    begin(made, "rounds")
    for done in (made / "round-0" / "bundle", made / "bundle"):  # what an earlier run left there
        shutil.copytree(tiny_bundle.folder, done)
        write_parity(load_bundle(done), {"passed": True})
    write_parity(open_bundle("tiny.en"), {"passed": True})
    fitting = Fitting(units=8, epochs=1, seed=3)
    options = {"dev": [corpus], "rounds": 0, "beam_size": 2, "members": 2, "fitting": fitting}
    rounds([corpus], made, **options)
    members = [load_corrector(made / "round-0" / f"member-{n}") for n in (3, 4)]
    assert members[0].hash != members[1].hash
    kept = load_corrector(made / "corrector").config
    assert kept.units == 16
    assert [origin["seed"] for origin in kept.provenance["members"]] == [3, 4]
    assert kept.provenance["languages"] == ["en"]
    fused = load_bundle(made / "bundle").manifest.corrector
    assert fused["hash"] == load_corrector(made / "corrector").hash
