"""A bundle is read whole once, and again as soon as anything about its files is another."""

import json
import os

import pytest

from beamless.inference import whole
from beamless.inference.errors import BeamlessError
from beamless.inference.whole import check_files, file_hash

NAMES = ("encoder.xml", "encoder.bin")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "bundle"
    made.mkdir()
    for name in NAMES:
        (made / name).write_bytes(name.encode())
    return made


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "graphs"


@pytest.fixture
def read(monkeypatch):
    """The names of the files that were read."""
    names = []

    def noted(path):
        names.append(path.name)
        return file_hash(path)

    monkeypatch.setattr(whole, "file_hash", noted)
    return names


def hashes(folder):
    return {name: file_hash(folder / name) for name in NAMES}


def test_a_second_start_reads_nothing(folder, notes, read):
    files = hashes(folder)
    check_files(folder, files, notes)
    assert read == list(NAMES)
    check_files(folder, files, notes)
    assert read == list(NAMES)


def test_without_a_place_for_notes_all_is_read_each_time(folder, read):
    for _ in range(2):
        check_files(folder, hashes(folder), None)
    assert read == 2 * list(NAMES)


def test_a_file_that_is_changed_after_it_was_found_whole_is_named(folder, notes):
    files = hashes(folder)
    check_files(folder, files, notes)
    file = folder / "encoder.bin"
    before = file.stat().st_mtime_ns
    file.write_bytes(b"encoder.BIN")
    os.utime(file, ns=(before, before + 1_000_000))
    with pytest.raises(BeamlessError, match=r"encoder.bin was changed since; export it again"):
        check_files(folder, files, notes)


def test_a_file_that_goes_missing_after_it_was_found_whole_is_named(folder, notes):
    files = hashes(folder)
    check_files(folder, files, notes)
    (folder / "encoder.xml").unlink()
    with pytest.raises(BeamlessError, match=r"lacks encoder.xml"):
        check_files(folder, files, notes)


def test_a_note_about_other_hashes_or_another_folder_is_not_believed(folder, notes, tmp_path):
    files = hashes(folder)
    check_files(folder, files, notes)
    with pytest.raises(BeamlessError, match="was changed since"):
        check_files(folder, {**files, "encoder.bin": "0" * 64}, notes)
    other = tmp_path / "other"
    folder.rename(other)
    (other / "encoder.bin").write_bytes(b"something")
    with pytest.raises(BeamlessError, match="was changed since"):
        check_files(other, files, notes)


@pytest.mark.parametrize("content", ["", "[]", "{", json.dumps({"encoder.xml": [1, 2]})])
def test_a_damaged_note_is_made_again(folder, notes, read, content):
    files = hashes(folder)
    check_files(folder, files, notes)
    (note,) = notes.iterdir()
    right = note.read_text(encoding="utf-8")
    note.write_text(content, encoding="utf-8")
    check_files(folder, files, notes)
    assert read == 2 * list(NAMES)
    assert note.read_text(encoding="utf-8") == right


def test_a_place_that_cannot_be_written_to_stops_nobody(folder, notes):
    notes.write_text("a file, where a folder should be", encoding="utf-8")
    check_files(folder, hashes(folder), notes)
