"""Traces on disk: shards that appear whole, resume where they stopped, and never mix."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beamless.data_gen.trace_info import summarize_traces
from beamless.data_gen.traces import (
    Trace,
    TraceRecipe,
    open_traces,
    pending_shards,
    planned_ids,
    read_recipe,
    read_steps,
    shard_path,
    write_shard,
)
from beamless.inference.errors import BeamlessError

WIDTH, K = 6, 3
RECIPE = TraceRecipe("toy", "hash", "", (1, 2), 5, 1.0, K)


def trace(identifier: str, length: int, seed: int = 0) -> Trace:
    rng = np.random.default_rng(seed)
    return Trace(
        id=identifier,
        speaker="s",
        source="toy",
        text="some words",
        target="best",
        policy="teacher_forced",
        errors=1,
        words=2,
        greedy_errors=2,
        hidden=rng.standard_normal((length, WIDTH)).astype(np.float16),
        top_ids=rng.integers(0, 9, (length, K), dtype=np.int32),
        top_logprobs=rng.standard_normal((length, K)).astype(np.float32),
        log_sum_exp=rng.standard_normal(length).astype(np.float32),
        target_ids=np.arange(length, dtype=np.int32),
    )


def test_what_is_written_is_what_is_read(tmp_path):
    open_traces(tmp_path, RECIPE)
    written = [trace("a", 3, 1), trace("b", 1, 2), trace("c", 4, 3)]
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    write_shard(path, written[:2], ["a", "b"], RECIPE, WIDTH)
    path = shard_path(tmp_path, "teacher_forced", "best", 1)
    write_shard(path, written[2:], ["c"], RECIPE, WIDTH)
    steps = read_steps(tmp_path, ["best"])
    assert steps.starts.tolist() == [0, 3, 4, 8]
    for name in ("hidden", "top_ids", "top_logprobs", "log_sum_exp", "target_ids"):
        expected = np.concatenate([getattr(t, name) for t in written])
        assert np.array_equal(getattr(steps, name), expected), name
    assert [row["id"] for row in steps.rows] == ["a", "b", "c"]


def test_hugging_face_datasets_reads_a_shard(tmp_path):
    from datasets import load_dataset

    path = tmp_path / "00000.parquet"
    write_shard(path, [trace("a", 3)], ["a"], RECIPE, WIDTH)
    data = load_dataset(
        "parquet", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert data[0]["id"] == "a"
    assert np.array(data[0]["hidden"]).shape == (3, WIDTH)


def test_a_shard_of_refused_utterances_counts_as_done(tmp_path):
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    write_shard(path, [], ["a", "b"], RECIPE, WIDTH)
    assert planned_ids(path) == ["a", "b"]
    assert pending_shards(tmp_path, "teacher_forced", "best", ["a", "b"], 2) == {}


@settings(max_examples=12)
@given(
    count=st.integers(0, 23),
    size=st.integers(1, 6),
    survivors=st.sets(st.integers(0, 22)),
)
def test_a_stopped_run_ends_with_the_same_shards(count, size, survivors, tmp_path_factory):
    ids = [f"u{number}" for number in range(count)]
    folder = tmp_path_factory.mktemp("traces")
    whole = pending_shards(folder, "teacher_forced", "best", ids, size)
    for number in survivors & set(whole):
        path = shard_path(folder, "teacher_forced", "best", number)
        write_shard(path, [], whole[number], RECIPE, WIDTH)
    left = pending_shards(folder, "teacher_forced", "best", ids, size)
    assert left == {number: part for number, part in whole.items() if number not in survivors}


def test_later_utterances_get_shards_of_their_own(tmp_path):
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    write_shard(path, [], ["a", "b"], RECIPE, WIDTH)
    plan = pending_shards(tmp_path, "teacher_forced", "best", ["a", "b", "c"], 2)
    assert plan == {1: ["c"]}


def test_traces_of_another_model_are_refused(tmp_path):
    open_traces(tmp_path, RECIPE)
    other = TraceRecipe("toy", "another", "", (1, 2), 5, 1.0, K)
    with pytest.raises(BeamlessError, match=r"model_hash 'hash', not 'another'"):
        open_traces(tmp_path, other)


def test_traces_of_another_audio_context_are_refused(tmp_path):
    open_traces(tmp_path, replace(RECIPE, audio_context="short"))
    with pytest.raises(BeamlessError, match=r"audio_context 'short', not 'full'"):
        open_traces(tmp_path, RECIPE)


def test_traces_from_before_there_were_contexts_are_of_the_full_one(tmp_path):
    open_traces(tmp_path, RECIPE)
    file = tmp_path / "recipe.json"
    older = json.loads(file.read_text(encoding="utf-8"))
    del older["audio_context"]
    file.write_text(json.dumps(older), encoding="utf-8")
    assert read_recipe(tmp_path) == RECIPE


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "recipe.json").write_text(json.dumps({"texts": "x"}), encoding="utf-8")
    with pytest.raises(BeamlessError, match="another kind"):
        open_traces(tmp_path, RECIPE)


def test_a_damaged_shard_is_named(tmp_path):
    open_traces(tmp_path, RECIPE)
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1 half a file")
    with pytest.raises(BeamlessError, match="damaged"):
        read_steps(tmp_path, ["best"])


@pytest.mark.parametrize("kind", ["folder", "other columns"])
def test_what_only_looks_like_a_shard_is_named(tmp_path, kind):
    import pyarrow as pa
    from pyarrow import parquet

    open_traces(tmp_path, RECIPE)
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    if kind == "folder":
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True)
        parquet.write_table(pa.table({"id": ["a"]}), path)
    with pytest.raises(BeamlessError, match=r"00000\.parquet is no file of traces"):
        read_steps(tmp_path, ["best"])


@pytest.mark.parametrize("column", ["target_ids", "log_sum_exp"])
def test_a_shard_whose_columns_do_not_fit_each_other_is_named(tmp_path, column):
    import pyarrow as pa
    from pyarrow import parquet

    open_traces(tmp_path, RECIPE)
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    write_shard(path, [trace("a", 3)], ["a"], RECIPE, WIDTH)
    table = parquet.read_table(path)
    spoilt = pa.array([None], table.schema.field(column).type)
    if column == "log_sum_exp":
        spoilt = pa.array([[0.0]], table.schema.field(column).type)
    at = table.schema.get_field_index(column)
    parquet.write_table(table.set_column(at, column, spoilt), path)
    with pytest.raises(BeamlessError, match=r"00000\.parquet is damaged"):
        read_steps(tmp_path, ["best"])


def test_a_strangers_file_among_the_shards_takes_no_number(tmp_path):
    folder = shard_path(tmp_path, "teacher_forced", "best", 0).parent
    write_shard(folder / "mine.parquet", [trace("a", 1)], ["a"], RECIPE, WIDTH)
    left = pending_shards(tmp_path, "teacher_forced", "best", ["a", "b"], 9)
    assert left == {0: ["b"]}


def test_shards_without_an_utterance_are_nothing_to_train_on(tmp_path):
    open_traces(tmp_path, RECIPE)
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    write_shard(path, [], ["refused"], RECIPE, 4)
    with pytest.raises(BeamlessError, match="holds no utterance"):
        read_steps(tmp_path, ["best"])


def test_an_interrupted_write_leaves_no_shard(tmp_path, monkeypatch):
    from pyarrow import parquet

    def stopped(table: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "write_table", stopped)
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    with pytest.raises(KeyboardInterrupt):
        write_shard(path, [trace("a", 2)], ["a"], RECIPE, WIDTH)
    assert list(path.parent.iterdir()) == []


def test_what_a_kill_left_unfinished_is_no_shard_and_no_folder(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / ".partial-0123.json").write_text("{", encoding="utf-8")
    open_traces(folder, RECIPE)
    path = shard_path(folder, "teacher_forced", "best", 0)
    write_shard(path, [trace("a", 2)], ["a"], RECIPE, WIDTH)
    for content in (b"", path.read_bytes()):
        (path.parent / ".partial-0123.parquet").write_bytes(content)
        assert len(read_steps(folder, ["best"]).rows) == 1
        assert summarize_traces(folder)[0].utterances == 1
        assert pending_shards(folder, "teacher_forced", "best", ["a", "b"], 1) == {1: ["b"]}


def test_a_state_that_is_not_finite_is_never_learned_from(tmp_path):
    open_traces(tmp_path, RECIPE)
    spoilt = trace("a", 2)
    spoilt.hidden[1, 2] = np.nan
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    write_shard(path, [spoilt], ["a"], RECIPE, WIDTH)
    with pytest.raises(BeamlessError, match="a hidden state is not finite"):
        read_steps(tmp_path, ["best"])


@pytest.mark.parametrize("change", [{"model": 5}, {"language": None}, {"language": ["en"]}])
def test_a_recipe_of_another_kind_is_named(tmp_path, change):
    open_traces(tmp_path, replace(RECIPE, **change))
    with pytest.raises(BeamlessError, match="is of another kind"):
        read_recipe(tmp_path)


def test_info_counts_differing_steps_and_coverage(tmp_path):
    open_traces(tmp_path, RECIPE)
    made = replace(
        trace("a", 4),
        top_ids=np.array([[0, 1, 2], [5, 1, 2], [5, 6, 2], [5, 6, 7]], np.int32),
        target_ids=np.array([0, 1, 2, 3], np.int32),
    )
    path = shard_path(tmp_path, "teacher_forced", "best", 0)
    write_shard(path, [made], ["a"], RECIPE, WIDTH)
    (summary,) = summarize_traces(tmp_path)
    assert (summary.utterances, summary.steps, summary.differing) == (1, 4, 3)
    assert summary.coverage == {2: pytest.approx(1 / 3)}
    assert (summary.wer, summary.greedy_wer) == (0.5, 1.0)


def test_a_folder_of_something_else_is_named_as_taken_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BeamlessError, match="exists and holds no traces; name another folder"):
        open_traces(tmp_path, RECIPE)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
