"""The baselines do what their names say, and nothing where they are told to do nothing."""

import numpy as np
import pytest

from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import open_window
from beamless.training.baselines import (
    Neighbours,
    datastore_of,
    entropy,
    nearest,
    second_where_unsure,
    with_neighbours,
)
from beamless.training.contenders import contender, open_contenders

HIDDEN = np.zeros(2, np.float32)


def logprobs_of(*probabilities: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(probabilities))


def test_a_sure_step_keeps_the_best_token_and_an_unsure_one_takes_the_second():
    rule = second_where_unsure(0.5)
    sure, unsure = logprobs_of(0.97, 0.02, 0.01), logprobs_of(0.4, 0.35, 0.25)
    assert rule(sure, HIDDEN).argmax() == 0
    assert rule(unsure, HIDDEN).argmax() == 1
    assert unsure.argmax() == 0, "what was given is not changed"


def test_entropy_is_in_nats_and_a_suppressed_token_adds_nothing():
    assert entropy(logprobs_of(0.25, 0.25, 0.25, 0.25, 0.0)) == pytest.approx(np.log(4))
    assert entropy(logprobs_of(1.0, 0.0)) == 0


def test_the_nearest_states_come_first_with_their_squared_distances():
    states = np.array([[0, 3], [1, 0], [0, 0.5]], np.float32)
    tokens, distances = nearest(datastore_of(states, np.array([7, 8, 9])), HIDDEN, 2)
    assert tokens.tolist() == [9, 8]
    assert distances == pytest.approx([0.25, 1.0])


def test_neighbours_are_mixed_by_their_distance():
    states = np.array([[0, 0], [0, 0], [2, 0]], np.float32)
    store = datastore_of(states, np.array([1, 1, 2]))
    rule = with_neighbours(store, Neighbours(count=3, mix=0.5, temperature=4 / np.log(2)))
    mixed = rule(logprobs_of(0.6, 0.3, 0.1), HIDDEN)
    # weights 1, 1 and 1/2, of which token 1 has four fifths
    assert mixed == pytest.approx([0.3, 0.15 + 0.4, 0.05 + 0.1])


def test_a_neighbours_suppressed_token_stays_suppressed():
    store = datastore_of(np.zeros((1, 2), np.float32), np.array([1]))
    mixed = with_neighbours(store, Neighbours(count=1, mix=0.9))(logprobs_of(1.0, 0.0), HIDDEN)
    assert mixed.argmax() == 0


def test_more_neighbours_than_there_are_states_are_all_of_them():
    store = datastore_of(np.zeros((2, 2), np.float32), np.array([1, 0]))
    assert len(nearest(store, HIDDEN, 8)[0]) == 2


@pytest.fixture(scope="module")
def opened(tiny_bundle):
    names = ["greedy", "greedy+second99", "greedy+second0"]
    contenders = [contender(name, "full") for name in names]
    methods = open_contenders(tiny_bundle, contenders)
    return {one.name: methods[one.decoding] for one in contenders}


def test_a_threshold_that_no_step_reaches_leaves_greedy_as_it_is(opened, tiny_bundle, tiny_window):
    prompt = tiny_bundle.tokenizer.prompt()
    plain, gated = (
        opened[name].decode(tiny_window, prompt)[0] for name in ("greedy", "greedy+second99")
    )
    assert gated.tokens == plain.tokens
    assert gated.logprobs == pytest.approx(plain.logprobs, abs=1e-4)


def test_a_threshold_that_all_steps_pass_takes_the_second_best_from_the_first_one_on(
    opened, tiny_bundle, tiny_window
):
    prompt = tiny_bundle.tokenizer.prompt()
    choice, _ = open_window(opened["greedy"].chooser, tiny_window, prompt)
    found = opened["greedy+second0"].decode(tiny_window, prompt)[0]
    assert found.tokens[0] == choice.runner_up


def test_knn_without_a_datastore_says_what_it_needs(tiny_bundle):
    with pytest.raises(BeamlessError, match="--datastore"):
        open_contenders(tiny_bundle, [contender("knn4", "full")])
