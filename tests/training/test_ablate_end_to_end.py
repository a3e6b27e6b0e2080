"""Ablations from traces to a table, with real weights on two sentences."""

import json
import shutil

import pytest
import soundfile as sf
import yaml

from beamless.data_gen.collect import collect
from beamless.inference.bundle import load_bundle
from beamless.models.corrector import load_corrector
from beamless.models.parity_record import write_parity
from beamless.training.ablation_table import Line
from beamless.training.ablations import ablate
from beamless.training.csv_rows import read_csv
from beamless.training.fit import train
from beamless.training.fitting import Fitting
from beamless.training.report import Row
from beamless.training.stopping import StopBetweenBatches

FOX = "The quick brown fox jumps over the lazy dog."
PERIOD = "In short, the period was so far like the present period."
SMALL = {"units": 8, "epochs": 1}


@pytest.fixture(scope="module")
def made(tiny_bundle, speech, other_speech, tmp_path_factory):
    """A corpus of two sentences, its traces, and the table of a recipe of four rows."""
    folder = tmp_path_factory.mktemp("ablations")
    model = folder / "tiny.en"
    shutil.copytree(tiny_bundle.folder, model)
    write_parity(load_bundle(model), {"passed": True})
    corpus = folder / "corpus" / "dev"
    corpus.mkdir(parents=True)
    lines = []
    for name, samples, text in (("fox", speech, FOX), ("period", other_speech, PERIOD)):
        sf.write(corpus / f"{name}.wav", samples, 16000)
        lines.append(json.dumps({"id": name, "file_name": f"{name}.wav", "text": text}) + "\n")
    (corpus / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")
    collect(corpus, folder / "traces", model=str(model), targets=["best", "list"], beam_size=2)
    rows = [
        {"name": "untrained", "methods": ["greedy", "beam5"]},
        {"name": "knn", "methods": ["knn2"], "datastore": ["real"]},
        {"name": "shift", "methods": ["corrected"], "traces": ["real"], "fitting": SMALL},
        {
            "name": "few errors",
            "methods": ["corrected"],
            "traces": ["real"],
            "targets": ["list"],
            "start": "shift",
            "fitting": {**SMALL, "objective": "mwer"},
        },
    ]
    recipe = folder / "recipe.yaml"
    content = {"model": "tiny.en", "folders": {"real": "traces"}, "rows": rows}
    recipe.write_text(yaml.safe_dump(content), encoding="utf-8")
    ablate(recipe, folder / "out", [corpus], heard=[corpus])
    return folder


def test_every_row_stands_in_the_table_with_what_it_learned_from(made):
    text = (made / "out" / "table.md").read_text(encoding="utf-8").splitlines()
    assert [line.split("|")[1].strip() for line in text[2:7]] == [
        "untrained",
        "",
        "knn",
        "shift",
        "few errors",
    ]
    header = (made / "out" / "table.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.split(",") == list(Line.__dataclass_fields__)
    assert len(read_csv(made / "out" / "shift" / "report" / "utterances.csv", Row)) == 2


def test_a_row_of_mwer_goes_on_from_the_row_that_it_names(made):
    first, second = (
        load_corrector(made / "out" / name / "corrector") for name in ("shift", "few-errors")
    )
    assert first.hash != second.hash
    assert second.config.provenance["objective"] == "mwer"
    assert second.config.provenance["start"] == "corrector"


def test_a_second_run_finds_all_done_and_says_the_same(made):
    out = made / "out"
    before = (out / "table.csv").read_text(encoding="utf-8")
    times = {path: path.stat().st_mtime_ns for path in out.glob("*/corrector/corrector.json")}
    ablate(made / "recipe.yaml", out, [made / "corpus" / "dev"], heard=[made / "corpus" / "dev"])
    assert (out / "table.csv").read_text(encoding="utf-8") == before
    assert {path: path.stat().st_mtime_ns for path in times} == times


def ask_to_stop(self, trainer, module):
    self.asked = True


def test_a_stopped_training_of_mwer_goes_on_to_the_same_bytes(made, tmp_path, monkeypatch):
    fitting = Fitting(objective="mwer", units=8, epochs=3, batch_size=1)

    def trained(out):
        train([made / "traces"], out, model="tiny.en", targets=["list"], fitting=fitting)
        return (out / "corrector.safetensors").read_bytes()

    undisturbed = trained(tmp_path / "undisturbed")
    with monkeypatch.context() as patched:
        patched.setattr(StopBetweenBatches, "on_train_epoch_end", ask_to_stop)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "stopped")
    assert (tmp_path / "stopped" / "checkpoints" / "last.ckpt").is_file()
    assert not (tmp_path / "stopped" / "corrector.json").exists()
    assert trained(tmp_path / "stopped") == undisturbed
