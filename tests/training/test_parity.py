"""The parity gate: what passes, what fails, and what is put on record."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import soundfile as sf

from beamless.inference.bundle import load_bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.features import log_mel
from beamless.inference.greedy import Greedy, greedy
from beamless.models.bundle import write_bundle
from beamless.models.parity_record import require_parity
from beamless.training import parity
from beamless.training.parity import (
    LOGIT_BOUND,
    ROUNDED_LOGIT_BOUND,
    beams_compared,
    check,
    checkpoint_of,
    compare,
    corpus_recordings,
    logit_bound,
)
from beamless.training.parity_compare import Decoded, compare_side, on_its_own


@pytest.fixture
def own_bundle(tiny_bundle, tmp_path):
    """A copy that may be written to."""
    shutil.copytree(tiny_bundle.folder, tmp_path / "bundle")
    return load_bundle(tmp_path / "bundle")


@pytest.fixture
def corpus(speech, other_speech, tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    texts = (
        "The quick brown fox jumps over the lazy dog.",
        "In short, the period was so far like.",
    )
    rows = []
    for number, (samples, text) in enumerate(zip((speech, other_speech), texts, strict=True)):
        sf.write(folder / f"{number}.wav", samples, 16000)
        rows.append(
            {
                "id": f"said-{number}",
                "file_name": f"{number}.wav",
                "text": text,
                "speaker": "joe",
                "duration": len(samples) / 16000,
                "source": "test",
                "license": "CC0",
            }
        )
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "metadata.jsonl").write_text(lines, encoding="utf-8")
    return folder


def test_a_sound_bundle_passes_and_the_record_opens_the_gate(own_bundle, corpus, capsys):
    with pytest.raises(BeamlessError, match="never checked"):
        require_parity(own_bundle)
    assert check(str(own_bundle.folder), corpus=corpus, limit=1) == 0
    require_parity(own_bundle)
    record = json.loads((own_bundle.folder / "parity.json").read_text(encoding="utf-8"))
    assert record["passed"] is True
    assert record["bundle_hash"] == own_bundle.hash
    assert record["recordings"] == 1
    for name in ("CPU", "corrected, strength 0", "NPU:CPU"):
        assert record["sides"][name]["equal"] == 1
        assert record["sides"][name]["different"] == record["sides"][name]["near_ties"] == []
    for name in ("CPU", "NPU:CPU"):
        assert 0 < record["sides"][name]["logit_difference"] < LOGIT_BOUND
    assert "default precision" in record["sides"]
    assert record["beam"]["size"] == 5
    assert record["beam"]["part_of_gate"] is False
    output = capsys.readouterr().out
    assert output.rstrip().endswith("passed")
    assert "1 of 1" in output
    load_bundle(own_bundle.folder)  # the record is no change of the bundle


def test_a_bundle_of_spoilt_weights_fails(tiny, tmp_path, speech, monkeypatch):
    monkeypatch.setattr(parity, "has_plugin", lambda _: False)  # one side is enough here
    rng = np.random.default_rng(0)
    name = "model.decoder.layers.3.fc2.weight"
    noise = rng.normal(0, 0.2, tiny.arrays[name].shape)
    spoilt = replace(tiny, arrays={**tiny.arrays, name: tiny.arrays[name] + noise})
    write_bundle(spoilt, tmp_path / "bundle")
    bundle = load_bundle(tmp_path / "bundle")
    figures = compare(bundle, tiny, [("fox", speech, "")], beam=False)
    assert figures["passed"] is False
    assert figures["sides"]["CPU"]["logit_difference"] > LOGIT_BOUND
    assert figures["beam"] is None
    assert "NPU:CPU" not in figures["sides"]
    with pytest.raises(BeamlessError, match=r"is not the model that .* was made from"):
        checkpoint_of(bundle)


def reference_window(bundle, cross_log_mel, tokens, ours, gap):
    """A window as a reference would have decoded it that took other tokens than ours by ``gap``."""
    prompt = bundle.tokenizer.prompt()
    logits = np.zeros((len(prompt) + len(tokens), bundle.manifest.sizes["vocabulary"]), np.float32)
    at = next(i for i, (a, b) in enumerate(zip(tokens, ours, strict=False)) if a != b)
    logits[len(prompt) - 1 + at, tokens[at]] = 20 + gap
    logits[len(prompt) - 1 + at, ours[at]] = 20
    return Decoded("fox", cross_log_mel, tuple(tokens), logits, None)


@pytest.mark.parametrize(("gap", "kind"), [(LOGIT_BOUND / 2, "near tie"), (1.0, "different")])
def test_only_a_near_tie_is_forgiven_and_it_is_named(tiny_bundle, tiny_window, speech, gap, kind):
    tokenizer = tiny_bundle.tokenizer
    ours = greedy(Greedy(tiny_bundle), tiny_window, tokenizer.prompt(), tokenizer.end).tokens
    other = [*ours[:4], 1000, *ours[5:]]
    window = reference_window(tiny_bundle, log_mel(speech), other, ours, gap)
    side = compare_side("CPU", tiny_bundle, tokenizer.prompt(), [window], LOGIT_BOUND)
    assert (side.near_ties, side.different) == (
        (("fox",), ()) if kind == "near tie" else ((), ("fox",))
    )
    assert side.figures()["equal"] == 0


def test_a_text_that_ends_too_early_is_different(tiny_bundle, tiny_window, speech):
    tokenizer = tiny_bundle.tokenizer
    ours = greedy(Greedy(tiny_bundle), tiny_window, tokenizer.prompt(), tokenizer.end).tokens
    longer, ended = [*ours, 1000, 1001], [*ours, tokenizer.end]
    window = reference_window(tiny_bundle, log_mel(speech), longer, ended, 3.0)
    side = compare_side("CPU", tiny_bundle, tokenizer.prompt(), [window], LOGIT_BOUND)
    assert side.different == ("fox",)


@pytest.mark.parametrize(
    ("worse", "words", "passed", "judged"),
    [(3, 1000, True, True), (4, 1000, False, True), (-50, 1000, True, True), (9, 900, True, False)],
)
def test_a_beam_may_be_three_errors_in_a_thousand_worse(worse, words, passed, judged):
    """With fewer than 1,000 words the figures are shown and not judged."""
    text = " ".join(["word"] * 100)
    texts = [(text, text)] * (words // 100)
    wrong = " ".join(["other"] * abs(worse) + ["word"] * (100 - abs(worse)))
    texts[0] = (wrong, text) if worse > 0 else (text, wrong)
    figures = beams_compared([text] * len(texts), texts, "en")
    assert (figures["passed"], figures["part_of_gate"]) == (passed, judged)
    assert figures["words"] == words
    assert figures["equal"] == len(texts) - 1


def test_the_bound_is_wider_only_where_float16_rounds_the_weights(tiny, tiny_bundle):
    assert tiny_bundle.manifest.precision["weights"] == "f16"
    assert logit_bound(tiny_bundle, tiny) == LOGIT_BOUND
    name = "model.decoder.layers.0.fc1.bias"
    trained = replace(tiny, arrays={**tiny.arrays, name: tiny.arrays[name] * np.float32(1.0001)})
    assert logit_bound(tiny_bundle, trained) == ROUNDED_LOGIT_BOUND
    precision = {**tiny_bundle.manifest.precision, "weights": "f32"}
    whole = replace(tiny_bundle, manifest=replace(tiny_bundle.manifest, precision=precision))
    assert logit_bound(whole, trained) == LOGIT_BOUND


def test_nothing_compiled_is_shared_between_sides(tiny_bundle):
    assert on_its_own(tiny_bundle).hash == tiny_bundle.hash
    assert on_its_own(tiny_bundle)._compiled == {}


def test_recordings_of_a_corpus_are_limited_and_never_none(corpus, tmp_path):
    assert [id for id, _, _ in corpus_recordings(corpus, 1)] == ["said-0"]
    with pytest.raises(BeamlessError, match="there is no corpus folder"):
        corpus_recordings(tmp_path / "nowhere", 3)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_check_of_nothing_does_not_pass(own_bundle, limit):
    with pytest.raises(BeamlessError, match="leaves nothing to compare"):
        check(str(own_bundle.folder), limit=limit)
    assert not (own_bundle.folder / "parity.json").exists()


def test_an_absent_device_is_refused_before_any_work(own_bundle, monkeypatch):
    monkeypatch.setattr(parity, "sample_recordings", lambda: pytest.fail("work was begun"))
    with pytest.raises(BeamlessError, match="there is no device 'TPU' here"):
        check(str(own_bundle.folder), device="TPU")
