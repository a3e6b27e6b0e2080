"""Held-out steps: what is mended and harmed is counted against greedy, step by step."""

import numpy as np
import pytest

from beamless.data_gen.traces import NO_TOKEN, Steps, padded
from beamless.inference.errors import BeamlessError
from beamless.models.corrector import config_of, save_corrector, untrained
from beamless.training.baselines import second_where_unsure
from beamless.training.heldout import corrected, counted, ruled


def steps_of(tiny, tiny_bundle) -> Steps:
    """Forty random states; greedy is right about the first thirty of them."""
    rng = np.random.default_rng(1)
    hidden = (8 * rng.standard_normal((40, tiny.sizes.width))).astype(np.float16)
    embedding = tiny.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)
    logits = hidden.astype(np.float32) @ embedding.T
    logits[:, list(tiny.suppress_tokens)] = -np.inf
    logits[0, list(tiny.begin_suppress_tokens)] = -np.inf
    top = np.argsort(-logits, axis=1)[:, :4].astype(np.int32)
    targets = np.where(np.arange(40) < 30, top[:, 0], top[:, 1]).astype(np.int32)
    return Steps(
        hidden=hidden,
        target_ids=targets,
        top_ids=top,
        top_logprobs=np.full((40, 4), -1.5, np.float32),
        log_sum_exp=np.full(40, 20, np.float32),
        starts=np.array([0, 40]),
        rows=[{"id": "a"}],
        acceptable=padded([[token] for token in targets]),
        last_ids=np.array([NO_TOKEN, *targets[:-1]]),
    )


@pytest.fixture(scope="module")
def steps(tiny, tiny_bundle) -> Steps:
    return steps_of(tiny, tiny_bundle)


def test_a_step_is_mended_where_greedy_missed_and_harmed_where_it_did_not(steps):
    best = steps.top_ids[:, 0].copy()
    best[[1, 2, 35]] = steps.top_ids[[1, 2, 35], 1]
    count = counted("x", steps, best)
    assert (count.mended, count.missed, count.harmed, count.right) == (1, 10, 2, 30)


def test_the_second_best_token_everywhere_mends_all_that_it_can_and_harms_all_else(steps, tiny):
    count = ruled(steps, tiny, "second", second_where_unsure(-1.0))
    assert (count.mended, count.harmed) == (10, 30)


def test_an_untrained_corrector_neither_mends_nor_harms(steps, tiny, tmp_path):
    config = config_of("shift", tiny.hash, tiny.sizes.width, tiny.sizes.vocabulary, units=8)
    save_corrector(untrained(config), tmp_path / "corrector")
    count = corrected(steps, tiny, tmp_path / "corrector")
    assert (count.mended, count.missed, count.harmed, count.right) == (0, 10, 0, 30)


def test_a_corrector_that_judges_more_tokens_than_the_traces_hold_is_refused(steps, tiny, tmp_path):
    sizes = (tiny.sizes.width, tiny.sizes.vocabulary)
    config = config_of("rerank", tiny.hash, *sizes, units=8, candidates=16)
    save_corrector(untrained(config), tmp_path / "corrector")
    with pytest.raises(BeamlessError, match="these traces hold 4 tokens a step"):
        corrected(steps, tiny, tmp_path / "corrector")
