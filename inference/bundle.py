"""A bundle: the folder that production loads, and nothing else.

``bundle.json`` (sizes, suppress lists, precision, provenance, hashes), ``encoder.xml`` (log-mel →
cross-KV; reshaped at load for a shorter context), ``decoder.xml`` (the static step; reshaped at
load for a beam or a larger cache, and for windows of any number of positions where the device
takes these), ``corrected.xml`` (step and corrector in one graph, where there
is a corrector), and ``tokenizer.json``.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import openvino as ov

from beamless.inference.confidence import Confidence
from beamless.inference.devices import compile_model, encodes_beside, takes_any_size, was_cached
from beamless.inference.errors import BeamlessError
from beamless.inference.manifest_check import check_graph, check_manifest
from beamless.inference.tokenizer import Tokenizer
from beamless.inference.whole import check_files

FORMAT_VERSION = 4
DEFAULT_CAPACITY = 224
LEAST_CAPACITY = 8
POSITION_AXIS = {"cross_key": 2, "cross_value": 2, "cross_bias": 1}
Shape = tuple[str, int, int, int]
"""A graph's name, B, C and frames, of which a step knows nothing."""

OPEN = -1  # a size that is known only when a window comes


@dataclass(frozen=True)
class Manifest:
    """``bundle.json``.

    Attributes:
        model: the checkpoint's name and hash.
        sizes: every size of the model, as ``models.whisper.Sizes`` names them.
        capacity: tokens that a window's cache holds, the prompt among them.
        precision: what ``encoder`` and ``decoder`` compute in, and what ``weights`` are stored as.
        corrector: the corrector's name, family, hash and provenance, or None.
        files: SHA-256 of every other file.
        confidence: how raw probabilities are calibrated, and on what; None until
            ``beamless calibrate`` has been run, but for correctors that come with Beamless.
        builder: what names the code that built its graphs.
    """

    model: Mapping[str, str]
    sizes: Mapping[str, int]
    capacity: int
    precision: Mapping[str, str]
    suppress_tokens: tuple[int, ...]
    begin_suppress_tokens: tuple[int, ...]
    alignment_heads: tuple[tuple[int, int], ...]
    corrector: Mapping[str, Any] | None
    files: Mapping[str, str]
    format_version: int = FORMAT_VERSION
    confidence: Mapping[str, Any] | None = None
    builder: str = ""

    def to_json(self) -> str:
        """Return the text of ``bundle.json``."""
        content = asdict(self)
        if self.confidence is None:
            del content["confidence"]
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Bundle:
    """A loaded bundle, on a device; graphs are compiled when first asked for.

    A copy that ``dataclasses.replace`` makes has nothing compiled: what it changes may matter.
    """

    folder: Path
    manifest: Manifest
    device: str = "CPU"
    graph_cache: Path | None = None
    threads: int | None = None
    _compiled: dict[Shape, ov.CompiledModel] = field(default_factory=dict, init=False)

    @property
    def hash(self) -> str:
        """SHA-256 over all files' hashes and the manifest: names this bundle in reports.

        It stays the same when the bundle is calibrated, which changes no token, and when other code
        has built the same graphs.
        """
        decoding = replace(self.manifest, confidence=None, builder="")
        return hashlib.sha256(decoding.to_json().encode()).hexdigest()

    @cached_property
    def confidence(self) -> Confidence | None:
        """How its raw probabilities are calibrated; None where they are not."""
        stored = self.manifest.confidence
        return None if stored is None else Confidence.of(stored)

    def confidence_in(self, language: str) -> Confidence | None:
        """Return how raw probabilities are calibrated in a language; None where they are not.

        Numbers that were fitted on one language say nothing about another.
        """
        stored = self.manifest.confidence
        known = stored is not None and stored.get("language", language) == language
        return self.confidence if known else None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        vocabulary = self.manifest.sizes["vocabulary"]
        return Tokenizer.from_file(self.folder / "tokenizer.json", vocabulary)

    @property
    def has_corrector(self) -> bool:
        """Whether ``corrected.xml`` is there."""
        return self.manifest.corrector is not None

    def corrects(self, language: str, task: str = "transcribe") -> bool:
        """Tell whether its corrector has learned from a language: elsewhere it would do harm.

        One that does not say what it has learned from is trusted everywhere; a translation is
        nothing that any has learned.
        """
        if self.manifest.corrector is None or task != "transcribe":
            return False
        known = self.manifest.corrector["provenance"].get("languages")
        return known is None or language in known

    @property
    def any_size(self) -> bool:
        """Whether its encoder and its steps take windows of any number of positions."""
        return takes_any_size(self.device)

    @property
    def encodes_beside(self) -> bool:
        """Whether the next window is to be encoded while one is decoded."""
        return encodes_beside(self.device, self.threads)

    @property
    def from_cache(self) -> bool:
        """Whether all graphs so far were taken from the cache of compiled ones."""
        return bool(self._compiled) and all(map(was_cached, self._compiled.values()))

    def compile(
        self,
        graph: str,
        batch: int = 1,
        capacity: int | None = None,
        frames: int | None = None,
    ) -> ov.CompiledModel:
        """Compile ``encoder``, ``decoder`` or ``corrected``, once for each shape.

        Args:
            graph: the file's stem.
            batch: hypotheses that step together; for ``decoder`` only.
            capacity: tokens of the cache; the bundle's if None.
            frames: of the log-mel that ``encoder`` takes; all that the model knows if None. Where
                the device takes any size there is one encoder for all of them.

        Raises:
            BeamlessError: the model has no such capacity, or the graph other sizes than it says.
        """
        capacity = self.manifest.capacity if capacity is None else capacity
        frames = self.manifest.sizes["frames"] if frames is None else frames
        if graph != "encoder" or self.any_size:
            frames = OPEN
        check_capacity(capacity, self.manifest.sizes["text_positions"])
        key = (graph, batch, capacity, frames)
        if key not in self._compiled:
            model = ov.Core().read_model(self.folder / f"{graph}.xml")
            check_graph(graph, model, self.manifest.sizes, self.manifest.capacity)
            self._compiled[key] = self._compile(model, key, self.graph_cache)
        return self._compiled[key]

    def _compile(self, model: ov.Model, key: Shape, cache: Path | None) -> ov.CompiledModel:
        """Give a graph its shapes, some of them open where the device takes any size."""
        graph, batch, capacity, frames = key
        kind = "encoder" if graph == "encoder" else "decoder"
        if kind == "encoder":
            model.reshape([1, self.manifest.sizes["mels"], frames])
        else:
            positions = OPEN if self.any_size else self.manifest.sizes["audio_positions"]
            model.reshape(step_shapes(model, batch, capacity, positions))
        precision = self.manifest.precision[kind]
        return compile_model(model, self.device, precision, cache, self.threads)

    def with_graph(self, graph: str, model: ov.Model, manifest: Manifest) -> "Bundle":
        """Return a bundle in memory alone that has another step graph and shares all the others.

        Args:
            graph: the name that it goes by, ``corrected`` or ``decoder``.
            model: of this bundle's capacity.
            manifest: the new one's.
        """
        made = replace(self, manifest=manifest)
        made._compiled.update({k: v for k, v in self._compiled.items() if k[0] != graph})
        key = (graph, 1, manifest.capacity, OPEN)
        made._compiled[key] = made._compile(model, key, None)
        return made


def check_capacity(capacity: int, most: int) -> None:
    """Refuse a capacity that no prompt fits in, or that is beyond the model's positions.

    Raises:
        BeamlessError: it is out of range.
    """
    if not LEAST_CAPACITY <= capacity <= most:
        reach = f"{LEAST_CAPACITY} and the model's {most}"
        raise BeamlessError(f"a capacity of {capacity} is not within {reach}")


def step_shapes(
    model: ov.Model, batch: int, capacity: int, positions: int | None = None
) -> dict[str, list[int]]:
    """Return the input shapes of a step graph for another batch, capacity or number of positions.

    ``positions`` are the encoder's, as the graph has them if None.
    """
    shapes: dict[str, list[int]] = {}
    for port in model.inputs:
        shape = list(port.shape)
        if port.any_name == "input_ids":
            shape[0] = batch
        elif port.any_name == "attention_mask":
            shape[1] = capacity
        elif port.any_name.startswith("past_"):
            shape[0], shape[2] = batch, capacity - 1
        elif port.any_name.startswith("cross_") and positions is not None:
            shape[POSITION_AXIS[port.any_name.partition(".")[0]]] = positions
        shapes[port.any_name] = shape
    return shapes


def load_bundle(
    folder: Path,
    device: str = "CPU",
    graph_cache: Path | None = None,
    threads: int | None = None,
) -> Bundle:
    """Load a bundle and check that it is whole.

    Raises:
        BeamlessError: it is no bundle, of another version, or a file is missing or was changed.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest.files, graph_cache)
    return Bundle(folder, manifest, device, graph_cache, threads)


def read_manifest(folder: Path) -> Manifest:
    """Read ``bundle.json``.

    Raises:
        BeamlessError: the folder is no bundle, or one of another version.
    """
    file = folder / "bundle.json"
    if not file.is_file():
        raise BeamlessError(f"{folder} is not a bundle: it holds no bundle.json")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        version = content["format_version"]
        if version != FORMAT_VERSION:
            wanted = f"this Beamless reads version {FORMAT_VERSION}"
            raise BeamlessError(
                f"bundle {folder} is of version {version!r:.20}; {wanted}; export it again"
            )
        check_manifest(content, LEAST_CAPACITY)
        for name in ("suppress_tokens", "begin_suppress_tokens"):
            content[name] = tuple(content[name])
        content["alignment_heads"] = tuple((a, b) for a, b in content["alignment_heads"])
        return Manifest(**content)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise BeamlessError(f"{file} is damaged ({reason}); export the bundle again") from None
