"""How far tokens can be trusted: each one's confidence stands beside it, calibrated."""

import csv
import json
from dataclasses import replace

import pytest

from beamless.inference.confidence import Confidence
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.inspection import Inspector
from beamless.inference.options import DecodingOptions
from beamless.inference.segments import confidences_of
from beamless.inference.transcribe import Transcriber
from beamless.inference.writers import render

STORED = {"word": [0.0, 1.0, 0.0], "token": [-1.0, 0.5, 0.2], "language": "en"}


@pytest.fixture(scope="module")
def calibrated(tiny_bundle):
    """The bundle, as ``beamless calibrate`` leaves it."""
    return replace(tiny_bundle, manifest=replace(tiny_bundle.manifest, confidence=STORED))


def test_every_token_of_a_calibrated_bundle_has_a_confidence_and_a_time_has_none(
    calibrated, speech
):
    options = DecodingOptions(timestamps=True)
    made = Transcriber(calibrated, options=options).transcribe(speech)
    begin = calibrated.tokenizer.timestamp_begin
    segment = json.loads(render(made, "json"))["segments"][0]
    assert len(segment["confidences"]) == len(segment["tokens"])
    for token, sure in zip(segment["tokens"], segment["confidences"], strict=True):
        assert sure is None if token >= begin else 0 < sure < 1


def test_a_tokens_confidence_is_of_its_own_probability(tiny_bundle):
    tokenizer = tiny_bundle.tokenizer
    tokens = (tokenizer.timestamp_begin, *tokenizer.encode(" so it is"))
    logprobs = (-0.1, -0.5, -1.0, -2.0, -0.2)
    numbers = Confidence.of(STORED)
    found = confidences_of(Hypothesis(tokens, logprobs, "stop", 0.0, 9), tokenizer, numbers)
    expected = numbers.of_tokens(logprobs[1:4], sum(logprobs) / 5)
    assert found[0] is None
    assert found[1:] == pytest.approx(expected)
    assert found[1] > found[2] > found[3]


def test_a_bundle_that_is_not_calibrated_tells_of_no_confidence(tiny_bundle, speech):
    made = Transcriber(tiny_bundle).transcribe(speech)
    assert made.segments[0].confidences == ()


def test_looking_inside_shows_the_confidences_of_the_transcript(calibrated, speech, clip, tmp_path):
    transcriber = Transcriber(calibrated)
    transcriber.on_window = Inspector(tmp_path / "in").of(clip, calibrated, transcriber.method)
    segment = transcriber.transcribe(speech).segments[0]
    with (tmp_path / "in" / "windows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    mine = [float(r["confidence"]) for r in rows if r["method"] == transcriber.method]
    assert mine == pytest.approx(segment.confidences, abs=1e-4)
    assert {r["confidence"] for r in rows if r["method"] != transcriber.method} == {""}
