"""Steps along a known text: what a method mends, harms and covers there, each by itself."""

from dataclasses import fields

import pytest

from beamless.inference.greedy import Choice, Greedy, greedy
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.sampling import TokenOptions
from beamless.training.contenders import contender, open_contenders
from beamless.training.forced_steps import (
    StepCounts,
    count_steps,
    forced_choices,
    forced_counts,
    target_of,
)

END = 99


def choice(token: int, *likely: int) -> Choice:
    """A step that takes a token, with the likeliest ones."""
    nothing = dict.fromkeys((field.name for field in fields(Choice)), 0)
    return Choice(**nothing | {"token": token, "others": tuple((t, -1.0) for t in likely)})


def hypothesis(*tokens: int, finish_reason="stop") -> Hypothesis:
    return Hypothesis(tokens, (-0.1,) * len(tokens), finish_reason, 0.0, len(tokens))


def test_a_missed_step_is_mended_and_a_right_one_harmed():
    target = [1, 2, 3, END]
    base = [choice(1, 1, 2), choice(7, 7, 5, 2), choice(8, 8, 9), choice(END, END)]
    own = [choice(1), choice(2), choice(8), choice(3)]
    found = count_steps(own, base, target)
    assert (found.missed, found.mended, found.right, found.harmed) == (2, 1, 2, 1)


@pytest.mark.parametrize(("place", "within"), [(1, (1, 1, 1)), (3, (0, 1, 1)), (7, (0, 0, 1))])
def test_coverage_counts_the_target_among_greedys_likeliest(place, within):
    likely = [10, 11, 12, 13, 14, 15, 16, 17]
    base = [choice(10, *likely)]
    assert count_steps(base, base, [likely[place]]).within == within
    assert count_steps(base, base, [5]).within == (0, 0, 0)


def test_greedy_beside_itself_mends_nothing_and_harms_nothing():
    base = [choice(1, 1), choice(2, 2)]
    found = count_steps(base, base, [1, 5])
    assert (found.mended, found.harmed) == (0, 0)


def test_the_target_is_the_lists_best_text_and_its_end():
    ranked = [hypothesis(1, 2), hypothesis(3), hypothesis(4)]
    assert target_of(ranked, [2, 1, 1], END) == [3, END]


def test_a_text_that_was_cut_is_no_target():
    assert target_of([hypothesis(1, finish_reason="budget")], [0], END) is None


def test_a_text_fed_back_to_the_greedy_that_wrote_it_is_chosen_again(tiny_bundle, tiny_window):
    chooser, tokenizer = Greedy(tiny_bundle), tiny_bundle.tokenizer
    written = greedy(chooser, tiny_window, tokenizer.prompt(), tokenizer.end)
    target = [*written.tokens, tokenizer.end]
    chooser.options = TokenOptions(others=8)
    fed = forced_choices(chooser, tiny_window, tokenizer.prompt(), target)
    assert [one.token for one in fed] == target
    assert [one.logprob for one in fed] == pytest.approx(written.logprobs)
    assert all(len(one.others) == 8 for one in fed)


def test_only_methods_that_choose_token_by_token_are_counted(tiny_bundle, tiny_window):
    names = ("greedy", "greedy+second2", "greedy+eos0.3", "lookahead", "beam2")
    contenders = [contender(name, "full") for name in names]
    methods = open_contenders(tiny_bundle, contenders)
    tokenizer = tiny_bundle.tokenizer
    target = [*tokenizer.encode(" A fox."), tokenizer.end]
    windows, targets = {"full": tiny_window}, {"full": target}
    found = forced_counts(contenders, methods, windows, tokenizer.prompt(), targets)
    assert set(found) == {one.decoding for one in contenders[:2]}
    for counts in found.values():
        assert counts.missed + counts.right == len(target)


def test_without_plain_greedy_no_steps_are_counted(tiny_bundle, tiny_window):
    contenders = [contender("greedy+second2", "full")]
    methods = open_contenders(tiny_bundle, contenders)
    tokenizer = tiny_bundle.tokenizer
    targets = {"full": [tokenizer.end]}
    windows = {"full": tiny_window}
    assert forced_counts(contenders, methods, windows, tokenizer.prompt(), targets) == {}
    assert StepCounts().missed == 0
