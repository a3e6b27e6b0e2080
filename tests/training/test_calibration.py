"""Confidence: what is right, how good probabilities are, and numbers that make them better."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import soundfile as sf
from hypothesis import given
from hypothesis import strategies as st

from beamless.data_gen.corpora import corpus_name
from beamless.inference.bundle import load_bundle, read_manifest
from beamless.inference.confidence import Confidence
from beamless.inference.errors import BeamlessError
from beamless.inference.options import DecodingOptions
from beamless.inference.transcribe import Transcriber
from beamless.models.bundle import open_asked, write_bundle
from beamless.training.calibrate import calibrate, keep
from beamless.training.calibration import (
    Sample,
    calibrated,
    fit,
    precision_and_recall,
    quality,
    ranking,
    reliability,
)
from beamless.training.evaluate import evaluate
from beamless.training.judged_words import Judged
from beamless.training.right_words import right_words


@pytest.mark.parametrize(
    ("words", "reference", "right"),
    [
        (["The", " cat", " sat."], "THE CAT SAT", [True, True, True]),
        (["The", " hat", " sat."], "the cat sat", [True, False, True]),
        (["The", " big", " cat"], "the cat", [True, False, True]),
        (["The", " cat"], "the old cat", [True, True]),  # what is missing is no word's fault
        (["Uh,", " yes"], "yes", [None, True]),
        (["I", " don't", " know"], "i do not know", [True, True, True]),
        (["I", " don't", " know"], "i do know", [True, False, True]),
        (["25", " cats"], "twenty five cats", [True, True]),
        ([" Hello"], "", [False]),
        ([], "hello", []),
    ],
)
def test_a_word_is_right_where_the_reference_has_it(words, reference, right):
    assert right_words(words, reference, "en") == right


def test_words_that_become_something_else_together_are_not_judged():
    assert right_words(["twenty", " five", " cats"], "25 cats", "en") is None


def overconfident(count: int, seed: int) -> Sample:
    """Words whose true log-odds are half of what is claimed, less where the window is bad."""
    rng = np.random.default_rng(seed)
    claimed, means = rng.normal(2, 2, count), -rng.exponential(0.5, count)
    true = 1 / (1 + np.exp(-(0.5 * claimed - 0.3 + 1.5 * means)))
    return Sample(1 / (1 + np.exp(-claimed)), means, rng.random(count) < true)


def test_the_fit_finds_what_the_probabilities_were_bent_by():
    numbers = fit(overconfident(40_000, seed=0))
    np.testing.assert_allclose(numbers, (-0.3, 0.5, 1.5), atol=0.08)


def test_calibrated_probabilities_are_right_as_often_as_they_say_on_other_words():
    numbers, other = fit(overconfident(4000, seed=1)), overconfident(4000, seed=2)
    before, after = (quality(p, other.right) for p in (other.raw, calibrated(numbers, other)))
    assert before.calibration_error > 0.15
    assert after.calibration_error < 0.03
    assert after.log_loss < before.log_loss


def test_words_that_part_cleanly_give_finite_numbers():
    raw = np.array([0.1, 0.2, 0.8, 0.9])
    numbers = fit(Sample(raw, np.zeros(4), raw > 0.5))
    assert all(math.isfinite(number) for number in numbers)


@pytest.mark.parametrize("right", [[True, True], [False, False]])
def test_nothing_is_fitted_to_words_of_one_kind(right):
    sample = Sample(np.array([0.5, 0.9]), np.zeros(2), np.array(right))
    with pytest.raises(BeamlessError, match="of 2 words are wrong: nothing to calibrate on"):
        fit(sample)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-3, 0))
def test_a_word_that_was_likelier_stays_so(one, other, mean):
    confidence = Confidence((0.8, 0.9, 1.2), (0.8, 0.9, 1.2))
    low, high = sorted((one, other))
    assert 0 < confidence.of_word(low, mean) <= confidence.of_word(high, mean) < 1


def test_the_calibration_error_is_the_mean_distance_of_the_bins():
    probabilities = np.array([0.95, 0.95, 0.95, 0.95, 0.35, 0.35])
    right = np.array([True, True, True, False, False, True])
    found = quality(probabilities, right)
    assert [b.count for b in found.bins] == [2, 4]
    assert found.calibration_error == pytest.approx((4 * (0.95 - 0.75) + 2 * (0.5 - 0.35)) / 6)


def test_a_probability_of_one_is_in_the_last_bin():
    assert [b.count for b in reliability(np.array([1.0, 0.99]), np.array([True, True]))] == [2]


def test_precision_and_recall_are_of_the_wrong_words():
    probabilities = np.array([0.1, 0.3, 0.4, 0.9, 0.8])
    right = np.array([False, True, False, True, False])
    assert precision_and_recall(probabilities, right, 0.5) == (2 / 3, 2 / 3)


def test_ranking_counts_ties_as_half():
    right = np.array([True, True, False])
    assert ranking(np.array([0.9, 0.5, 0.5]), right) == 0.75
    assert ranking(np.array([0.9, 0.8, 0.1]), right) == 1.0


SAID = [
    ("The quick brown fox jumps over the lazy dog.", "the quick brown fox jumps over the lazy dog"),
    ("Please open the window.", "please close the door"),  # the reference is what counts
    ("We were all going home.", "they were all going away"),
    ("A cup of tea.", "a cup of coffee"),
]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory, speech):
    """A corpus in which some words are wrong, since its texts were changed."""
    from conftest import say

    folder = tmp_path_factory.mktemp("recordings")
    lines = []
    for number, (said, text) in enumerate(SAID * 2):
        name = f"{number}.wav"
        sf.write(folder / name, say(said), 16000)
        row = {"id": str(number), "file_name": name, "text": text, "speaker": f"s{number}"}
        lines.append(json.dumps(row))
    (folder / "metadata.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def calibration(tiny, recordings, tmp_path_factory):
    """A bundle that was calibrated, its hash from before, and the report."""
    folder = tmp_path_factory.mktemp("calibrated")
    write_bundle(tiny, folder / "bundle")
    before = load_bundle(folder / "bundle").hash
    calibrate(str(folder / "bundle"), [recordings], out=folder / "report")
    return load_bundle(folder / "bundle"), before, folder / "report"


def test_calibrating_changes_the_confidence_of_words_and_no_token(calibration, speech):
    bundle, _, _ = calibration
    plain = replace(bundle, manifest=replace(bundle.manifest, confidence=None))
    options = DecodingOptions(word_times=True)
    before, after = (Transcriber(b, options=options).transcribe(speech) for b in (plain, bundle))
    assert after.text == before.text
    raw = [word.probability for segment in before.segments for word in segment.words]
    found = [word.probability for segment in after.segments for word in segment.words]
    assert bundle.confidence is not None
    mean = after.segments[0].avg_logprob
    assert found == pytest.approx([bundle.confidence.of_word(p, mean) for p in raw])
    assert found != pytest.approx(raw)


def test_a_calibrated_bundle_is_the_same_bundle_to_reports_and_to_the_gate(calibration):
    bundle, before, _ = calibration
    assert bundle.hash == before


def test_the_report_judges_words_and_tokens_raw_and_calibrated(calibration):
    bundle, _, report = calibration
    content = json.loads((report / "calibration.json").read_text(encoding="utf-8"))
    assert content["method"] == "lookahead"
    for unit in ("words", "tokens"):
        for kind in ("raw", "calibrated"):
            assert 0 <= content[unit][kind]["calibration_error"] <= 1
    assert content["tokens"]["reported"] >= content["words"]["reported"] > 5
    assert content["word"] == list(bundle.manifest.confidence["word"])
    assert (report / "calibration.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_that_a_bundle_has_already_are_judged_beside_the_new_ones(
    calibration, recordings, tmp_path
):
    shutil.copytree(calibration[0].folder, tmp_path / "bundle")
    calibrate(str(tmp_path / "bundle"), [recordings], out=tmp_path / "report")
    again = json.loads((tmp_path / "report" / "calibration.json").read_text(encoding="utf-8"))
    first = json.loads((calibration[2] / "calibration.json").read_text(encoding="utf-8"))
    assert "before" not in first["words"]
    assert again["words"]["raw"] == first["words"]["raw"]
    assert again["words"]["before"] != again["words"]["raw"]
    assert again["words"]["before"]["log_loss"] <= again["words"]["calibrated"]["log_loss"]


def test_a_report_on_what_confidence_was_fitted_on_says_so(
    calibration, recordings, tmp_path, capsys
):
    other = tmp_path / "other"
    shutil.copytree(recordings, other)
    for corpus, fitted in ((recordings, True), (other, False)):
        options = {"methods": ["greedy"], "limit": 2, "language": "English"}
        evaluate(str(calibration[0].folder), [corpus], **options)
        assert ("confidence was fitted on" in capsys.readouterr().err) == fitted


def test_by_a_models_name_what_transcribe_opens_is_calibrated(recordings, tmp_path, monkeypatch):
    monkeypatch.setenv("BEAMLESS_CACHE", str(tmp_path / "cache"))
    calibrate("tiny.en", [recordings], out=tmp_path / "report")
    opened = open_asked("tiny.en", "CPU", None)
    assert opened.manifest.confidence["corpora"] == [corpus_name(recordings)]


def test_an_earlier_report_is_not_written_over(calibration, recordings):
    bundle, _, report = calibration
    with pytest.raises(BeamlessError, match="exists; name another folder"):
        calibrate(str(bundle.folder), [recordings], out=report)


def test_a_damaged_calibration_is_one_line(calibration, tmp_path):
    bundle, _, _ = calibration
    content = json.loads((bundle.folder / "bundle.json").read_text(encoding="utf-8"))
    content["confidence"]["word"] = [0.1]
    (tmp_path / "bundle.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BeamlessError, match="is damaged"):
        read_manifest(tmp_path)


def test_numbers_that_make_confidence_worse_are_not_written_into_a_bundle(tiny_bundle, tmp_path):
    """The raw probabilities hold in both halves; what one half teaches is wrong in the other."""
    shutil.copytree(tiny_bundle.folder, tmp_path / "bundle")
    bundle, out = load_bundle(tmp_path / "bundle"), tmp_path / "report"
    before = (bundle.folder / "bundle.json").read_bytes()
    judged = [
        Judged(unit, raw, mean=-1.0 if half == right else -0.1, right=right, half=half)
        for unit in ("word", "token")
        for half in (False, True)
        for raw in (0.3, 0.7)
        for right in [True] * round(10 * raw) + [False] * round(10 - 10 * raw)
    ]
    out.mkdir()
    with pytest.raises(BeamlessError, match=r"words worse: log loss 0\.611 before, \d+\.\d+ after"):
        keep(bundle, [], [], judged, "en", out)
    assert (bundle.folder / "bundle.json").read_bytes() == before
    assert not out.exists()
