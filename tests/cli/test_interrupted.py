"""Ctrl-C at any moment, and a reader that goes away: an exit code and no traceback."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile as sf
from conftest import INTERRUPTIBLE

from beamless.__main__ import INTERRUPTED, RESUMED, RESUMED_WITH, how_to_go_on
from beamless.command_line import COMMANDS

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C")

INTERRUPTED_AT = """
import os, runpy, signal, sys

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
sys.meta_path.insert(0, Interrupter())
sys.argv = ["beamless", "transcribe", "a.wav"]
runpy.run_module("beamless", run_name="__main__", alter_sys=True)
"""


@on_posix
@pytest.mark.parametrize(
    "module",
    ["beamless.command_line", "jsonargparse", "beamless.inference.errors", "numpy", "openvino"],
)
def test_ctrl_c_while_something_is_imported_ends_with_130_and_one_line(module):
    program = INTERRUPTED_AT.format(module=module)
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == "beamless: stopped\n"


@on_posix
def test_a_stopped_transcription_tells_how_to_go_on(tiny_bundle, clip, speech, tmp_path):
    long, out = tmp_path / "long.wav", tmp_path / "texts"
    sf.write(long, np.tile(speech, 100), 16000)
    command = [sys.executable, "-c", INTERRUPTIBLE, "transcribe", clip, long, "--out", out]
    with subprocess.Popen(
        [*command, "--model", tiny_bundle.folder], stderr=subprocess.PIPE, encoding="utf-8"
    ) as started:
        while not (out / "fox.txt").is_file() and started.poll() is None:
            time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        said = started.stderr.read()
    assert started.returncode == INTERRUPTED
    last = "texts already written are whole: move them away, or name the recordings left"
    assert said.splitlines()[-1] == f"beamless: stopped; {last}"
    assert "fox" in (out / "fox.txt").read_text(encoding="utf-8")
    assert not (out / "long.txt").exists()


@pytest.mark.parametrize(
    ("command", "goes_on"),
    [
        ("collect corpus traces", True),
        ("evaluate bundle corpus --out=report", True),
        ("evaluate bundle corpus", False),
        ("corpus report corpus", True),
        ("corpus check corpus", False),
        ("export tiny.en bundle", False),
        ("", False),
    ],
)
def test_only_what_goes_on_is_promised_to(command, goes_on):
    assert ("run the same command again" in how_to_go_on(command.split())) is goes_on
    assert {*RESUMED, *RESUMED_WITH} <= COMMANDS.keys()


@pytest.mark.skipif(sys.platform == "win32", reason="file names are text there")
def test_a_file_name_that_is_not_utf_8_is_said(tmp_path):
    name = bytes(tmp_path) + b"/caf\xe9.wav"
    command = [sys.executable, "-m", "beamless", "transcribe", name]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == 2
    assert done.stderr.endswith(b"caf\\udce9.wav is not UTF-8; rename it\n")


def test_a_reader_that_goes_away_is_no_traceback_and_no_complaint_about_a_place():
    command = [sys.executable, "-m", "beamless", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        started.stdout.close()
        assert started.stderr.read() == b""
    assert started.returncode == 1


def test_a_line_end_within_a_name_does_not_break_the_line(tmp_path):
    command = [sys.executable, "-m", "beamless", "check", "two\nlines"]
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
