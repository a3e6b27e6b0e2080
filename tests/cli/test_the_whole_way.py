"""The command line as a user runs it: every arrow of the design once, each in its own process."""

import csv
import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import soundfile as sf
from conftest import INTERRUPTIBLE

from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.engines import make_shards
from beamless.data_gen.shards import Job, Shard
from beamless.data_gen.subset import spread
from beamless.data_gen.traces import open_traces, read_recipe
from beamless.training.evaluate import CORRECTED

LINES = [
    "The quick brown fox jumps over the lazy dog.",
    "Please remind me to call the dentist tomorrow morning.",
    "It was the best of times, it was the worst of times.",
    "Set a timer for twenty five minutes.",
    "We were all going direct to heaven.",
]


def beamless(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run one command line to its end."""
    command = [sys.executable, "-m", "beamless", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, encoding="utf-8")


def succeeds(*arguments: object) -> str:
    """Run one command line, expect it to succeed, and return its standard output."""
    done = beamless(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def way(tmp_path_factory) -> Path:
    """A folder in which every stage has run once."""
    folder = tmp_path_factory.mktemp("way")
    (folder / "texts.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    succeeds("synth", folder / "texts.txt", folder / "corpus")
    succeeds("check", "tiny.en", "--limit", 2, "--no_beam")
    targets = ("--targets", "beam", "best", "reference")
    succeeds("collect", folder / "corpus", folder / "traces", "--shard-size", 2, *targets)
    training = ("--epochs", 2, "--targets", "beam", "reference", "--units", 64)
    succeeds("train", folder / "traces", folder / "corrector", *training)
    succeeds("export", "tiny.en", folder / "bundle", "--corrector", folder / "corrector")
    evaluation = ("--out", folder / "report", "--limit", 3)
    table = succeeds("evaluate", folder / "bundle", folder / "corpus", *evaluation)
    (folder / "table.txt").write_text(table, encoding="utf-8")
    return folder


def test_traces_lie_in_a_folder_for_each_target(way):
    for target in ("beam", "best", "reference"):
        names = [p.name for p in sorted((way / "traces/teacher_forced" / target).iterdir())]
        assert names == ["00000.parquet", "00001.parquet", "00002.parquet"]


def test_collecting_again_costs_nothing_and_changes_nothing(way):
    before = {p: p.stat().st_mtime_ns for p in (way / "traces").rglob("*.parquet")}
    succeeds("collect", way / "corpus", way / "traces", "--targets", "best")
    assert {p: p.stat().st_mtime_ns for p in (way / "traces").rglob("*.parquet")} == before


def started_until(out: Path, sign: str, arguments: list[object]) -> subprocess.Popen[str]:
    """Start a command; return it as soon as a file of that name is in its folder."""
    running = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    deadline = time.monotonic() + 120
    while not list(out.rglob(sign)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return running


def test_a_killed_collection_goes_on_to_the_same_files(way, tmp_path):
    out = tmp_path / "traces"
    arguments = ["collect", way / "corpus", out, "--shard-size", "1", "--targets", "best"]
    running = started_until(out, "0*.parquet", arguments)
    running.kill()
    running.communicate()
    cut_short = len(list(out.rglob("0*.parquet")))
    assert 1 <= cut_short < len(LINES)
    succeeds(*arguments)
    undisturbed = tmp_path / "undisturbed"
    succeeds(*arguments[:2], undisturbed, *arguments[3:])
    same_files(out, undisturbed)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_while_workers_collect_ends_them_too(way, tmp_path):
    corpus, out = tmp_path / "corpus", tmp_path / "traces"
    shutil.copytree(way / "corpus", corpus)
    rows = [
        json.loads(line) for line in (corpus / "metadata.jsonl").read_text("utf-8").splitlines()
    ]
    many = [{**row, "id": f"{row['id']}-{n}"} for row in rows for n in range(20)]
    lines = "".join(json.dumps(row) + "\n" for row in many)
    (corpus / "metadata.jsonl").write_text(lines, encoding="utf-8")
    arguments = ["collect", corpus, out, "--shard-size", "1", "--workers", "2"]
    running = started_until(out, "0*.parquet", arguments)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == 130
    assert "Traceback" not in errors and "run the same command again" in errors


def same_files(out: Path, undisturbed: Path) -> None:
    paths = sorted(undisturbed.rglob("*.parquet"))
    assert [p.relative_to(undisturbed) for p in paths] == [
        p.relative_to(out) for p in sorted(out.rglob("*.parquet"))
    ]
    for path in paths:
        assert (out / path.relative_to(undisturbed)).read_bytes() == path.read_bytes()


def test_rays_workers_make_the_same_files(way, tmp_path):
    pytest.importorskip("ray")
    options = ("--shard-size", 2, "--targets", "beam", "best", "reference")
    out = tmp_path / "traces"
    succeeds("collect", way / "corpus", out, *options, "--engine", "ray", "--workers", 2)
    same_files(out, way / "traces")


def test_a_killed_worker_loses_nothing(way, tmp_path):
    utterances = spread(read_corpus(way / "corpus"), None)
    targets = ("beam", "best", "reference")
    shards = [Shard(n, tuple(utterances[2 * n : 2 * n + 2]), targets) for n in range(3)]
    recipe = read_recipe(way / "traces")
    open_traces(tmp_path / "traces", recipe)
    job = Job("tiny.en", "CPU", 1, recipe, tmp_path / "traces")
    made = make_shards(job, shards, workers=2, engine="local", address=None)
    next(made)
    multiprocessing.active_children()[0].kill()
    assert len(list(made)) == 2
    same_files(tmp_path / "traces", way / "traces")


def test_the_report_has_the_promised_fields(way):
    report = json.loads((way / "report/report.json").read_text(encoding="utf-8"))
    assert report["model"] == "tiny.en"
    assert report["utterances"] == 3
    assert set(report) >= {"bundle_hash", "corpus", "device", "hours", "gap_closed"}
    assert tuple(report["methods"]) == CORRECTED
    for figures in report["methods"].values():
        assert 0 <= figures["wer"] < 1
        counts = {"substitutions", "insertions", "deletions", "steps", "capacity_hits"}
        assert set(figures) >= counts | {"seconds"}
        assert figures["steps"] > figures["tokens"] > 3 * 5
        assert figures["confidence"]["words"] > 3 * 3


def test_the_report_counts_steps_of_methods_that_choose_token_by_token(way):
    methods = json.loads((way / "report/report.json").read_text(encoding="utf-8"))["methods"]
    counted = {name for name, figures in methods.items() if figures["target_steps"]}
    assert counted == {"greedy", "corrected"}
    plain, corrected = (methods[name]["target_steps"] for name in ("greedy", "corrected"))
    assert (plain["mended"], plain["harmed"]) == (0, 0)
    assert (plain["missed"], plain["right"]) == (corrected["missed"], corrected["right"])
    assert plain["missed"] + plain["right"] >= methods["beam5-oracle"]["tokens"] > 0


def test_every_row_of_the_csv_has_the_same_columns(way):
    with (way / "report/utterances.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * len(CORRECTED)
    assert all(None not in row and None not in row.values() for row in rows)


def test_the_table_names_every_method(way):
    table = (way / "table.txt").read_text(encoding="utf-8")
    assert all(method in table for method in ("greedy", "corrected", "beam5", "WER"))


def test_transcripts_go_to_standard_output_and_progress_does_not(way):
    audio = read_corpus(way / "corpus")[0].audio
    done = beamless("transcribe", audio, "--model", way / "bundle")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "The quick brown fox jumps over the lazy dog."
    assert "lookahead" in done.stderr


def test_a_recording_of_45_seconds_at_44100_hz_in_stereo_loses_nothing(way, tmp_path, speech):
    import numpy as np
    import soxr

    silence = np.zeros(16000 * 5, np.float32)
    clip = np.concatenate([speech, silence] * 8)[: 16000 * 45]
    wide = soxr.resample(clip, 16000, 44100)
    sf.write(tmp_path / "long.flac", np.stack([wide, wide], 1), 44100)
    text = succeeds("transcribe", tmp_path / "long.flac", "--method", "greedy")
    assert text.lower().count("jumps over the lazy dog") >= 6


def test_python_has_the_same_transcriber(way, speech):
    import beamless as package

    transcript = package.load(str(way / "bundle"), method="greedy").transcribe(speech)
    assert transcript.text == "The quick brown fox jumps over the lazy dog."
    assert transcript.segments[0].finish_reason == "stop"


def test_the_same_seed_trains_the_same_corrector(way, tmp_path):
    training = ("--epochs", 2, "--targets", "beam", "reference", "--units", 64)
    succeeds("train", way / "traces", tmp_path / "again", *training)
    first = (way / "corrector/corrector.safetensors").read_bytes()
    assert (tmp_path / "again/corrector.safetensors").read_bytes() == first


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_during_training_leaves_what_can_go_on(way, tmp_path):
    out = tmp_path / "corrector"
    arguments = ["train", way / "traces", out, "--epochs", "30", "--units", "64"]
    arguments += ["--batch-size", "4", "--targets", "beam", "reference"]
    running = started_until(out, "last.ckpt", arguments)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=180)
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    assert not (out / "corrector.json").exists()
    succeeds(*arguments)
    undisturbed = tmp_path / "undisturbed"
    succeeds(*arguments[:2], undisturbed, *arguments[3:])
    resumed = (out / "corrector.safetensors").read_bytes()
    assert (undisturbed / "corrector.safetensors").read_bytes() == resumed
