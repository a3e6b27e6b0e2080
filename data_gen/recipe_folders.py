"""Folders that a recipe names in braces, as in ``{recordings}/train``, and where they are.

One that has no place leaves out the nearest list entry that names it: a part, a voice, or a step
of augmentation. So one recipe serves with whatever is at hand, and holds no machine's paths.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from beamless.inference.errors import BeamlessError

Places = Mapping[str, Path | None]
"""Where each folder is; None where nobody says it."""

_NAME = re.compile(r"\{(\w+)\}")


class _NoPlaceError(Exception):
    """A folder that is needed has no place; its name is the message."""


def places_of(named: Mapping[str, Any], chosen: Sequence[str], path: Path) -> Places:
    """Return the places of a recipe's folders.

    Args:
        named: what the recipe says: a path relative to it, or nothing.
        chosen: ``NAME=PLACE``, relative to the working folder, in place of the recipe's own.
        path: the recipe.

    Raises:
        BeamlessError: an entry is of another form, or names no folder of the recipe.
    """
    places: dict[str, Path | None] = {}
    for name, place in named.items():
        if not isinstance(place, str | None):
            raise BeamlessError(f"{path}: the folder {name!r} must be a path, or empty")
        places[str(name)] = (path.parent / place).absolute() if place else None
    for entry in chosen:
        name, _, place = entry.partition("=")
        if not place or name not in places:
            some = ", ".join(places) or "none"
            raise BeamlessError(f"--folders takes NAME=PLACE, not {entry!r}; {path} names {some}")
        places[name] = Path(place).absolute()
    return places


def given(entries: list[Any], places: Places, path: Path) -> tuple[list[Any], list[str]]:
    """Return the entries without those that name a folder without a place, and what was left out.

    Raises:
        BeamlessError: nothing remains, or a name is none of the recipe's folders.
    """
    left_out: list[str] = []
    try:
        return _pruned(entries, places, left_out), left_out
    except _NoPlaceError as name:
        raise BeamlessError(f"{path}: every part needs --folders {name}=PLACE") from None


def filled(node: Any, places: Places) -> Any:  # noqa: ANN401
    """Put the folders' places where their names stand, however deep."""
    if isinstance(node, str):
        return _NAME.sub(lambda found: str(places[found[1]]), node)
    if isinstance(node, dict):
        return {key: filled(value, places) for key, value in node.items()}
    return [filled(entry, places) for entry in node] if isinstance(node, list) else node


def _pruned(node: Any, places: Places, left_out: list[str]) -> Any:  # noqa: ANN401
    if isinstance(node, str):
        for name in _NAME.findall(node):
            if name not in places:
                raise BeamlessError(f"{{{name}}} in {node!r} is none of the recipe's folders")
            if places[name] is None:
                raise _NoPlaceError(name)
    if isinstance(node, dict):
        return {key: _pruned(value, places, left_out) for key, value in node.items()}
    if not isinstance(node, list):
        return node
    kept, needed = [], ""
    for entry in node:
        try:
            kept.append(_pruned(entry, places, left_out))
        except _NoPlaceError as name:
            needed = str(name)
            left_out.append(f"{_called(entry)} needs --folders {name}=PLACE")
    if node and not kept:
        raise _NoPlaceError(needed)
    return kept


def _called(entry: Any) -> str:  # noqa: ANN401
    """Return what a list entry is called: a part, a voice or a step."""
    if not isinstance(entry, dict):
        return str(entry)
    return str(entry.get("name") or entry.get("voice") or next(iter(entry), ""))
