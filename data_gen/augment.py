"""Augmentation by a recipe: seeded for each utterance, stored or on the fly."""

import dataclasses
import hashlib
import math
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beamless.data_gen.augment_steps import (
    CODECS,
    STEPS,
    Range,
    Record,
    Samples,
    Step,
    noise_files,
    require_packages,
)
from beamless.data_gen.recipe_file import read_yaml
from beamless.inference.errors import BeamlessError

_FULL_SCALE = 1.0


@dataclass(frozen=True)
class Join:
    """Join utterances of one speaker that follow each other, with silence between them."""

    p: float = 1.0
    seconds: Range = (10.0, 30.0)
    gap: Range = (0.2, 0.8)


@dataclass(frozen=True)
class Recipe:
    """What is done to a corpus: the steps in their order, and whether utterances are joined.

    ``described`` is the recipe as JSON values, for the corpus that it makes.
    """

    seed: int
    steps: tuple[tuple[str, Step], ...]
    join: Join | None
    described: Mapping[str, Any]


def augmented(
    samples: Samples, rate: int, recipe: Recipe, utterance_id: str
) -> tuple[Samples, Record]:
    """Augment one utterance.

    Args:
        samples: float32 ``[n]``, full scale ±1.
        rate: samples a second.
        recipe: the steps; each is taken with its probability ``p``.
        utterance_id: together with the recipe's seed it decides all that is random, so that an
            utterance always becomes the same, alone or in any order.

    Returns:
        float32 ``[m]`` within ±1, and what was done: the settings drawn, by step.
    """
    record: Record = {}
    for number, (name, step) in enumerate(recipe.steps):
        rng = generator(recipe.seed, utterance_id, f"{number}:{name}")
        if rng.random() < step.p and len(samples):
            with _global_generators_seeded(rng):
                changed, done = step.apply(samples, rate, rng)
            if done:
                samples = np.asarray(changed, dtype=np.float32)
                record[name] = done
    peak = float(np.abs(samples).max(initial=0.0))
    return samples if peak <= _FULL_SCALE else samples / np.float32(peak), record


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return a random generator that belongs to ``seed`` and ``names`` on every machine."""
    digest = hashlib.sha256("\0".join([str(seed), *names]).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


@contextmanager
def _global_generators_seeded(rng: np.random.Generator) -> Iterator[None]:
    """Seed Python's and NumPy's global generators for the block, then put them back."""
    plain, numpy = random.getstate(), np.random.get_state()
    seed = int(rng.integers(2**32))
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpy)


def load_recipe(path: Path) -> Recipe:
    """Read a recipe: ``seed``, ``steps`` (a list of one step each) and, if wanted, ``join``.

    A range is ``[least, most]`` or one number; the folder of ``noise`` is relative to the recipe.

    Raises:
        BeamlessError: no such file, not YAML, an unknown step or setting, or a value out of range.
    """
    return recipe_from(read_yaml(path), path)


def recipe_from(content: Mapping[str, Any], path: Path) -> Recipe:
    """Read a recipe's content; errors call it ``path``, and its folders are relative to that.

    Raises:
        BeamlessError: an unknown step or setting, or a value out of range.
    """
    unknown = set(content) - {"seed", "steps", "join"}
    if unknown:
        raise BeamlessError(f"{path}: {min(unknown)!r} is not seed, steps or join")
    seed, listed = content.get("seed", 0), content.get("steps", [])
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise BeamlessError(f"{path}: the seed must be a whole number")
    if not isinstance(listed, list) or not all(isinstance(s, dict | str) for s in listed):
        raise BeamlessError(f"{path}: steps must be a list, such as '- noise: {{folder: sounds}}'")
    steps = [_step(entry, path) for entry in listed]
    names = [name for name, _ in steps]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise BeamlessError(f"{path}: the step {twice} stands there twice")
    join = _join(content["join"], path) if content.get("join") is not None else None
    require_packages(names)
    if not steps and join is None:
        raise BeamlessError(f"{path}: there are neither steps nor join")
    return Recipe(seed, tuple(steps), join, content)


def _step(entry: Mapping[str, Any] | str, path: Path) -> tuple[str, Step]:
    """Read ``NAME``, or ``NAME: {setting: value}``."""
    pairs = {entry: {}} if isinstance(entry, str) else entry
    if len(pairs) != 1:
        raise BeamlessError(f"{path}: one step a list entry, not {', '.join(map(str, pairs))}")
    name, given = next(iter(pairs.items()))
    if name not in STEPS:
        raise BeamlessError(f"{path}: there is no step {name!r}; there are {', '.join(STEPS)}")
    kind = STEPS[name]
    settings = _settings(kind, given or {}, f"{path}: {name}")
    for setting, (least, most) in kind.limits.items():
        low, high = settings.get(setting, (least, most))
        if low < least or high > most:
            raise BeamlessError(f"{path}: {name}: {setting} must be from {least} to {most}")
    if "folder" in settings:
        settings["folder"] = (path.parent / str(settings["folder"])).absolute()
        noise_files(settings["folder"])
    return name, kind(**settings)


def _join(given: object, path: Path) -> Join:
    settings = _settings(Join, given, f"{path}: join")
    for setting, most in (("seconds", 30.0), ("gap", 5.0)):
        if setting in settings and not 0 <= settings[setting][0] <= settings[setting][1] <= most:
            raise BeamlessError(f"{path}: join: {setting} must be from 0 to {most}")
    return Join(**settings)


def _settings(kind: type, given: object, where: str) -> dict[str, Any]:
    """Check settings against the fields of a dataclass; ranges become pairs."""
    if not isinstance(given, Mapping):
        raise BeamlessError(f"{where}: settings were expected, such as {{p: 0.5}}")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in given:
        if name not in fields:
            raise BeamlessError(f"{where}: there is no setting {name!r}; {', '.join(fields)} are")
    for name, field in fields.items():
        if field.default is dataclasses.MISSING and name not in given:
            raise BeamlessError(f"{where}: the setting {name!r} is missing")
    return {name: _value(name, value, f"{where}: {name}") for name, value in given.items()}


def _value(name: str, value: Any, where: str) -> Any:  # noqa: ANN401
    if name == "folder":
        return value
    if name == "codecs":
        chosen = value if isinstance(value, list) else [value]
        if not chosen or not all(codec in CODECS for codec in chosen):
            raise BeamlessError(f"{where}: codecs are {', '.join(CODECS)}")
        return tuple(chosen)
    pair = value if isinstance(value, list) else [value, value]
    if len(pair) != 2 or not all(map(_is_number, pair)) or pair[0] > pair[1]:
        raise BeamlessError(f"{where} is a number or [least, most], not {value!r}")
    if name != "p":
        return float(pair[0]), float(pair[1])
    if isinstance(value, list) or not 0 <= pair[0] <= 1:
        raise BeamlessError(f"{where} is a probability from 0 to 1, not {value!r}")
    return float(pair[0])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
