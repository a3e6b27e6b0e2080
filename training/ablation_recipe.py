"""What ``beamless ablate`` is asked to do: a YAML file of rows, each a training or a baseline.

.. code-block:: yaml

    model: tiny.en
    dev_limit: 60                     # utterances of each dev corpus
    folders: {real: , on_policy: }    # placed by --folders NAME=PLACE; traces, or a folder of them
    rows:
      - name: greedy and beams        # no traces: the model as it is
        methods: [greedy, beam5]
      - name: shift                   # trained on traces by ``beamless train``
        group: family
        traces: [real, on_policy]
        policies: [teacher_forced, on_policy]
        fitting: {family: shift, units: 256}
        methods: [corrected, lookahead]

A row may begin from another one's corrector (``start``), ask a datastore for its neighbours
(``datastore``), or train the decoder's last layer instead of a corrector (``last_layer``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast, get_args

from beamless.data_gen.recipe_file import read_yaml
from beamless.data_gen.recipe_folders import Places, places_of
from beamless.data_gen.traces import TARGET_KINDS, Policy, TargetKind
from beamless.inference.errors import BeamlessError
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT, AudioContext
from beamless.training.contenders import contender
from beamless.training.fit import PLAIN
from beamless.training.fitting import Fitting
from beamless.training.last_layer import LastLayer


@dataclass(frozen=True)
class Ablation:
    """One row.

    Attributes:
        name: as the table has it.
        group: what it is to be compared by.
        methods: how it is decoded.
        traces: what it learns from; without any it is the model as it is.
        targets, policies, limit: as ``beamless train`` takes them.
        start: the row whose corrector is trained further.
        fitting: family, size and how it is fitted.
        datastore: traces in which knn looks its neighbours up.
        last_layer: how the decoder's last layer is trained, in place of a corrector.
    """

    name: str
    methods: tuple[str, ...]
    group: str = ""
    traces: tuple[Path, ...] = ()
    targets: tuple[TargetKind, ...] = ("best",)
    policies: tuple[Policy, ...] = ("teacher_forced",)
    limit: int | None = None
    start: str = ""
    fitting: Fitting = PLAIN
    datastore: tuple[Path, ...] = ()
    last_layer: LastLayer | None = None


@dataclass(frozen=True)
class Plan:
    """A recipe, its folders in place.

    Attributes:
        model: the Whisper.
        audio_context: under which dev corpora are decoded.
        dev_limit: only so many utterances of each.
        rows: what to train and decode, in order.
        left_out: the names of rows that need a folder that has no place, and that folder.
    """

    model: str
    audio_context: AudioContext
    dev_limit: int | None
    rows: tuple[Ablation, ...]
    left_out: tuple[str, ...]


def read_plan(path: Path, folders: Sequence[str]) -> Plan:
    """Read a recipe; ``folders`` are NAME=PLACE.

    Raises:
        BeamlessError: it is no recipe, or one of its rows cannot be understood.
    """
    content = read_yaml(path)
    unknown = {*content} - {"model", "audio_context", "dev_limit", "folders", "rows"}
    if unknown or not isinstance(content.get("rows"), list):
        wrong = f"{sorted(unknown)[0]!r} means nothing" if unknown else "it has no rows"
        raise BeamlessError(f"{path} is no recipe of ablations: {wrong}")
    if not isinstance(content.get("folders") or {}, dict):
        raise BeamlessError(f"{path}: folders are a mapping of names to places")
    for name in ("model", "audio_context"):
        if not isinstance(content.get(name, ""), str):
            raise BeamlessError(f"{path}: {name} must be a text, not {content[name]!r:.40}")
    context = content.get("audio_context", DEFAULT_AUDIO_CONTEXT)
    if context not in get_args(AudioContext):
        raise BeamlessError(f"{path}: audio_context is short or full, not {context!r}")
    _require_count(content, "dev_limit", str(path))
    places = places_of(content.get("folders") or {}, folders, path)
    rows: list[Ablation] = []
    left_out: list[str] = []
    for entry in content["rows"]:
        missing = _missing(entry, places, path)
        if missing:
            left_out.append(f"{entry['name']} needs --folders {missing}=PLACE")
            continue
        row = _row(entry, places, path)
        if row.name in {one.name for one in rows}:
            raise BeamlessError(f"{path}: two rows are called {row.name!r}")
        if row.start and row.start not in {one.name for one in rows}:
            if any(text.startswith(f"{row.start} needs ") for text in left_out):
                left_out.append(f"{row.name} starts from what is left out")
                continue
            raise BeamlessError(f"{path}: no row before {row.name!r} is called {row.start!r}")
        rows.append(row)
    return Plan(
        model=str(content.get("model", "tiny.en")),
        audio_context=cast(AudioContext, context),
        dev_limit=content.get("dev_limit"),
        rows=tuple(rows),
        left_out=tuple(left_out),
    )


def _missing(entry: Any, places: Places, path: Path) -> str:  # noqa: ANN401 - of a YAML file
    """Return the first folder of a row that has no place; empty if all have."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise BeamlessError(f"{path}: each row is a mapping with a name")
    for name in ("traces", "datastore", "methods", "targets", "policies"):
        value = entry.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise BeamlessError(f"{path}: {name} of {entry['name']!r} must be a list of names")
    for name in [*entry.get("traces", []), *entry.get("datastore", [])]:
        if name not in places:
            raise BeamlessError(f"{path}: {name!r} in {entry['name']!r} is none of its folders")
        if places[name] is None:
            return str(name)
    return ""


def _row(entry: Mapping[str, Any], places: Places, path: Path) -> Ablation:
    where = f"{path}, {entry['name']!r}"
    values = dict(entry)
    for name in ("traces", "datastore"):
        at = [places[place] for place in values.get(name, [])]
        values[name] = tuple(found for place in at if place for found in trace_folders(place))
    for name in ("methods", "targets", "policies"):
        if name in values:
            values[name] = tuple(values[name])
    for name, known in (("targets", TARGET_KINDS), ("policies", get_args(Policy))):
        for each in values.get(name, ()):
            if each not in known:
                raise BeamlessError(f"{where}: {each!r} is none of {', '.join(known)}")
    _require_count(values, "limit", where)
    unknown = {*values} - {field.name for field in fields(Ablation)}
    if unknown:
        raise BeamlessError(f"{where}: {sorted(unknown)[0]!r} means nothing")
    if not values.get("methods"):
        raise BeamlessError(f"{where}: name the methods to decode it with")
    try:
        values["fitting"] = Fitting(**values.get("fitting", {}))
        if values.get("last_layer") is not None:
            values["last_layer"] = LastLayer(**values["last_layer"])
    except (TypeError, BeamlessError) as error:
        raise BeamlessError(f"{where}: {error}") from None
    for method in values["methods"]:
        contender(method, DEFAULT_AUDIO_CONTEXT)
    return Ablation(**values)


def _require_count(values: Mapping[str, Any], name: str, where: str) -> None:
    count = values.get(name)
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise BeamlessError(f"{where}: {name} must be a whole number from 1, not {count!r:.40}")


def trace_folders(place: Path) -> list[Path]:
    """Return a folder of traces, or all of them that lie in a folder.

    Raises:
        BeamlessError: there is none.
    """
    if (place / "recipe.json").is_file():
        return [place]
    found = sorted(file.parent for file in place.glob("*/recipe.json"))
    if not found:
        raise BeamlessError(f"{place} holds no traces, nor folders of them")
    return found
