"""Files that appear whole or not at all, and a full disk that is said as one."""

import errno
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from beamless.inference.atomic import begin, replaced_atomically, told_if_full
from beamless.inference.errors import BeamlessError


def leave(monkeypatch, free):
    """Let the disk have so many bytes left, as far as anybody asks."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))


def test_a_library_that_finds_no_room_says_so_in_the_systems_words(tmp_path, monkeypatch):
    leave(monkeypatch, 4096)
    with pytest.raises(OSError, match="No space left") as caught, told_if_full(tmp_path):
        raise RuntimeError("basic_ios::clear: iostream error")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path)


def test_a_fault_with_room_left_stays_what_it_is(tmp_path, monkeypatch):
    leave(monkeypatch, 10**9)
    with pytest.raises(RuntimeError, match="a fault"), told_if_full(tmp_path):
        raise RuntimeError("a fault")


def test_a_file_that_found_no_room_is_not_left_in_part(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("before", encoding="utf-8")
    leave(monkeypatch, 0)
    with (
        pytest.raises(OSError, match="No space left"),
        replaced_atomically(tmp_path / "a.txt") as t,
    ):
        t.write_text("half", encoding="utf-8")
        raise RuntimeError("no room")
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["before"]


WITHOUT_ROOM = """
import resource, sys
from beamless.inference import atomic
from beamless.__main__ import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # bytes of a file
atomic.LEAST_FREE = 1 << 60
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_bundle_that_finds_no_room_is_one_line_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-c", WITHOUT_ROOM, "export", "tiny.en", str(tmp_path / "bundle")]
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last == f"beamless: {tmp_path}: No space left on device; choose another place"
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_command_of_many_stages_goes_on_in_its_own_folder(tmp_path):
    begin(tmp_path / "out", "rounds")
    (tmp_path / "out" / "traces").mkdir()
    begin(tmp_path / "out", "rounds")


@pytest.mark.parametrize("there", ["a file", "a file in a folder", "another command's"])
def test_a_place_that_holds_something_else_is_not_written_into(tmp_path, there):
    out = tmp_path / "out"
    if there == "a file":
        out.write_text("mine", encoding="utf-8")
    elif there == "a file in a folder":
        out.mkdir()
        (out / "table.md").write_text("mine", encoding="utf-8")
    else:
        begin(out, "adapt")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BeamlessError, match="is not of 'beamless ablate'; name another folder"):
        begin(out, "ablate")
    assert sorted(tmp_path.rglob("*")) == before
