"""The greedy loop, on a toy whose every move is known, and on real weights."""

import numpy as np
import pytest
from toys import END, START, ToyBundle, scripted, toy_logits, toy_window

from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Greedy, greedy

PROMPT = (START, 2)


@pytest.fixture
def script():
    """After the prompt 1, 2 it says 5, 6, 7 and ends."""
    return scripted(8, 2, 5, 6, 7, END)


def test_fault_01_every_token_comes_once_at_consecutive_positions_in_its_own_slot(script):
    chooser = Greedy(ToyBundle(8, capacity=12))
    written = []
    write = chooser.decoder.cache.write

    def noted(name, slot, present):
        written.append((name, slot))
        write(name, slot, present)

    chooser.decoder.cache.write = noted
    hypothesis = greedy(chooser, script, PROMPT, END)
    assert hypothesis.tokens == (5, 6, 7)
    assert hypothesis.finish_reason == "stop"
    fed = [*PROMPT, 5, 6, 7]
    names = list(chooser.decoder.cache.buffers)
    assert written == [(name, slot) for slot in range(len(fed)) for name in names]
    keys, places = (buffer[0, 0, :, 0] for buffer in chooser.decoder.cache.buffers.values())
    assert keys.tolist() == [token + 1 for token in fed] + [0] * 6
    assert places.tolist() == [1, 2, 3, 4, 5] + [0] * 6
    assert hypothesis.steps == len(fed)


@pytest.mark.parametrize("seed", range(5))
def test_greedy_follows_the_largest_logit_of_all_tokens_so_far(seed):
    window = toy_window(6, seed)
    hypothesis = greedy(Greedy(ToyBundle(6, capacity=12)), window, PROMPT, END)
    tokens = list(PROMPT)
    while len(tokens) < 12 and (best := int(toy_logits(window, tokens).argmax())) != END:
        tokens.append(best)
    assert (*PROMPT, *hypothesis.tokens) == tuple(tokens)


def test_fault_04_the_prompt_is_no_part_of_the_output(script):
    previous = (3, 4, 3, 4, 3, 4)
    chooser = Greedy(ToyBundle(8, capacity=16))
    assert greedy(chooser, script, (*previous, *PROMPT), END).tokens == (5, 6, 7)


def test_fault_10_a_full_hypothesis_finishes_with_length_and_loses_nothing():
    endless = scripted(8, 2, 5, 6, 7, 5)
    hypothesis = greedy(Greedy(ToyBundle(8, capacity=9)), endless, PROMPT, END)
    assert hypothesis.finish_reason == "length"
    assert hypothesis.tokens == (5, 6, 7, 5, 6, 7, 5)  # with the prompt, nine
    assert len(hypothesis.logprobs) == 7


def test_a_text_that_just_fits_stops_by_itself():
    short = scripted(8, 2, 5, 6, END)
    hypothesis = greedy(Greedy(ToyBundle(8, capacity=5)), short, PROMPT, END)
    assert (hypothesis.tokens, hypothesis.finish_reason) == ((5, 6), "stop")


@pytest.mark.parametrize("prompt", [(), (1,) * 9, (1,) * 12])
def test_fault_10_a_prompt_without_room_for_text_is_refused_whole(script, prompt):
    with pytest.raises(BeamlessError, match="leaves no room in a capacity of 9"):
        greedy(Greedy(ToyBundle(8, capacity=9)), script, prompt, END)


def test_fault_06_a_second_window_starts_from_an_empty_cache(script):
    chooser = Greedy(ToyBundle(6, capacity=12))
    windows = [toy_window(6, seed) for seed in (3, 4)]
    alone = [greedy(Greedy(ToyBundle(6, capacity=12)), w, PROMPT, END).tokens for w in windows]
    assert [greedy(chooser, w, PROMPT, END).tokens for w in windows * 2] == alone * 2


def test_fault_11_each_token_is_reported_once_as_it_comes(script):
    seen = []
    hypothesis = greedy(
        Greedy(ToyBundle(8, capacity=12)), script, PROMPT, END, on_token=seen.append
    )
    assert tuple(seen) == hypothesis.tokens


def test_fault_16_no_penalty_touches_the_log_probability_of_a_repeated_token():
    window = scripted(4, 2, 3, 3)
    hypothesis = greedy(Greedy(ToyBundle(4, capacity=8)), window, PROMPT, END)
    assert hypothesis.tokens == (3,) * 6
    row = window["cross_table"][3].astype(np.float64)
    expected = row[3] - np.log(np.exp(row).sum())
    np.testing.assert_allclose(hypothesis.logprobs, expected, atol=1e-6)


def test_suppressed_tokens_give_way_to_the_next_best():
    window = scripted(8, 2, 5, 6, 7, END)
    window["cross_table"][2, 4] = 10  # second to 5 after the prompt
    window["cross_table"][4, 6] = 20
    always = greedy(Greedy(ToyBundle(8, 12, suppress=(5,))), window, PROMPT, END)
    first = greedy(Greedy(ToyBundle(8, 12, begin=(5,))), window, PROMPT, END)
    assert always.tokens == first.tokens == (4, 6, 7)
    window["cross_table"][4, 5] = 30
    later = greedy(Greedy(ToyBundle(8, 12, begin=(5,))), window, PROMPT, END)
    assert later.tokens == (4, 5, 6, 7)


def test_logits_that_are_not_numbers_never_become_text(script):
    script["cross_table"][5, 3] = np.nan
    with pytest.raises(BeamlessError, match="not finite"):
        greedy(Greedy(ToyBundle(8, capacity=12)), script, PROMPT, END)


def test_recorded_states_belong_to_the_tokens(script):
    plain = greedy(Greedy(ToyBundle(8, capacity=12)), script, PROMPT, END)
    recorded = greedy(Greedy(ToyBundle(8, capacity=12)), script, PROMPT, END, record=True)
    assert plain.hidden is None
    assert recorded.tokens == plain.tokens
    assert recorded.hidden.shape == (len(recorded.logprobs), 1)
    numbers = [(token + 1) * (at + 1) for at, token in enumerate([1, 2, 5, 6, 7])]
    np.testing.assert_allclose(recorded.hidden[:, 0], np.cumsum(numbers)[1:])


@pytest.mark.parametrize("model", ["tiny", "base"])
def test_real_weights_say_what_was_said(model, request):
    bundle = request.getfixturevalue(f"{model}_bundle")
    window = request.getfixturevalue(f"{model}_window")
    tokenizer = bundle.tokenizer
    hypothesis = greedy(Greedy(bundle), window, tokenizer.prompt(), tokenizer.end)
    assert tokenizer.decode(hypothesis.tokens) == " The quick brown fox jumps over the lazy dog."
    assert hypothesis.finish_reason == "stop"
    assert hypothesis.no_speech_prob < 0.1


def test_a_capacity_of_eight_ends_in_time(tiny_bundle, tiny_window):
    tokenizer = tiny_bundle.tokenizer
    chooser = Greedy(tiny_bundle, capacity=8)
    hypothesis = greedy(chooser, tiny_window, tokenizer.prompt(), tokenizer.end)
    assert tokenizer.decode(hypothesis.tokens) == " The quick brown fox jumps over"
    assert hypothesis.finish_reason == "length"


def test_previous_text_is_read_and_not_echoed(tiny_bundle, tiny_window):
    tokenizer = tiny_bundle.tokenizer
    before = tokenizer.encode(" A fable of animals, told in the evening.")
    prompt = tokenizer.prompt(previous=before)
    hypothesis = greedy(Greedy(tiny_bundle), tiny_window, prompt, tokenizer.end)
    assert "fable" not in tokenizer.decode(hypothesis.tokens)
    assert "quick brown fox" in tokenizer.decode(hypothesis.tokens)
