"""The choice inside the graph is the host's: suppress lists, rules of times, sums."""

from types import SimpleNamespace

import numpy as np
import openvino as ov
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openvino import opset13 as op

from beamless.inference.logits import Suppression, log_sum_exp, top_k
from beamless.inference.timestamps import EVERYTHING, TimestampRules
from beamless.models.choice import choose, rules_inputs
from beamless.models.graphs import graph_input
from beamless.models.projection import Logits

END, NO_SPEECH, NO_TIMESTAMPS, VOCABULARY, K = 30, 33, 35, 110, 8
BEGIN = NO_TIMESTAMPS + 1
RULES = TimestampRules(END, NO_TIMESTAMPS)
ALWAYS, AT_FIRST = (3, 4, 31, 33), (5, END)
TEXTS = [(), (BEGIN,), (BEGIN, 7), (BEGIN, 7, BEGIN + 4), (BEGIN, 7, BEGIN + 4, BEGIN + 4), (7, 8)]


def chooser(always, at_first):
    """A function of logits [V] and what the rules' inputs say → the graph's outputs."""
    lists = SimpleNamespace(
        suppress_tokens=always,
        begin_suppress_tokens=at_first,
        sizes=SimpleNamespace(vocabulary=VOCABULARY),
    )
    text = graph_input([END], np.float32, "text")
    others = graph_input([VOCABULARY - END], np.float32, "others")
    rules = rules_inputs()
    logits = Logits(text.output(0), others.output(0))
    found, no_speech = choose(lists, logits, rules, NO_SPEECH, NO_TIMESTAMPS, K)
    found_ones = (found.tokens, found.logits, found.log_sum_exp, no_speech)
    outputs = [op.result(node) for node in found_ones]
    graph = ov.Model(outputs, [text, others, *vars(rules).values()], "choice")
    compiled = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def run(logits, first, timed, allowed):
        floats = {"first": first, "timestamps": timed}
        given = {name: np.full(1, value, np.float32) for name, value in floats.items()}
        given |= {n: np.full(1, v, np.int32) for n, v in allowed._asdict().items()}
        given |= {"text": logits[:END], "others": logits[END:]}
        found = compiled(given)
        return [found[at].copy() for at in range(4)]

    return run


@pytest.fixture(scope="module")
def choice():
    return chooser(ALWAYS, AT_FIRST)


def on_the_host(logits, first, timed, text, lists=(ALWAYS, AT_FIRST)):
    allowed = Suppression.of(*lists).apply(logits[None], first)
    if timed:
        RULES.apply(allowed, [text])
    return allowed[0]


@settings(max_examples=200)
@given(
    seed=st.integers(0, 10_000),
    spread=st.floats(0.1, 12),
    times=st.floats(-8, 8),
    first=st.booleans(),
    timed=st.booleans(),
    text=st.sampled_from(TEXTS),
)
def test_the_graph_chooses_as_the_host_does(choice, seed, spread, times, first, timed, text):
    logits = np.random.default_rng(seed).normal(0, spread, VOCABULARY).astype(np.float32)
    logits[BEGIN:] += times
    told = RULES.allowed(text) if timed else EVERYTHING
    tokens, values, total, no_speech = choice(logits, first, timed, told)
    wanted = on_the_host(logits, first, timed, text)
    best = top_k(wanted, min(K, int(np.isfinite(wanted).sum())))
    assert tokens[: len(best)].tolist() == best.tolist()
    np.testing.assert_allclose(values[: len(best)], wanted[best], atol=1e-4)
    assert (values[len(best) :] < -9e3).all()
    assert total[0] == pytest.approx(log_sum_exp(wanted[None])[0, 0], abs=1e-4)
    everything = log_sum_exp(logits[None])[0, 0]
    assert no_speech[0] == pytest.approx(np.exp(logits[NO_SPEECH] - everything), rel=1e-3)


def test_a_model_that_suppresses_nothing_may_say_everything():
    logits = np.arange(VOCABULARY, dtype=np.float32)[::-1].copy()
    tokens, _, total, _ = chooser((), ())(logits, True, False, EVERYTHING)
    assert tokens.tolist() == list(range(K))
    assert total[0] == pytest.approx(log_sum_exp(logits[None])[0, 0], abs=1e-4)
