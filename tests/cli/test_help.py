"""The help reads as sentences, and options are looked at before anything is loaded."""

import pytest

from beamless import command_line as front
from beamless.inference.errors import BeamlessError

DARK = "no-such-model"  # whoever loads it fails with its name


@pytest.mark.parametrize("command", front.COMMANDS)
def test_no_type_of_python_is_in_the_help(command):
    text = front.build_parser(front.load_command(command), command).format_help()
    for noise in ("type:", "Literal", "Optional", "null", "<class", "(default: )"):
        assert noise not in text, noise


def test_defaults_are_in_the_help():
    text = " ".join(front.build_parser(front.load_command("transcribe"), "t").format_help().split())
    assert "(default: tiny.en)" in text and "(default: txt)" in text
    assert "2 is common, 0 is no limit. (default: 0)" in text
    assert "(default: False)" not in text and "(default: None)" not in text


def test_half_the_name_of_an_option_is_none():
    """Which option it stands for may change with the next one that is added."""
    with pytest.raises(BeamlessError, match="--conf"):
        front.run(["traces", "info", "folder", "--conf", "file.yaml"])


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--method", "beam11", "there is no method 'beam11'"),
        ("--device", "TPU", "there is no device 'TPU' here; present are"),
        ("--line-length", "20", "a line length is for srt and vtt, not for txt"),
        ("--line-count", "2", "a line count needs a line length"),
    ],
)
def test_a_wrong_option_is_said_before_the_model_is_loaded(clip, option, value, said):
    with pytest.raises(BeamlessError, match=said):
        front.run(["transcribe", str(clip), "--model", DARK, option, value])


def test_a_recording_that_is_not_there_is_said_before_the_model_is_loaded(clip, tmp_path):
    with pytest.raises(BeamlessError, match="there is no such file"):
        front.run(["transcribe", str(clip), str(tmp_path / "gone.wav"), "--model", DARK])


def test_subtitles_keep_to_the_line_length_and_count_asked_for(tiny_bundle, clip, capsys):
    model = ("--model", str(tiny_bundle.folder), "--method", "greedy", "--format", "srt")
    assert front.run(["transcribe", str(clip), *model, "--line-length", "12"]) == 0
    cues = capsys.readouterr().out.strip().split("\n\n")
    assert len(cues) == 1 and len(cues[0].splitlines()[2:]) == 5
    counted = ("--line-length", "12", "--line-count", "2")
    assert front.run(["transcribe", str(clip), *model, *counted]) == 0
    cues = capsys.readouterr().out.strip().split("\n\n")
    assert [len(cue.splitlines()[2:]) for cue in cues] == [2, 2, 1]
    assert max(len(line) for cue in cues for line in cue.splitlines()[2:]) <= 12
