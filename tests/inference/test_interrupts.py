"""Ctrl-C while a C library reads: it comes behind the read, and no recording ends there instead."""

import io
import signal
import threading

import numpy as np
import pytest

from beamless.data_gen.augment_steps import _coded
from beamless.data_gen.importers.recording import Recording, samples_of, seconds_of
from beamless.inference import audio_files
from beamless.inference.audio import load_audio
from beamless.inference.interrupts import ctrl_c_waits


@pytest.fixture
def heeded():
    """Whoever runs the tests may have Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    """Do what Python does when the signal has come.

    A real one within pytest ends in a crash where AMX is in use: its faulthandler lets signals run
    on a stack that is too small for the registers to be kept on.
    """
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, None)


def interrupting(kind: type[io.BufferedIOBase]) -> type[io.BufferedIOBase]:
    """Make a kind of file at whose first read Ctrl-C is pressed, once."""
    pressed = []

    class Interrupting(kind):
        name = ""

        def readinto(self, buffer):
            if not pressed:
                pressed.append(True)
                press_ctrl_c()
            return super().readinto(buffer)

    return Interrupting


@pytest.mark.usefixtures("heeded")
def test_ctrl_c_while_a_file_is_read_is_no_recording_cut_short(clip, monkeypatch):
    monkeypatch.setattr(audio_files, "_Unnamed", interrupting(io.BufferedReader))
    with pytest.raises(KeyboardInterrupt):
        load_audio(clip)


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize("read", [samples_of, seconds_of])
def test_ctrl_c_while_an_import_reads_is_no_recording_that_cannot_be_read(read, clip, monkeypatch):
    recording = Recording("a", clip.read_bytes(), "text", "speaker")
    monkeypatch.setattr(io, "BytesIO", interrupting(io.BytesIO))
    with pytest.raises(KeyboardInterrupt):
        read(recording)


@pytest.mark.usefixtures("heeded")
def test_ctrl_c_while_sound_is_coded_is_no_sound_lost(speech, monkeypatch):
    monkeypatch.setattr(io, "BytesIO", interrupting(io.BytesIO))
    with pytest.raises(KeyboardInterrupt):
        _coded(speech[:8000], 16000, 8000, "WAV", "ULAW")


@pytest.mark.usefixtures("heeded")
def test_a_block_is_done_before_ctrl_c_comes_and_the_next_one_comes_at_once():
    done = []
    with pytest.raises(KeyboardInterrupt), ctrl_c_waits():
        press_ctrl_c()
        done.append(True)
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("heeded")
def test_a_fault_within_the_block_is_not_lost_to_waiting():
    with pytest.raises(ValueError, match="fault"), ctrl_c_waits():
        raise ValueError("fault")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_and_an_ignored_ctrl_c_are_left_alone():
    kept = np.zeros(1)

    def work() -> None:
        with ctrl_c_waits():
            kept[0] = 1

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert kept[0] == 1
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ctrl_c_waits():
            press_ctrl_c()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
