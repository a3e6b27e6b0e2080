"""Files that appear whole or not at all, and in places that nothing holds yet."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beamless.inference.errors import BeamlessError

LEAST_FREE = 1_000_000  # bytes; with less a disk counts as full
PARTIAL = ".partial-"  # how the name of a file begins that is not finished yet
MADE_BY = "made_by.txt"  # names the command that a folder of many stages is of


@contextmanager
def told_if_full(folder: Path) -> Iterator[None]:
    """Raise what fails in the block for want of room as the ``OSError`` that it is.

    Libraries that write files by themselves (OpenVINO, safetensors, libsndfile) raise their own
    kinds, which do not say that the disk is full.
    """
    try:
        yield
    except (OSError, BeamlessError):
        raise
    except Exception as error:
        if shutil.disk_usage(folder).free >= LEAST_FREE:
            raise
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        raise full from error


@contextmanager
def replaced_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` and move it there when the block ends well.

    The temporary file keeps the suffix of ``path``, since writers choose a format by it. On an
    error or Ctrl-C the temporary file is removed and ``path`` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{PARTIAL}{secrets.token_hex(8)}{path.suffix}")
    temporary.touch(exist_ok=False)
    mode = temporary.stat().st_mode
    try:
        with told_if_full(path.parent):
            yield temporary
        temporary.chmod(mode)  # safetensors makes a file anew that its owner alone may read
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def is_taken(folder: Path) -> bool:
    """Tell whether where a folder is to be made a file lies, or a folder that is not empty.

    What a kill left of a file that was never finished is nothing.
    """
    if not folder.is_dir():
        return folder.exists()
    return any(not each.name.startswith(PARTIAL) for each in folder.iterdir())


def begin(folder: Path, command: str) -> None:
    """Mark a folder as a command's own, or see that the same command began it before.

    Raises:
        BeamlessError: something else lies there.
    """
    require_own(folder, command)
    if not (folder / MADE_BY).is_file():
        write_text_atomically(folder / MADE_BY, _mark_of(command))


def require_own(folder: Path, command: str) -> None:
    """See that nothing lies where a command wants its folder, but what it began there before.

    Raises:
        BeamlessError: something else does.
    """
    marker = folder / MADE_BY
    if marker.is_file() and marker.read_text(encoding="utf-8") == _mark_of(command):
        return
    if is_taken(folder):
        raise BeamlessError(
            f"{folder} exists and is not of 'beamless {command}'; name another folder"
        )


def _mark_of(command: str) -> str:
    return f"beamless {command}\n"


def require_same(file: Path, text: str, otherwise: str) -> None:
    """Note what a run is, or see that the one begun here is the same.

    Raises:
        BeamlessError: it is another one, as ``otherwise`` says.
    """
    if not file.is_file():
        write_text_atomically(file, text)
    elif file.read_text(encoding="utf-8") != text:
        raise BeamlessError(otherwise)


def write_text_atomically(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 with ``\\n`` line ends, whole or not at all."""
    with replaced_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
