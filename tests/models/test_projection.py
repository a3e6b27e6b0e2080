"""The projection to the vocabulary: rounded to find the best, exact for what is chosen."""

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from beamless.models.graphs import graph_input
from beamless.models.int8 import EMBEDDING
from beamless.models.projection import SHORTLIST, rough_logits, round_projection, with_exact_best

END = 50256
FORBIDDEN = -1e9


@pytest.fixture(scope="module")
def project(tiny):
    """A function hidden [d], bias [V] → the rounded logits, and the same with the best exact."""
    hidden = graph_input([1, 1, tiny.sizes.width], np.float32, "hidden")
    bias = graph_input([tiny.sizes.vocabulary], np.float32, "bias")
    rough = rough_logits(tiny, hidden, END)
    best = with_exact_best(tiny, hidden, rough, op.add(rough, bias))
    graph = ov.Model([rough, best], [hidden, bias], "projection")
    round_projection(graph)
    compiled = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def run(state, bias=None):
        given = np.zeros(tiny.sizes.vocabulary, np.float32) if bias is None else bias
        found = compiled({"hidden": state[None, None], "bias": given})
        return found[0].copy(), found[1].copy()

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
    rough, _ = project(states[0])
    error = np.abs(rough - exact(tiny, states[0]))
    assert 0.05 < error[:END].max() < 2
    assert error[END:].max() < 1e-3


def test_the_best_are_those_of_the_whole_matrix_in_value_and_in_order(tiny, project, states):
    for state in states:
        _, best = project(state)
        wanted = exact(tiny, state)
        order = np.argsort(-wanted)[:8]
        assert np.argsort(-best)[:8].tolist() == order.tolist()
        np.testing.assert_allclose(best[order], wanted[order], atol=1e-3)
        assert (np.abs(best - wanted) < 1e-3).sum() >= SHORTLIST


def test_what_a_rule_forbids_does_not_come_back_by_being_made_exact(tiny, project, states):
    wanted = exact(tiny, states[1])
    first, second = np.argsort(-wanted)[:2]
    bias = np.zeros_like(wanted)
    bias[first] = FORBIDDEN
    _, best = project(states[1], bias)
    assert best.argmax() == second
    assert best[first] < FORBIDDEN / 2


def test_what_a_rule_adds_stays_added(tiny, project, states):
    wanted = exact(tiny, states[2])
    bias = np.zeros_like(wanted)
    bias[1000] = wanted.max() + 5 - wanted[1000]
    _, best = project(states[2], bias)
    assert best.argmax() == 1000
    assert best[1000] == pytest.approx(wanted.max() + 5, abs=1e-3)
