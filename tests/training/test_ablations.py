"""Ablations: what a recipe says, what is refused, and figures that can be worked by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from beamless.data_gen.traces import TraceRecipe, open_traces
from beamless.inference.atomic import begin
from beamless.inference.errors import BeamlessError
from beamless.training import ablations
from beamless.training.ablation_picture import anchors, draw_ablations
from beamless.training.ablation_recipe import Ablation, read_plan, trace_folders
from beamless.training.ablation_table import Line, Trained, lines_of, markdown
from beamless.training.ablations import ablate, hours_of, slug
from beamless.training.csv_rows import read_csv, write_csv
from beamless.training.report import Row

SHIPPED = Path(ablations.__file__).parent / "configs" / "ablations.yaml"
NAMES = ("real", "on_policy", "more", "more_on_policy", "synthetic")
RECIPE = TraceRecipe("tiny.en", "hash", "", (1, 2), 5, 1.0, 8)


def recipe_of(folder: Path, *rows: dict, **others) -> Path:
    path = folder / "recipe.yaml"
    content = {"folders": {"real": None}, **others, "rows": list(rows)}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def row_of(method: str, number: int, errors: int, corpus: str = "a/dev") -> Row:
    return Row(
        corpus=corpus,
        id=f"u{number}",
        speaker=f"s{number}",
        duration=3.0,
        method=method,
        reference="one two three four",
        hypothesis="one, two",
        substitutions=errors,
        insertions=0,
        deletions=0,
        words=4,
        steps=7,
        encoder_seconds=0.2,
        decoder_seconds=0.07,
        finish_reason="length" if errors == 4 else "stop",
        avg_logprob=-0.3,
        no_speech_prob=0.01,
    )


def test_the_shipped_recipe_is_understood_and_asks_for_what_a_reader_would(tmp_path):
    for name in NAMES:
        open_traces(tmp_path / name, RECIPE)
    plan = read_plan(SHIPPED, [f"{name}={tmp_path / name}" for name in NAMES])
    assert not plan.left_out
    groups = {row.group for row in plan.rows}
    assert groups == {
        "baseline",
        "policy",
        "family",
        "width",
        "hours",
        "target",
        "data",
        "objective",
    }
    assert {"greedy", "beam5"} <= {*plan.rows[0].methods}


def test_rows_whose_folders_have_no_place_are_left_out_whole(tmp_path):
    open_traces(tmp_path / "real", RECIPE)
    plan = read_plan(SHIPPED, [f"real={tmp_path / 'real'}"])
    names = {row.name for row in plan.rows}
    assert "teacher forced" in names
    assert "real and synthetic" not in names, "it would be trained on real alone"
    assert "expected errors" not in names, "it starts from a row that is left out"
    assert len(plan.left_out) + len(plan.rows) == len(yaml.safe_load(SHIPPED.read_text())["rows"])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"methods": ["greedy"]}, "a mapping with a name"),
        ({"name": "x"}, "name the methods"),
        ({"name": "x", "methods": ["loudest1+x"]}, "cannot be evaluated"),
        ({"name": "x", "methods": ["greedy"], "speed": 3}, "'speed' means nothing"),
        ({"name": "x", "methods": ["greedy"], "fitting": {"layers": 3}}, "layers"),
        ({"name": "x", "methods": ["greedy"], "traces": ["imaginary"]}, "none of its folders"),
        ({"name": "x", "methods": ["greedy"], "start": "y"}, "no row before 'x' is called 'y'"),
        ({"name": "x", "methods": "greedy"}, "methods of 'x' must be a list of names"),
        ({"name": "x", "methods": [5]}, "methods of 'x' must be a list of names"),
        ({"name": "x", "methods": ["greedy"], "traces": None}, "traces of 'x' must be a list"),
        ({"name": "x", "methods": ["greedy"], "targets": ["wish"]}, "'wish' is none of beam"),
        ({"name": "x", "methods": ["greedy"], "policies": ["none"]}, "'none' is none of teacher_f"),
        ({"name": "x", "methods": ["greedy"], "limit": 1.5}, "limit must be a whole number"),
        ({"name": "x", "methods": ["greedy"], "fitting": {"epochs": 1.5}}, "epochs cannot be 1.5"),
        ({"name": "x", "methods": ["greedy"], "fitting": {"epochs": True}}, "epochs cannot be Tr"),
        ({"name": "x", "methods": ["greedy"], "fitting": {"units": "9"}}, "units cannot be '9'"),
        ({"name": "x", "methods": ["greedy"], "fitting": {"objective": "z"}}, "is one of cross_en"),
        (
            {"name": "x", "methods": ["greedy"], "fitting": {"learning_rate": "1e-3"}},
            "learning_rate cannot be '1e-3'; it is a number such as 0.001",
        ),
        ({"name": "x", "methods": ["greedy"], "last_layer": {"epochs": "1"}}, "epochs cannot be"),
    ],
)
def test_a_row_that_cannot_be_understood_is_named(tmp_path, row, said):
    with pytest.raises(BeamlessError, match=said):
        read_plan(recipe_of(tmp_path, row), [])


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"dev_limit": "x"}, "dev_limit must be a whole number"),
        ({"dev_limit": 0}, "dev_limit must be a whole number from 1"),
        ({"audio_context": "mid"}, "audio_context is short or full"),
        ({"folders": 5}, "folders are a mapping"),
        ({"model": None}, "model must be a text"),
    ],
)
def test_what_is_said_for_all_rows_is_looked_at_before_any(tmp_path, others, said):
    with pytest.raises(BeamlessError, match=said):
        read_plan(recipe_of(tmp_path, {"name": "x", "methods": ["greedy"]}, **others), [])


def test_two_rows_of_one_name_would_share_a_folder(tmp_path):
    row = {"name": "x", "methods": ["greedy"]}
    with pytest.raises(BeamlessError, match="two rows are called 'x'"):
        read_plan(recipe_of(tmp_path, row, row), [])


def test_a_place_is_a_folder_of_traces_or_holds_several(tmp_path):
    for name in ("one", "two"):
        open_traces(tmp_path / "many" / name, RECIPE)
    assert trace_folders(tmp_path / "many") == [tmp_path / "many" / n for n in ("one", "two")]
    assert trace_folders(tmp_path / "many" / "one") == [tmp_path / "many" / "one"]
    with pytest.raises(BeamlessError, match="holds no traces"):
        trace_folders(tmp_path)


def test_a_row_of_other_settings_is_not_taken_for_done(tmp_path, tiny_bundle):
    row = {"name": "plain", "methods": ["greedy"]}
    out = tmp_path / "out"
    begin(out, "ablate")
    ablations._open_row(out / "plain", {**row, "limit": 1})
    with pytest.raises(BeamlessError, match="a row of other settings"):
        ablate(recipe_of(tmp_path, row, model=str(tiny_bundle.folder)), out, [tmp_path])


def test_a_rows_figures_and_its_share_of_the_gap():
    base = [row_of("greedy", n, 2) for n in range(4)] + [row_of("beam5", n, 1) for n in range(4)]
    base += [row_of("greedy", 9, 1, "b/dev"), row_of("beam5", 9, 1, "b/dev")]
    own = [row_of("greedy", n, 1 if n < 3 else 4) for n in range(4)]
    own += [row_of("greedy", 9, 0, "b/dev")]
    lines = lines_of(Ablation("x", ("greedy",)), Trained(0.5, 9, 7), own, base)
    first, second, pooled = lines
    assert (first.corpus, second.corpus, pooled.corpus) == ("a/dev", "b/dev", "all")
    assert (first.words, first.errors, first.to_capacity) == (16, 7, 1)
    assert first.wer == pytest.approx(7 / 16)
    assert first.gap == pytest.approx((8 - 7) / (8 - 4))
    assert second.gap is None, "beam 5 is no better than greedy there"
    assert pooled.gap == pytest.approx((9 - 7) / (9 - 5))


def lines() -> list[Line]:
    base = [row_of(m, n, e) for m, e in (("greedy", 2), ("beam5", 1)) for n in range(3)]
    made = lines_of(
        Ablation("untrained", ("greedy", "beam5")), Trained(None, None, None), base, base
    )
    for hours, errors in ((0.5, 2), (1.0, 1)):
        row = Ablation(f"{hours} h", ("corrected",), group="hours")
        own = [row_of("corrected", n, errors) for n in range(3)]
        made += lines_of(row, Trained(hours, 1200, 34), own, base)
    return made


def test_the_table_has_a_line_for_each_row_and_method():
    text = markdown(lines()).splitlines()
    assert text[0].startswith("| row | hours | steps | parameters | method | a/dev | all |")
    assert text[3].startswith("|  |  |  |  | beam5 | 25.00% | 25.00% | 100% (")
    assert [line.split("|")[5].strip() for line in text[2:6]] == [
        "greedy",
        "beam5",
        "corrected",
        "corrected",
    ]
    assert "| 1.0 h | 1.00 | 1,200 | 34 | corrected | 25.00% | 25.00% | 100% (" in text[5]
    assert text[7] == "Word error rates on 12 words of dev speech."


def test_the_picture_shows_greedy_and_beam_of_the_untrained_model(tmp_path):
    pooled = [line for line in lines() if line.corpus == "all"]
    assert anchors(pooled) == {"greedy": 50.0, "beam5": 25.0}
    draw_ablations(lines(), tmp_path / "table.png")
    assert (tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")


def test_rows_come_back_from_a_csv_file_as_they_were(tmp_path):
    rows = [row_of("greedy", 1, 2), replace(row_of("beam5", 2, 0), hypothesis='a, "b"\nc')]
    write_csv(tmp_path / "rows.csv", Row, rows)
    assert read_csv(tmp_path / "rows.csv", Row) == rows


def test_names_of_rows_make_folders_that_any_system_takes():
    assert slug("greedy + eos 0.3: all?") == "greedy-eos-0.3-all"


def test_hours_are_those_of_the_utterances_that_a_row_learns_from(tmp_path):
    from beamless.data_gen.traces import shard_path, write_shard

    open_traces(tmp_path, RECIPE)
    for target in ("best", "beam"):
        path = shard_path(tmp_path, "teacher_forced", target, 0)
        write_shard(path, [], ["a", "b", "c"], RECIPE, 4)
    row = Ablation("x", ("corrected",), traces=(tmp_path,), targets=("best", "beam"))
    seconds = {"a": 3600.0, "b": 1800.0, "c": 1800.0}
    assert hours_of(row, seconds) == 2
    assert hours_of(replace(row, limit=1), seconds) in (1.0, 0.5)
    assert hours_of(row, {"a": 1.0}) is None
