"""Every family of correctors in the fused graph, on real weights, beside its torch twin."""

import numpy as np
import pytest
import torch

from beamless.data_gen.traces import NO_TOKEN
from beamless.inference.bundle import load_bundle
from beamless.inference.corrected import Corrected
from beamless.inference.encoder import Encoder
from beamless.inference.errors import BeamlessError
from beamless.inference.features import log_mel
from beamless.inference.greedy import Greedy, greedy, open_window
from beamless.inference.logits import top_k
from beamless.models.bundle import write_bundle
from beamless.models.corrector import FAMILIES, Corrector, config_of, untrained
from beamless.training.networks import load_arrays, network_of
from beamless.training.steps import Batch

BUDGET = 40  # tokens that a window can hold, for a ledger


def bundle_of(tiny, folder, corrector):
    write_bundle(tiny, folder, corrector, precision={"weights": "f32"})
    return load_bundle(folder)


def untrained_for(tiny, family):
    sizes = tiny.sizes
    options = {"units": 32, "gate": True, "ledger": True, "last_token": True}
    config = config_of(family, tiny.hash, sizes.width, sizes.vocabulary, **options)
    return untrained(config)


@pytest.fixture(scope="module", params=FAMILIES)
def learned(request, tiny, tmp_path_factory):
    """A corrector that has learned something, if only noise, and its bundle."""
    start = untrained_for(tiny, request.param)
    rng = np.random.default_rng(0)
    arrays = {
        name: array + rng.normal(0, 0.1, array.shape).astype(np.float32)
        for name, array in start.arrays.items()
    }
    corrector = Corrector(start.config, arrays)
    folder = tmp_path_factory.mktemp("learned") / "bundle"
    return corrector, bundle_of(tiny, folder, corrector)


@pytest.fixture(scope="module")
def windows(tiny_bundle, speech, other_speech):
    encoder = Encoder(tiny_bundle.compile("encoder"))
    found = []
    for samples in (speech, other_speech):
        encoded = encoder(log_mel(samples))
        found.append({name: array.copy() for name, array in encoded.items()})
    return found


def decode(chooser, window, bundle):
    return greedy(chooser, window, bundle.tokenizer.prompt(), bundle.tokenizer.end)


@pytest.mark.parametrize("family", ["rerank", "dense"])  # shift: test_corrected.py
def test_an_untrained_family_is_greedy_token_for_token(
    tiny, tiny_bundle, windows, tmp_path, family
):
    bundle = bundle_of(tiny, tmp_path / "bundle", untrained_for(tiny, family))
    plain, corrected = Greedy(tiny_bundle), Corrected(bundle)
    for window in windows:
        wanted, found = decode(plain, window, bundle), decode(corrected, window, bundle)
        assert found.tokens == wanted.tokens
        np.testing.assert_allclose(found.logprobs, wanted.logprobs, atol=2e-3)


def test_strength_0_is_greedy_whatever_was_learned(learned, tiny_bundle, windows):
    _, bundle = learned
    chooser = Corrected(bundle, strength=0.0)
    for window in windows:
        plain = decode(Greedy(tiny_bundle), window, bundle)
        assert decode(chooser, window, bundle).tokens == plain.tokens


def test_the_fused_graph_computes_what_torch_trained(learned, tiny, windows):
    """Along the graph's own decode: the same order of tokens, log-probabilities and doubt."""
    corrector, bundle = learned
    chooser = Corrected(bundle)
    chooser.budget = BUDGET
    seen = []
    for window in windows:
        choice, _ = open_window(chooser, window, bundle.tokenizer.prompt())
        start, last = chooser.decoder.position - 1, NO_TOKEN
        for text_position in range(12):
            names = ("top_tokens", "top_logprobs", "log_sum_exp")
            outputs = {name: chooser.decoder.outputs[name].copy() for name in names}
            history = np.zeros(tiny.sizes.width, np.float32)
            if text_position:
                history = chooser.decoder.states[start + text_position - 1, 0].copy()
            hidden = chooser.decoder.states[start + text_position, 0].copy()
            seen.append((hidden, history, text_position, last, outputs, choice))
            last = choice.token if choice.token < bundle.tokenizer.end else NO_TOKEN
            choice = chooser.next(choice.token, "text")
    for (tokens, logprobs, level, doubt), (*_, outputs, choice) in zip(
        by_torch(corrector, tiny, seen), seen, strict=True
    ):
        np.testing.assert_allclose(outputs["top_logprobs"], logprobs, atol=5e-3)
        assert outputs["log_sum_exp"][0] == pytest.approx(level, abs=5e-3)
        close = np.abs(np.diff(logprobs)) < 1e-3  # what rounding may swap
        assert close.any() or outputs["top_tokens"].tolist() == tokens
        assert choice.token == outputs["top_tokens"][0]
        assert choice.doubt == pytest.approx(doubt, abs=1e-3)
    assert len({choice.doubt for *_, choice in seen}) > 12


def by_torch(corrector, tiny, seen):
    """Yield the likeliest tokens, their log-probabilities, log Σ exp and the doubt of each step."""
    embedding = torch.from_numpy(
        tiny.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)
    )
    network = network_of(corrector.config).eval()
    load_arrays(network, corrector.arrays)

    def project(hidden, first, tokens):
        logits = hidden @ embedding[tokens].T
        logits[:, list(tiny.suppress_tokens)] = -torch.inf
        if first[0]:
            logits[:, list(tiny.begin_suppress_tokens)] = -torch.inf
        return logits

    everything = torch.arange(len(embedding))
    for hidden, history, text_position, last, _, _ in seen:
        first = torch.tensor([text_position == 0])
        state = torch.from_numpy(hidden)[None]
        base = project(state, first, everything)
        top = base.topk(8)
        batch = Batch(
            hidden=state,
            history=torch.from_numpy(history)[None],
            targets=top.indices[:, :1],
            agrees=torch.tensor([True]),
            first=first,
            top_ids=top.indices,
            top_logprobs=top.values - base.logsumexp(1),
            log_sum_exp=base.logsumexp(1),
            text_position=torch.tensor([text_position]),
            spent=torch.tensor([text_position / BUDGET]),
            last=torch.tensor([last]),
        )
        with torch.no_grad():
            corrected, doubt = network.correct(batch, everything, base, project, embedding)
        logprobs = torch.log_softmax(corrected, 1)[0]
        if corrector.config.family == "rerank":
            order = top.indices[0][logprobs[top.indices[0]].argsort(descending=True)]
        else:
            order = logprobs.topk(8).indices
        level = corrected.logsumexp(1).item()
        yield order.tolist(), logprobs[order].numpy(), level, torch.sigmoid(doubt).item()


def test_rerank_never_chooses_a_token_outside_its_candidates(tiny, windows, tmp_path):
    """Not even where it finds all of them hopeless, so that the ninth is ahead of each."""
    start = untrained_for(tiny, "rerank")
    rng = np.random.default_rng(3)
    down = -np.abs(rng.normal(0, 60, (1, 32))).astype(np.float32)
    up_bias = np.full(32, 3, np.float32)
    corrector = Corrector(start.config, {**start.arrays, "down.weight": down, "up.bias": up_bias})
    bundle = bundle_of(tiny, tmp_path / "bundle", corrector)
    chooser = Corrected(bundle)
    embedding = tiny.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)
    choice, _ = open_window(chooser, windows[0], bundle.tokenizer.prompt())
    reordered = 0
    for step in range(8):
        logits = embedding @ chooser.decoder.states[chooser.decoder.position - 1, 0]
        barred = [*tiny.suppress_tokens, *(tiny.begin_suppress_tokens if step == 0 else ())]
        logits[barred] = -np.inf
        outputs = chooser.decoder.outputs
        assert set(outputs["top_tokens"].tolist()) == set(top_k(logits, 8).tolist())
        assert outputs["top_logprobs"][0] < -20  # the mass went to the others
        reordered += int(outputs["top_tokens"][0]) != int(logits.argmax())
        choice = chooser.next(choice.token, "text")
    assert reordered


def test_a_corrector_without_a_gate_knows_no_doubt(tiny_bundle, windows):
    choice, _ = open_window(Corrected(tiny_bundle), windows[0], tiny_bundle.tokenizer.prompt())
    assert choice.doubt is None
    assert "doubt" not in [port.any_name for port in tiny_bundle.compile("corrected").outputs]


@pytest.mark.parametrize(
    ("family", "width", "vocabulary", "name"),
    [("shift", 512, 51864, "width"), ("rerank", 512, 51864, "width"), ("dense", 384, 51865, "voc")],
)
def test_a_corrector_of_another_size_is_refused(tiny, tmp_path, family, width, vocabulary, name):
    foreign = untrained(config_of(family, tiny.hash, width, vocabulary, units=4))
    with pytest.raises(BeamlessError, match=f"this corrector's {name}.* is .*, the model's is"):
        write_bundle(tiny, tmp_path / "bundle", foreign)
