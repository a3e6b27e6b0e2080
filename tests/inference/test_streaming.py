"""Early text only grows, and comes soon; final text is what an offline decode says; one end."""

import re

import numpy as np
import pytest
from conftest import OTHER_SENTENCE, SENTENCE

import beamless
from beamless.inference.errors import BeamlessError
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.options import DecodingOptions
from beamless.inference.streaming import Session, StreamOptions, stream
from beamless.inference.transcribe import Transcriber

SECOND = 16000


def words(text):
    return re.sub(r"[^a-z ]", "", text.lower()).split()


def chunks(samples, size=1600):
    return (samples[at : at + size] for at in range(0, len(samples), size))


def of_type(events, name):
    return [event for event in events if event.type == f"transcript.text.{name}"]


@pytest.fixture(scope="module")
def transcriber(tiny_bundle):
    return Transcriber(tiny_bundle, method="greedy")


@pytest.fixture(scope="module")
def talk(speech, other_speech):
    pause = np.zeros(round(1.2 * SECOND), np.float32)
    return np.concatenate([pause, speech, pause, other_speech, pause])


@pytest.fixture(scope="module")
def events(transcriber, talk):
    return list(stream(chunks(talk), transcriber))


def early(events):
    return "".join(event.text for event in of_type(events, "delta"))


def test_there_is_one_end_and_it_has_the_text_of_all_segments(events):
    assert [event.type for event in events].count("transcript.text.done") == 1
    assert events[-1].type == "transcript.text.done"
    assert " ".join(event.text for event in of_type(events, "segment")) == events[-1].text


def test_early_text_has_all_words_and_a_space_between_utterances(events):
    assert len(words(early(events))) == len(words(events[-1].text))


def test_a_segment_has_the_words_of_an_offline_decode_whatever_was_told_early(
    transcriber, speech, monkeypatch
):
    monkeypatch.setattr(Session, "_words", lambda self, samples: [" Never", " was", " said"])
    told = list(stream(chunks(speech), transcriber))
    assert early(told).startswith("Never was")
    assert words(of_type(told, "segment")[0].text) == words(transcriber.transcribe(speech).text)
    assert words(told[-1].text) == words(transcriber.transcribe(speech).text)


def test_each_utterance_is_a_segment_in_its_place(events, talk, speech):
    first, second = of_type(events, "segment")
    assert 0.7 < first.start < 1.6
    assert 2.4 + len(speech) / SECOND - 0.6 < second.start < 2.4 + len(speech) / SECOND + 0.4
    assert second.end < len(talk) / SECOND


def test_the_text_is_that_of_an_offline_decode(events, transcriber, talk):
    said = words(events[-1].text)
    assert len(said) == len(words(f"{SENTENCE} {OTHER_SENTENCE}"))
    offline = words(transcriber.transcribe(talk).text)
    assert sum(a != b for a, b in zip(said, offline, strict=True)) <= 2


def test_the_first_text_comes_within_a_second_and_a_half_of_sound(events):
    first = of_type(events, "delta")[0]
    assert first.heard - 1.2 <= 1.5


def test_text_comes_while_an_utterance_goes_on(events):
    end = of_type(events, "segment")[0].end
    assert len([event for event in of_type(events, "delta") if event.heard < end]) >= 2


def test_sound_that_comes_all_at_once_gives_the_text_too(transcriber, talk):
    told = list(stream([talk], transcriber))
    assert len(words(told[-1].text)) == len(words(f"{SENTENCE} {OTHER_SENTENCE}"))


def test_integers_channels_and_other_rates_are_taken(transcriber, speech):
    import soxr

    stereo = np.repeat(soxr.resample(speech, SECOND, 44100)[:, None], 2, axis=1)
    integers = (stereo * 32767).astype(np.int16)
    told = list(stream(chunks(integers, 4410), transcriber, 44100))
    assert words(told[-1].text)[-4:] == words(SENTENCE)[-4:]
    assert told[-1].end == pytest.approx(len(speech) / SECOND, abs=0.02)


@pytest.mark.parametrize("sound", [[], [np.zeros(0, np.float32)], [np.zeros(50_000, np.float32)]])
def test_no_speech_gives_an_empty_end_alone(transcriber, sound):
    (event,) = stream(sound, transcriber)
    assert event.text == ""
    assert event.message()["type"] == "transcript.text.done"


def test_a_sample_that_is_not_finite_is_refused(transcriber):
    with pytest.raises(BeamlessError, match="nan"):
        list(stream([np.full(100, np.nan, np.float32)], transcriber))


def test_an_utterance_that_is_cut_is_told_once(transcriber, speech, other_speech):
    joined = np.concatenate([speech[: round(2.6 * SECOND)], other_speech])
    told = list(stream(chunks(joined), transcriber, options=StreamOptions(longest=3.0)))
    assert len(of_type(told, "segment")) >= 2
    assert abs(len(words(early(told))) - len(words(told[-1].text))) <= 2
    wanted = len(words(f"{SENTENCE} {OTHER_SENTENCE}"))
    assert abs(len(words(told[-1].text)) - wanted) <= 4


def test_the_transcribers_options_are_as_before(tiny_bundle, speech):
    options = DecodingOptions(timestamps=True, word_times=True)
    transcriber = Transcriber(tiny_bundle, method="greedy", options=options)
    list(stream(chunks(speech, 8000), transcriber))
    assert transcriber.options == options


def test_a_languages_without_spaces_and_unknown_ones_are_told_by_the_model(base_bundle, speech):
    transcriber = Transcriber(base_bundle, method="greedy")
    told = list(beamless.stream(chunks(speech, 16000), transcriber))
    assert told[-1].language == "en"
    assert words(early(told)) == words(told[-1].text)


def test_a_stream_that_is_broken_off_leaves_the_transcribers_options(tiny_bundle, speech):
    options = DecodingOptions(timestamps=True, word_times=True)
    transcriber = Transcriber(tiny_bundle, method="greedy", options=options)
    next(stream(chunks(speech), transcriber))
    assert transcriber.options == options


def test_words_and_their_alternatives_may_be_asked_for(tiny_bundle, speech):
    options = DecodingOptions(word_times=True, word_alternatives=2)
    transcriber = Transcriber(tiny_bundle, method="greedy", options=options)
    told = list(stream(chunks(speech), transcriber))
    assert early(told) and words(told[-1].text) == words(transcriber.transcribe(speech).text)


def test_a_language_that_is_not_known_yet_parts_its_words_as_it_writes(base_bundle, monkeypatch):
    transcriber = Transcriber(base_bundle, method="greedy")
    tokens = base_bundle.tokenizer.encode("今日はとても良い天気ですね")
    found = Hypothesis(tuple(tokens), (-0.1,) * len(tokens), "stop", 0.0, len(tokens))

    def heard(samples, options=None):
        transcriber.language = "ja"
        return found

    monkeypatch.setattr(transcriber, "decode_window", heard)
    assert len(Session(transcriber)._words(np.zeros(SECOND, np.float32))) > 3


def test_the_silence_of_a_warm_up_is_in_no_language(tiny_bundle):
    transcriber = Transcriber(tiny_bundle, method="greedy")
    transcriber.warm_up()
    assert transcriber.language == ""
