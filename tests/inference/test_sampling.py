"""Boost, penalty and temperature: what they do to a choice, and that every method agrees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.methods import method_of
from beamless.inference.sampling import TokenOptions, preferred, weighed

END = 50
LOGPROBS = st.lists(st.floats(-30, -0.001), min_size=2, max_size=8)


@given(LOGPROBS, st.floats(1, 3))
def test_fault_16_a_penalty_never_makes_a_repeat_likelier(logprobs, penalty):
    tokens = np.arange(len(logprobs))
    before = np.array(logprobs)
    after = weighed(tokens, before, [0, 1], END, TokenOptions(repetition_penalty=penalty))
    assert np.all(after[:2] <= before[:2])
    np.testing.assert_array_equal(after[2:], before[2:])


def test_the_end_and_times_know_no_penalty_and_only_the_end_is_boosted():
    tokens, logprobs = np.array([3, END, END + 9]), np.full(3, -1.0)
    options = TokenOptions(repetition_penalty=2, eos_boost=0.5)
    assert weighed(tokens, logprobs, tokens, END, options).tolist() == [-2.0, -0.5, -1.0]


@given(LOGPROBS)
def test_at_temperature_0_the_likeliest_comes_first(logprobs):
    tokens, rng = np.arange(len(logprobs)), np.random.default_rng(0)
    order = preferred(tokens, np.array(logprobs), [], END, TokenOptions(), rng)
    assert order.tolist() == np.argsort(-np.array(logprobs), kind="stable").tolist()


def test_at_temperature_1_tokens_are_drawn_by_their_probabilities():
    rng, options = np.random.default_rng(0), TokenOptions(temperature=1.0)
    logprobs = np.log([0.6, 0.3, 0.1])
    drawn = [preferred(np.arange(3), logprobs, [], END, options, rng)[0] for _ in range(4000)]
    np.testing.assert_allclose(np.bincount(drawn) / 4000, [0.6, 0.3, 0.1], atol=0.03)


@pytest.fixture(scope="module")
def decode(tiny_bundle, tiny_window):
    """Decode the same window with a method, by name, and options."""
    methods = {name: method_of(tiny_bundle, name) for name in ("greedy", "corrected", "beam1")}
    prompt = tiny_bundle.tokenizer.prompt()
    return lambda name, **options: methods[name].decode(
        tiny_window, prompt, TokenOptions(**options)
    )[0]


@pytest.mark.parametrize("options", [{"repetition_penalty": 1.5}, {"eos_boost": 9.0}])
def test_every_method_means_the_same_by_boost_and_penalty(decode, options):
    greedy, corrected, beam = (decode(name, **options) for name in ("greedy", "corrected", "beam1"))
    assert greedy.tokens == corrected.tokens == beam.tokens
    np.testing.assert_allclose(greedy.logprobs, corrected.logprobs, atol=1e-3)
    np.testing.assert_allclose(greedy.logprobs, beam.logprobs, atol=1e-6)


def test_a_boost_ends_a_text_early(decode):
    boosted, plain = decode("greedy", eos_boost=1e6), decode("greedy")
    assert 0 < len(boosted.tokens) < len(plain.tokens)
    assert boosted.finish_reason == "stop"
    assert boosted.tokens == plain.tokens[: len(boosted.tokens)]


def test_drawing_gives_the_same_text_for_the_same_window(decode):
    for name in ("greedy", "corrected", "beam1"):
        drawn = [decode(name, temperature=1.0) for _ in range(2)]
        assert drawn[0].tokens == drawn[1].tokens
        assert drawn[0].temperature == 1.0
    assert decode("greedy").temperature == 0.0
