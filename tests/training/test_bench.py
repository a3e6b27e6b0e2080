"""The bench: ours and a stranger's implementation, measured alike, each in its own process."""

import csv
import json
from pathlib import Path

import pytest
import soundfile

from beamless.command_line import run as command
from beamless.data_gen.corpora import read_corpus
from beamless.inference.errors import BeamlessError
from beamless.training.bench import implementation
from beamless.training.bench.clips import Clip, clip_of, joined, opening, warming
from beamless.training.bench.figures import Turn, figures_of, lines_of, with_ratios
from beamless.training.bench.process import Answer
from beamless.training.bench.run import bench

pytest.importorskip("matplotlib")

TOY = '''
import os, sys, time
from pathlib import Path

class Toy:
    """Reads the answer from beside the recording, and prints what it should not."""

    variants = ("good", "bad", "broken", "raising")

    @staticmethod
    def prepare(setup):
        (setup.made / "prepared").touch()

    def __init__(self, setup):
        assert (setup.made / "prepared").exists()
        kept = setup.graphs / "kept"
        time.sleep(0.0 if kept.exists() else 0.7)
        kept.touch()
        self.variant, self.threads = setup.variant, setup.threads
        assert os.environ["OMP_NUM_THREADS"] == str(self.threads)

    def transcribe(self, path):
        print("noise on standard output")
        if self.variant == "broken":
            os._exit(3)
        if self.variant == "raising":
            raise RuntimeError("out of\\nluck")
        return "the lazy dog" if self.variant == "good" else "a lazy"
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package on the path, with its entry point."""
    (tmp_path / "site/toy-1.dist-info").mkdir(parents=True)
    (tmp_path / "site/toy.py").write_text(TOY, encoding="utf-8")
    about = tmp_path / "site/toy-1.dist-info"
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1\n", "utf-8")
    entry = "[beamless.implementations]\ntoy = toy:Toy\n"
    (about / "entry_points.txt").write_text(entry, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    implementation.known.cache_clear()
    yield
    implementation.known.cache_clear()


@pytest.fixture
def corpus(tmp_path, clip):
    folder = tmp_path / "heard"
    (folder / "audio").mkdir(parents=True)
    lines = []
    for name in ("one", "two"):
        (folder / f"audio/{name}.wav").write_bytes(clip.read_bytes())
        line = {
            "id": name,
            "file_name": f"audio/{name}.wav",
            "text": "The lazy dog.",
            "speaker": "",
        }
        lines.append(json.dumps(line) + "\n")
    (folder / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_ours_and_a_strangers_are_measured_alike(toy, corpus, tiny_bundle, tmp_path, capsys):
    names = ["beamless:greedy", "toy:good", "toy:bad"]
    out = tmp_path / "out"
    bench(str(tiny_bundle.folder), [corpus], implementations=names, repeats=1, out=out)
    rows = {row["implementation"]: row for row in rows_of(out / "bench.csv")}
    assert list(rows) == names
    assert [float(rows[n]["wer"]) for n in names] == pytest.approx([2.0, 0.0, 2 / 3])
    assert float(rows["beamless:greedy"]["time_ratio"]) == 1
    assert int(rows["beamless:greedy"]["steps"]) == 2 * 12
    assert (
        0
        < float(rows["beamless:greedy"]["first_token"])
        < float(rows["beamless:greedy"]["seconds"])
    )
    assert rows["toy:good"]["steps"] == rows["toy:good"]["first_token"] == ""
    assert float(rows["toy:good"]["cold"]) > float(rows["toy:good"]["cached"]) + 0.3
    assert all(5e6 < float(row["memory"]) < 2e9 for row in rows.values())
    assert len(rows_of(out / "clips.csv")) == 6
    content = json.loads((out / "bench.json").read_text(encoding="utf-8"))
    assert content["run"]["repeats"] == 1 and len(content["implementations"]) == 3
    assert "| toy:bad | 66.67 |" in (out / "bench.md").read_text(encoding="utf-8")
    assert (out / "bench.png").read_bytes()[:4] == b"\x89PNG"
    assert "toy:bad" in capsys.readouterr().out
    with pytest.raises(BeamlessError, match="holds a finished bench"):
        bench(str(tiny_bundle.folder), [corpus], implementations=names, out=out)


def test_a_bundle_of_its_own_precision_is_not_measured_as_another(corpus, tiny_bundle, tmp_path):
    names = ["beamless:greedy", "beamless:fast-greedy"]
    out, model = tmp_path / "out", str(tiny_bundle.folder)
    bench(model, [corpus], implementations=names, repeats=1, out=out)
    content = json.loads((out / "bench.json").read_text(encoding="utf-8"))
    assert len(content["implementations"]) == 1
    assert "has its own precision; name its model" in content["left_out"]["beamless:fast-greedy"]


def test_one_that_fails_is_left_out_with_its_reason_and_the_others_go_on(
    toy, corpus, tiny_bundle, tmp_path
):
    out, model = tmp_path / "out", str(tiny_bundle.folder)
    bench(model, [corpus], implementations=["toy"], repeats=1, out=out)
    content = json.loads((out / "bench.json").read_text(encoding="utf-8"))
    assert [each["implementation"] for each in content["implementations"]] == [
        "toy:good",
        "toy:bad",
    ]
    assert "ended with code 3" in content["left_out"]["toy:broken"]
    assert content["left_out"]["toy:raising"] == "toy:raising: RuntimeError: luck"
    assert "noise on standard output" in (out / "toy-good.log").read_text(encoding="utf-8")


def test_a_stopped_bench_goes_on_with_the_turns_that_are_left(
    toy, corpus, tiny_bundle, tmp_path, monkeypatch
):
    out, model = tmp_path / "out", str(tiny_bundle.folder)
    arguments = {"implementations": ["toy:good", "toy:bad"], "repeats": 1, "out": out}
    from beamless.training.bench import run

    turn = run._turn
    monkeypatch.setattr(
        run, "_turn", lambda p, name, *rest: turn(p, name, *rest) if "good" in name else stop()
    )
    with pytest.raises(KeyboardInterrupt):
        bench(model, [corpus], **arguments)
    kept = out / "turns.partial.jsonl"
    with kept.open("a", encoding="utf-8") as file:
        file.write('{"name": "toy:bad", "rou')
    monkeypatch.setattr(
        run, "_turn", lambda p, name, *rest: turn(p, name, *rest) if "bad" in name else stop()
    )
    with pytest.raises(BeamlessError, match="something else"):
        bench(model, [corpus], **{**arguments, "repeats": 2})
    bench(model, [corpus], **arguments)
    assert len(rows_of(out / "bench.csv")) == 2 and not kept.exists()


def stop():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("nobody", "there is no implementation 'nobody'; known are: beamless"),
        ("beamless:fast", "beamless has no variant 'fast'; it has: greedy, corrected"),
    ],
)
def test_an_implementation_of_no_kind_lists_those_there_are(corpus, tmp_path, wanted, said):
    with pytest.raises(BeamlessError, match=said):
        command(["bench", "tiny.en", str(corpus), "--implementations", wanted])


def test_bad_numbers_and_empty_choices_are_one_line_before_any_work(corpus, tmp_path):
    for option, value in (("--repeats", "0"), ("--threads", "0"), ("--longest", "0.1")):
        with pytest.raises(BeamlessError, match=option):
            command(["bench", "tiny.en", str(corpus), option, value])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    with pytest.raises(BeamlessError, match="holds no bench"):
        command(["bench", "tiny.en", str(corpus), "--out", str(tmp_path / "mine")])


def test_figures_are_medians_over_rounds_and_sums_over_clips(tiny_bundle):
    clips = [Clip("a", Path("a"), "the fox", 2.0), Clip("b", Path("b"), "dog", 1.0)]
    answers = [[(1.0, 0.2), (9.0, 0.3)], [(3.0, 0.4), (1.0, 0.3)], [(2.0, None), (2.0, 0.5)]]
    turns = [
        Turn(
            "x",
            n,
            5.0 if n == 0 else None,
            1.0 + n,
            tuple(
                Answer(text, seconds, 2 * seconds, first, 7, 100 + n)
                for text, (seconds, first) in zip(("the box", ""), answers[n], strict=True)
            ),
        )
        for n in range(3)
    ]
    found = figures_of(turns, lines_of(turns, clips, "en", tiny_bundle.tokenizer))
    assert (found.wer, found.seconds, found.steps) == (pytest.approx(2 / 3), 4.0, 14)
    assert found.processor_seconds == 8.0
    assert found.first_token == pytest.approx((0.3 + 0.3) / 2)
    assert (found.cold, found.cached, found.memory) == (5.0, 2.0, 101)
    assert found.real_time_factor == pytest.approx(4 / 3)
    assert found.ms_per_token == 4000 / len(tiny_bundle.tokenizer.encode(" the box"))
    assert with_ratios([found])[0].time_ratio is None


def test_what_is_compiled_on_its_first_use_is_used_before_clips_count():
    clips = [Clip(str(n), Path("x"), "", seconds) for n, seconds in enumerate((9, 1, 5, 2, 28, 3))]
    assert [clip.seconds for clip in warming(clips)] == [1, 3, 5, 28]
    assert warming(clips[:1]) == clips[:1]


def test_a_start_is_not_measured_on_ten_minutes(corpus, tmp_path):
    clips = [clip_of(utterance, corpus) for utterance in read_corpus(corpus)]
    long = joined(clips * 30, 600.0, tmp_path)
    opener = opening(long, tmp_path)
    assert soundfile.info(opener).duration == 30
    assert warming(long) == []
    assert opening(clips, tmp_path) == clips[0].path


def test_joined_recordings_hold_everything_that_is_said(corpus, tmp_path):
    utterances = read_corpus(corpus)
    clips = [Clip(u.id, u.audio, u.text, u.duration) for u in utterances] * 3
    found = joined(clips, 7.0, tmp_path)
    assert [clip.text.count("lazy") for clip in found] == [2, 2, 2]
    assert all(clip.path.is_file() and clip.seconds > 7 for clip in found)


@pytest.mark.parametrize(
    ("language", "told"), [("xx", "there is no language"), ("sv", "an English-only model")]
)
def test_a_language_that_the_model_has_not_is_refused_before_anything_runs(
    toy, corpus, tiny_bundle, tmp_path, language, told
):
    with pytest.raises(BeamlessError, match=told):
        bench(str(tiny_bundle.folder), [corpus], implementations=["toy"], language=language)
