"""What a training reads of traces, what it refuses, and what a corrector with a ledger is told."""

import subprocess
import sys
from dataclasses import fields, replace

import lightning
import numpy as np
import pytest
import torch

from beamless.data_gen.traces import (
    NO_TOKEN,
    Trace,
    TraceRecipe,
    open_traces,
    read_recipe,
    read_steps,
    shard_path,
    write_shard,
)
from beamless.inference.errors import BeamlessError
from beamless.models.corrector import config_of, load_corrector, shapes_of
from beamless.training import steps
from beamless.training.fit import _fit, train
from beamless.training.fitting import Fitting
from beamless.training.module import CorrectorModule
from beamless.training.networks import ShiftNetwork
from beamless.training.steps import Batch, Shuffled, StepsDataset


def trace(count: int, width: int, budget: int) -> Trace:
    rng = np.random.default_rng(count)
    ids = rng.integers(300, 2000, (count, 8)).astype(np.int32)
    logprobs, sums = np.full(ids.shape, -2.5, np.float32), np.full(count, 20, np.float32)
    hidden = rng.standard_normal((count, width)).astype(np.float16)
    about = (f"of-{count}", "", "", "text", "best", "teacher_forced", 1, 1, 1)
    return Trace(*about, hidden, ids, logprobs, sums, ids[:, 1], budget=budget)


@pytest.fixture
def traces(tiny, tmp_path):
    """Two utterances of three and two steps; the second one's window has no bound."""
    recipe = TraceRecipe("tiny.en", tiny.hash, "", (1,), 5, 1.0, 8, audio_context="short")
    width = tiny.sizes.width
    open_traces(tmp_path / "traces", recipe)
    made = [trace(3, width, 20), trace(2, width, 0)]
    path = shard_path(tmp_path / "traces", "teacher_forced", "best", 0)
    write_shard(path, made, [each.id for each in made], recipe, width)
    return tmp_path / "traces"


def test_each_step_knows_the_share_of_the_budget_that_is_spent_before_it(traces):
    batch = StepsDataset(read_steps(traces, ["best"]), history=1).batch(range(5))
    assert batch.spent.tolist() == pytest.approx([0, 1 / 20, 2 / 20, 0, 0])


def test_a_ledger_is_one_more_number_that_the_corrector_sees():
    plain, told = (config_of("shift", "hash", 24, 50, ledger=ledger) for ledger in (False, True))
    assert shapes_of(plain)["up.weight"] == (1024, 48)
    assert shapes_of(told)["up.weight"] == (1024, 49)
    assert shapes_of(told)["norm.weight"] == (48,)


def test_only_a_corrector_with_a_ledger_heeds_what_is_spent():
    assert heeds("spent", torch.tensor([0.1]), torch.tensor([0.9]), ledger=True)
    assert not heeds("spent", torch.tensor([0.1]), torch.tensor([0.9]))


def test_only_a_corrector_that_is_shown_the_last_token_heeds_it():
    assert heeds("last", torch.tensor([7]), torch.tensor([8]), last_token=True)
    assert heeds("last", torch.tensor([0]), torch.tensor([NO_TOKEN]), last_token=True)
    assert not heeds("last", torch.tensor([7]), torch.tensor([8]))


def heeds(name: str, one: torch.Tensor, other: torch.Tensor, **options: bool) -> bool:
    """Tell whether what a corrector adds depends on a field of the batch."""
    network = ShiftNetwork(config_of("shift", "hash", 24, 50, **options)).eval()
    torch.nn.init.ones_(network.down.weight)
    embedding = torch.randn(50, 24, generator=torch.Generator().manual_seed(0))
    known = dict.fromkeys((each.name for each in fields(Batch)), torch.zeros(1))
    known |= {"hidden": torch.ones(1, 24), "history": torch.zeros(1, 24), "last": torch.tensor([3])}
    batches = (Batch(**{**known, name: value}) for value in (one, other))
    found = [network(network.seen_of(batch, embedding))[0] for batch in batches]
    return not torch.equal(*found)


def test_each_step_knows_the_token_that_it_stands_on(traces):
    steps = read_steps(traces, ["best"])
    expected = [NO_TOKEN, *steps.target_ids[:2], NO_TOKEN, steps.target_ids[3]]
    assert steps.last_ids.tolist() == expected
    assert StepsDataset(steps, history=1).batch(range(5)).last.tolist() == expected


def test_a_step_that_was_decoded_freely_stands_on_what_was_decoded(tiny, traces):
    rolled = replace(trace(3, tiny.sizes.width, 0), policy="on_policy", decoded_ids=(7, 8, 9))
    path = shard_path(traces, "on_policy", "best", 0)
    write_shard(path, [rolled], [rolled.id], read_recipe(traces), tiny.sizes.width)
    assert read_steps(traces, ["best"], ["on_policy"]).last_ids.tolist() == [NO_TOKEN, 7, 8]


@pytest.mark.parametrize("token", [-1, -2, 2**31 - 1])
def test_a_decoded_token_that_is_none_is_said_to_be_damage(tiny, traces, token):
    rolled = replace(trace(3, tiny.sizes.width, 0), policy="on_policy", decoded_ids=(7, token, 9))
    path = shard_path(traces, "on_policy", "best", 0)
    write_shard(path, [rolled], [rolled.id], read_recipe(traces), tiny.sizes.width)
    with pytest.raises(BeamlessError, match=r"damaged .*holds what is no token"):
        read_steps(traces, ["best"], ["on_policy"])


def test_roll_outs_from_before_they_noted_what_was_decoded_teach_everything_else(
    tiny, traces, tmp_path
):
    from pyarrow import parquet

    rolled = replace(trace(3, tiny.sizes.width, 0), policy="on_policy", decoded_ids=(7, 8, 9))
    path = shard_path(traces, "on_policy", "best", 0)
    write_shard(path, [rolled], [rolled.id], read_recipe(traces), tiny.sizes.width)
    parquet.write_table(parquet.read_table(path).drop_columns(["decoded_ids"]), path)
    options = {"model": "tiny.en", "policies": ["teacher_forced", "on_policy"]}
    shown = Fitting(units=4, epochs=1, last_token=True)
    with pytest.raises(BeamlessError, match="do not say what was decoded; roll out again"):
        train([traces], tmp_path / "no", fitting=shown, **options)
    train([traces], tmp_path / "plain", fitting=replace(shown, last_token=False), **options)
    train([traces], tmp_path / "forced", model="tiny.en", fitting=shown)
    assert load_corrector(tmp_path / "forced").config.last_token


def test_a_training_keeps_a_ledger_in_the_corrector(traces, tmp_path):
    fitting = Fitting(units=4, epochs=1, ledger=True)
    train([traces], tmp_path / "corrector", model="tiny.en", fitting=fitting)
    assert load_corrector(tmp_path / "corrector").config.ledger


@pytest.mark.parametrize("refused", ["start", "dev", "dev_traces", "language"])
def test_a_value_that_is_refused_leaves_no_folder_in_the_way_of_the_right_one(
    traces, tmp_path, refused
):
    empty, out = tmp_path / "empty", tmp_path / "corrector"
    empty.mkdir()
    values = {"start": empty, "dev": [empty], "dev_traces": empty, "language": "xx"}
    options = {"model": "tiny.en", "fitting": Fitting(units=4, epochs=1)}
    with pytest.raises(BeamlessError):
        train([traces], out, **options, **{refused: values[refused]})
    assert not out.exists()
    train([traces], out, **options)
    assert load_corrector(out)


class Decoded(lightning.Callback):
    """What judges each epoch: given word error rates, and the weights that it saw."""

    def __init__(self, rates):
        self.rates, self.seen = rates, []

    def on_train_epoch_end(self, trainer, module):
        module.log("dev_wer", self.rates[trainer.current_epoch])
        self.seen.append(module.network.down.weight.detach().clone())


@pytest.mark.parametrize("rates", [(0.3, 0.1, 0.2), (0.1, 0.2, 0.3), (0.3, 0.2, 0.1)])
def test_the_epoch_that_decodes_dev_best_is_kept_whatever_the_loss(tiny, traces, tmp_path, rates):
    config = config_of("shift", tiny.hash, tiny.sizes.width, tiny.sizes.vocabulary, units=4)
    settings = {"learning_rate": 1e-3, "weight_decay": 0.0, "dropout": 0.0, "kl_weight": 0.0}
    module, judge = CorrectorModule(tiny, config, seed=0, **settings), Decoded(rates)
    loader = StepsDataset(read_steps(traces, ["best"]), history=1).loader(5, shuffle=True, seed=0)
    kept = _fit(module, loader, None, judge, tmp_path, 3, 1)
    best = rates.index(min(rates))
    assert kept == pytest.approx(0.1)
    same = [torch.equal(module.network.down.weight, weights) for weights in judge.seen]
    assert same == [epoch == best for epoch in range(3)]


def test_a_training_that_went_astray_is_no_corrector(traces, tmp_path):
    fitting = Fitting(units=4, epochs=40, learning_rate=1.0, weight_decay=1000.0)
    with pytest.raises(BeamlessError, match="its weights are not finite"):
        train([traces], tmp_path / "corrector", model="tiny.en", fitting=fitting)
    assert not (tmp_path / "corrector" / "corrector.json").exists()


def test_a_damaged_checkpoint_is_named(traces, tmp_path):
    out, fitting = tmp_path / "corrector", Fitting(units=4, epochs=1)
    train([traces], out, model="tiny.en", fitting=fitting)
    (out / "corrector.json").unlink()
    last = out / "checkpoints" / "last.ckpt"
    for damaged in (b"", last.read_bytes()[:-100]):
        last.write_bytes(damaged)
        with pytest.raises(BeamlessError, match=r"last\.ckpt is damaged; remove"):
            train([traces], out, model="tiny.en", fitting=fitting)


def test_traces_of_different_numbers_of_tokens_are_not_mixed(tiny, traces, tmp_path):
    recipe = TraceRecipe("tiny.en", tiny.hash, "", (1,), 5, 1.0, 4, audio_context="short")
    open_traces(tmp_path / "four", recipe)
    with pytest.raises(BeamlessError, match="different numbers of likeliest tokens"):
        train([traces, tmp_path / "four"], tmp_path / "corrector", model="tiny.en")


@pytest.mark.parametrize("where", ["traces", "dev_traces"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: replace(one, target_ids=one.target_ids + 60_000),
        lambda one: replace(one, top_ids=one.top_ids - 60_000),
        lambda one: replace(one, acceptable=[[7, 60_000]] * len(one.target_ids)),
    ],
    ids=["target", "likeliest", "acceptable"],
)
def test_tokens_that_the_model_does_not_have_are_refused(tiny, traces, tmp_path, where, spoil):
    recipe, width = read_recipe(traces), tiny.sizes.width
    spoilt = tmp_path / "spoilt"
    open_traces(spoilt, recipe)
    path = shard_path(spoilt, "teacher_forced", "best", 0)
    write_shard(path, [spoil(trace(3, width, 20))], ["of-3"], recipe, width)
    given = {"traces": [traces], where: [spoilt] if where == "traces" else spoilt}
    with pytest.raises(BeamlessError, match="tokens that are none of the model's 51,864"):
        train(out=tmp_path / "corrector", model="tiny.en", **given)
    assert not (tmp_path / "corrector").exists()


def test_states_of_another_width_are_refused(tiny, tmp_path):
    recipe = TraceRecipe("tiny.en", tiny.hash, "", (1,), 5, 1.0, 8, audio_context="short")
    open_traces(tmp_path / "traces", recipe)
    path = shard_path(tmp_path / "traces", "teacher_forced", "best", 0)
    write_shard(path, [trace(3, 4, 20)], ["of-3"], recipe, 4)
    with pytest.raises(BeamlessError, match="states of 4 numbers, and the model's have 384"):
        train([tmp_path / "traces"], tmp_path / "corrector", model="tiny.en")


def test_dev_traces_of_another_model_are_refused(traces, tmp_path):
    other = tmp_path / "other"
    recipe = replace(read_recipe(traces), model="base", model_hash="another")
    open_traces(other, recipe)
    shard = shard_path(other, "teacher_forced", "best", 0)
    shard.parent.mkdir(parents=True)
    shard.write_bytes(shard_path(traces, "teacher_forced", "best", 0).read_bytes())
    with pytest.raises(BeamlessError, match="is of base, the other traces are not"):
        train([traces], tmp_path / "corrector", model="tiny.en", dev_traces=other)


def test_traces_from_before_budgets_teach_no_ledger_and_everything_else(traces, tmp_path):
    from pyarrow import parquet

    path = shard_path(traces, "teacher_forced", "best", 0)
    parquet.write_table(parquet.read_table(path).drop_columns(["budget"]), path)
    plain = Fitting(units=4, epochs=1)
    with pytest.raises(BeamlessError, match="collect them again, or train without a ledger"):
        train([traces], tmp_path / "no", model="tiny.en", fitting=replace(plain, ledger=True))
    train([traces], tmp_path / "corrector", model="tiny.en", fitting=plain)
    assert not load_corrector(tmp_path / "corrector").config.ledger


def test_of_two_processes_that_train_the_first_alone_writes(traces, tmp_path):
    out = tmp_path / "corrector"
    command = [sys.executable, "-m", "beamless", "train", str(traces), str(out)]
    options = ["--model", "tiny.en", "--units", "4", "--batch_size", "2", "--devices", "2"]
    done = subprocess.run([*command, *options], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("5 steps, ") == done.stderr.count("wrote ") == 1
    assert load_corrector(out).arrays["down.weight"].any()  # untrained it is all zeros


@pytest.mark.parametrize("size", [8, 9])
def test_processes_take_their_shares_of_the_batches_that_one_would_have(monkeypatch, size):
    def order(rank, count):
        monkeypatch.setattr(steps, "rank_of_all", lambda: (rank, count))
        sampler = Shuffled(size, seed=3)
        sampler.set_epoch(1)
        assert len(list(sampler)) == len(sampler)
        return list(sampler)

    alone, first, second = order(0, 1), order(0, 2), order(1, 2)
    for batch in range(2):
        mine, others = first[2 * batch :][:2], second[2 * batch :][:2]
        assert {*mine, *others} == {*alone[4 * batch :][:4]}


@pytest.mark.parametrize("devices", [0, 3])
def test_more_processes_than_steps_in_a_batch_are_refused(traces, tmp_path, devices):
    fitting = Fitting(units=4, batch_size=2)
    with pytest.raises(BeamlessError, match="--devices must be from 1 to 2"):
        train([traces], tmp_path / "corrector", devices=devices, fitting=fitting)
    assert not (tmp_path / "corrector").exists()
