"""What people reported of training on top of Whisper, and of measuring it; named by its number.

Others of the same list stand where their subject is tested: too long audio and texts (B44) and the
end token in traces (B41) in ``data_gen/test_collect.py``, missing decoders (B46) in
``data_gen/test_importers.py``, the counting itself (B47, B50) in ``test_metrics.py`` and
``data_gen/test_word_errors.py``.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from beamless.data_gen.targets import describe_steps
from beamless.data_gen.traces import NO_TOKEN, Steps, padded
from beamless.data_gen.word_errors import normalize, word_errors
from beamless.inference.bundle import load_bundle
from beamless.inference.corrected import Corrected
from beamless.inference.encoder import Encoder
from beamless.inference.features import log_mel
from beamless.inference.forced import teacher_forcing
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.logits import Suppression
from beamless.models.bundle import write_bundle
from beamless.models.corrector import config_of
from beamless.training.module import CorrectorModule
from beamless.training.networks import to_corrector
from beamless.training.objectives import correction_loss
from beamless.training.report import Row, Run, counted, report
from beamless.training.steps import StepsDataset

TEXTS = [
    " The quick brown fox jumps over the lazy dog.",
    " A fox.",
    " In short, the period was so far like the present period.",
    " The present period.",
]


@pytest.fixture(scope="module")
def windows(tiny_bundle, speech, other_speech):
    """Four clips, encoded: two sentences, whole and cut short."""
    encoder = Encoder(tiny_bundle.compile("encoder"))
    clips = (speech, speech[:16000], other_speech, other_speech[16000:])
    return [{n: a.copy() for n, a in encoder(log_mel(clip)).items()} for clip in clips]


@pytest.fixture(scope="module")
def steps(tiny, tiny_bundle, windows) -> Steps:
    """What greedy sees along four texts of 3 to 12 words, each with its end token."""
    tokenizer, decoder = tiny_bundle.tokenizer, Greedy(tiny_bundle).decoder
    manifest = tiny_bundle.manifest
    rule = Suppression.of(manifest.suppress_tokens, manifest.begin_suppress_tokens)
    embedding = tiny.arrays["model.decoder.embed_tokens.weight"].astype(np.float64)
    labels, hidden, seen = [], [], []
    for window, text in zip(windows, TEXTS, strict=True):
        tokens = (*tokenizer.encode(text), tokenizer.end)
        labels.append(tokens)
        hidden.append(teacher_forcing(decoder, window, tokenizer.prompt(), tokens))
        seen.append(describe_steps(hidden[-1], embedding, rule.always, rule.begin, 8))
    joined = {name: np.concatenate([part[name] for part in seen]) for name in seen[0]}
    targets = np.concatenate(labels).astype(np.int32)
    return Steps(
        hidden=np.concatenate(hidden).astype(np.float16),
        target_ids=targets,
        starts=np.cumsum([0, *map(len, labels)]),
        rows=[{} for _ in TEXTS],
        acceptable=padded([[token] for token in targets]),
        last_ids=np.concatenate([[NO_TOKEN, *tokens[:-1]] for tokens in labels]),
        **joined,
    )


def module_for(tiny, **options) -> CorrectorModule:
    config = config_of("shift", tiny.hash, tiny.sizes.width, tiny.sizes.vocabulary, units=64)
    settings = {"learning_rate": 2e-3, "weight_decay": 0.0, "dropout": 0.0, "kl_weight": 0.3}
    module = CorrectorModule(tiny, config, seed=0, **{**settings, **options})
    module.log = lambda *_, **__: None  # nobody listens
    return module


def test_b41_the_end_token_counts_in_the_loss_once_a_text(tiny, tiny_bundle, steps):
    data = StepsDataset(steps, history=1)
    ends = torch.from_numpy(steps.starts[1:] - 1)
    is_end = (data.targets == tiny_bundle.tokenizer.end).any(dim=1)
    assert is_end.nonzero().flatten().tolist() == ends.tolist()
    module = module_for(tiny, kl_weight=0.0)
    corrected, base, targets, _ = module(data.batch(range(len(data))))
    loss = partial(correction_loss, base_logits=base, agrees=data.agrees, kl_weight=0.0)
    whole = loss(corrected, targets=targets)
    without_ends = torch.where(is_end[:, None], -1, targets)
    assert loss(corrected, targets=without_ends).item() != pytest.approx(whole.item())
    corrected = corrected.detach().requires_grad_()
    loss(corrected, targets=targets).backward()
    assert (corrected.grad[is_end].abs().sum(dim=1) > 0).all()


def test_b41_padding_never_hides_the_end_token_and_adds_nothing(tiny, steps):
    data = StepsDataset(steps, history=1)
    module = module_for(tiny)
    batch = data.batch(range(len(data)))
    more = torch.full((len(data), 3), -1)
    torch.manual_seed(0)
    loss = module.training_step(batch, 0)
    wider = replace(batch, targets=torch.cat([batch.targets, more], dim=1))
    torch.manual_seed(0)
    assert module.training_step(wider, 0).item() == pytest.approx(loss.item(), rel=1e-6)


def test_b41_what_was_trained_for_twenty_steps_stops_by_itself(
    tiny, tiny_bundle, steps, windows, tmp_path
):
    data, module = StepsDataset(steps, history=1), module_for(tiny)
    optimizer = torch.optim.AdamW(module.network.parameters(), 2e-3)
    before = module.training_step(data.batch(range(len(data))), 0).item()
    for _ in range(20):
        loss = module.training_step(data.batch(range(len(data))), 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < before / 2
    write_bundle(tiny, tmp_path / "bundle", to_corrector(module.network, {}))
    bundle = load_bundle(tmp_path / "bundle")
    chooser, end = Corrected(bundle), bundle.tokenizer.end
    for window in windows:
        assert greedy(chooser, window, bundle.tokenizer.prompt(), end).finish_reason == "stop"


def rows_of(pairs, language: str) -> list[Row]:
    """Rows of one method, as an evaluation makes them."""
    made = []
    for number, (reference, hypothesis) in enumerate(pairs):
        errors = word_errors(normalize(reference, language), normalize(hypothesis, language))
        made.append(
            Row(
                corpus="toy",
                id=str(number),
                speaker="",
                duration=1.0,
                method="greedy",
                reference=reference,
                hypothesis=hypothesis,
                substitutions=errors.substitutions,
                insertions=errors.insertions,
                deletions=errors.deletions,
                words=errors.words,
                steps=3,
                encoder_seconds=0.1,
                decoder_seconds=0.1,
                finish_reason="stop",
                avg_logprob=-0.1,
                no_speech_prob=0.0,
            )
        )
    return made


def run_in(language: str) -> Run:
    return Run("tiny.en", "hash", ("toy",), "CPU", language, ("greedy",), None, True)


def test_b47_a_report_counts_empty_references_and_shows_how_many():
    pairs = [("", ""), ("", "hello there"), ("uh", ""), ("red blue", "red blue")]
    content = report(rows_of(pairs, "en"), run_in("en"))
    assert content["words"] == 2
    assert content["methods"]["greedy"]["wer"] == 1.0  # 2 errors / 2 reference words
    assert content["empty_references"] == 3
    assert counted(content) == "2 words, 3 of the references empty"


@pytest.mark.parametrize(
    ("language", "right", "wrong", "said"),
    [
        ("hi", "आज मौसम बहुत अच्छा है दोस्त।", "आज मौसम बहुत बुरा है दोस्त।", "6 words"),
        ("zh", "今天天气很好。", "今天天汽很好", "6 characters"),
        ("th", "วันนี้ดี", "วันนี้ตี", "4 characters"),
    ],
)
def test_b50_a_report_says_what_it_counts(language, right, wrong, said):
    content = report(rows_of([(right, wrong)], language), run_in(language))
    assert counted(content) == said
    figures = content["methods"]["greedy"]
    assert figures["substitutions"] + figures["insertions"] + figures["deletions"] == 1
