"""``beamless serve`` and ``beamless listen`` as programs: started, stopped, and refused."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

from beamless.command_line import run
from beamless.inference.errors import BeamlessError


@pytest.fixture
def program(tiny_bundle):
    """A server of its own process, and its address."""
    command = [sys.executable, "-m", "beamless", "serve", "--port", "0"]
    models = ["--models", f"own={tiny_bundle.folder}", "--methods", "greedy"]
    environment = {**os.environ, "COLUMNS": "200", "BEAMLESS_API_KEY": "sesame"}
    started = subprocess.Popen(
        [*command, *models], stderr=subprocess.PIPE, env=environment, encoding="utf-8"
    )
    for line in started.stderr:
        if found := re.search(r"listening at (\S+)", line):
            break
    else:
        pytest.fail("the server does not start")
    yield started, found[1]
    started.kill()
    started.wait()


def ask(url, path, content=None):
    headers = {"Authorization": "Bearer sesame"}
    request = urllib.request.Request(url + path, content, headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read().decode()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no SIGTERM")
def test_it_serves_until_it_is_told_to_stop_and_finishes_first(program, clip):
    server, url = program
    assert url.startswith("http://127.0.0.1:")
    assert '"own"' in ask(url, "/v1/models")
    answers = []
    client = threading.Thread(
        target=lambda: answers.append(ask(url, "/stt/own?response_format=text", clip.read_bytes()))
    )
    client.start()
    while "beamless_workers_busy 1.0" not in ask(url, "/metrics"):
        assert client.is_alive()
    server.send_signal(signal.SIGTERM)
    client.join()
    assert "fox" in answers[0].lower()
    assert server.wait(60) == 0
    assert "Traceback" not in server.stderr.read()


def test_a_port_that_is_taken_is_said(tiny_bundle):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        models = ["--models", str(tiny_bundle.folder), "--methods", "greedy"]
        with pytest.raises(BeamlessError, match=f"cannot listen at 127.0.0.1:{port}"):
            run(["serve", "--port", str(port), *models])


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("beamless.inference.server.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(BeamlessError, match=r"fastapi.*beamless\[serve\]"):
        run(["serve"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--models", "no such=tiny.en"], "no such"),
        (["--models", "../..=tiny.en"], "letters"),
        (["--host", "192.0.2.1"], "cannot listen"),
        (["--workers", "0"], "workers"),
        (["--methods", "beam99"], "beam99"),
        (["--voices", "no-such-voice"], "no-such-voice"),
    ],
)
def test_what_cannot_be_served_is_refused(arguments, named, tiny_bundle):
    models = [] if "--models" in arguments else ["--models", f"own={tiny_bundle.folder}"]
    with pytest.raises(BeamlessError, match=named):
        run(["serve", *models, *arguments])


@pytest.mark.parametrize("named", ["--models", "--voices"])
def test_one_name_for_two_is_refused(named, tmp_path):
    with pytest.raises(BeamlessError, match="two are called 'a'"):
        run(["serve", "--port", "0", named, f"a={tmp_path / 'x'}", f"a={tmp_path / 'y'}"])


@pytest.mark.parametrize("key", ["", " "])
def test_an_empty_key_does_not_start_an_unlocked_server(monkeypatch, key):
    with pytest.raises(BeamlessError, match="the API key is empty"):
        run(["serve", "--api-key", key])
    monkeypatch.setenv("BEAMLESS_API_KEY", key)
    with pytest.raises(BeamlessError, match="the API key is empty"):
        run(["serve"])


def test_a_loudspeaker_that_nobody_asked_to_hear_is_refused(clip):
    with pytest.raises(BeamlessError, match="--two-columns"):
        run(["listen", "--microphone", str(clip), "--loudspeaker", str(clip)])


def test_listening_writes_what_a_file_says(tiny_bundle, clip):
    command = [sys.executable, "-m", "beamless", "listen", "--microphone", str(clip)]
    done = subprocess.run(
        [*command, "--model", str(tiny_bundle.folder)],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "lazy dog" in done.stdout.lower()
    assert "first text after" in done.stderr
