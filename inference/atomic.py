"""Files that appear whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` and move it there when the block ends well.

    The temporary file keeps the suffix of ``path``, since writers choose a format by it. On an
    error or Ctrl-C the temporary file is removed and ``path`` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".partial-{secrets.token_hex(8)}{path.suffix}")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text_atomically(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 with ``\\n`` line ends, whole or not at all."""
    with replaced_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
