"""Whisper's timestamp rules: transformers' own, on the host, in the graph and in the beam."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import END, START, ToyBundle, toy_window

from beamless.inference.beam import Beam, beam_search
from beamless.inference.corrected import Corrected
from beamless.inference.devices import NPU_ON_CPU
from beamless.inference.encoder import Encoder
from beamless.inference.features import log_mel
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.lookahead import LookaheadOptions, lookahead
from beamless.inference.sampling import TokenOptions
from beamless.inference.timestamps import TimedSlice, TimestampRules, timed_slices

TIMED = TokenOptions(timestamps=True)
VOCABULARY, TIMES = 40, 24  # the toy's; its id 16 is time 0.00
RULES = TimestampRules(END, VOCABULARY - TIMES - 1)
WHISPER = TimestampRules(end=14, no_timestamps=15)  # as in a real one, words lie before the end
SEEDS = st.integers(0, 2**32 - 1)


def timed(chooser, **options):
    chooser.options = replace(TIMED, **options)
    return chooser


def obeys(tokens, rules):
    """Tell whether each token was allowed after those before it."""
    for at, token in enumerate(tokens):
        low, first, last = rules.allowed(tokens[:at])
        allowed = first <= token <= last if token >= rules.begin else low <= token
        if not allowed or token == rules.no_timestamps:
            return False
    return True


@st.composite
def texts(draw):
    """What may stand behind a prompt, as the rules have it."""
    text = []
    for _ in range(draw(st.integers(0, 8))):
        low, first, last = WHISPER.allowed(text)
        times = list(range(max(first, WHISPER.begin), min(last, VOCABULARY - 1) + 1))
        words = list(range(low, WHISPER.end))
        choice = draw(st.sampled_from([*times, *words])) if times or words else None
        if choice is None:
            break
        text.append(choice)
    return text


@given(texts(), SEEDS)
def test_the_rules_are_those_of_transformers(text, seed):
    import torch
    from transformers import GenerationConfig, WhisperTimeStampLogitsProcessor

    config = GenerationConfig(
        eos_token_id=WHISPER.end,
        no_timestamps_token_id=WHISPER.no_timestamps,
        max_initial_timestamp_index=50,
    )
    theirs = WhisperTimeStampLogitsProcessor(config, begin_index=1)
    logits = np.random.default_rng(seed).normal(0, 3, (1, VOCABULARY)).astype(np.float32)
    expected = theirs(torch.tensor([[START, *text]]), torch.from_numpy(logits.copy())).numpy()
    WHISPER.apply(logits, [text])
    np.testing.assert_array_equal(np.isinf(logits), np.isinf(expected))


def test_a_text_begins_with_a_time_within_the_first_second():
    begin = 50363
    assert TimestampRules(50256, begin - 1).allowed([]) == (begin, begin, begin + 50)


@settings(max_examples=25)
@given(SEEDS)
def test_greedy_and_every_hypothesis_of_a_beam_obey_the_rules(seed):
    bundle = ToyBundle(VOCABULARY, capacity=14, times=TIMES)
    window = toy_window(VOCABULARY, seed)
    alone = greedy(timed(Greedy(bundle)), window, (START, 2), END)
    one = beam_search(timed(Beam(bundle, 1)), window, (START, 2), END)[0]
    assert one.tokens == alone.tokens
    for h in [alone, *beam_search(timed(Beam(bundle, 4)), window, (START, 2), END)]:
        assert obeys(h.tokens, RULES)
        assert not h.tokens or h.tokens[0] >= RULES.begin


@settings(max_examples=25)
@given(SEEDS)
def test_look_ahead_obeys_the_rules_whichever_branch_it_keeps(seed):
    chooser = timed(Greedy(ToyBundle(VOCABULARY, capacity=16, times=TIMES)))
    options = LookaheadOptions(margin=3.0, depth=3)
    found = lookahead(chooser, toy_window(VOCABULARY, seed), (START, 2), END, options)
    assert obeys(found.tokens, RULES)
    fed = chooser.decoder.tokens[: chooser.decoder.position, 0].tolist()
    assert (START, 2, *found.tokens)[: len(fed)] == tuple(fed)


# --- on real weights ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def talk(speech, other_speech):
    """Two sentences with a pause of a second."""
    return np.concatenate([speech, np.zeros(16000, np.float32), other_speech])


def encoded(bundle, samples):
    mels = bundle.manifest.sizes["mels"]
    return Encoder(bundle.compile("encoder"))(log_mel(samples, mels))


def decode(chooser, window, bundle, options=TIMED):
    tokenizer = bundle.tokenizer
    chooser.options = options
    return greedy(chooser, window, tokenizer.prompt(timestamps=True), tokenizer.end)


def test_greedy_with_times_is_transformers_generate(tiny, tiny_reference, tiny_bundle, talk):
    import torch
    from transformers import GenerationConfig

    tokenizer = tiny_bundle.tokenizer
    config = GenerationConfig(
        is_multilingual=False,
        no_timestamps_token_id=tokenizer.no_timestamps,
        max_initial_timestamp_index=50,
        decoder_start_token_id=tokenizer.start,
        eos_token_id=tokenizer.end,
        pad_token_id=tokenizer.end,
        suppress_tokens=list(tiny.suppress_tokens),
        begin_suppress_tokens=list(tiny.begin_suppress_tokens),
        max_length=224,
        return_timestamps=True,
    )
    with torch.no_grad():
        features = torch.from_numpy(log_mel(talk))
        made = tiny_reference.generate(features, generation_config=config, return_timestamps=True)
    expected = [t for t in made[0].tolist() if t not in (tokenizer.start, tokenizer.end)]
    window = encoded(tiny_bundle, talk)
    found = decode(Greedy(tiny_bundle), window, tiny_bundle)
    assert list(found.tokens) == expected
    assert sum(t >= tokenizer.timestamp_begin for t in expected) >= 4


@pytest.mark.parametrize("model", ["tiny", "base"])
def test_an_untrained_corrector_with_times_is_greedy_with_times(model, request, talk):
    bundle = request.getfixturevalue(f"{model}_bundle")
    window = encoded(bundle, talk)
    plain = decode(Greedy(bundle), window, bundle)
    corrected = decode(Corrected(bundle), window, bundle)
    assert plain.tokens[0] >= bundle.tokenizer.timestamp_begin
    assert corrected.tokens == plain.tokens
    np.testing.assert_allclose(corrected.logprobs, plain.logprobs, atol=1e-3)


def test_the_npu_plugins_path_writes_the_same_times(tiny_bundle, talk):
    window = encoded(tiny_bundle, talk)
    over_npu = Corrected(replace(tiny_bundle, device=NPU_ON_CPU))
    plain = decode(Greedy(tiny_bundle), window, tiny_bundle)
    assert decode(over_npu, window, tiny_bundle).tokens == plain.tokens


def test_the_rules_in_the_graph_are_those_of_the_host(tiny_bundle, tiny_window):
    """Fed texts that no decoder would write, so that every rule decides somewhere."""
    rng = np.random.default_rng(0)
    begin = tiny_bundle.tokenizer.timestamp_begin
    plain, fused = timed(Greedy(tiny_bundle)), timed(Corrected(tiny_bundle))
    for _ in range(4):
        for chooser in (plain, fused):
            chooser.decoder.start(tiny_window)
        token, place, text = tiny_bundle.tokenizer.start, "first", []
        for _ in range(12):
            choices = [chooser.next(token, place) for chooser in (plain, fused)]
            assert choices[0].token == choices[1].token
            assert choices[0].runner_up == choices[1].runner_up
            assert choices[0].logprob == pytest.approx(choices[1].logprob, abs=5e-3)
            low, first, last = TimestampRules.of(tiny_bundle.tokenizer).allowed(text)
            words = rng.integers(1000, 20000, 1) if low == 0 else []
            times = [min(first + 7, begin + 1500)] if begin <= first <= last else []
            token, place = int(rng.choice([*words, *times])), "text"
            text.append(token)


@pytest.mark.parametrize("kind", [Greedy, Corrected])
def test_with_times_off_again_the_tokens_are_those_of_before(kind, tiny_bundle, tiny_window):
    chooser, tokenizer = kind(tiny_bundle), tiny_bundle.tokenizer
    rule = (tiny_window, tokenizer.prompt(), tokenizer.end)
    before = greedy(chooser, *rule).tokens
    decode(chooser, tiny_window, tiny_bundle)
    chooser.options = TokenOptions()
    assert greedy(chooser, *rule).tokens == before


def test_a_real_beam_with_times_obeys_the_rules(tiny_bundle, talk):
    tokenizer = tiny_bundle.tokenizer
    rule = (encoded(tiny_bundle, talk), tokenizer.prompt(timestamps=True), tokenizer.end)
    for h in beam_search(timed(Beam(tiny_bundle, 2)), *rule):
        assert obeys(h.tokens, TimestampRules.of(tokenizer))
        assert len(timed_slices(h.tokens, tokenizer.timestamp_begin)) >= 2


# --- what they say --------------------------------------------------------------------------


def test_passages_lie_between_times():
    assert timed_slices([100, 1, 2, 150, 150, 3, 200], 100) == [
        TimedSlice(0.0, 1.0, 0, 4),
        TimedSlice(1.0, 2.0, 4, 7),
    ]


def test_a_pause_lies_in_no_passage():
    assert timed_slices([105, 1, 150, 160, 2, 200], 100) == [
        TimedSlice(0.1, 1.0, 0, 3),
        TimedSlice(1.2, 2.0, 3, 6),
    ]


def test_a_passage_that_was_not_closed_has_no_end():
    assert timed_slices([100, 1, 150, 150, 2, 3], 100)[-1] == TimedSlice(1.0, None, 3, 6)
    assert timed_slices([1, 2], 100) == [TimedSlice(0.0, None, 0, 2)]
    assert timed_slices([], 100) == []


@given(texts())
def test_no_token_of_a_text_is_lost_or_told_twice(text):
    found = timed_slices(text, WHISPER.begin)
    words = [t for t in text if t < WHISPER.begin]
    told = [t for p in found for t in text[p.first : p.stop] if t < WHISPER.begin]
    assert told == words
    bounds = [time for p in found for time in (p.start, p.end) if time is not None]
    assert bounds == sorted(bounds)
