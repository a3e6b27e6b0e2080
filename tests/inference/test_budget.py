"""The bound on tokens a second: loops end, and nothing that can be said is ever cut."""

import numpy as np
import pytest
from conftest import OTHER_SENTENCE, SENTENCE, say
from hypothesis import given
from hypothesis import strategies as st
from toys import START, ToyBundle, scripted

from beamless.inference.beam import Beam, beam_search
from beamless.inference.budget import (
    budget_for,
    is_spent,
    sounding_seconds,
    token_budget,
)
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.lookahead import LookaheadOptions, lookahead
from beamless.inference.options import DecodingOptions
from beamless.inference.repeats import cycles, repeated_tail
from beamless.inference.sampling import TokenOptions
from beamless.inference.transcribe import Transcriber

END, TIME = 7, 8  # of a toy whose last two tokens are times
LOOP = scripted(10, START, 5, 6, 2, 6)  # 6 2 6 2 for ever
TIMED_LOOP = scripted(10, START, 5, 6, TIME, 6)


def decoded(method, window, budget, capacity=40):
    """What a method makes of a toy's window."""
    bundle, options = ToyBundle(10, capacity), TokenOptions(budget=budget)
    if method == "beam":
        beam = Beam(bundle, 2)
        beam.options = options
        return beam_search(beam, window, (START,), END)[0]
    chooser = Greedy(bundle)
    chooser.options = options
    if method == "lookahead":
        return lookahead(chooser, window, (START,), END, LookaheadOptions())
    return greedy(chooser, window, (START,), END, record=True)


@pytest.mark.parametrize("method", ["greedy", "lookahead", "beam"])
def test_a_loop_ends_at_the_budget_and_is_said_once(method):
    found = decoded(method, LOOP, budget=9)
    assert found.finish_reason == "budget"
    assert found.tokens == (5, 6, 2)
    assert len(found.logprobs) == 3
    assert found.steps < 14


@pytest.mark.parametrize("method", ["greedy", "lookahead", "beam"])
def test_without_a_budget_a_loop_fills_the_capacity(method):
    found = decoded(method, LOOP, budget=None)
    assert found.finish_reason == "length"
    assert len(found.tokens) == 39


@pytest.mark.parametrize("method", ["greedy", "lookahead", "beam"])
def test_a_text_within_its_budget_is_left_alone(method):
    window = scripted(10, START, 5, 6, 2, 3, 4, END)
    bound, free = (decoded(method, window, budget) for budget in (6, None))
    assert bound.finish_reason == "stop"
    assert (bound.tokens, bound.logprobs) == (free.tokens, free.logprobs)


def test_hidden_states_are_those_of_the_tokens_that_are_kept():
    whole, kept = (decoded("greedy", LOOP, budget) for budget in (None, 9))
    np.testing.assert_array_equal(kept.hidden, whole.hidden[:3])


def test_times_take_nothing_of_the_budget():
    assert decoded("greedy", TIMED_LOOP, budget=9).steps == 16
    assert not is_spent([5, TIME, TIME, TIME], END, 2)
    assert is_spent([5, TIME, 6], END, 2)


passages = st.lists(st.integers(0, 50), min_size=1, max_size=12, unique=True)


@given(st.lists(st.integers(100, 150), unique=True), passages, st.integers(3, 9), st.data())
def test_a_passage_said_over_and_over_is_kept_once(before, passage, times, data):
    cut = data.draw(st.integers(0, len(passage) - 1))  # the budget ends amid a passage
    tokens = before + passage * times + passage[:cut]
    assert tokens[: len(tokens) - repeated_tail(tokens)] == before + passage


@given(st.lists(st.integers(0, 50), unique=True), passages)
def test_what_is_said_twice_is_kept(before, passage):
    tokens = [token + 100 for token in before] + passage * 2
    assert repeated_tail(tokens) == 0


@given(st.lists(st.integers(0, 2), max_size=40))
def test_a_text_cycles_where_it_ends_with_a_passage_three_times_over(tokens):
    tails = (tokens[-3 * length :] for length in range(2, 13) if len(tokens) >= 3 * length)
    assert cycles(tokens) == any(tail == tail[: len(tail) // 3] * 3 for tail in tails)


@pytest.mark.parametrize("text", [SENTENCE, OTHER_SENTENCE, "Yes.", "9 1 1 5 5 5 0 1 2 3"])
def test_a_voices_text_takes_half_of_its_budget_at_most(tiny_bundle, text):
    tokens = tiny_bundle.tokenizer.encode(" " + text)
    assert len(tokens) <= 0.55 * token_budget(say(text))


def test_silence_has_no_more_than_its_pauses_budget():
    assert token_budget(np.zeros(0, np.float32)) == 12
    assert token_budget(np.zeros(160_000, np.float32)) == 22


@given(st.integers(-60, 0))
def test_loudness_does_not_matter(decibels):
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 0.1, 32_000).astype(np.float32)
    samples[16_000:] *= 1e-3
    assert sounding_seconds(samples * 10 ** (decibels / 20)) == sounding_seconds(samples) == 1


def test_languages_that_were_not_measured_have_no_bound(speech):
    assert budget_for(speech, "en", None) == token_budget(speech)
    assert budget_for(speech, "my", None) is None
    assert budget_for(speech, "my", 30.0) == token_budget(speech, 30.0)
    assert budget_for(speech, "en", 0.0) is None
    with pytest.raises(BeamlessError, match="tokens a second are 0 or more"):
        DecodingOptions(tokens_a_second=-1)


def test_a_recording_goes_on_behind_the_window_that_its_budget_stopped(tiny_bundle):
    pause = np.zeros(6_400, np.float32)
    lines = ["We have seen the house.", "He went to the river.", "They sing in the morning."]
    samples = np.concatenate([part for line in lines for part in (say(line), pause)])
    options = DecodingOptions(timestamps=True, tokens_a_second=0.1)
    assert token_budget(samples, 0.1) == 12  # of some 18
    text = Transcriber(tiny_bundle, method="greedy", options=options).transcribe(samples).text
    assert all(word in text for word in ("house", "river", "morning"))
