"""Ctrl-C at any moment, and a reader that goes away: an exit code and no traceback."""

import signal
import subprocess
import sys

import pytest

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
    assert done.stderr == "beamless: stopped; run the same command again to go on\n"


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
