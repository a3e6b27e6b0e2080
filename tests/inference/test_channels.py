"""Two channels as two speakers."""

import numpy as np
import pytest
import soundfile as sf

from beamless.command_line import run
from beamless.inference.audio import audio_blocks, load_channels
from beamless.inference.channels import speakers, transcribe_channels
from beamless.inference.transcribe import Transcriber

FOX, PERIOD = "quick brown fox", "period was so far"


@pytest.fixture(scope="module")
def dialogue(speech, other_speech, tmp_path_factory):
    """The left speaks first and last, the right in between; 44.1 kHz, stereo."""
    gap = np.zeros(16_000, np.float32)
    left = np.concatenate([speech, gap, np.zeros_like(other_speech), gap, speech])
    right = np.zeros_like(left)
    right[len(speech) + 16_000 :][: len(other_speech)] = other_speech
    path = tmp_path_factory.mktemp("dialogue") / "two.wav"
    sf.write(path, np.stack([left, right], 1), 16_000)
    return path


def test_each_channel_is_a_speaker_and_they_stand_in_the_order_of_time(tiny_bundle, dialogue):
    told = []
    transcriber = Transcriber(tiny_bundle, method="greedy")
    made = transcribe_channels(transcriber, dialogue, told.append)
    lines = [(s.speaker, FOX in s.text.lower(), PERIOD in s.text.lower()) for s in made.segments]
    assert lines == [("left", True, False), ("right", False, True), ("left", True, False)]
    assert [segment.speaker for segment in told] == ["left", "left", "right"]
    assert [s.start for s in made.segments] == sorted(s.start for s in made.segments)


def test_a_channel_is_streamed_as_it_is_loaded(dialogue):
    for channel, loaded in enumerate(load_channels(dialogue)):
        streamed = np.concatenate(list(audio_blocks(dialogue, 0.7, channel)))
        np.testing.assert_array_equal(streamed, loaded)


def test_one_channel_has_no_speaker(tiny_bundle, clip):
    made = transcribe_channels(Transcriber(tiny_bundle, method="greedy"), clip)
    assert [segment.speaker for segment in made.segments] == [""]


def test_more_than_two_channels_are_numbered():
    assert speakers(2) == ["left", "right"]
    assert speakers(3) == ["channel 1", "channel 2", "channel 3"]


@pytest.mark.parametrize(
    ("kind", "sign"),
    [
        ("txt", "left: The quick"),
        ("srt", "right: in short"),
        ("vtt", "<v right>in short"),
        ("json", '"speaker": "right"'),
        ("tsv", "\tright: in short"),
    ],
)
def test_the_command_line_names_them_in_every_format(tiny_bundle, dialogue, capsys, kind, sign):
    model = ("--model", str(tiny_bundle.folder), "--method", "greedy")
    options = ("--channels", "separate", "--format", kind)
    assert run(["transcribe", str(dialogue), *model, *options]) == 0
    assert sign.lower() in capsys.readouterr().out.lower()
