"""Minimum expected word errors: hand-worked lists, whole utterances, and the way it moves."""

import math

import numpy as np
import pytest
import torch

from beamless.data_gen.traces import NO_TOKEN, Steps, padded
from beamless.inference.errors import BeamlessError
from beamless.models.corrector import config_of
from beamless.training.fit import require_objective
from beamless.training.lists import ListsDataset
from beamless.training.mwer import MwerModule
from beamless.training.objectives import expected_errors, hypothesis_logprobs
from beamless.training.steps import first_utterances

LENGTHS = [3, 2, 3, 4, 2]
IDS = ["a", "a", "a", "b", "b"]
ERRORS = [2, 0, 1, 5, 5]


def steps_of(tiny) -> Steps:
    """Two utterances with lists of three and two hypotheses; states and tokens are random."""
    rng = np.random.default_rng(0)
    count, width = sum(LENGTHS), tiny.sizes.width
    targets = rng.integers(300, 2000, count).astype(np.int32)
    top = np.stack([targets, *(rng.integers(300, 2000, count) for _ in range(3))], axis=1)
    return Steps(
        hidden=rng.standard_normal((count, width)).astype(np.float16),
        target_ids=targets,
        top_ids=top.astype(np.int32),
        top_logprobs=np.full((count, 4), -1.5, np.float32),
        log_sum_exp=np.full(count, 20, np.float32),
        starts=np.cumsum([0, *LENGTHS]),
        rows=[{"id": i, "errors": e} for i, e in zip(IDS, ERRORS, strict=True)],
        acceptable=padded([[token] for token in targets]),
        last_ids=np.full(count, NO_TOKEN),
    )


def test_a_list_worked_by_hand():
    """Probabilities 1/2, 1/4 and 1/4 once they add up to one; 0, 2 and 4 errors, mean 2."""
    logprobs = torch.log(torch.tensor([0.2, 0.1, 0.1]))
    errors = torch.tensor([[0.0, 2.0, 4.0]])
    found = expected_errors(logprobs, torch.tensor([[0, 1, 2]]), errors)
    assert found.item() == pytest.approx(0.25 * 2 + 0.25 * 4 - 2)


def test_a_shorter_list_is_not_filled_up_with_anything():
    logprobs = torch.log(torch.tensor([0.3, 0.1, 0.2, 0.2]))
    members = torch.tensor([[0, 1, -1], [2, 3, -1]])
    errors = torch.tensor([[1.0, 3.0, 0.0], [2.0, 2.0, 0.0]])
    found = expected_errors(logprobs, members, errors)
    assert found.tolist() == pytest.approx([0.75 * 1 + 0.25 * 3 - 2, 0.0])


def test_a_hypothesis_is_as_probable_as_its_steps_are_together():
    logits = torch.log(torch.tensor([[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]))
    found = hypothesis_logprobs(logits, torch.tensor([[0], [1], [0]]), torch.tensor([0, 0, 1]), 2)
    assert found.tolist() == pytest.approx([math.log(0.5 * 0.75), math.log(0.9)])


def test_the_gradient_moves_probability_to_the_better_hypothesis():
    logprobs = torch.zeros(3, requires_grad=True)
    errors = torch.tensor([[3.0, 0.0, 1.5]])
    expected_errors(logprobs, torch.tensor([[0, 1, 2]]), errors).sum().backward()
    worse, better, mean = logprobs.grad.tolist()
    assert worse > 0 > better
    assert mean == pytest.approx(0)


def test_where_all_hypotheses_err_alike_there_is_nothing_to_learn():
    logprobs = torch.tensor([0.3, -2.0], requires_grad=True)
    expected_errors(logprobs, torch.tensor([[0, 1]]), torch.full((1, 2), 4.0)).sum().backward()
    assert not logprobs.grad.any()


def test_a_batch_holds_whole_lists_in_whatever_order(tiny):
    batch = ListsDataset(steps_of(tiny), history=1).batch([1, 0])
    assert batch.members.tolist() == [[0, 1, -1], [2, 3, 4]]
    assert batch.errors.tolist() == [[5, 5, 0], [2, 0, 1]]
    assert batch.hypothesis.tolist() == [0] * 4 + [1] * 2 + [2] * 3 + [3] * 2 + [4] * 3
    best = [True] * 4 + [False] * 2 + [False] * 3 + [True] * 2 + [False] * 3
    assert batch.best.tolist() == best, "of equal ones the first"


def test_a_step_sees_no_state_of_the_hypothesis_before_it(tiny):
    batch = ListsDataset(steps_of(tiny), history=1).batch([0]).steps
    firsts = [0, 3, 5]
    assert not batch.history[firsts].any()
    assert batch.first.nonzero().flatten().tolist() == firsts


def test_a_loaders_batches_have_about_as_many_steps_as_asked_for(tiny):
    data = ListsDataset(steps_of(tiny), history=1)
    assert [len(batch.members) for batch in data.loader(7, False, 0)] == [1, 1]
    assert [len(batch.members) for batch in data.loader(14, False, 0)] == [2]
    assert [len(batch.members) for batch in data.loader(1, False, 0)] == [1, 1]


def module_for(tiny, **options) -> MwerModule:
    config = config_of("shift", tiny.hash, tiny.sizes.width, tiny.sizes.vocabulary, units=32)
    settings = {"learning_rate": 2e-3, "weight_decay": 0.0, "dropout": 0.0, "kl_weight": 0.3}
    settings["cross_entropy_weight"] = 0.0
    module = MwerModule(tiny, config, seed=0, **{**settings, **options})
    module.log = lambda *_, **__: None  # nobody listens
    return module


def test_untrained_the_errors_expected_are_those_of_the_base_model(tiny):
    data, module = ListsDataset(steps_of(tiny), history=1), module_for(tiny)
    batch = data.batch([0, 1])
    corrected, base, targets, _ = module(batch.steps)
    assert torch.equal(
        module.expected(corrected, targets, batch), module.expected(base, targets, batch)
    )


def test_training_lowers_what_is_expected_to_that_of_the_best_hypothesis(tiny):
    data, module = ListsDataset(steps_of(tiny), history=1), module_for(tiny)
    optimizer = torch.optim.AdamW(module.network.parameters(), 2e-3)
    batch = data.batch([0, 1])
    for _ in range(60):
        torch.manual_seed(0)
        loss = module.training_step(batch, 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() == pytest.approx((0 - 1 + 0) / 2, abs=0.05)  # 0 errors, the mean is 1


def test_the_cross_entropy_is_that_of_the_best_hypothesis_alone(tiny):
    """Where all hypotheses of a list err alike, nothing else is left of the loss."""
    data = ListsDataset(steps_of(tiny), history=1)
    module = module_for(tiny, cross_entropy_weight=1.0, kl_weight=0.0)
    batch = data.batch([1])
    torch.manual_seed(0)
    corrected, _, targets, _ = module(batch.steps)
    chosen = torch.log_softmax(corrected, 1).gather(1, targets)[:4].mean()
    torch.manual_seed(0)
    assert module.list_loss(batch).item() == pytest.approx(-chosen.item(), rel=1e-5)


def test_lists_are_for_mwer_and_mwer_is_for_lists():
    with pytest.raises(BeamlessError, match="--targets list"):
        require_objective("mwer", ["best"])
    with pytest.raises(BeamlessError, match="--objective mwer"):
        require_objective("cross_entropy", ["best", "list"])
    require_objective("mwer", ["list"])


def test_a_limit_keeps_whole_utterances_and_what_a_smaller_one_kept(tiny):
    steps = steps_of(tiny)
    one = first_utterances(steps, 1)
    assert len({row["id"] for row in one.rows}) == 1
    kept = [n for n, identifier in enumerate(IDS) if identifier == one.rows[0]["id"]]
    expected = np.concatenate(
        [steps.target_ids[steps.starts[n] : steps.starts[n + 1]] for n in kept]
    )
    assert np.array_equal(one.target_ids, expected)
    assert one.starts.tolist() == np.cumsum([0, *(LENGTHS[n] for n in kept)]).tolist()
    assert first_utterances(steps, 2) is steps
