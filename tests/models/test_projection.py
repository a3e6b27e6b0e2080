"""The projection to the vocabulary: rounded to find the best, exact for what is chosen."""

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from beamless.models.graphs import graph_input
from beamless.models.int8 import EMBEDDING
from beamless.models.projection import SHORTLIST, rough_logits, round_projection, shortlist

END = 50256
FORBIDDEN = -1e9


@pytest.fixture(scope="module")
def project(tiny):
    """A function hidden [d], bias [T] → the rounded logits [V]; of the best ids and exact logits,
    and what rounding took from their sum."""
    hidden = graph_input([1, 1, tiny.sizes.width], np.float32, "hidden")
    bias = graph_input([END], np.float32, "bias")
    rough = rough_logits(tiny, hidden, END)
    best = shortlist(rough, op.add(rough.text, bias).output(0), 8)
    everything = op.concat([rough.text, rough.others], axis=0)
    found = [op.result(x) for x in (everything, best.tokens, best.logits, best.missing)]
    graph = ov.Model(found, [hidden, bias], "projection")
    round_projection(graph)
    compiled = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def run(state, bias=None):
        given = np.zeros(END, np.float32) if bias is None else bias
        found = compiled({"hidden": state[None, None], "bias": given})
        return [found[at].copy() for at in range(4)]

    return run


@pytest.fixture(scope="module")
def states(tiny_bundle, tiny_window):
    """Hidden states [T, d] that the decoder really had, of a sentence."""
    from beamless.inference.greedy import Greedy, greedy

    rule = tiny_bundle.tokenizer.prompt(), tiny_bundle.tokenizer.end
    found = greedy(Greedy(tiny_bundle), tiny_window, *rule, record=True)
    assert len(found.hidden) > 8
    return found.hidden


def exact(tiny, state):
    return tiny.arrays[EMBEDDING].astype(np.float32) @ state


def test_logits_of_text_are_rounded_and_all_others_are_not(tiny, project, states):
    rough = project(states[0])[0]
    error = np.abs(rough - exact(tiny, states[0]))
    assert 0.05 < error[:END].max() < 2
    assert error[END:].max() < 1e-3


def test_the_best_are_those_of_the_whole_matrix_in_value_and_in_order(tiny, project, states):
    for state in states:
        _, tokens, logits, _ = project(state)
        wanted = exact(tiny, state)[:END]
        order = np.argsort(-wanted)[:8]
        assert tokens.tolist() == order.tolist()
        np.testing.assert_allclose(logits, wanted[order], atol=1e-3)


def test_the_sum_of_all_odds_is_exact_for_the_shortlist(tiny, project, states):
    """The odds of 64 tokens, rounded, and what is said to be missing make their exact odds."""
    for state in states:
        rough, _, logits, missing = project(state)
        ids = np.argsort(-rough[:END])[:SHORTLIST]
        odds = np.exp(exact(tiny, state)[ids] - logits[0]).sum()
        rounded = np.exp(rough[ids] - logits[0]).sum()
        assert rounded + missing[0] == pytest.approx(odds, rel=1e-3)


def test_what_a_rule_forbids_does_not_come_back_by_being_made_exact(tiny, project, states):
    wanted = exact(tiny, states[1])[:END]
    first, second = np.argsort(-wanted)[:2]
    bias = np.zeros_like(wanted)
    bias[first] = FORBIDDEN
    tokens = project(states[1], bias)[1]
    assert tokens[0] == second
    assert first not in tokens


def test_what_a_rule_adds_stays_added(tiny, project, states):
    wanted = exact(tiny, states[2])[:END]
    bias = np.zeros_like(wanted)
    bias[1000] = wanted.max() + 5 - wanted[1000]
    _, tokens, logits, _ = project(states[2], bias)
    assert tokens[0] == 1000
    assert logits[0] == pytest.approx(wanted.max() + 5, abs=1e-3)
