"""Traces of both audio contexts in one training: told in one line, and not refused."""

import numpy as np
import pytest

from beamless.data_gen.traces import Trace, TraceRecipe, open_traces, shard_path, write_shard
from beamless.models.corrector import load_corrector
from beamless.training.fit import train
from beamless.training.fitting import Fitting
from beamless.training.trace_contexts import context_warning


@pytest.fixture
def traces(tmp_path):
    """Folders of traces with nothing in them yet, two of each context."""
    folders = {}
    for context in ("short", "full"):
        for number in (1, 2):
            folder = tmp_path / f"{context}-{number}"
            recipe = TraceRecipe("m", "h", "", (1,), 5, 1.0, 8, audio_context=context)
            open_traces(folder, recipe)
            folders[folder.name] = folder
    return folders


@pytest.mark.parametrize("context", ["short", "full"])
def test_traces_as_they_will_be_used_need_no_word(traces, context):
    assert context_warning([traces[f"{context}-1"], traces[f"{context}-2"]], context) == ""


def test_the_folders_of_the_other_context_are_named(traces):
    told = context_warning(list(traces.values()), "short")
    assert told.startswith("some of these traces are of the full audio context, not short: ")
    assert str(traces["full-1"]) in told and str(traces["full-2"]) in told
    assert str(traces["short-1"]) not in told
    assert "\n" not in told


def test_traces_that_are_all_of_the_other_context_are_told_as_well(traces):
    told = context_warning([traces["short-1"]], "full")
    assert told.startswith("these traces are of the short audio context, not full: ")
    assert "--audio-context" in told


def test_a_training_on_traces_of_the_other_context_says_so_and_trains(tiny, tmp_path, capfd):
    recipe = TraceRecipe("tiny.en", tiny.hash, "", (1,), 5, 1.0, 8, audio_context="full")
    rng = np.random.default_rng(0)
    count, width = 4, tiny.sizes.width
    ids = rng.integers(300, 2000, (count, recipe.top_k)).astype(np.int32)
    logprobs = np.full(ids.shape, -2.5, np.float32)
    hidden = rng.standard_normal((count, width)).astype(np.float16)
    about = ("a", "", "", "text", "best", "teacher_forced", 1, 1, 1)
    trace = Trace(*about, hidden, ids, logprobs, np.full(count, 20, np.float32), ids[:, 1])
    open_traces(tmp_path / "full", recipe)
    shard = shard_path(tmp_path / "full", "teacher_forced", "best", 0)
    write_shard(shard, [trace], ["a"], recipe, width)
    fitting = Fitting(units=4, epochs=1)
    train([tmp_path / "full"], tmp_path / "corrector", model="tiny.en", fitting=fitting)
    assert "of the full audio context, not short" in capfd.readouterr().err
    assert load_corrector(tmp_path / "corrector").config.model_hash == tiny.hash
