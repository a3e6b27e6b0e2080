"""Corrected greedy: the fused graph beside plain greedy, on real weights."""

from dataclasses import replace

import numpy as np
import pytest

from beamless.inference.bundle import load_bundle
from beamless.inference.corrected import Corrected
from beamless.inference.devices import NPU_ON_CPU
from beamless.inference.encoder import Encoder
from beamless.inference.errors import BeamlessError
from beamless.inference.features import log_mel
from beamless.inference.greedy import Greedy, greedy, open_window
from beamless.inference.lookahead import LookaheadOptions, lookahead
from beamless.inference.sampling import TokenOptions
from beamless.inference.shapes import fixed_shape
from beamless.models.bundle import write_bundle
from beamless.models.corrector import Corrector, CorrectorConfig, untrained


def decode(chooser, window, bundle, **options):
    tokenizer = bundle.tokenizer
    return greedy(chooser, window, tokenizer.prompt(), tokenizer.end, **options)


@pytest.fixture(scope="module")
def trained_bundle(tiny, tmp_path_factory):
    """tiny.en with a corrector that has learned something, if only noise."""
    start = untrained(CorrectorConfig("shift", tiny.hash, tiny.sizes.width, history=2, units=64))
    down = np.random.default_rng(0).normal(0, 1.0, start.arrays["down.weight"].shape)
    arrays = {**start.arrays, "down.weight": down.astype(np.float32)}
    folder = tmp_path_factory.mktemp("trained") / "bundle"
    write_bundle(tiny, folder, Corrector(start.config, arrays))
    return load_bundle(folder)


@pytest.fixture(scope="module")
def other_window(tiny_bundle, other_speech):
    return Encoder(tiny_bundle.compile("encoder"))(log_mel(other_speech))


@pytest.mark.parametrize("model", ["tiny", "base"])
def test_an_untrained_corrector_is_greedy_token_for_token(model, request):
    bundle = request.getfixturevalue(f"{model}_bundle")
    window = request.getfixturevalue(f"{model}_window")
    plain, corrected = (
        decode(Greedy(bundle), window, bundle),
        decode(Corrected(bundle), window, bundle),
    )
    assert corrected.tokens == plain.tokens
    assert corrected.finish_reason == plain.finish_reason
    assert corrected.steps == plain.steps
    np.testing.assert_allclose(corrected.logprobs, plain.logprobs, atol=1e-3)
    assert corrected.no_speech_prob == pytest.approx(plain.no_speech_prob, abs=1e-4)


def test_a_gate_is_not_asked_where_its_corrector_is_off(tiny, tiny_window, tmp_path):
    """It says how likely a corrected choice is wrong; without it the margin leads look-ahead."""
    config = CorrectorConfig("shift", tiny.hash, tiny.sizes.width, units=8, gate=True)
    write_bundle(tiny, tmp_path / "bundle", untrained(config))
    bundle = load_bundle(tmp_path / "bundle")
    chooser = Corrected(bundle)
    for corrected in (True, False):
        chooser.options = TokenOptions(corrected=corrected)
        choice, _ = open_window(chooser, tiny_window, bundle.tokenizer.prompt())
        assert (choice.doubt is not None) == corrected


def test_strength_0_is_greedy_even_when_trained(trained_bundle, tiny_window, other_window):
    chooser = Corrected(trained_bundle, strength=0.0)
    for window in (tiny_window, other_window):
        plain = decode(Greedy(trained_bundle), window, trained_bundle)
        assert decode(chooser, window, trained_bundle).tokens == plain.tokens


def test_a_trained_corrector_changes_tokens_and_strength_may_change_between_windows(
    trained_bundle, tiny_window
):
    chooser = Corrected(trained_bundle)
    changed = decode(chooser, tiny_window, trained_bundle)
    chooser.strength = 0.0
    plain = decode(chooser, tiny_window, trained_bundle)
    chooser.strength = 1.0
    assert changed.tokens != plain.tokens
    assert plain.tokens == decode(Greedy(trained_bundle), tiny_window, trained_bundle).tokens
    assert decode(chooser, tiny_window, trained_bundle).tokens == changed.tokens


def test_the_prompt_is_never_corrected(trained_bundle, tiny_window):
    """Silence is told by the model itself: the corrector has no say in it."""
    plain = decode(Greedy(trained_bundle), tiny_window, trained_bundle)
    corrected = decode(Corrected(trained_bundle), tiny_window, trained_bundle)
    assert corrected.no_speech_prob == pytest.approx(plain.no_speech_prob, abs=1e-4)


def test_no_speech_is_read_after_the_start_token_only(tiny_bundle, tiny_window):
    tokenizer = tiny_bundle.tokenizer
    prompt = tokenizer.prompt(previous=tokenizer.encode(" Some words before."))
    rule = (tiny_window, prompt, tokenizer.end)
    plain, corrected = greedy(Greedy(tiny_bundle), *rule), greedy(Corrected(tiny_bundle), *rule)
    assert corrected.no_speech_prob == pytest.approx(plain.no_speech_prob, abs=1e-4)


def test_fault_06_no_history_is_kept_across_windows(trained_bundle, tiny_window, other_window):
    kept = Corrected(trained_bundle)
    first = decode(kept, tiny_window, trained_bundle).tokens
    decode(kept, other_window, trained_bundle)
    assert decode(kept, tiny_window, trained_bundle).tokens == first


def test_a_corrector_reads_the_last_states_of_the_text_and_none_of_the_prompt(
    trained_bundle, tiny_window
):
    chooser = Corrected(trained_bundle)
    tokenizer = trained_bundle.tokenizer
    read = []
    step = chooser.decoder.step

    def noted(tokens):
        read.append(chooser._history.copy())
        return step(tokens)

    chooser.decoder.step = noted
    rule = (tokenizer.prompt(previous=tokenizer.encode(" Before.")), tokenizer.end)
    greedy(chooser, tiny_window, *rule)
    states = chooser.decoder.states[:, 0]
    opening = len(rule[0]) - 1  # the step that chooses the first word
    assert not np.any(read[: opening + 1])
    np.testing.assert_array_equal(read[opening + 1], [np.zeros_like(states[0]), states[opening]])
    np.testing.assert_array_equal(read[opening + 2], states[opening : opening + 2])
    np.testing.assert_array_equal(read[opening + 5], states[opening + 3 : opening + 5])


def test_the_full_logits_never_leave_the_graph(tiny_bundle):
    outputs = tiny_bundle.compile("corrected").outputs
    vocabulary = tiny_bundle.manifest.sizes["vocabulary"]
    assert all(vocabulary not in fixed_shape(port, 0) for port in outputs)


def test_the_graphs_top_tokens_are_those_of_the_host(tiny_bundle, tiny_window):
    tokenizer = tiny_bundle.tokenizer
    prompt = tokenizer.prompt()
    plain, corrected = Greedy(tiny_bundle), Corrected(tiny_bundle)
    plain.decoder.start(tiny_window)
    corrected.decoder.start(tiny_window)
    for token, place in zip(prompt, ("prompt", "first"), strict=True):
        plain.next(token, place)
        corrected.next(token, place)
    outputs = corrected.decoder._outputs
    logits = plain.decoder._outputs["logits"][0, 0].copy()
    manifest = tiny_bundle.manifest
    logits[[*manifest.suppress_tokens, *manifest.begin_suppress_tokens]] = -np.inf
    best = np.argsort(-logits, kind="stable")[: len(outputs["top_tokens"])]
    assert outputs["top_tokens"].tolist() == best.tolist()
    expected = logits[best] - np.log(np.exp(logits.astype(np.float64)).sum())
    np.testing.assert_allclose(outputs["top_logprobs"], expected, atol=1e-3)
    level = outputs["log_sum_exp"]
    np.testing.assert_allclose(outputs["top_logprobs"] + level, logits[best], atol=1e-2)


@pytest.mark.parametrize("model", ["tiny", "base"])
def test_the_npu_plugins_path_gives_the_same_tokens(model, request):
    bundle = request.getfixturevalue(f"{model}_bundle")
    window = request.getfixturevalue(f"{model}_window")
    over_npu = replace(bundle, device=NPU_ON_CPU)
    plain = decode(Greedy(bundle), window, bundle)
    assert decode(Greedy(over_npu), window, over_npu).tokens == plain.tokens
    assert decode(Corrected(over_npu), window, over_npu).tokens == plain.tokens


@pytest.mark.parametrize("chooser", [Greedy, Corrected])
def test_look_ahead_takes_the_same_branches_on_the_npu_plugins_path(
    tiny_bundle, tiny_window, chooser
):
    """Whatever the margin, so that branches are tried, kept and put back."""
    tokenizer, options = tiny_bundle.tokenizer, LookaheadOptions(margin=100.0)
    plain, over_npu = (
        lookahead(chooser(bundle), tiny_window, tokenizer.prompt(), tokenizer.end, options)
        for bundle in (tiny_bundle, replace(tiny_bundle, device=NPU_ON_CPU))
    )
    assert plain.steps > len(tokenizer.prompt()) + len(plain.tokens)
    assert over_npu.tokens == plain.tokens
    assert over_npu.steps == plain.steps


def test_logits_that_are_not_numbers_never_become_text(tiny_bundle, tiny_window):
    window = {name: array.copy() for name, array in tiny_window.items()}
    window["cross_value.2"][0, 0, 700, 3] = np.nan
    for chooser in (Greedy(tiny_bundle), Corrected(tiny_bundle)):
        with pytest.raises(BeamlessError, match="not finite"):
            decode(chooser, window, tiny_bundle)


def test_a_bundle_without_a_corrector_says_so(tiny, tmp_path):
    write_bundle(tiny, tmp_path / "plain")
    with pytest.raises(BeamlessError, match="has no corrector; train one, or decode with greedy"):
        Corrected(load_bundle(tmp_path / "plain"))


def test_a_corrector_of_one_language_changes_nothing_in_another_or_in_a_translation(
    trained_bundle,
):
    about = {**trained_bundle.manifest.corrector, "provenance": {"languages": ["en"]}}
    taught = replace(trained_bundle, manifest=replace(trained_bundle.manifest, corrector=about))
    assert taught.corrects("en")
    assert not taught.corrects("sv")
    assert not taught.corrects("en", "translate")
    assert trained_bundle.corrects("sv")  # it does not say what it has learned from


def test_what_a_corrector_has_not_learned_is_decoded_without_it(trained_bundle, tiny_window):
    corrected = Corrected(trained_bundle)
    corrected.options = TokenOptions(corrected=False)
    plain = decode(Greedy(trained_bundle), tiny_window, trained_bundle)
    assert decode(corrected, tiny_window, trained_bundle).tokens == plain.tokens
