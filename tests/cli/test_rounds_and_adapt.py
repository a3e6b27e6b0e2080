"""From corpora to a bundle by one command, and from a list of names to one."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.glossary import holds
from beamless.data_gen.traces import read_recipe
from beamless.models.corrector import load_corrector
from beamless.models.pretrained import pretrained

WORDS = ["Reineke", "Isegrim", "Old Nobel"]
SMALL = ("--epochs", 1, "--units", 16)
LINES = ["Set a timer for twenty five minutes.", "We were all going direct to heaven."]


def beamless(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "beamless", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, encoding="utf-8")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("said")
    (folder / "texts.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    said = beamless("synth", folder / "texts.txt", folder / "train")
    assert said.returncode == 0, said.stderr
    checked = beamless("check", "tiny.en", "--limit", 2, "--no_beam", "--precision", "fast")
    assert checked.returncode == 0, checked.stderr
    return folder / "train"


@pytest.fixture(scope="module")
def made(corpus, tmp_path_factory) -> tuple[tuple[object, ...], Path]:
    """The command of one on-policy round, and its folder when it is done."""
    out = tmp_path_factory.mktemp("rounds") / "made"
    fast = ("--precision", "fast", "--workers", 2)
    command = ("rounds", corpus, out, "--dev", corpus, "--rounds", 1, *fast, *SMALL)
    done = beamless(*command)
    assert done.returncode == 0, done.stderr
    return command, out


def test_each_round_is_judged_by_decoding_and_the_best_one_is_kept(made):
    _, out = made
    judged = json.loads((out / "rounds.json").read_text(encoding="utf-8"))
    assert set(judged["dev_wer"]) == {"0", "1"}
    kept = judged["dev_wer"][str(judged["kept"])]
    assert kept == min(judged["dev_wer"].values())
    manifest = json.loads((out / "bundle" / "bundle.json").read_text(encoding="utf-8"))
    assert manifest["corrector"]["provenance"]["dev_wer"] == kept
    assert manifest["precision"]["weights"] == "int8"


def test_later_rounds_learn_from_what_the_corrector_itself_visited(made):
    _, out = made
    visited = list((out / "round-1" / "rollouts").rglob("on_policy/best/*.parquet"))
    assert visited
    config = json.loads((out / "round-1/corrector/corrector.json").read_text(encoding="utf-8"))
    earlier = json.loads((out / "round-0/corrector/corrector.json").read_text(encoding="utf-8"))
    assert config["provenance"]["steps"] > earlier["provenance"]["steps"]


def test_what_is_done_is_not_done_again(made):
    command, out = made
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.name != "rounds.json"}
    again = beamless(*command)
    assert again.returncode == 0, again.stderr
    after = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.name != "rounds.json"}
    changed = [p for p in before if p.is_file() and after[p] != before[p]]
    assert [p for p in changed if p.parent != out / "corrector"] == []


@pytest.fixture(scope="module")
def adapted(corpus, tmp_path_factory) -> tuple[tuple[object, ...], Path]:
    """The command that teaches three words, and its folder when it is done."""
    folder = tmp_path_factory.mktemp("words")
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    small = ("--per_word", 3, "--general", 5, "--epochs", 1, "--dev", corpus)
    command = ("adapt", "--words", folder / "words.txt", "tiny.en", folder / "adapted", *small)
    done = beamless(*command)
    assert done.returncode == 0, done.stderr
    assert "one speaker only" in done.stderr
    return command, folder / "adapted"


def test_a_glossary_becomes_a_bundle_and_a_report(corpus, adapted):
    _, out = adapted
    report = json.loads((out / "adapt.json").read_text(encoding="utf-8"))
    assert report["terms"]["said"] == len(WORDS)
    assert set(report) == {"terms", "/".join(corpus.parts[-2:])}
    manifest = json.loads((out / "bundle" / "bundle.json").read_text(encoding="utf-8"))
    assert manifest["precision"]["weights"] == "int8"
    lines = (out / "terms.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "term,said,heard_before,heard_after"
    assert sorted(line.split(",")[0] for line in lines[1:]) == sorted(WORDS)
    assert (out / "terms.png").read_bytes().startswith(b"\x89PNG")


def test_an_adaptation_goes_on_from_the_corrector_that_comes_with_us(adapted):
    _, out = adapted
    start, made = (load_corrector(out / part).config for part in ("start", "corrector"))
    assert replace(start, provenance={}) == replace(made, provenance={})
    assert start.provenance == pretrained(start.model_hash).config.provenance


def test_sentences_are_learnt_in_rooms_too_and_judge_as_they_were_said(adapted):
    _, out = adapted
    learnt, again, judged = (read_corpus(out / part) for part in ("learnt", "again", "judged"))
    assert [(u.id, u.text) for u in learnt] == [(u.id, u.text) for u in again]
    assert any(u.augment for u in again)
    assert not any(u.augment for u in [*learnt, *judged])
    assert not {u.text for u in judged} & {u.text for u in learnt}
    assert learnt_from(out) == ["learnt", "again", "general"]
    assert read_recipe(out / "traces" / "again").model == "tiny.en"


def test_general_sentences_hold_no_word_and_are_steered_to_what_a_beam_finds(adapted):
    _, out = adapted
    general = read_corpus(out / "general")
    assert len(general) == 5
    assert not [u for u in general for word in WORDS if holds(u.text, word)]
    assert [folder.name for folder in (out / "traces/general/teacher_forced").iterdir()] == ["best"]


def test_other_settings_do_not_go_on_in_a_folder_begun_with_these(adapted, tmp_path):
    command, out = adapted
    begun = tmp_path / "begun"
    shutil.copytree(out, begun)
    (begun / "adapt.json").unlink()
    other = [begun if part == out else part for part in command]
    done = beamless(*other, "--learning_rate", 0.1)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("was begun with other settings; name another folder")


def test_an_adaptation_that_was_stopped_makes_nothing_again(adapted):
    command, out = adapted
    kept = ("learnt", "again", "judged", "general", "traces", "corrector", "bundle")
    files = [p for part in kept for p in (out / part).rglob("*") if p.is_file()]
    before = {p: p.stat().st_mtime_ns for p in files if p.name != "_COMPLETE"}
    (out / "adapt.json").unlink()
    again = beamless(*command)
    assert again.returncode == 0, again.stderr
    assert [p for p in before if p.stat().st_mtime_ns != before[p]] == []
    assert (out / "adapt.json").is_file()


def learnt_from(out: Path) -> list[str]:
    config = json.loads((out / "corrector" / "corrector.json").read_text(encoding="utf-8"))
    return config["provenance"]["traces"]
