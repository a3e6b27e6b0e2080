"""Collecting: what is left out and why, what a target is made of, and what is done only once."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from beamless.data_gen.collect import collect
from beamless.data_gen.rollout import rollout
from beamless.data_gen.teachers import read_texts
from beamless.data_gen.traces import NO_TOKEN, planned_ids, read_recipe, read_steps
from beamless.inference.budget import token_budget
from beamless.inference.bundle import load_bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.lock import locked
from beamless.models.parity_record import write_parity

FOX = "The quick brown fox jumps over the lazy dog."


@pytest.fixture(scope="module")
def model(tiny_bundle, tmp_path_factory) -> str:
    """tiny.en's bundle, with a record of a check that passed."""
    folder = tmp_path_factory.mktemp("checked") / "tiny.en"
    shutil.copytree(tiny_bundle.folder, folder)
    write_parity(load_bundle(folder), {"passed": True})
    return str(folder)


def lasting(samples, seconds):
    return np.resize(samples, round(seconds * 16_000))


def said(folder, corpora, utterances):
    """A corpus of ``id: (samples, text)``."""
    rows = []
    for identifier, (samples, text) in utterances.items():
        name = f"audio/{identifier}.wav"
        corpora.store(folder / name, samples)
        rows.append({"id": identifier, "file_name": name, "text": text})
    return corpora.write(folder, rows, audio=False)


def texts_of(traces, target, bundle):
    """The text of each utterance's target, by id."""
    steps = read_steps(traces, [target])
    parts = np.split(steps.target_ids, steps.starts[1:-1])
    return {
        row["id"]: bundle.tokenizer.decode(part.tolist()).strip()
        for row, part in zip(steps.rows, parts, strict=True)
    }


@pytest.fixture(scope="module")
def mixed_lengths(model, speech, corpora, tmp_path_factory):
    """Traces of clips of many lengths, and of texts that are hard to end."""
    folder = tmp_path_factory.mktemp("lengths")
    lengths = (0.2, 12, 29.99, 30.01, 45)
    clips = {f"{s:g}s": (lasting(speech, s), "the fox") for s in lengths}
    short = lasting(speech, 1)
    texts = {
        "five-hundred": " ".join(["fox"] * 500),
        "three-words": "The quick brown",
        "twelve-words": "The quick brown fox jumps over the lazy dog and sleeps now",
        "says-end": "It says <|endoftext|> aloud.",
        "no-words": "",
    }
    corpus = said(folder / "corpus", corpora, clips | {id: (short, texts[id]) for id in texts})
    collect(corpus, folder / "traces", model=model, targets=["reference"], shard_size=4)
    return folder / "traces"


def test_a_list_holds_the_beams_hypotheses_best_first_with_the_errors_of_each(
    model, tiny_bundle, speech, corpora, tmp_path
):
    corpus = said(tmp_path / "corpus", corpora, {"fox": (speech[:24000], FOX)})
    collect(corpus, tmp_path / "traces", model=model, targets=["beam", "best", "list"], beam_size=3)
    texts = texts_and_errors(tmp_path / "traces", "list", tiny_bundle)
    assert len(texts) == 3
    assert texts[0] == texts_and_errors(tmp_path / "traces", "beam", tiny_bundle)[0]
    best = texts_and_errors(tmp_path / "traces", "best", tiny_bundle)[0]
    assert best == min(texts, key=lambda text: text[1])


def test_the_best_text_of_a_recording_without_words_has_none_whatever_the_beam_heard(
    model, tiny_bundle, speech, corpora, tmp_path
):
    corpus = said(tmp_path / "corpus", corpora, {"noise": (speech[:24000], " (noise) ")})
    collect(corpus, tmp_path / "traces", model=model, targets=["beam", "best"], beam_size=2)
    assert texts_and_errors(tmp_path / "traces", "beam", tiny_bundle)[0][1] > 0
    assert texts_and_errors(tmp_path / "traces", "best", tiny_bundle) == [("", 0)]


def texts_and_errors(traces, target, bundle):
    """Each trace's text and its word errors, in order."""
    steps = read_steps(traces, [target])
    parts = np.split(steps.target_ids, steps.starts[1:-1])
    return [
        (bundle.tokenizer.decode(part.tolist()), row["errors"])
        for row, part in zip(steps.rows, parts, strict=True)
    ]


def test_b44_what_is_too_long_is_left_out_and_the_others_are_collected(mixed_lengths):
    there = {row["id"] for row in read_steps(mixed_lengths, ["reference"]).rows}
    assert there >= {"0.2s", "12s", "29.99s"}
    assert not there & {"30.01s", "45s", "five-hundred"}
    planned = [planned_ids(path) for path in mixed_lengths.rglob("*.parquet")]
    assert len({id for ids in planned for id in ids}) == 10


def test_b44_what_is_left_out_is_counted_with_its_reason(model, speech, corpora, tmp_path, capsys):
    utterances = {"long": (lasting(speech, 30.01), "x"), "wordy": (speech, "fox " * 500)}
    utterances |= {"fox": (speech, FOX)}
    corpus = said(tmp_path / "corpus", corpora, utterances)
    collect(corpus, tmp_path / "traces", model=model, targets=["reference"])
    told = capsys.readouterr().err
    assert "left out 1: longer than 30 s" in told
    assert "left out 1: text longer than the decoder's 222 tokens" in told


def test_a_trace_tells_how_many_tokens_its_window_can_hold(mixed_lengths, speech):
    rows = {row["id"]: row for row in read_steps(mixed_lengths, ["reference"]).rows}
    assert rows["12s"]["budget"] == pytest.approx(token_budget(lasting(speech, 12)), abs=1)
    assert rows["12s"]["budget"] > 3 * rows["0.2s"]["budget"]


def test_b41_every_target_ends_with_its_only_end_token(mixed_lengths, tiny_bundle):
    steps = read_steps(mixed_lengths, ["reference"])
    parts = np.split(steps.target_ids, steps.starts[1:-1])
    assert {row["id"] for row in steps.rows} >= {"three-words", "twelve-words", "no-words"}
    for row, part in zip(steps.rows, parts, strict=True):
        assert np.flatnonzero(part == tiny_bundle.tokenizer.end).tolist() == [len(part) - 1], row


def test_a_text_that_spells_the_end_token_keeps_all_its_words(mixed_lengths, tiny_bundle):
    found = texts_of(mixed_lengths, "reference", tiny_bundle)
    assert found["says-end"] == "It says <|endoftext|> aloud."


@pytest.fixture(scope="module")
def grown(model, speech, other_speech, corpora, tmp_path_factory):
    """Traces of beam and best, to which a teacher's texts came later; what was there before."""
    folder = tmp_path_factory.mktemp("grown")
    texts = folder / "texts.jsonl"
    row = json.dumps({"id": "fox", "text": "A text that nobody said.", "wer": 0.5})
    texts.write_text("\ufeff" + row + "\r\n", encoding="utf-8")
    clips = {"fox": (speech, FOX), "mute": (other_speech, "not what is said")}
    corpus = said(folder / "corpus", corpora, clips)
    collect(corpus, folder / "traces", model=model, targets=["beam", "best"])
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    targets = ["best", "teacher"]
    collect(corpus, folder / "traces", model=model, targets=targets, teacher=str(texts))
    return folder, before


def test_texts_of_another_program_are_a_target_in_whispers_tokens(grown, tiny_bundle):
    folder, _ = grown
    taught = texts_of(folder / "traces", "teacher", tiny_bundle)
    assert taught == {"fox": "A text that nobody said."}
    steps = read_steps(folder / "traces", ["teacher"])
    assert steps.target_ids.tolist() == [
        *tiny_bundle.tokenizer.encode(" A text that nobody said."),
        tiny_bundle.tokenizer.end,
    ]


def test_a_teacher_that_comes_later_costs_only_itself(grown):
    folder, before = grown
    assert {path: path.stat().st_mtime_ns for path in before} == before
    recipe = read_recipe(folder / "traces")
    assert recipe.teacher.startswith("texts.jsonl ")
    assert recipe.best_teacher == ""


def test_an_utterance_without_a_teachers_text_is_counted(grown, model, tmp_path, capsys):
    folder, _ = grown
    options = {"model": model, "targets": ["teacher"], "teacher": str(folder / "texts.jsonl")}
    collect(folder / "corpus", tmp_path / "traces", **options)
    assert "left out 1: no text by the teacher" in capsys.readouterr().err


def test_the_end_of_a_run_says_where_the_time_went(model, grown, tmp_path, capsys):
    folder, _ = grown
    collect(folder / "corpus", tmp_path / "traces", model=model, targets=["beam"], limit=1)
    told = capsys.readouterr().err
    assert "1 utterances, 0.00 h of audio in" in told
    assert all(f"{part} " in told for part in ("encoder", "beam", "labels", "the rest"))


def test_targets_that_no_teacher_has_a_part_in_need_not_name_it(grown, model):
    folder, _ = grown
    collect(folder / "corpus", folder / "traces", model=model, targets=["beam", "best"])
    with pytest.raises(BeamlessError, match=r"teacher 'texts.jsonl .*', not 'base'"):
        collect(folder / "corpus", folder / "traces", model=model, teacher="base")


def test_best_takes_a_teachers_text_where_it_has_fewer_errors(
    model, speech, other_speech, corpora, tiny_bundle, tmp_path
):
    clips = {"fox": (speech, FOX), "other": (other_speech, "Entirely different words")}
    corpus = said(tmp_path / "corpus", corpora, clips)
    rows = [("fox", "no words of it"), ("other", "entirely different words")]
    lines = [json.dumps({"id": id, "text": text}) + "\n" for id, text in rows]
    (tmp_path / "texts.jsonl").write_text("".join(lines), encoding="utf-8")
    options = {"targets": ["best"], "teacher": str(tmp_path / "texts.jsonl")}
    collect(corpus, tmp_path / "traces", model=model, **options)
    best = texts_of(tmp_path / "traces", "best", tiny_bundle)
    assert best == {"fox": FOX, "other": "entirely different words"}


def test_a_larger_whisper_teaches_in_the_students_tokens(
    model, base_bundle, tiny_bundle, speech, corpora, tmp_path
):
    corpus = said(tmp_path / "corpus", corpora, {"fox": (speech, FOX)})
    teacher = str(base_bundle.folder)
    collect(corpus, tmp_path / "traces", model=model, targets=["teacher"], teacher=teacher)
    assert texts_of(tmp_path / "traces", "teacher", tiny_bundle) == {"fox": FOX}
    assert read_steps(tmp_path / "traces", ["teacher"]).target_ids[-1] == tiny_bundle.tokenizer.end


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no file"),
        ("", "holds no texts"),
        ('{"id": "a"}\n', "line 1: 'id' and 'text' must be strings"),
        ('{"id": "a", "text": 3}\n', "line 1: 'id' and 'text' must be strings"),
        ('{"id": "a", "text": "x"}\n' * 2, "line 2: the id 'a' stands there twice"),
        ('{"id": "a", "text": "x"}\n{"id"', "line 2: not JSON"),
    ],
)
def test_a_file_of_texts_that_is_wrong_is_one_clear_line(tmp_path, content, said):
    file = tmp_path / "texts.jsonl"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(BeamlessError, match=said):
        read_texts(file)


MEASURE = """
import resource, sys
from pathlib import Path
from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.shards import Job, Shard, ShardWorker
from beamless.data_gen.traces import TraceRecipe
folder, model = Path(sys.argv[1]), sys.argv[2]
recipe = TraceRecipe(model, "", "", (50257, 50362), 5, 1.0, 8)
worker = ShardWorker(Job(model, "CPU", None, recipe, folder))
utterances = read_corpus(folder / "corpus")
for number in range(4):
    worker.make(Shard(number, tuple(utterances[number::4]), ("reference",)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(os.name == "nt", reason="the module resource is not on Windows")
def test_memory_does_not_grow_with_the_corpus(model, speech, corpora, tmp_path):
    """One window's cross-KV alone takes 18 MiB: 12 that stay would be found."""
    clips = {f"u{n}": (lasting(speech, 0.5 + n / 100), "the quick") for n in range(16)}
    said(tmp_path / "corpus", corpora, clips)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path), model],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    peaks = [int(line) for line in done.stdout.split()]
    assert len(list(tmp_path.rglob("*.parquet"))) == 4
    assert peaks[-1] - peaks[0] < 64 * 1024, f"{peaks} KiB"


def test_a_corpus_of_which_nothing_gives_a_trace_is_an_error_each_time(
    model, speech, corpora, tmp_path
):
    corpus = said(tmp_path / "corpus", corpora, {"long": (lasting(speech, 31), "the fox")})
    for _ in range(2):
        with pytest.raises(BeamlessError, match=r"none of the 1 utterances of .* gave a trace"):
            collect(corpus, tmp_path / "traces", model=model, targets=["best"])
    assert not list((tmp_path / "traces").rglob("*.parquet"))


def test_utterances_without_a_trace_that_come_later_are_no_error(model, speech, corpora, tmp_path):
    clips = {"fox": (speech, FOX)}
    corpus = said(tmp_path / "corpus", corpora, clips)
    collect(corpus, tmp_path / "traces", model=model, targets=["reference"])
    said(corpus, corpora, {**clips, "long": (lasting(speech, 31), "the fox")})
    collect(corpus, tmp_path / "traces", model=model, targets=["reference"])
    assert len(read_steps(tmp_path / "traces", ["reference"]).rows) == 1


def test_a_rollout_of_another_corpus_is_said_before_anything_is_written(
    model, speech, corpora, tmp_path
):
    clip = (speech, FOX)
    traced = said(tmp_path / "traced", corpora, {"fox": clip})
    other = said(tmp_path / "other", corpora, {"another": clip})
    collect(traced, tmp_path / "traces", model=model, targets=["reference"])
    with pytest.raises(BeamlessError, match="holds traces of no utterance of"):
        rollout(other, tmp_path / "traces", tmp_path / "out", model=model, target="reference")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def rolled_out(model, speech, other_speech, corpora, tmp_path_factory):
    """Two utterances, their traces, and what greedy decoding visits of them, a shard each."""
    folder = tmp_path_factory.mktemp("rolled")
    clips = {"fox": (speech, FOX), "wrong": (other_speech, "Something else was said here.")}
    corpus = said(folder / "corpus", corpora, clips)
    collect(corpus, folder / "traces", model=model, targets=["reference"])
    options = {"model": model, "target": "reference", "shard_size": 1}
    rollout(corpus, folder / "traces", folder / "one", **options)
    rollout(corpus, folder / "traces", folder / "two", **options, workers=2)
    return folder


def test_two_workers_roll_out_the_same_files_as_one(rolled_out):
    files = [sorted((rolled_out / name).rglob("*.parquet")) for name in ("one", "two")]
    assert len(files[0]) == 2
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]


def test_a_rollout_notes_what_was_decoded_where_it_is_not_the_target(rolled_out, tiny_bundle):
    steps = read_steps(rolled_out / "one", ["reference"], ["on_policy"])
    decode = tiny_bundle.tokenizer.decode
    for number, row in enumerate(steps.rows):
        begin, end = steps.starts[number : number + 2]
        stood_on = steps.last_ids[begin:end]
        assert stood_on[0] == NO_TOKEN
        assert np.array_equal(stood_on[1:], steps.top_ids[begin : end - 1, 0])  # greedy's own
        assert (decode(stood_on[1:].tolist()).strip() == FOX) == (row["id"] == "fox")


@pytest.mark.parametrize("stage", ["collect", "rollout"])
def test_two_runs_into_one_folder_are_told_apart_by_the_second(grown, model, tmp_path, stage):
    folder, _ = grown
    out = tmp_path / "out"
    with locked(out), pytest.raises(BeamlessError, match="another run"):
        if stage == "collect":
            collect(folder / "corpus", out, model=model)
        else:
            rollout(folder / "corpus", folder / "traces", out, model=model)
    assert not out.exists()
