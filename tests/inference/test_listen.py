"""Listening, with files in place of devices: growing text, two columns, and what is missing."""

import io
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
from rich.console import Console

from beamless.inference.errors import BeamlessError
from beamless.inference.listen import Listening, show_columns, show_text
from beamless.inference.sources import Source, loudspeaker, microphone
from beamless.inference.transcribe import Transcriber


@pytest.fixture(scope="module")
def files(speech, other_speech, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    soundfile.write(folder / "mic.wav", speech, 16000)
    late = np.concatenate([np.zeros(16000), other_speech])
    soundfile.write(folder / "speaker.flac", late, 16000)
    return folder


def listening(bundle, sources, stop=None):
    transcribers = {who: Transcriber(bundle, method="greedy") for who in sources}
    return Listening(sources, transcribers, stop or threading.Event())


def console(width=80):
    return Console(file=io.StringIO(), width=width)


def test_a_file_comes_in_real_time_and_whole(files, speech):
    began = time.monotonic()
    source = microphone(str(files / "mic.wav"), threading.Event())
    joined = np.concatenate(list(source.chunks))
    assert time.monotonic() - began >= len(speech) / 16000 - 0.2
    assert len(joined) == len(speech)


def test_text_is_written_an_utterance_a_line(tiny_bundle, files):
    screen = console()
    source = microphone(str(files / "mic.wav"), threading.Event())
    heard = listening(tiny_bundle, {"microphone": source})
    show_text(heard, screen)
    text = screen.file.getvalue()
    assert text.count("\n") == 1
    assert text.lower().rstrip().endswith("lazy dog.")
    assert "1 utterances; first text after" in heard.latency()


def test_two_sources_stand_side_by_side_with_times(tiny_bundle, files):
    stop, screen = threading.Event(), console()
    sources = {
        "microphone": microphone(str(files / "mic.wav"), stop),
        "loudspeaker": loudspeaker(str(files / "speaker.flac"), stop),
    }
    show_columns(listening(tiny_bundle, sources), ("microphone", "loudspeaker"), screen)
    lines = screen.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    column = lines[0].index("loudspeaker")
    left = " ".join(line[10:column] for line in lines).split()
    right = " ".join(line[column:] for line in lines).split()
    assert "fox" in left
    assert "period" in " ".join(right)
    assert "fox" not in right
    times = [line[:10].strip() for line in lines[1:] if line[:10].strip()]
    assert len(times) == 2
    assert times[0].startswith("00:00:0")


def test_a_stop_tells_what_was_said_until_then(tiny_bundle, speech):
    stop = threading.Event()

    def endless():
        yield speech
        stop.set()

    heard = listening(tiny_bundle, {"microphone": Source(16000, endless())}, stop)
    told = []
    while (item := heard.next()) is not None:
        told.append(item.event)
    assert "fox" in told[-1].text.lower()


def test_a_source_that_fails_is_an_error_and_ends_the_others(tiny_bundle):
    def broken():
        yield np.zeros(1600, np.float32)
        raise BeamlessError("the microphone was pulled out")

    stop = threading.Event()
    heard = listening(tiny_bundle, {"microphone": Source(16000, broken())}, stop)
    with pytest.raises(BeamlessError, match="pulled out"):
        while heard.next() is not None:
            pass
    assert stop.is_set()


def test_without_sounddevice_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(BeamlessError, match=r"beamless\[listen\]"):
        microphone("", threading.Event())


@pytest.fixture
def devices(monkeypatch):
    """Inputs as sounddevice lists them; opening one is not tried."""
    names = ["HDMI output", "Built-in Microphone", "Monitor of Speakers"]
    found = [
        {"name": name, "index": at, "max_input_channels": at, "default_samplerate": 48000.0}
        for at, name in enumerate(names)
    ]

    def query(wanted=None, kind=None):
        if kind is None:
            return found
        fitting = [d for d in found[1:] if wanted in (None, d["index"]) or str(wanted) in d["name"]]
        if not fitting:
            raise ValueError(wanted)
        return fitting[0]

    module = SimpleNamespace(query_devices=query, PortAudioError=RuntimeError)
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    return found


def test_a_device_is_found_by_number_or_name_and_heard_at_its_own_rate(devices):
    for name in ("", "1", "Built-in"):
        assert microphone(name, threading.Event()).rate == 48000


def test_a_device_that_is_not_there_is_an_error_that_lists_them(devices):
    with pytest.raises(BeamlessError, match=r"'Line'.*1 \(Built-in Microphone\)"):
        microphone("Line", threading.Event())


def test_the_loudspeaker_is_heard_through_its_monitor(devices):
    assert loudspeaker("", threading.Event()).rate == 48000
    devices[2]["name"] = "Headset"
    with pytest.raises(BeamlessError, match="Stereo Mix"):
        loudspeaker("", threading.Event())


def test_a_file_that_is_no_recording_is_refused_before_listening(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"no sound")
    with pytest.raises(BeamlessError, match="not an audio file"):
        microphone(str(tmp_path / "a.wav"), threading.Event())
