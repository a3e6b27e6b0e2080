"""The uploads' folder of a server that was killed is removed by the next one; no other ever is."""

import os
import subprocess
import sys
import tempfile
import time

import pytest

from beamless.inference.server.folder import (
    BEGINNING,
    LOCK,
    PREFIX,
    remove_abandoned,
    upload_folder,
)

SERVER = """
import sys
from beamless.inference.server.folder import upload_folder
with upload_folder() as folder:
    (folder / "recording").write_bytes(b"private")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files, here and in programs that are started."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("TEMP", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def running(temporary):
    """A process that has such a folder, which it locked long ago."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    with subprocess.Popen([sys.executable, "-c", SERVER], **pipes) as process:
        process.stdout.readline()
        [place] = temporary.iterdir()
        grow_old(place)
        yield process, place
        process.kill()


def grow_old(place):
    long_ago = time.time() - 2 * BEGINNING
    os.utime(place / LOCK, (long_ago, long_ago))


def test_what_a_killed_server_left_is_removed_by_the_next_one(running):
    process, place = running
    process.kill()
    process.wait()
    assert (place / "recordings" / "recording").is_file()
    with upload_folder() as folder:
        assert not place.exists()
        assert folder.is_dir()
        assert list(folder.iterdir()) == []
    assert not folder.parent.exists()


def test_the_folder_of_a_server_that_runs_is_left_alone(running):
    _, place = running
    assert remove_abandoned() == []
    assert (place / "recordings" / "recording").is_file()


def test_a_server_that_is_just_beginning_is_left_alone(temporary):
    place = temporary / f"{PREFIX}new"
    place.mkdir()
    assert remove_abandoned() == []
    (place / LOCK).touch()  # made, not held yet
    assert remove_abandoned() == []
    grow_old(place)
    assert remove_abandoned() == [place]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_to_somewhere_else_is_never_followed(temporary):
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (elsewhere / "mine").touch()
    grow_old(elsewhere)
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    assert remove_abandoned() == []
    assert (elsewhere / "mine").exists()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid(), reason="only root gives files away")
def test_the_folder_of_another_user_is_never_removed(temporary):
    place = temporary / f"{PREFIX}theirs"
    place.mkdir()
    (place / LOCK).touch()
    grow_old(place)
    os.chown(place, 12345, 12345)
    assert remove_abandoned() == []


def test_a_folder_of_another_name_or_without_a_lock_is_never_removed(temporary):
    (temporary / f"{PREFIX}bare").mkdir()
    other = temporary / "beamless-models"
    other.mkdir()
    (other / LOCK).touch()
    grow_old(other)
    assert remove_abandoned() == []
