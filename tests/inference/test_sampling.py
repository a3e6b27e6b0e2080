"""Boost, penalty and temperature: what they do to a choice, and that every method agrees."""

import numpy as np
import openvino as ov
import pytest
import torch
from conftest import say
from hypothesis import given
from hypothesis import strategies as st
from toys import START, ToyBundle, scripted
from transformers import RepetitionPenaltyLogitsProcessor

from beamless.inference.beam import Beam, beam_search
from beamless.inference.errors import BeamlessError
from beamless.inference.methods import method_of
from beamless.inference.sampling import TokenOptions, preferred, weighed
from beamless.inference.window_encoder import WindowEncoder

END = 50
LOGPROBS = st.lists(st.floats(-30, -0.001), min_size=2, max_size=8)


@given(LOGPROBS, st.floats(-20, 40), st.floats(1, 3))
def test_fault_16_a_penalty_never_makes_a_repeat_likelier(logprobs, level, penalty):
    tokens = np.arange(len(logprobs))
    before = np.array(logprobs)
    after = weighed(tokens, before, level, [0, 1], END, TokenOptions(repetition_penalty=penalty))
    assert np.all(after[:2] <= before[:2] + 1e-9)
    np.testing.assert_array_equal(after[2:], before[2:])


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=8), st.floats(1, 3))
def test_the_penalty_is_that_of_transformers(logits, penalty):
    logits, text = np.array(logits), [1, 0, 1]
    level = np.log(np.exp(logits).sum())
    options = TokenOptions(repetition_penalty=penalty)
    found = weighed(np.arange(len(logits)), logits - level, level, text, END, options)
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(
        torch.tensor([text]), torch.from_numpy(logits[None])
    )
    np.testing.assert_allclose(found + level, theirs[0].numpy(), atol=1e-9)


def test_the_end_and_times_know_no_penalty_and_only_the_end_is_boosted():
    tokens, logprobs = np.array([3, END, END + 9]), np.full(3, -1.0)
    options = TokenOptions(repetition_penalty=2, eos_boost=0.5)
    assert weighed(tokens, logprobs, 5.0, tokens, END, options).tolist() == [-3.0, -0.5, -1.0]


@given(LOGPROBS)
def test_at_temperature_0_the_likeliest_comes_first(logprobs):
    order = preferred(np.array(logprobs), 0.0, np.random.default_rng(0))
    assert order.tolist() == np.argsort(-np.array(logprobs), kind="stable").tolist()


def test_at_temperature_1_tokens_are_drawn_by_their_probabilities():
    rng, logprobs = np.random.default_rng(0), np.log([0.6, 0.3, 0.1])
    drawn = [preferred(logprobs, 1.0, rng)[0] for _ in range(4000)]
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


@pytest.fixture(scope="module")
def looping(tiny_bundle):
    """Decode speech that goes round, in which tiny.en goes round too until its cache is full."""
    cross_kv = WindowEncoder(tiny_bundle)(say("the cat and " * 12), "short")
    window = {name: array.copy() for name, array in cross_kv.items()}
    prompt = tiny_bundle.tokenizer.prompt()
    return lambda bundle, name, **options: method_of(bundle, name).decode(
        window, prompt, TokenOptions(**options)
    )[0]


@pytest.mark.parametrize("method", ["greedy", "corrected", "lookahead"])
def test_fault_23_a_penalty_is_felt_in_a_sure_loop(tiny_bundle, looping, method):
    """Its log-probabilities are next to 0, and so would be any multiple of them."""
    plain = looping(tiny_bundle, method)
    assert plain.finish_reason == "length"
    assert np.exp(plain.logprobs[-20:]).mean() > 0.9
    penalised = looping(tiny_bundle, method, repetition_penalty=1.3)
    assert penalised.finish_reason == "stop"
    assert len(penalised.tokens) < 40


def test_fault_23_a_penalty_is_felt_in_a_sure_loop_of_a_beam():
    """2 and 3 follow each other for ever, 4 nats ahead of the end."""
    window, end, found = scripted(6, START, 2, 3, 2), 5, []
    window["cross_table"][2:4, end] = 16
    for penalty in (1.0, 1.3):
        beam = Beam(ToyBundle(6, capacity=20), 1)
        beam.options = TokenOptions(repetition_penalty=penalty)
        found.append(beam_search(beam, window, (START,), end)[0])
    assert [each.finish_reason for each in found] == ["length", "stop"]
    assert found[1].tokens == (2, 3)


def test_a_bundle_of_before_knows_no_penalty_and_does_all_else(tiny_bundle, looping):
    """Its corrected step does not say how high the logits are."""
    graph = ov.Core().read_model(tiny_bundle.folder / "corrected.xml")
    (level,) = (r for r in graph.get_results() if "log_sum_exp" in r.output(0).names)
    graph.remove_result(level)
    old = tiny_bundle.with_graph("corrected", graph, tiny_bundle.manifest)
    assert looping(old, "corrected", eos_boost=0.1) == looping(
        tiny_bundle, "corrected", eos_boost=0.1
    )
    with pytest.raises(BeamlessError, match="before its corrected step knew"):
        looping(old, "corrected", repetition_penalty=1.1)
    assert looping(old, "greedy", repetition_penalty=1.3).finish_reason == "stop"
