"""Recipes of mixed corpora: parts that are said and parts that are recorded, checked and loaded.

``mixed.yaml`` beside this file shows every entry.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from beamless.data_gen.augment import Recipe, load_recipe, recipe_from
from beamless.data_gen.casting import Cast, cast_from, cast_from_recipe
from beamless.data_gen.importers import Source, column_choice, layout_named, recordings_of
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.recipe_file import read_yaml
from beamless.data_gen.recipe_folders import Places, filled, given, places_of
from beamless.data_gen.subset import first
from beamless.data_gen.synth import to_be_said
from beamless.data_gen.text_lines import DIGITS, TextLine, digest_of, read_text_lines
from beamless.data_gen.texts import source_rows
from beamless.inference.errors import BeamlessError

Kinds = Mapping[str, type | tuple[type, ...]]
_BOTH: Kinds = {"name": str, "split": str, "augment": (str, dict)}
_SAID: Kinds = {
    "texts": str,
    "voices": (str, list),
    "count": int,
    "seed": int,
    "column": str,
    "subset": str,
}
_RECORDED: Kinds = {
    "layout": str,
    "source": str,
    "share": (int, float),
    "limit": int,
    "subset": str,
    "columns": str,
    "audio_root": str,
    "license": str,
    "model": str,
    "device": str,
    "language": str,
}
_SPLITS = ("speaker", "text", "both", "train", "dev", "test")


@dataclass(frozen=True)
class Part:
    """One part of a mixed corpus.

    Attributes:
        name: unlike that of any other part; the ids begin with it.
        split: as for ``Intake``.
        augment: what is done to its audio.
        license: of recordings that name none.
        recordings: to be stored, one by one.
        total: how many there are, where it is known.
        described: all that decides what it holds, as JSON values, without a path of this machine.
    """

    name: str
    split: Any
    augment: Recipe | None
    license: str
    recordings: Iterator[Recording]
    total: int | None
    described: Mapping[str, Any]


@dataclass(frozen=True)
class Mix:
    """A recipe whose parts are loaded, and what was left out since a folder has no place."""

    parts: tuple[Part, ...]
    left_out: tuple[str, ...]


def read_mix(path: Path, folders: Sequence[str] = ()) -> Mix:
    """Read a recipe and load the voices, texts and tables that it names.

    Args:
        path: the YAML file; paths in it are relative to it.
        folders: ``NAME=PLACE`` of folders that the recipe names, in place of its own.

    Raises:
        BeamlessError: the recipe is wrong, or something that it names cannot be had.
    """
    recipe = read_yaml(path)
    known: Kinds = {"seed": int, "split": str, "folders": dict, "parts": list}
    _check(recipe, known, ("parts",), str(path))
    if not recipe["parts"]:
        raise BeamlessError(f"{path}: 'parts' must be a list of at least one part")
    places = places_of(recipe.get("folders", {}), folders, path)
    listed, left_out = given(recipe["parts"], places, path)
    common = {"split": recipe["split"]} if "split" in recipe else {}
    parts: list[Part] = []
    for number, entry in enumerate(listed, 1):
        where = f"{path}, part {number}"
        if not isinstance(entry, dict):
            raise BeamlessError(f"{where}: entries such as 'name: requests' were expected")
        parts.append(_part({**common, **entry}, places, recipe.get("seed", 0), path, where))
    names = [part.name for part in parts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise BeamlessError(f"{path}: two parts are called {twice!r}")
    if len({part.split is None for part in parts}) > 1:
        raise BeamlessError(f"{path}: some parts have a split and some have none")
    return Mix(tuple(parts), tuple(left_out))


def _part(entry: Mapping[str, Any], places: Places, seed: int, path: Path, where: str) -> Part:
    said = "texts" in entry
    kinds, needed = (_SAID, ("voices",)) if said else (_RECORDED, ("layout", "source"))
    _check(entry, {**_BOTH, **kinds}, ("name", *needed), where)
    name, split = entry["name"], entry.get("split")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise BeamlessError(f"{where}: a name has letters, digits, - and _ only, not {name!r}")
    if split not in (*_SPLITS, None):
        raise BeamlessError(f"{where}: a split is one of {', '.join(_SPLITS)}, not {split!r}")
    ready = filled(entry, places)
    augment, about = _augment(entry, ready, seed, path)
    recordings: Iterable[Recording]
    total: int | None
    if said:
        lines, digest = _lines(ready, seed, path)
        cast = _cast(ready["voices"], seed, path)
        about |= {**digest, "voices": cast.recipe()}
        recordings, total, license = _said(lines, cast, name), len(lines), ""
    else:
        recordings = found = _recorded(ready, seed, path)
        total = len(found) if isinstance(found, list) else None
        license = ready.get("license") or layout_named(ready["layout"]).license
        recordings = (replace(found, id=f"{name}.{found.id}") for found in recordings)
    marked = (replace(r, extra={**r.extra, "part": name}) for r in recordings)
    return Part(name, split, augment, license, marked, total, {**entry, **about})


def _augment(
    entry: Mapping[str, Any], ready: Mapping[str, Any], seed: int, path: Path
) -> tuple[Recipe | None, dict[str, Any]]:
    """Load a part's augmentation, and describe it without places."""
    wanted = ready.get("augment")
    if wanted is None:
        return None, {}
    if isinstance(wanted, str):
        recipe = load_recipe(path.parent / wanted)
        return recipe, {"augment": recipe.described}
    return recipe_from({"seed": seed, **wanted}, path), {
        "augment": {"seed": seed, **entry["augment"]}
    }


def _cast(voices: str | list[Any], seed: int, path: Path) -> Cast:
    if isinstance(voices, str):
        return cast_from_recipe(path.parent / voices)
    return cast_from({"voices": voices, "seed": seed}, path)


def _said(lines: Sequence[TextLine], cast: Cast, part: str) -> Iterator[Recording]:
    for line in lines:
        yield to_be_said(replace(line, id=f"{part}.{line.id}"), cast)


def _lines(
    ready: Mapping[str, Any], seed: int, path: Path
) -> tuple[list[TextLine], dict[str, Any]]:
    """Return a part's texts, and their file's hash where they come from one."""
    texts, count = ready["texts"], ready.get("count")
    if count is not None and count < 1:
        raise BeamlessError(f"{path}: {ready['name']}: a count is 1 or more, not {count}")
    file = path.parent / texts
    digest = {"sha256": digest_of(file)} if file.is_file() else {}
    if file.suffix in (".txt", ".jsonl"):
        return read_text_lines(file)[:count], digest
    rows = source_rows(
        str(file) if digest else texts,
        count,
        ready.get("seed", seed),
        ready.get("column", "text"),
        ready.get("subset", "train"),
    )
    lines = []
    for number, row in enumerate(first(rows, count), 1):
        extra = {name: value for name, value in row.items() if name not in ("text", "line")}
        lines.append(TextLine(f"{number:0{DIGITS}d}", row["text"], extra=extra))
    return lines, digest


def _recorded(
    ready: Mapping[str, Any], seed: int, path: Path
) -> list[Recording] | Iterator[Recording]:
    """Return a part's recordings: so many of them, or such a share, drawn by a hash of their ids.

    Where they come with their audio, the first so many of the share are taken.
    """
    place = path.parent / ready["source"]
    root = ready.get("audio_root")
    source = Source(
        str(place) if place.exists() else ready["source"],
        ready.get("subset", ""),
        column_choice(ready.get("columns", "")),
        (path.parent / root).absolute() if root else None,
        **{key: ready[key] for key in ("model", "device", "language") if key in ready},
    )
    share, limit = ready.get("share", 1), ready.get("limit")
    if not 0 < share <= 1 or (limit is not None and limit < 1):
        raise BeamlessError(f"{path}: {ready['name']}: a share is from 0 to 1, a limit 1 or more")

    def rank(recording: Recording) -> float:
        digest = hashlib.sha256(f"{seed}\n{recording.id}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / 2**48

    found = recordings_of(ready["layout"], source)
    if not isinstance(found, list):
        return first((recording for recording in found if rank(recording) < share), limit)
    chosen = {r.id for r in sorted(found, key=rank)[:limit] if rank(r) < share}
    return [recording for recording in found if recording.id in chosen]


def _check(entry: Mapping[str, Any], kinds: Kinds, needed: Sequence[str], where: str) -> None:
    """Check names and types of a recipe's entries."""
    for name, value in entry.items():
        if name not in kinds:
            raise BeamlessError(f"{where}: there is no entry {name!r}; {', '.join(kinds)} are")
        if not isinstance(value, kinds[name]) or isinstance(value, bool):
            raise BeamlessError(f"{where}: the entry {name!r} has the wrong type")
    missing = next((name for name in needed if name not in entry), None)
    if missing:
        raise BeamlessError(f"{where}: the entry {missing!r} is missing")
