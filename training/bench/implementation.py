"""What the bench can measure: a small class that turns a file into text, and an entry point.

A package adds its own with an entry point of the group ``beamless.implementations``::

    [project.entry-points."beamless.implementations"]
    mine = "my_package:Mine"

``Mine(setup).transcribe(path)`` is measured as ``mine``; where ``Mine.variants`` names ways to do
it, each one as ``mine:variant``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from beamless.inference.errors import BeamlessError

GROUP = "beamless.implementations"


@dataclass(frozen=True)
class Setup:
    """What an implementation is made with.

    Attributes:
        model: a bundle's folder, or a Whisper's name or folder.
        variant: which of its variants it is to be; empty where it has none.
        language: what is spoken, as a code.
        threads: how many it may compute with.
        made: a folder for what is made once, such as the model in another format; nothing of it
            counts as starting.
        graphs: a folder for what makes the next start faster; empty at a cold start.
    """

    model: str
    variant: str
    language: str
    threads: int
    made: Path
    graphs: Path


@dataclass(frozen=True)
class Heard:
    """A transcript, and what else an implementation knows of it.

    Attributes:
        text: all that was said.
        first_token: seconds until the first token of text was there.
        steps: how often its decoder was run.
    """

    text: str
    first_token: float | None = None
    steps: int | None = None


class Implementation(Protocol):
    """A speech recogniser that is ready to go; it was made with a ``Setup``.

    A class may have more: ``variants``, names of ways to do it; ``needs``, the module without which
    it cannot be imported; and a static ``prepare(setup)``, which makes what is made once.
    """

    def transcribe(self, path: Path) -> str | Heard:
        """Write down what a recording says."""
        ...


@cache
def known() -> dict[str, EntryPoint]:
    """Return the installed implementations by their entry points' names, our own first.

    All distributions are asked: a checkout's own folder may hold older metadata of the same name,
    which ``entry_points()`` would take for the whole.
    """
    found = [e for d in distributions() for e in d.entry_points.select(group=GROUP)]
    return {e.name: e for e in sorted(found, key=lambda e: (e.name != "beamless", e.name))}


def load(name: str) -> tuple[Any, str]:
    """Return the class behind ``entry`` or ``entry:variant``, and the variant.

    Raises:
        BeamlessError: there is no such implementation or variant, or it cannot be imported.
    """
    entry, _, variant = name.partition(":")
    if entry not in known():
        here = ", ".join(known()) or "none; install Beamless itself"
        raise BeamlessError(f"there is no implementation {entry!r}; known are: {here}")
    try:
        loaded = known()[entry].load()
    except (ImportError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BeamlessError(f"implementation {entry} cannot be imported ({reason})") from None
    variants = variants_of(loaded)
    if variant not in variants and not (variant == "" and variants):
        raise BeamlessError(f"{entry} has no variant {variant!r}; it has: {', '.join(variants)}")
    return loaded, variant


def variants_of(loaded: Any) -> Sequence[str]:  # noqa: ANN401 - a class of whoever made it
    """Return the names of a class's variants; one empty name where it has none."""
    return tuple(getattr(loaded, "variants", ())) or ("",)


def chosen(wanted: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
    """Return the implementations to measure, and why others are left out.

    Args:
        wanted: ``entry:variant``, or ``entry`` for all of its variants; all that can be had if
            None.

    Raises:
        BeamlessError: one that was asked for is not to be had.
    """
    names: list[str] = []
    left_out: dict[str, str] = {}
    for each in wanted or known():
        loaded, variant = load(each)
        needed = getattr(loaded, "needs", None)
        if needed and find_spec(needed) is None:
            reason = f'it needs {needed.replace("_", "-")}: pip install "beamless[bench]"'
            if wanted:
                raise BeamlessError(f"{each} cannot be measured; {reason}")
            left_out[each] = reason
            continue
        names += [each] if variant else [f"{each}:{v}" if v else each for v in variants_of(loaded)]
    return list(dict.fromkeys(names)), left_out
