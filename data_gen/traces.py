"""Traces: what the static greedy decoder saw at every step of a target, as Parquet.

A folder ``traces/`` holds ``recipe.json`` and, for each policy and target, numbered shards:
``teacher_forced/best/00000.parquet``. One row is one utterance along one target; the target
``list`` has as many rows of an utterance as the beam's list has hypotheses, best first. T steps,
the end token's among them; d the decoder's width; K candidates.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from beamless.inference.atomic import is_taken, replaced_atomically, write_text_atomically
from beamless.inference.errors import BeamlessError
from beamless.inference.options import AudioContext

if TYPE_CHECKING:
    from datasets import Features

Policy = Literal["teacher_forced", "on_policy"]
TargetKind = Literal["beam", "best", "reference", "teacher", "list"]
TARGET_KINDS: tuple[TargetKind, ...] = ("beam", "best", "reference", "teacher", "list")
SHARDS = "[!.]*.parquet"  # what a kill left unfinished has a name with a dot in front


@dataclass(frozen=True)
class TraceRecipe:
    """What decides the numbers in a trace; traces of different recipes do not mix.

    Attributes:
        model: the checkpoint's name.
        model_hash: its hash.
        teacher: the larger model, or empty.
        prompt: the ids that open every window.
        beam_size, length_penalty: of the beam and the teacher's.
        top_k: candidates kept a step.
        language: what is spoken.
        corrector: the hash of the corrector that decoded, for on-policy steps.
        best_teacher: the teacher whose texts joined the list that ``best`` was chosen from.
        audio_context: whether the encoder worked on the audio alone (short) or on 30 s (full).
    """

    model: str
    model_hash: str
    teacher: str
    prompt: tuple[int, ...]
    beam_size: int
    length_penalty: float
    top_k: int
    language: str = "en"
    corrector: str = ""
    best_teacher: str = ""
    audio_context: AudioContext = "full"


@dataclass(frozen=True)
class Trace:
    """One utterance along one target.

    Attributes:
        id, speaker, source, text: the utterance's, from its corpus.
        target: which kind of target.
        policy: ``teacher_forced``: the steps stand on the target's own prefixes.
        errors, words: word errors of the target's text against ``text``, and words of ``text``.
        greedy_errors: word errors of the free greedy decode.
        hidden: the decoder's last hidden states, float16 [T, d].
        top_ids, top_logprobs: the K likeliest tokens after suppression, int32 and float32 [T, K].
        log_sum_exp: of the suppressed logits, float32 [T].
        target_ids: what the target says next, int32 [T]; the end token last.
        acceptable: other tokens [T, …] that are as good as the target's, by the policy.
        budget: tokens that the window can hold (``inference/budget.py``); 0 where none is known.
        decoded_ids: what the decoder itself said at each step, int32 [T], where it was not made to
            say the target's.
    """

    id: str
    speaker: str
    source: str
    text: str
    target: TargetKind
    policy: Policy
    errors: int
    words: int
    greedy_errors: int
    hidden: np.ndarray
    top_ids: np.ndarray
    top_logprobs: np.ndarray
    log_sum_exp: np.ndarray
    target_ids: np.ndarray
    acceptable: Sequence[Sequence[int]] = ()
    budget: int = 0
    decoded_ids: Sequence[int] = ()


def features(width: int, top_k: int) -> "Features":
    """Return the Parquet schema, as Hugging Face ``datasets`` names it."""
    from datasets import Array2D, Features, List, Value

    texts = dict.fromkeys(("id", "speaker", "source", "text", "target", "policy"), Value("string"))
    counts = dict.fromkeys(("errors", "words", "greedy_errors", _BUDGET), Value("int32"))
    return Features(
        {
            **texts,
            **counts,
            "hidden": Array2D((None, width), "float16"),
            "top_ids": Array2D((None, top_k), "int32"),
            "top_logprobs": Array2D((None, top_k), "float32"),
            "log_sum_exp": List(Value("float32")),
            "target_ids": List(Value("int32")),
            "acceptable": List(List(Value("int32"))),
            _DECODED: List(Value("int32")),
        }
    )


def open_traces(folder: Path, recipe: TraceRecipe) -> None:
    """Begin a folder of traces, or go on with one of the same recipe.

    Raises:
        BeamlessError: the folder holds something else, or traces of another recipe.
    """
    if not is_taken(folder):
        _write_recipe(folder, recipe)
        return
    if not (folder / "recipe.json").is_file():
        raise BeamlessError(f"{folder} exists and holds no traces; name another folder")
    present = read_recipe(folder)
    for name, value in asdict(recipe).items():
        there = getattr(present, name)
        if there != value:
            raise BeamlessError(
                f"{folder} holds traces with {name} {there!r}, not {value!r}; name another folder"
            )


def taught(folder: Path, recipe: TraceRecipe, targets: Sequence[TargetKind]) -> TraceRecipe:
    """Return the recipe to go on with, its teacher settled with what the folder holds.

    A folder without a teacher takes one later; the texts of ``best`` that were chosen without it
    stay so, and so do later ones. Targets that no teacher has a part in need not name it.
    """
    first = replace(recipe, best_teacher=recipe.teacher)
    if not (folder / "recipe.json").is_file():
        return first
    present = read_recipe(folder)
    settled = replace(recipe, teacher=present.teacher, best_teacher=present.best_teacher)
    if recipe.teacher == present.teacher:
        return settled
    if not recipe.teacher:
        apart = "teacher" not in targets and not ("best" in targets and present.best_teacher)
        return settled if apart else first
    if present.teacher:
        return first
    open_traces(folder, settled)
    chosen = any((folder / "teacher_forced" / "best").glob(SHARDS))
    joined = replace(recipe, best_teacher="" if chosen else recipe.teacher)
    _write_recipe(folder, joined)
    return joined


def _write_recipe(folder: Path, recipe: TraceRecipe) -> None:
    text = json.dumps(asdict(recipe), indent=2, ensure_ascii=False)
    write_text_atomically(folder / "recipe.json", text + "\n")


def read_recipe(folder: Path) -> TraceRecipe:
    """Read a trace folder's recipe.

    Raises:
        BeamlessError: the folder holds no traces.
    """
    file = folder / "recipe.json"
    if not file.is_file():
        raise BeamlessError(f"{folder} holds no traces (no recipe.json); make them with collect")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        content = {"best_teacher": content["teacher"], **content}
        recipe = TraceRecipe(**{**content, "prompt": tuple(content["prompt"])})
        if not isinstance(recipe.model, str) or not isinstance(recipe.language, str):
            raise ValueError("a name is no text")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BeamlessError(f"{folder} holds no traces: recipe.json is of another kind") from None
    return recipe


def shard_path(folder: Path, policy: Policy, target: TargetKind, index: int) -> Path:
    """Return where a shard lies."""
    return folder / policy / target / f"{index:05d}.parquet"


def write_shard(
    path: Path, traces: Sequence[Trace], planned: Sequence[str], recipe: TraceRecipe, width: int
) -> None:
    """Write a shard, whole or not at all.

    Args:
        path: where.
        traces: its rows; fewer than planned where utterances were refused.
        planned: the ids of all utterances that it answers for.
        recipe: how the traces were made.
        width: d.
    """
    from datasets import Dataset
    from pyarrow import parquet

    columns: dict[str, list[Any]] = {name: [] for name in features(width, recipe.top_k)}
    for trace in traces:
        for name, values in columns.items():
            values.append(getattr(trace, name))
    table = Dataset.from_dict(columns, features=features(width, recipe.top_k)).data.table
    notes = {**(table.schema.metadata or {}), _PLANNED: json.dumps(list(planned)).encode()}
    with replaced_atomically(path) as temporary:
        parquet.write_table(table.replace_schema_metadata(notes), temporary)


_PLANNED = b"beamless_planned_ids"


def planned_ids(path: Path) -> list[str]:
    """Return the ids that a shard answers for, from its schema alone.

    Raises:
        BeamlessError: the shard is damaged.
    """
    from pyarrow import ArrowInvalid, parquet

    try:
        notes = parquet.read_schema(path).metadata or {}
    except (ArrowInvalid, OSError) as error:
        raise BeamlessError(f"{path} is damaged ({error}); remove it and collect again") from None
    return list(json.loads(notes.get(_PLANNED, b"[]")))


def pending_shards(
    folder: Path, policy: Policy, target: TargetKind, ids: Sequence[str], shard_size: int
) -> dict[int, list[str]]:
    """Plan what is left to do: shard numbers and the ids of each.

    What was left is cut into shards in the order of ``ids``, under the lowest free numbers, so
    that a run that was stopped, whichever of its shards were done, ends with the same files as
    one that was not; utterances that came later get shards of their own.
    """
    there = sorted((folder / policy / target).glob(SHARDS))
    done = {identifier for path in there for identifier in planned_ids(path)}
    taken = {int(path.stem) for path in there if path.stem.isdecimal()}
    left = [identifier for identifier in ids if identifier not in done]
    parts = [left[at : at + shard_size] for at in range(0, len(left), shard_size)]
    free = (number for number in count() if number not in taken)
    return dict(zip(free, parts, strict=False))


@dataclass(frozen=True)
class Steps:
    """Traces as flat arrays over all their N steps.

    Attributes:
        hidden: float16 [N, d].
        target_ids: int32 [N].
        top_ids, top_logprobs: [N, K].
        log_sum_exp: [N].
        starts: where each trace begins, [R + 1]; the last one is N.
        rows: the traces' other columns, [R].
        acceptable: all tokens that are right at a step, the target's among them, int32 [N, A],
            filled up with -1.
        last_ids: the token of text that each step stands on, int32 [N]; ``NO_TOKEN`` where a text
            begins, ``UNKNOWN_TOKEN`` along what was decoded by a Beamless that did not note it.
    """

    hidden: np.ndarray
    target_ids: np.ndarray
    top_ids: np.ndarray
    top_logprobs: np.ndarray
    log_sum_exp: np.ndarray
    starts: np.ndarray
    rows: list[Mapping[str, Any]]
    acceptable: np.ndarray
    last_ids: np.ndarray


def shards(folder: Path, policies: Sequence[str], targets: Sequence[str]) -> list[Path]:
    """Return the shards of some policies and targets, in order.

    Raises:
        BeamlessError: there is none.
    """
    read_recipe(folder)
    found = [p for c in policies for t in targets for p in sorted((folder / c / t).glob(SHARDS))]
    if not found:
        wanted = f"{', '.join(policies)} × {', '.join(targets)}"
        raise BeamlessError(f"{folder} holds no traces of {wanted}; collect them first")
    return found


def read_steps(
    folder: Path,
    targets: Sequence[str],
    policies: Sequence[str] = ("teacher_forced",),
) -> Steps:
    """Read traces as flat arrays.

    Raises:
        BeamlessError: the folder holds none of these, or a shard is damaged.
    """
    paths = shards(folder, policies, targets)
    tables = [_read_table(path) for path in paths]
    read = zip(tables, paths, strict=True)
    parts = [_steps_in(table, path) for table, path in read if table.num_rows]
    if not parts:
        raise BeamlessError(f"{folder} holds no utterance; collect from another corpus")
    lengths = np.concatenate([[0], *(part.pop("lengths") for part in parts)])
    rows = [row for table in tables for row in _rows_in(table)]
    acceptable = padded([step for part in parts for step in part.pop("acceptable")])
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    starts = np.cumsum(lengths)
    return Steps(**arrays, starts=starts, rows=rows, acceptable=acceptable)


def _rows_in(table: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401
    known = [*_TEXT_COLUMNS, *({_BUDGET} & {*table.column_names})]
    return list(table.select(known).to_pylist())


def padded(sets: Sequence[Sequence[int]]) -> np.ndarray:
    """Stand sets of tokens side by side, int32 [N, A], filled up with -1."""
    table = np.full((len(sets), max(map(len, sets), default=1)), -1, np.int32)
    for row, tokens in zip(table, sets, strict=True):
        row[: len(tokens)] = tokens
    return table


def _acceptable(column: Any, targets: Any) -> Iterator[list[int]]:  # noqa: ANN401
    for sets, labels in zip(column.to_pylist(), targets.to_pylist(), strict=True):
        yield from sets or [[label] for label in labels]


_BUDGET = "budget"  # of a trace; those made before there was one have none
_DECODED = "decoded_ids"  # and so with this one
NO_TOKEN, UNKNOWN_TOKEN = -1, -2
LARGEST = 1 << 24  # above any token
_STEP_COLUMNS = [
    "target_ids",
    "log_sum_exp",
    "hidden",
    "top_ids",
    "top_logprobs",
    "acceptable",
]
_TEXT_COLUMNS = [
    "id",
    "speaker",
    "source",
    "text",
    "target",
    "policy",
    "errors",
    "words",
    "greedy_errors",
]


def _read_table(path: Path) -> Any:  # noqa: ANN401
    from pyarrow import ArrowInvalid, parquet

    if not path.is_file():
        raise BeamlessError(f"{path} is no file of traces; remove it and collect again")
    try:
        table = parquet.read_table(path)
    except (ArrowInvalid, OSError) as error:
        raise BeamlessError(f"{path} is damaged ({error}); remove it and collect again") from None
    missing = sorted({*_TEXT_COLUMNS, *_STEP_COLUMNS} - {*table.column_names})
    if missing:
        raise BeamlessError(f"{path} is no file of traces: it has no column {missing[0]!r}")
    return table


def _steps_in(table: Any, path: Path) -> dict[str, Any]:  # noqa: ANN401
    try:
        acceptable = list(_acceptable(table["acceptable"], table["target_ids"]))
        flat: dict[str, Any] = {**_flatten(table), "acceptable": acceptable}
        flat["last_ids"] = np.concatenate([*_last_ids(table)])
        if len({len(column) for name, column in flat.items() if name != "lengths"}) > 1:
            raise ValueError("columns of different lengths")
        if not np.isfinite(flat["hidden"]).all():
            raise ValueError("a hidden state is not finite")
    except (AttributeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise BeamlessError(f"{path} is damaged ({reason}); remove it and collect again") from None
    return flat


def _last_ids(table: Any) -> Iterator[np.ndarray]:  # noqa: ANN401
    """Return, for each trace, the token that stands before each step: its own or the target's."""
    targets = table["target_ids"].to_pylist()
    decoded = [()] * len(targets)
    if _DECODED in table.column_names:
        decoded = table[_DECODED].to_pylist()
    for forced, said, policy in zip(targets, decoded, table["policy"].to_pylist(), strict=True):
        known = said or (forced if policy == "teacher_forced" else [UNKNOWN_TOKEN] * len(forced))
        if len(known) != len(forced):
            raise ValueError("decoded_ids has not one token a step")
        least = 0 if said else UNKNOWN_TOKEN
        if not all(type(token) is int and least <= token < LARGEST for token in known):
            raise ValueError("decoded_ids holds what is no token")
        yield np.array([NO_TOKEN, *known[:-1]], np.int32)


def _flatten(table: Any) -> dict[str, np.ndarray]:  # noqa: ANN401
    lengths = np.array([len(ids) for ids in table["target_ids"]], np.int64)
    flat: dict[str, np.ndarray] = {"lengths": lengths}
    for name in ("target_ids", "log_sum_exp"):
        flat[name] = table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    for name in ("hidden", "top_ids", "top_logprobs"):
        array = table[name].combine_chunks()
        array = getattr(array, "storage", array).flatten()
        values = array.flatten().to_numpy(zero_copy_only=False)
        flat[name] = values.reshape(int(lengths.sum()), -1)
    return flat
