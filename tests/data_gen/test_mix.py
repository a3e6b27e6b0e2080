"""Mixing: one recipe, one corpus, the same files whether it was stopped or not."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from beamless.data_gen import mix_recipe
from beamless.data_gen.corpora import read_corpus, split_of
from beamless.data_gen.corpus_check import check_corpus
from beamless.data_gen.mix import mix
from beamless.data_gen.mix_recipe import read_mix
from beamless.inference.errors import BeamlessError

LINES = ["One short line.", "...", "Two is said as well.", "And three.", "Four is the last one."]


def people(folder, corpora, count=12):
    """Recordings of several speakers, as a corpus."""
    rows = [{"speaker": f"p{n // 2}", "text": f"text {n}", "duration": 0.3} for n in range(count)]
    return corpora.write(folder, [row | {"license": "CC0"} for row in rows])


def written(path: Path, **recipe) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return path


@pytest.fixture
def recipe(tmp_path, corpora):
    """A said part, joined, and a recorded one, augmented; folders beside the recipe."""
    people(tmp_path / "people", corpora)
    (tmp_path / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    said = {"name": "said", "texts": "lines.txt", "voices": [{"voice": "joe", "speeds": [1, 1.2]}]}
    join = {"join": {"p": 0.5, "seconds": [3, 8]}, "steps": ["gain"]}
    read = {"name": "read", "layout": "corpus", "source": "{people}", "limit": 8}
    parts = [said | {"augment": join}, read | {"augment": {"steps": [{"gain": {"db": [-9, 3]}}]}}]
    return written(tmp_path / "recipe.yaml", seed=3, folders={"people": "people"}, parts=parts)


def digests(folder):
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def recorded(tmp_path, corpora, **more):
    people(tmp_path / "people", corpora)
    part = {"name": "read", "layout": "corpus", "source": "people", **more}
    return written(tmp_path / "recipe.yaml", parts=[part])


def test_a_mixed_corpus_holds_each_part_with_its_provenance(recipe, tmp_path, capsys):
    mix(recipe, tmp_path / "out")
    rows = [u for u in read_corpus(tmp_path / "out")]
    said = [u for u in rows if u.extra["part"] == "said"]
    read = [u for u in rows if u.extra["part"] == "read"]
    assert " ".join(u.text for u in said) == " ".join(LINES).replace("... ", "")
    assert {u.speaker for u in said} == {f"{said[0].voice}/{said[0].speaker.rpartition('/')[2]}"}
    assert all(u.id.startswith("said.lines-0000") and "gain" in u.augment for u in said)
    assert len(read) == 8
    assert all(u.id.startswith("read.u") and "db" in u.augment["gain"] for u in read)
    assert {(u.license, u.voice) for u in read} == {("CC0", "")}
    assert "refused 1: 1 nothing to say" in (printed := capsys.readouterr().out)
    assert "read: 8 utterances" in printed
    check_corpus(tmp_path / "out")


def test_a_hard_kill_in_the_middle_ends_with_the_same_files(recipe, tmp_path):
    lines = "\n".join(f"This is line {n}, and it is said." for n in range(1, 9))
    (tmp_path / "lines.txt").write_text(lines, encoding="utf-8")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-m", "beamless", "mix", str(recipe), str(killed)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        metadata, end = killed / "metadata.jsonl", time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            if metadata.is_file() and metadata.read_bytes().count(b"\n") >= 2:
                break
            time.sleep(0.01)
        process.kill() if os.name == "nt" else process.send_signal(signal.SIGKILL)
    assert metadata.read_bytes().count(b"said.lines") >= 2
    assert not (killed / "_COMPLETE").exists()
    for folder in (killed, whole):
        mix(recipe, folder)
    assert digests(killed) == digests(whole)


def test_a_mix_of_which_nothing_can_be_used_leaves_no_corpus(recipe, tmp_path):
    (tmp_path / "lines.txt").write_text("...\n", encoding="utf-8")
    said = written(tmp_path / "said.yaml", parts=[SAID])
    with pytest.raises(BeamlessError, match=r"nothing that .* names could be used: 1 nothing to"):
        mix(said, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_mixing_again_changes_nothing(recipe, tmp_path):
    mix(recipe, tmp_path / "out")
    before = digests(tmp_path / "out")
    mix(recipe, tmp_path / "out")
    assert digests(tmp_path / "out") == before


def test_a_folder_may_move_and_no_path_of_a_machine_is_in_the_corpus(recipe, tmp_path, corpora):
    mix(recipe, tmp_path / "out")
    moved = tmp_path / "elsewhere"
    (tmp_path / "people").rename(moved)
    mix(recipe, tmp_path / "out", folders=[f"people={moved}"])
    for name in ("recipe.json", "metadata.jsonl"):
        assert str(tmp_path) not in (tmp_path / "out" / name).read_text(encoding="utf-8")


def test_another_recipe_is_never_mixed_into_the_same_folder(tmp_path, corpora):
    mix(recorded(tmp_path, corpora, limit=3), tmp_path / "out")
    with pytest.raises(BeamlessError, match="another recipe"):
        mix(recorded(tmp_path, corpora, limit=4), tmp_path / "out")


def test_a_share_and_a_limit_draw_the_same_recordings_always(tmp_path, corpora):
    def ids(**more):
        [part] = read_mix(recorded(tmp_path, corpora, **more)).parts
        return [recording.id for recording in part.recordings]

    everything, half, five = ids(), ids(share=0.5), ids(limit=5)
    assert ids(share=0.5) == half
    assert set(half) < set(everything)
    assert half == [id for id in everything if id in half]
    assert (len(five), set(ids(limit=4)) < set(five)) == (5, True)


def test_speakers_stay_on_their_side(tmp_path, corpora):
    mix(recorded(tmp_path, corpora, split="speaker"), tmp_path / "out")
    sides = {}
    for side in ("train", "dev", "test"):
        for line in (tmp_path / "out" / side / "metadata.jsonl").open(encoding="utf-8"):
            sides.setdefault(json.loads(line)["speaker"], set()).add(side)
    assert sides == {f"p{n}": {split_of(f"p{n}")} for n in range(6)}


def test_a_part_may_be_put_on_one_side_whole(tmp_path, corpora):
    mix(recorded(tmp_path, corpora, split="dev"), tmp_path / "out")
    assert len(read_corpus(tmp_path / "out" / "dev")) == 12


def test_what_needs_a_folder_without_a_place_is_left_out_and_said_so(tmp_path, corpora, capsys):
    people(tmp_path / "people", corpora)
    steps = [{"noise": {"folder": "{noise}"}}, "gain"]
    parts = [
        {"name": "read", "layout": "corpus", "source": "people", "augment": {"steps": steps}},
        {"name": "more", "layout": "corpus", "source": "{more}/train"},
    ]
    folders = {"noise": None, "more": None}
    mix(written(tmp_path / "recipe.yaml", folders=folders, parts=parts), tmp_path / "out")
    assert {u.extra["part"] for u in read_corpus(tmp_path / "out")} == {"read"}
    told = capsys.readouterr().err
    assert "left out: noise needs --folders noise=PLACE" in told
    assert "left out: more needs --folders more=PLACE" in told


@pytest.mark.parametrize(("recipe", "left_out"), [("mixed.yaml", 4), ("said.yaml", 2)])
def test_a_recipe_that_is_shipped_is_sound(recipe, left_out):
    mixed = read_mix(Path(mix_recipe.__file__).with_name(recipe))
    assert [(part.name, part.total) for part in mixed.parts] == [("requests", 300)]
    assert len(mixed.left_out) == left_out
    first = next(iter(mixed.parts[0].recordings))
    assert (first.id, first.extra["part"]) == ("requests.000001", "requests")


@pytest.mark.parametrize("noise", [True, False])
def test_the_shipped_recipe_hears_recordings_once_more(noise, tmp_path, corpora):
    people(tmp_path / "people", corpora)
    places = {"recordings": tmp_path / "people", "noise": tmp_path / "people" / "audio"}
    folders = [f"{name}={place}" for name, place in places.items()][: 1 + noise]
    mixed = read_mix(Path(mix_recipe.__file__).with_name("heard.yaml"), folders)
    assert [(part.name, part.total) for part in mixed.parts] == [("again", 12)]
    assert mixed.parts[0].augment is not None
    assert len(mixed.left_out) == 1 - noise


def test_the_shipped_recipe_says_sentences_of_ones_own(tmp_path):
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("She cut him dead.\nIt rained all day.\n", encoding="utf-8")
    recipe = Path(mix_recipe.__file__).with_name("strangers.yaml")
    mixed = read_mix(recipe, [f"sentences={sentences}"])
    assert [(part.name, part.total) for part in mixed.parts] == [("read", 2)]
    assert len(mixed.left_out) == 2


PART = {"name": "a", "layout": "corpus", "source": "people"}
SAID = {"name": "a", "texts": "lines.txt", "voices": [{"voice": "joe"}]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "the entry 'parts' is missing"),
        ({"parts": [PART], "more": 1}, "there is no entry 'more'; seed, split, folders, parts"),
        ({"parts": PART}, "the entry 'parts' has the wrong type"),
        ({"parts": []}, "'parts' must be a list of at least one part"),
        ({"parts": ["a"]}, "part 1: entries such as 'name: requests' were expected"),
        ({"parts": [PART | {"limits": 1}]}, "part 1: there is no entry 'limits'"),
        ({"parts": [PART | {"limit": True}]}, "the entry 'limit' has the wrong type"),
        ({"parts": [PART | {"limit": 0}]}, "a limit 1 or more"),
        ({"parts": [SAID | {"count": 0}]}, "a: a count is 1 or more, not 0"),
        ({"parts": [SAID | {"count": -1}]}, "a: a count is 1 or more, not -1"),
        ({"parts": [PART | {"share": 2}]}, "a share is from 0 to 1"),
        ({"parts": [PART | {"name": "a.b"}]}, "a name has letters"),
        ({"parts": [PART | {"split": "half"}]}, "a split is one of speaker, text, both"),
        ({"parts": [PART | {"layout": "none"}]}, "there is no layout 'none'"),
        ({"parts": [PART | {"source": "none"}]}, "there is no folder"),
        ({"parts": [PART | {"source": "{x}"}]}, "{x} in '{x}' is none of the recipe's folders"),
        ({"parts": [PART | {"augment": {"steps": ["nois"]}}]}, "there is no step 'nois'"),
        ({"parts": [PART, PART]}, "two parts are called 'a'"),
        ({"parts": [PART | {"split": "dev"}, PART | {"name": "b"}]}, "some have none"),
        ({"parts": [{"name": "a", "texts": "grammar"}]}, "the entry 'voices' is missing"),
        ({"parts": [{"name": "a", "texts": "no", "voices": []}]}, "'no' is no source of texts"),
        ({"parts": [{"name": "a", "texts": "llm.yaml", "voices": []}]}, "asks a language model"),
        ({"folders": {"x": None}, "parts": [PART | {"source": "{x}"}]}, "needs --folders x=PLACE"),
        ({"folders": {"x": 1}, "parts": [PART]}, "the folder 'x' must be a path, or empty"),
    ],
)
def test_a_recipe_that_is_wrong_is_one_clear_line_and_writes_nothing(
    tmp_path, corpora, content, said
):
    people(tmp_path / "people", corpora, 2)
    written(tmp_path / "llm.yaml", endpoint="http://127.0.0.1:9/v1")
    path = written(tmp_path / "recipe.yaml", **content)
    with pytest.raises(BeamlessError) as fault:
        mix(path, tmp_path / "out")
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", ["people", "people=", "nobody=x"])
def test_a_folder_that_the_recipe_does_not_name_is_refused(recipe, tmp_path, given):
    with pytest.raises(BeamlessError, match="--folders takes NAME=PLACE"):
        mix(recipe, tmp_path / "out", folders=[given])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("parts: &a [*a]", "an alias (*) stands inside what it names"),
        ("parts: 2020-99-99", "is not YAML (month must be in 1..12)"),
        ("parts: !!int x", "is not YAML"),
        ("parts: !!float x", "is not YAML"),
        ("parts: !!bool x", "is not YAML (a value is not what its tag says)"),
        ("parts: !!timestamp x", "is not YAML"),
        (f"seed: {'9' * 5000}", "is not YAML"),
    ],
)
def test_yaml_that_only_seems_to_be_yaml_is_one_clear_line(tmp_path, text, said):
    (tmp_path / "recipe.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(BeamlessError) as fault:
        read_mix(tmp_path / "recipe.yaml")
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_count_or_a_limit_too_large_to_count_to_takes_everything(tmp_path, corpora):
    people(tmp_path / "people", corpora, 2)
    (tmp_path / "lines.csv").write_text("text\nOne line.\n", encoding="utf-8")
    said = SAID | {"texts": "lines.csv", "count": 10**20}
    parts = [said, PART | {"name": "b", "limit": 10**20}]
    mixed = read_mix(written(tmp_path / "recipe.yaml", parts=parts))
    assert [part.total for part in mixed.parts] == [1, 2]
