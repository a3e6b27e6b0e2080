"""A corrector as production sees it: a configuration and arrays, on disk and in memory.

Families:
    ``shift`` moves the decoder's last hidden state before the projection to logits.
    ``rerank`` adds a number to the logit of each of the K likeliest tokens; one small network
    judges each of them.
    ``dense`` goes from logits to hidden units to logits. Logits are a linear function of the
    hidden state, so that the first half of it is one too; the second half is not tied.

Their subgraphs are in ``corrector_graphs.py``; the torch twins that train are in
``training/networks.py``; the two agree within 1e-3.

Symbols: d width, V vocabulary, W hidden states of earlier steps (``history``), m hidden units,
K candidates, F scores of a candidate.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from safetensors.numpy import load_file, save_file

from beamless.inference.atomic import replaced_atomically, write_text_atomically
from beamless.inference.errors import BeamlessError
from beamless.inference.whole import file_hash

Family = Literal["shift", "rerank", "dense"]
FAMILIES: tuple[Family, ...] = get_args(Family)
UNITS: Mapping[str, int] = {"shift": 1024, "rerank": 256, "dense": 64}
CANDIDATES = 8
MOST_CANDIDATES = 64
MOST_HISTORY = 448  # tokens of a Whisper window
LARGEST = 1 << 24  # above any size of one
SHA256 = "sha256"  # what corrector.json calls that of the arrays beside it
NAMED_SCORES = 7  # those of ``corrector_graphs.scores_of``; K more say which rank it has
DOUBT_SCORES = 3  # those of ``corrector_graphs.doubt_of``


@dataclass(frozen=True)
class CorrectorConfig:
    """What a corrector is.

    Attributes:
        family: ``shift``, ``rerank`` or ``dense``.
        model_hash: the checkpoint that it was trained on; it refuses any other.
        width: d.
        history: W.
        units: m.
        gate: it has a second head: the probability that its own choice is wrong at a step; until
            it is trained, what the K likeliest tokens leave for all but the best.
        ledger: it is told how much of the window's budget of tokens (``inference/budget.py``) the
            text has spent, beside the states; 0 where there is no bound.
        last_token: it sees the embedding of the last token of text, too, normalised; zeros where
            the text begins and behind a timestamp.
        candidates: K, of ``rerank``; 0 of the others.
        vocabulary: V, of ``dense``; 0 of the others.
        provenance: traces, recipe and figures of its training.
    """

    family: str
    model_hash: str
    width: int
    history: int = 1
    units: int = 1024
    gate: bool = False
    ledger: bool = False
    last_token: bool = False
    candidates: int = 0
    vocabulary: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Corrector:
    """A corrector's configuration and arrays."""

    config: CorrectorConfig
    arrays: Mapping[str, np.ndarray]

    @property
    def hash(self) -> str:
        """SHA-256 over its arrays."""
        digest = hashlib.sha256()
        for name in sorted(self.arrays):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(self.arrays[name], np.float32).tobytes())
        return digest.hexdigest()

    @property
    def parameters(self) -> int:
        """How many numbers it learned."""
        return sum(array.size for array in self.arrays.values())


def config_of(
    family: str,
    model_hash: str,
    width: int,
    vocabulary: int,
    *,
    history: int = 1,
    units: int | None = None,
    candidates: int = CANDIDATES,
    gate: bool = False,
    ledger: bool = False,
    last_token: bool = False,
) -> CorrectorConfig:
    """Configure a family for a model, with the family's own number of units if None is given.

    Raises:
        BeamlessError: there is no such family, or it cannot have such sizes.
    """
    config = CorrectorConfig(
        family=family,
        model_hash=model_hash,
        width=width,
        history=history,
        units=UNITS.get(family, 1) if units is None else units,
        gate=gate,
        ledger=ledger,
        last_token=last_token,
        candidates=candidates if family == "rerank" else 0,
        vocabulary=vocabulary if family == "dense" else 0,
    )
    check_config(config)
    return config


def check_config(config: CorrectorConfig) -> None:
    """Refuse sizes that no corrector of the family can have.

    Raises:
        BeamlessError: there is no such family, or a size does not fit it.
    """
    family = config.family
    if family not in FAMILIES:
        raise BeamlessError(f"corrector family {family!r:.40} is none of {', '.join(FAMILIES)}")
    for name, kind in (
        ("model_hash", str),
        ("gate", bool),
        ("ledger", bool),
        ("last_token", bool),
        ("provenance", Mapping),
    ):
        if not isinstance(getattr(config, name), kind):
            raise BeamlessError(f"a corrector's {name} is of another kind than it must be")
    least = {"width": 1, "units": 1, "history": 0, "candidates": 0, "vocabulary": 0}
    for name, bound in least.items():
        size = getattr(config, name)
        if not isinstance(size, int) or isinstance(size, bool) or not bound <= size <= LARGEST:
            told = f"a whole number from {bound}, not {size!r:.40}"
            raise BeamlessError(f"a corrector's {name} is {told}")
    if config.history > MOST_HISTORY:
        raise BeamlessError(f"a corrector's history is at most {MOST_HISTORY} steps")
    languages = config.provenance.get("languages", [])
    if not isinstance(languages, list) or not all(isinstance(code, str) for code in languages):
        raise BeamlessError("a corrector's languages are a list of codes, such as en")
    if family == "rerank" and not 2 <= config.candidates <= MOST_CANDIDATES:
        wanted = f"2 to {MOST_CANDIDATES} candidates"
        raise BeamlessError(f"a rerank corrector takes {wanted}, not {config.candidates}")
    if family == "dense" and not config.vocabulary:
        raise BeamlessError("a dense corrector must be told the size of the vocabulary")
    for name, owner in (("candidates", "rerank"), ("vocabulary", "dense")):
        if getattr(config, name) and family != owner:
            raise BeamlessError(f"a {family} corrector has no {name}; {owner} has")


def inputs_of(config: CorrectorConfig) -> int:
    """Return how many numbers a corrector sees of a step: states, and what else it is told."""
    return (config.history + 1 + config.last_token) * config.width + config.ledger


def shapes_of(config: CorrectorConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a corrector's arrays by name."""
    states, inputs = (config.history + 1) * config.width, inputs_of(config)
    units, width = config.units, config.width
    shapes: dict[str, tuple[int, ...]] = {"norm.weight": (states,), "norm.bias": (states,)}
    if config.family == "rerank":
        shapes |= {
            "state.weight": (units, inputs),
            "state.bias": (units,),
            "token.weight": (units, width),
            "score.weight": (units, NAMED_SCORES + config.candidates),
            "up.weight": (units, units),
            "up.bias": (units,),
            "down.weight": (1, units),
        }
    else:
        outputs = width if config.family == "shift" else config.vocabulary
        shapes |= {
            "up.weight": (units, inputs),
            "up.bias": (units,),
            "down.weight": (outputs, units),
            "down.bias": (outputs,),
        }
    if config.gate:
        shapes |= {"doubt.weight": (1, DOUBT_SCORES + units), "doubt.bias": (1,)}
    return shapes


def untrained(config: CorrectorConfig, seed: int = 0) -> Corrector:
    """Make a corrector that changes nothing: its last layer is zero.

    Raises:
        BeamlessError: the family cannot have such sizes.
    """
    check_config(config)
    rng = np.random.default_rng(seed)
    arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes_of(config).items()}
    arrays["norm.weight"] += 1
    for name in ("up.weight", "state.weight", "token.weight", "score.weight"):
        if name in arrays:
            units, inputs = arrays[name].shape
            bound = inputs**-0.5
            arrays[name] = rng.uniform(-bound, bound, (units, inputs)).astype(np.float32)
    if config.gate:
        arrays["doubt.weight"][0, 0] = 1
    return Corrector(config, arrays)


def save_corrector(corrector: Corrector, folder: Path, half: bool = False) -> None:
    """Write ``corrector.safetensors``, in float16 if ``half``, and ``corrector.json``.

    The latter names the former's SHA-256, so that the two do not part.

    Raises:
        BeamlessError: a weight is too large for float16.
    """
    dtype = np.float16 if half else np.float32
    with np.errstate(over="ignore"):
        arrays = {name: np.ascontiguousarray(a, dtype) for name, a in corrector.arrays.items()}
    for name, array in arrays.items():
        if half and not np.isfinite(array).all():
            raise BeamlessError(
                f"the corrector's {name} does not fit into float16; "
                "train it again with a smaller learning rate"
            )
    arrays_file = folder / "corrector.safetensors"
    with replaced_atomically(arrays_file) as temporary:
        save_file(arrays, temporary)
    content = {**asdict(corrector.config), SHA256: file_hash(arrays_file)}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_text_atomically(folder / "corrector.json", text + "\n")


def load_corrector(folder: Path) -> Corrector:
    """Read a corrector's folder.

    One that was written before ``corrector.json`` named the arrays' SHA-256 is read without.

    Raises:
        BeamlessError: a file is missing, damaged or another's, the family is unknown, or its
            sizes cannot be.
    """
    config, digest = _read_config(folder)
    arrays_file = _file_of(folder, "corrector.safetensors")
    if digest is not None and file_hash(arrays_file) != digest:
        raise BeamlessError(
            f"the corrector in {folder} is damaged: {arrays_file.name} is not the one that its "
            "corrector.json names; train it again"
        )
    try:
        stored = load_file(arrays_file)
    except Exception as error:  # safetensors raises its own kinds
        raise BeamlessError(f"the corrector in {folder} is damaged ({error})") from None
    expected = shapes_of(config)
    arrays: dict[str, np.ndarray] = {}
    for name in sorted(expected | stored):
        array = stored.get(name, np.empty(0))
        fits = array.dtype in (np.float16, np.float32) and array.shape == expected.get(name)
        if not fits or not np.isfinite(array).all():
            raise BeamlessError(
                f"the corrector in {folder} is damaged (its {name!r:.60}); train it again"
            )
        arrays[name] = np.asarray(array, np.float32)
    return Corrector(config, arrays)


def read_config(folder: Path) -> CorrectorConfig:
    """Read a corrector's ``corrector.json`` alone.

    Raises:
        BeamlessError: it is missing or damaged, the family is unknown, or its sizes cannot be.
    """
    return _read_config(folder)[0]


def _read_config(folder: Path) -> tuple[CorrectorConfig, str | None]:
    """Return the configuration, and the SHA-256 of the arrays where it is named."""
    file = _file_of(folder, "corrector.json")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        _check_names(content)
        digest = content.pop(SHA256, None)
        config = CorrectorConfig(**content)
        check_config(config)
    except (ValueError, RecursionError, BeamlessError) as error:
        raise BeamlessError(f"the corrector in {folder} is damaged ({error})") from None
    return config, digest


def _check_names(content: object) -> None:
    """Refuse what was read of a ``corrector.json`` where it lacks a field or has one too many."""
    if not isinstance(content, dict):
        raise BeamlessError("its corrector.json is no object")
    names = {each.name for each in fields(CorrectorConfig)}
    if missing := sorted({"family", "model_hash", "width"} - content.keys()):
        raise BeamlessError(f"its corrector.json lacks {missing[0]}")
    if unknown := sorted(content.keys() - names - {SHA256}):
        raise BeamlessError(f"its corrector.json has an unknown {unknown[0]!r:.40}")


def _file_of(folder: Path, name: str) -> Path:
    file = folder / name
    if not file.is_file():
        raise BeamlessError(f"{folder} is not a corrector: it holds no {name}")
    return file
