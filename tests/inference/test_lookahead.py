"""Selective look-ahead, on toys whose every logit is known without a cache."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import END, START, ToyBundle, scripted, toy_logits, toy_window

from beamless.inference.greedy import Greedy, greedy
from beamless.inference.logits import log_sum_exp
from beamless.inference.lookahead import (
    COST_TO_COME,
    LENGTH_REWARD,
    LookaheadOptions,
    Taken,
    lookahead,
    may_be_kept,
    meeting,
    outcome,
    worth_of,
)
from beamless.inference.repeats import cycles, stutters
from beamless.inference.sampling import TokenOptions

PROMPT = (START, 2)
VOCABULARY, CAPACITY = 6, 14
windows = st.integers(0, 10_000)


def taken(*tokens, costs):
    return [Taken(token, -cost, -cost, None) for token, cost in zip(tokens, costs, strict=True)]


def decode(window, **options):
    chooser = Greedy(ToyBundle(VOCABULARY, CAPACITY))
    return lookahead(chooser, window, PROMPT, END, LookaheadOptions(**options))


@settings(max_examples=25)
@given(seed=windows)
def test_never_in_question_is_greedy(seed):
    window = toy_window(VOCABULARY, seed)
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    ahead = decode(window, margin=0.0)
    assert ahead.tokens == plain.tokens
    assert ahead.finish_reason == plain.finish_reason


@settings(max_examples=25)
@given(seed=windows)
def test_without_a_budget_it_is_greedy_at_greedys_price(seed):
    window = toy_window(VOCABULARY, seed)
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    ahead = decode(window, margin=100.0, budget=0)
    assert ahead.tokens == plain.tokens
    assert ahead.steps == plain.steps


@settings(max_examples=40)
@given(
    seed=windows,
    margin=st.floats(0.1, 20),
    depth=st.integers(2, 5),
    budget=st.integers(0, 60),
)
def test_the_branch_not_taken_leaves_no_trace_in_the_cache(seed, margin, depth, budget):
    """Each log-probability is that of its token after the tokens before, recomputed afresh."""
    window = toy_window(VOCABULARY, seed)
    ahead = decode(window, margin=margin, depth=depth, budget=budget)
    ending = (END,) if ahead.finish_reason == "stop" else ()
    tokens = list(PROMPT)
    for token, logprob in zip((*ahead.tokens, *ending), ahead.logprobs, strict=True):
        logits = toy_logits(window, tokens)[None]
        fresh = (logits - log_sum_exp(logits))[0, token]
        assert logprob == pytest.approx(fresh, abs=1e-4)
        tokens.append(token)


@settings(max_examples=25)
@given(seed=windows, budget=st.integers(0, 40))
def test_the_budget_bounds_the_extra_steps(seed, budget):
    window = toy_window(VOCABULARY, seed)
    """A text that cycles after tries is decoded anew without them, which is not of the budget."""
    depth = 4
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    ahead = decode(window, margin=3.0, depth=depth, budget=budget)
    if ahead.tokens != plain.tokens:
        fed = len(PROMPT) + len(ahead.tokens)
        assert ahead.steps - fed <= budget + depth


@settings(max_examples=40)
@given(seed=windows, margin=st.floats(0.1, 20), depth=st.integers(2, 5))
def test_a_branch_that_wins_is_better_than_what_greedy_would_have_written(seed, margin, depth):
    """Looking at the first step alone: no other question follows, as the budget is used up."""
    window = toy_window(VOCABULARY, seed)
    ahead = decode(window, margin=margin, depth=depth, budget=depth)
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    long = len(plain.tokens) >= depth  # one that ends before costs less than the budget
    met = any(meeting(ahead.tokens[:n], plain.tokens[:depth]) for n in range(depth + 1))
    swapped = ahead.tokens[:1] != plain.tokens[:1]
    if long and swapped and not met and not cycles(plain.tokens[:depth]):
        better, worse = (
            taken(*[*h.tokens, END][:depth], costs=[-logprob for logprob in h.logprobs[:depth]])
            for h in (ahead, plain)
        )
        assert worth_of(better, END) > worth_of(worse, END)


def test_what_greedy_would_write_is_computed_once_however_often_it_is_in_question():
    """Every step is in question, and no second branch can win."""
    window = scripted(VOCABULARY, 2, 3, 4, 5, END)
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    ahead = decode(window, margin=100.0, depth=5)
    assert ahead.tokens == plain.tokens
    assert ahead.steps == plain.steps


def test_a_likely_token_with_a_poor_future_loses_to_the_runner_up():
    """Greedy takes 3 and gets lost among equals; 4 goes straight on."""
    window = scripted(VOCABULARY, 4, 5, END)
    table = window["cross_table"]
    table[2, 3], table[2, 4] = 20.2, 20.0
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    assert plain.tokens[0] == 3
    assert decode(window, margin=0.6).tokens == (4, 5)


@pytest.mark.parametrize(("behind", "given_up"), [(0.8, True), (0.1, False)])
def test_a_branch_that_would_have_to_be_all_but_sure_is_not_tried(behind, given_up):
    """Behind 4 all is sure, behind 3 it costs 0.37 nats or 0.64; 3 itself is 0.2 ahead of 4."""
    window = scripted(VOCABULARY, 4, 5, END)
    table = window["cross_table"]
    table[2, [3, 4]] = 20.2, 20.0
    table[3, [5, 3]] = 20.0 + behind, 20.0
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    ahead = decode(window, margin=0.6, depth=3)
    assert (ahead.tokens == plain.tokens) == given_up
    assert (ahead.steps == plain.steps) == given_up


def test_a_branch_that_is_given_up_has_lost():
    """5 to 9 are sure. Then 3 is 0.2 nats ahead of 4, with 1.1 to come, and behind 4 all is lost.

    Of 4 alone, without what follows it, the branch would have the larger sum.
    """
    window = scripted(12, 2, 5, 6, 7, 8, 9)
    table = window["cross_table"]
    table[9, [3, 4]] = 20.2, 20.0
    table[3, [5, 6, 7]] = 20.0
    ahead = lookahead(Greedy(ToyBundle(12, 14)), window, PROMPT, END, LookaheadOptions(margin=0.6))
    assert ahead.tokens[:6] == (5, 6, 7, 8, 9, 3)


@pytest.mark.parametrize(
    ("rival", "path", "met"),
    [
        ((9, 1, 7, 8), (9, 2, 7, 8, 5), 4),
        ((9, 7, 8, 5), (9, 2, 7, 8, 5), 5),
        ((9, 1, 1, 7, 8), (9, 2, 7, 8, 5), 4),
        ((9, 1, 7), (9, 2, 7, 8, 5), 0),
        ((9, 7, 8), (9, 2, 7, 8, 5), 0),
        ((9, 1, 1, 1, 1, 1, 1, 7, 8), (9, 2, 7, 8, 5), 0),
        ((7, 8, 1, 7, 8), (7, 8, 2, 5, 5), 0),
    ],
    ids=[
        "in step",
        "a token left out",
        "a token more",
        "one token alike",
        "alike in the first token that is the branch's own",
        "too far apart",
        "alike before the parting",
    ],
)
def test_branches_meet_where_two_tokens_are_alike(rival, path, met):
    assert meeting(rival, path) == met


@pytest.mark.parametrize(("cost", "wins"), [(0.9, True), (1.2, False)])
def test_branches_that_meet_are_compared_up_to_there(cost, wins):
    """What the first one says later, at nine nats, is not held against it."""
    path = taken(9, 2, 7, 8, 5, costs=(0, 1, 0, 0, 9))
    rival = taken(9, 1, 1, 7, 8, costs=(0, cost / 2, cost / 2, 0, 0))
    assert outcome(rival, path, 9, END, sure=True) is wins


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_token_is_worth_the_length_reward(sign):
    """Three tokens more, and a hair above or below what they are worth."""
    path = taken(9, 2, END, costs=(0, 1, 0))
    dearer = 1 + 3 * LENGTH_REWARD + sign * 0.01
    rival = taken(9, 3, 4, 5, 6, END, costs=(0, dearer, 0, 0, 0, 0))
    assert outcome(rival, path, 9, END, sure=True) is (sign < 0)


def test_a_branch_that_has_ended_is_not_charged_for_what_is_to_come():
    """At the depth the first is a little ahead, but goes on."""
    path = taken(9, 2, 5, 7, costs=(0, 0, 0, 0))
    ending = taken(9, 1, 6, END, costs=(0, COST_TO_COME - 0.01, 0, 0))
    going_on = taken(9, 1, 6, 8, costs=(0, COST_TO_COME - 0.01, 0, 0))
    assert outcome(ending, path, 4, END, sure=True) is True
    assert outcome(going_on, path, 4, END, sure=True) is False


@pytest.mark.parametrize(("cost", "lost"), [(1.9, None), (2.1, False)])
def test_a_branch_two_nats_behind_is_given_up(cost, lost):
    """The first one is lost later on, so that in the end the second might still win."""
    path = taken(9, 2, 7, 8, 5, costs=(0, 0, 0, 9, 9))
    rival = taken(9, 1, costs=(0, cost))
    assert outcome(rival, path, 5, END, sure=True) is lost
    assert outcome(rival, path, 5, END, sure=False) is None


@pytest.mark.parametrize("timed", [True, False])
def test_times_that_end_a_segment_and_open_the_next_are_no_stutter(timed):
    """Tokens from 8 on are no text."""
    path = taken(1, 2, 3, costs=(1, 1, 1))
    rival = taken(1, 9, 9, costs=(1, 0, 0))
    assert may_be_kept(rival, path, 1, 8, timed, wins=True) == timed


def test_nothing_is_tried_where_nobody_seems_to_speak():
    """4 goes straight on and 3 gets lost, as above; but this window is of no speech."""
    window = scripted(VOCABULARY, 4, 5, END)
    window["cross_table"][2, [3, 4]] = 20.2, 20.0
    window["cross_table"][START, START] = 20  # stands for no speech, too
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    ahead = decode(window, margin=0.6)
    assert ahead.no_speech_prob > 0.9
    assert ahead.tokens == plain.tokens
    assert ahead.steps == plain.steps


@settings(max_examples=40)
@given(seed=windows, penalty=st.floats(1.1, 3), boost=st.sampled_from([0.0, 0.5, 2.0]))
def test_what_a_penalty_or_a_boost_chose_is_not_undone(seed, penalty, boost):
    """By scores it is the best, and no other is as close as nothing."""
    window = toy_window(VOCABULARY, seed)
    bundle, end = ToyBundle(VOCABULARY, CAPACITY), VOCABULARY - 1
    bundle.tokenizer.end = end  # behind the text, as Whisper's is: no token from there on repeats
    choosers = [Greedy(bundle) for _ in range(2)]
    for chooser in choosers:
        chooser.options = TokenOptions(repetition_penalty=penalty, eos_boost=boost)
    plain = greedy(choosers[0], window, PROMPT, end)
    ahead = lookahead(choosers[1], window, PROMPT, end, LookaheadOptions(margin=0.0))
    assert ahead.tokens == plain.tokens
    assert ahead.steps == plain.steps


def test_a_boost_of_the_end_counts_in_a_branch_too():
    """The end is a nat behind 4; boosted by 3 it is chosen, and looking ahead keeps to it."""
    window = scripted(VOCABULARY, 4, 5, 3, 2)
    window["cross_table"][2, [4, END]] = 22, 21
    chooser = Greedy(ToyBundle(VOCABULARY, CAPACITY))
    chooser.options = TokenOptions(eos_boost=3.0)
    found = lookahead(chooser, window, PROMPT, END, LookaheadOptions(margin=2.5, depth=3))
    assert found.tokens == ()


def test_a_branch_that_cycles_loses_though_it_looks_probable():
    """3 4 3 4 … is likelier at every step than the end, which is the runner-up behind each 3."""
    window = scripted(VOCABULARY, 2, 3, 4, 3)
    window["cross_table"][3, END] = 19.5
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    assert plain.finish_reason == "length"
    ahead = decode(window, margin=1.0)
    assert ahead.finish_reason == "stop"
    assert ahead.tokens == (3,)


def test_a_text_that_tries_led_into_a_loop_is_decoded_again_without_them():
    """3 gets lost among equals, the first of them the end; 4 goes straight on to 5 4 5 4 …"""
    window = scripted(VOCABULARY, 4, 5, 4)
    window["cross_table"][2, [3, 4]] = 20.2, 20.0
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    ahead = decode(window, margin=0.6, depth=2)
    assert ahead.tokens == plain.tokens == (3,)
    assert ahead.finish_reason == "stop"
    assert ahead.steps > plain.steps + 6  # those that were in vain count


def test_a_loop_that_no_try_led_into_is_decoded_once():
    window = scripted(VOCABULARY, 2, 3, 4, 3)
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    ahead = decode(window, margin=0.6)
    assert ahead.tokens == plain.tokens
    assert ahead.steps == plain.steps


def test_a_second_branch_does_not_win_by_saying_a_word_twice():
    """3 gets lost among equals and 4 goes straight on, but to 4 again."""
    window = scripted(VOCABULARY, 4, 4)
    window["cross_table"][2, [3, 4]] = 20.2, 20.0
    plain = greedy(Greedy(ToyBundle(VOCABULARY, CAPACITY)), window, PROMPT, END)
    assert plain.tokens[0] == 3
    assert decode(window, margin=0.6).tokens == plain.tokens


@pytest.mark.parametrize(
    ("tokens", "cycling"),
    [
        ((1, 2, 1, 2, 1, 2), True),
        ((9, 1, 2, 3, 1, 2, 3, 1, 2, 3), True),
        ((1, 2, 1, 2), False),
        ((5, 5, 5), False),
        ((1, 2, 1, 2, 1, 2, 3), False),
        ((), False),
    ],
)
def test_three_times_the_same_passage_is_a_cycle(tokens, cycling):
    assert cycles(tokens) is cycling


@pytest.mark.parametrize(
    ("tokens", "stuttering"),
    [
        ((1, 2, 2), True),
        ((1, 2, 2, 9), True),
        ((1, 2, 3, 2, 3, 9), True),
        ((1, 1, 2, 3), False),
        ((1, 2, 1, 2), True),
        ((1, 2, 3, 2, 4), False),
        ((), False),
    ],
)
def test_what_is_said_twice_by_the_end_of_the_branch_is_a_stutter(tokens, stuttering):
    assert stutters(tokens, 2) == stuttering
