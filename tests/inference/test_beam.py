"""Beam search, against brute force on a toy and against greedy on real weights."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import END, START, ToyBundle, scripted, toy_logits, toy_window

from beamless.inference.beam import Beam, beam_search, rank
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.hypothesis import Hypothesis

PROMPT = (START, 2)
SEEDS = st.integers(0, 2**32 - 1)


def log_probabilities(window, tokens):
    logits = toy_logits(window, tokens).astype(np.float64)
    return logits - np.log(np.exp(logits).sum())


def sum_of(window, tokens, ended):
    """Σ log p of a text after the prompt, its end token too where it has one."""
    whole = [*tokens, END] if ended else tokens
    return sum(
        log_probabilities(window, [*PROMPT, *whole[:at]])[token] for at, token in enumerate(whole)
    )


def exhaustive(window, vocabulary, room, length_penalty):
    """Every text that can be, best first, with its score."""
    found = []
    for length in range(room + 1):
        for tokens in product(range(1, vocabulary), repeat=length):
            ended = length < room
            count = length + ended
            score = sum_of(window, list(tokens), ended) / count**length_penalty
            found.append((score, tokens))
    return sorted(found, reverse=True)


def plain_beam(window, size, room):
    """The same search in the plainest way: no cache, no arrays, every prefix scored anew."""
    live, finished = [()], []
    for length in range(1, room + 1):
        options = []
        for tokens in live:
            total = sum_of(window, list(tokens), False)
            following = log_probabilities(window, [*PROMPT, *tokens])
            options += [(total + p, (*tokens, token)) for token, p in enumerate(following)]
        live = []
        for _, tokens in sorted(options, reverse=True):
            if tokens[-1] == END:
                finished.append(tokens[:-1])
            else:
                live.append(tokens)
            if len(live) == size:
                break
        if len(finished) >= size:
            break
        if length == room:
            finished += live
    scored = [
        (sum_of(window, list(t), len(t) < room) / (len(t) + (len(t) < room)), t) for t in finished
    ]
    return [tokens for _, tokens in sorted(scored, reverse=True)[:size]]


@settings(max_examples=20)
@given(SEEDS, st.sampled_from([0.0, 1.0, 2.0]))
def test_fault_14_a_beam_as_wide_as_the_tree_finds_what_brute_force_finds(seed, length_penalty):
    window = toy_window(3, seed)
    beam = Beam(ToyBundle(3, capacity=5), beam_size=10)  # at most 8 texts live at a time
    found = beam_search(beam, window, PROMPT, END, length_penalty)
    expected = exhaustive(window, 3, 3, length_penalty)[:10]
    assert [h.tokens for h in found] == [tokens for _, tokens in expected]
    np.testing.assert_allclose(
        [h.score(length_penalty) for h in found], [score for score, _ in expected], atol=1e-4
    )


@settings(max_examples=30)
@given(SEEDS, st.sampled_from([2, 3, 5]))
def test_fault_14_the_n_best_list_is_that_of_the_plainest_beam_search(seed, size):
    window = toy_window(7, seed)
    found = beam_search(Beam(ToyBundle(7, capacity=9), size), window, PROMPT, END)
    assert [h.tokens for h in found] == plain_beam(window, size, room=7)


@settings(max_examples=30)
@given(SEEDS)
def test_fault_13_a_beam_of_one_is_greedy_exactly(seed):
    window = toy_window(7, seed)
    one = beam_search(Beam(ToyBundle(7, capacity=12), 1), window, PROMPT, END, record=True)
    alone = greedy(Greedy(ToyBundle(7, capacity=12)), window, PROMPT, END, record=True)
    assert len(one) == 1
    assert one[0].tokens == alone.tokens
    assert one[0].logprobs == alone.logprobs
    assert one[0].finish_reason == alone.finish_reason
    assert one[0].steps == alone.steps
    np.testing.assert_array_equal(one[0].hidden, alone.hidden)


def test_fault_13_a_beam_of_one_is_greedy_even_where_log_probabilities_round_alike():
    window = {
        "cross_table": np.full((600, 600), 1.0, np.float32),
        "cross_phases": np.zeros(600, np.float32),
    }
    window["cross_table"][:, 7] = np.nextafter(np.float32(1), np.float32(2))
    window["cross_table"][:, END] = -5
    beam = beam_search(Beam(ToyBundle(600, capacity=6), 1), window, PROMPT, END)[0]
    assert beam.tokens == greedy(Greedy(ToyBundle(600, 6)), window, PROMPT, END).tokens == (7,) * 4


@pytest.mark.parametrize("model", ["tiny", "base"])
def test_fault_13_a_beam_of_one_is_greedy_on_real_weights(model, request):
    bundle = request.getfixturevalue(f"{model}_bundle")
    window = request.getfixturevalue(f"{model}_window")
    rule = (window, bundle.tokenizer.prompt(), bundle.tokenizer.end)
    one, alone = beam_search(Beam(bundle, 1), *rule)[0], greedy(Greedy(bundle), *rule)
    assert (one.tokens, one.logprobs) == (alone.tokens, alone.logprobs)
    assert one.no_speech_prob == alone.no_speech_prob


@settings(max_examples=20)
@given(SEEDS, st.sampled_from([0.0, 0.6, 1.0]))
def test_fault_13_the_score_is_the_sum_divided_once(seed, length_penalty):
    window = toy_window(7, seed)
    for h in beam_search(Beam(ToyBundle(7, 9), 3), window, PROMPT, END, length_penalty):
        ended = h.finish_reason == "stop"
        count = len(h.tokens) + ended
        assert len(h.logprobs) == count
        total = sum_of(window, list(h.tokens), ended)
        assert h.score(length_penalty) == pytest.approx(total / count**length_penalty, abs=1e-4)


def test_fault_13_every_token_weighs_alike_in_the_score():
    logprobs = tuple(-1.0 - 0.1 * at for at in range(30))
    assert Hypothesis((1,) * 30, logprobs, "stop", 0.0, 31).score() == pytest.approx(
        sum(logprobs) / 30
    )


def test_fault_14_a_finished_hypothesis_is_kept_and_can_win():
    """It ends at once with p 0.4; whatever lives on only loses."""
    window = scripted(4)
    window["cross_table"][2, [END, 3]] = np.log([0.4, 0.6]) + 20
    window["cross_table"][3] = np.log([0.001, 0.333, 0.333, 0.333])
    found = beam_search(Beam(ToyBundle(4, capacity=10), 2), window, PROMPT, END, length_penalty=0.0)
    assert found[0].tokens == ()
    assert found[0].finish_reason == "stop"


def test_fault_14_all_ending_in_one_step_ends_cleanly():
    window = scripted(6)
    window["cross_table"][2, [3, 4, 5]] = 20
    window["cross_table"][[3, 4, 5], END] = 20
    beam = Beam(ToyBundle(6, capacity=10), 3)
    found = beam_search(beam, window, PROMPT, END)
    assert sorted(h.tokens for h in found) == [(3,), (4,), (5,)]
    assert {h.finish_reason for h in found} == {"stop"}
    assert beam.decoder.position == len(PROMPT) + 1


def test_fault_10_hypotheses_that_fill_the_capacity_finish_with_length():
    window = scripted(6, 2, 3, 4, 5, 3)
    window["cross_table"][:, END] = -50
    found = beam_search(Beam(ToyBundle(6, capacity=7), 2), window, PROMPT, END)
    assert found[0].tokens == (3, 4, 5, 3, 4)
    assert found[0].finish_reason == "length"


def test_fault_14_an_end_behind_the_last_survivor_does_not_count():
    from beamless.inference.beam import Candidate

    ordered = [Candidate(0, token, -at, -at) for at, token in enumerate([END, 3, 4, END, 5])]
    survivors, ended = rank(ordered, 2, END)
    assert [c.token for c in survivors] == [3, 4]
    assert len(ended) == 1


def test_the_search_ends_when_a_beam_of_hypotheses_has_finished():
    """Whisper's rule; waiting for better ones cost steps and won nothing on real speech."""
    window = scripted(6, 2, 3, 4, 5, 3)
    window["cross_table"][:, END] = 5
    beam = Beam(ToyBundle(6, capacity=12), 2)
    found = beam_search(beam, window, PROMPT, END)
    assert [h.finish_reason for h in found] == ["stop", "stop"]
    assert beam.decoder.position == len(PROMPT) + 1


def test_fault_15_at_most_a_beam_of_rows_is_copied_at_each_step():
    beam = Beam(ToyBundle(7, capacity=12), 5)
    copied = []
    reorder = beam.decoder.reorder
    beam.decoder.reorder = lambda parents: copied.append(reorder(parents))
    beam_search(beam, toy_window(7, 3), PROMPT, END)
    assert 0 < max(copied) <= 5
    assert len(copied) == beam.decoder.position - len(PROMPT)


def test_fault_09_hypotheses_of_one_parent_do_not_share_their_fate():
    found = beam_search(Beam(ToyBundle(7, 9), 5), toy_window(7, 11), PROMPT, END, record=True)
    for h in found:
        tokens = [*PROMPT, *h.tokens]
        sums = np.cumsum([(token + 1) * (at + 1) for at, token in enumerate(tokens)])
        np.testing.assert_allclose(h.hidden[:, 0], sums[1 : 1 + len(h.logprobs)])


def test_suppressed_tokens_are_in_no_hypothesis():
    beam = Beam(ToyBundle(7, 9, suppress=(3,), begin=(END, 4)), 5)
    for h in beam_search(beam, toy_window(7, 1), PROMPT, END):
        assert 3 not in h.tokens
        assert h.tokens
        assert h.tokens[0] != 4


def test_logits_that_are_not_numbers_never_become_text():
    window = toy_window(7, 1)
    window["cross_table"][:, 5] = np.nan
    with pytest.raises(BeamlessError, match="not finite"):
        beam_search(Beam(ToyBundle(7, 9), 3), window, PROMPT, END)


@pytest.mark.parametrize("size", [0, -1, 11])
def test_a_beam_of_another_size_is_refused_before_anything_is_compiled(size):
    with pytest.raises(BeamlessError, match=f"a beam size of {size} is not within 1 and 10"):
        Beam(None, size)


def test_every_width_works_and_the_last_beam_of_one_equals_the_first(tiny_bundle, tiny_window):
    tokenizer = tiny_bundle.tokenizer
    rule = (tiny_window, tokenizer.prompt(), tokenizer.end)
    best = {size: beam_search(Beam(tiny_bundle, size), *rule) for size in (1, 2, 5)}
    again = beam_search(Beam(tiny_bundle, 1), *rule)
    assert again == best[1]
    assert [len(found) for found in best.values()] == [1, 2, 5]
    for found in best.values():
        assert "quick brown fox" in tokenizer.decode(found[0].tokens)
        assert [h.score() for h in found] == sorted((h.score() for h in found), reverse=True)
        assert len({h.tokens for h in found}) == len(found)
