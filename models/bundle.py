"""Writing bundles, and finding the one that a model's name stands for."""

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import openvino as ov

from beamless.inference.atomic import PARTIAL, told_if_full, write_text_atomically
from beamless.inference.bundle import (
    DEFAULT_CAPACITY,
    FORMAT_VERSION,
    Bundle,
    Manifest,
    check_capacity,
    load_bundle,
    read_manifest,
)
from beamless.inference.cache import cache_folder
from beamless.inference.errors import BeamlessError
from beamless.inference.lock import alone_in
from beamless.inference.progress import console
from beamless.inference.tokenizer import Tokenizer
from beamless.inference.whole import file_hash
from beamless.models.corrector import Corrector
from beamless.models.fuse import corrected_graph, special_of
from beamless.models.graphs import decoder_graph, encoder_graph
from beamless.models.int8 import round_matrices
from beamless.models.precision import EXACT, PROFILES, Profile
from beamless.models.pretrained import pretrained, pretrained_confidence
from beamless.models.projection import round_projection
from beamless.models.whisper import Checkpoint, load_checkpoint


def write_bundle(
    checkpoint: Checkpoint,
    folder: Path,
    corrector: Corrector | None = None,
    capacity: int = DEFAULT_CAPACITY,
    precision: Mapping[str, str] | None = None,
) -> None:
    """Write a bundle's folder, whole or not at all.

    Args:
        checkpoint: the Whisper.
        folder: must not exist.
        corrector: fused into ``corrected.xml`` where given.
        capacity: tokens that a window's cache holds, the prompt among them.
        precision: what ``encoder`` and ``decoder`` compute in; ``weights`` f16 or f32 on disk, or
            int8, which the decoder's matrices are then and the rest f16.

    Raises:
        BeamlessError: the folder exists, the capacity is out of range, or the corrector was
            trained on another model.
    """
    precision = {**EXACT, **(precision or {})}
    _check(checkpoint, folder, corrector, capacity)
    tokenizer = Tokenizer(checkpoint.tokenizer_json, checkpoint.sizes.vocabulary)
    int8 = precision["weights"] == "int8"
    graphs = _graphs(checkpoint, corrector, capacity, tokenizer, int8)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=PARTIAL, dir=folder.parent) as name,
        told_if_full(folder.parent),
    ):
        partial = Path(name) / "bundle"
        partial.mkdir()
        for stem, graph in graphs.items():
            if int8 and stem != "encoder":
                round_matrices(graph, checkpoint, corrector)
            file = partial / f"{stem}.xml"
            ov.save_model(graph, file, precision["weights"] != "f32")
            if stem == "corrected" and not int8:
                _round_projection_in(file)
        write_text_atomically(partial / "tokenizer.json", checkpoint.tokenizer_json)
        files = {file.name: file_hash(file) for file in sorted(partial.iterdir())}
        manifest = _manifest(checkpoint, corrector, capacity, precision, files)
        write_text_atomically(partial / "bundle.json", manifest.to_json())
        partial.rename(folder)


def _round_projection_in(file: Path) -> None:
    core = ov.Core()
    core.set_property({"ENABLE_MMAP": False})  # the file is written over
    graph = core.read_model(file)
    round_projection(graph)
    ov.save_model(graph, file, compress_to_fp16=False)


def _graphs(
    checkpoint: Checkpoint,
    corrector: Corrector | None,
    capacity: int,
    tokenizer: Tokenizer,
    int8: bool,
) -> dict[str, ov.Model]:
    try:
        graphs = {
            "encoder": encoder_graph(checkpoint),
            "decoder": decoder_graph(checkpoint, capacity),
        }
        if corrector is not None:
            special = special_of(tokenizer)
            graphs["corrected"] = corrected_graph(checkpoint, corrector, capacity, *special, int8)
    except KeyError as error:
        raise BeamlessError(
            f"the weights of {checkpoint.name} lack {error}; fetch them again"
        ) from None
    return graphs


def _check(
    checkpoint: Checkpoint, folder: Path, corrector: Corrector | None, capacity: int
) -> None:
    if folder.exists():
        raise BeamlessError(f"{folder} exists; name another folder or remove it first")
    check_capacity(capacity, checkpoint.sizes.text_positions)
    if corrector is not None:
        check_match(checkpoint, corrector)


def check_match(checkpoint: Checkpoint, corrector: Corrector) -> None:
    """Refuse a corrector of another model.

    Raises:
        BeamlessError: the hash is another one, or a size.
    """
    if corrector.config.model_hash != checkpoint.hash:
        raise BeamlessError(
            f"this corrector was trained on another model ({corrector.config.model_hash[:12]}) "
            f"than {checkpoint.name} ({checkpoint.hash[:12]}); name its own model, or train one "
            "for this"
        )
    for name in ("width", "vocabulary"):
        size = getattr(checkpoint.sizes, name)
        theirs = getattr(corrector.config, name) or size  # only some families have a vocabulary
        if theirs != size:
            raise BeamlessError(f"this corrector's {name} is {theirs}, the model's is {size}")


def _manifest(
    checkpoint: Checkpoint,
    corrector: Corrector | None,
    capacity: int,
    precision: Mapping[str, str],
    files: dict[str, str],
) -> Manifest:
    return Manifest(
        model={"name": checkpoint.name, "hash": checkpoint.hash},
        sizes=vars(checkpoint.sizes),
        capacity=capacity,
        precision=precision,
        suppress_tokens=checkpoint.suppress_tokens,
        begin_suppress_tokens=checkpoint.begin_suppress_tokens,
        alignment_heads=checkpoint.alignment_heads,
        corrector=_about(corrector) if corrector else None,
        files=files,
        confidence=pretrained_confidence(corrector),
        builder=builder(),
    )


def _about(corrector: Corrector) -> dict[str, Any]:
    config = corrector.config
    return {
        "family": config.family,
        "gate": config.gate,
        "hash": corrector.hash,
        "parameters": corrector.parameters,
        "provenance": dict(config.provenance),
    }


def with_corrector(bundle: Bundle, checkpoint: Checkpoint, corrector: Corrector) -> Bundle:
    """Return a bundle with another corrector, in memory alone; its other graphs are shared.

    Raises:
        BeamlessError: the corrector was trained on another model.
    """
    capacity = bundle.manifest.capacity
    check_match(checkpoint, corrector)
    int8 = bundle.manifest.precision["weights"] == "int8"
    graph = corrected_graph(checkpoint, corrector, capacity, *special_of(bundle.tokenizer), int8)
    if int8:
        round_matrices(graph, checkpoint, corrector)
    else:
        round_projection(graph)
    confidence = pretrained_confidence(corrector)
    manifest = replace(bundle.manifest, corrector=_about(corrector), confidence=confidence)
    return bundle.with_graph("corrected", graph, manifest)


def open_bundle(
    name: str, device: str = "CPU", threads: int | None = None, precision: Profile = "exact"
) -> Bundle:
    """Open a bundle by its folder, or a model by any of its names.

    A model's bundle is built once, with the corrector that comes with Beamless for it if there is
    one, and kept in the cache folder with its compiled graphs. A kept one that is damaged is built
    again.

    Args:
        name: a bundle's folder, or a model's name.
        device: an OpenVINO device.
        threads: how many the CPU may use; all by default.
        precision: what a model's bundle computes in; one in a folder of its own says so itself.

    Raises:
        BeamlessError: there is no such bundle or model.
    """
    folder = Path(name).expanduser()
    graph_cache = cache_folder() / "graphs"
    if (folder / "bundle.json").is_file():
        return load_bundle(folder, device, graph_cache, threads)
    suffix = "" if precision == "exact" else f"-{precision}"
    kept = cache_folder() / "bundles" / f"{_kept_as(name)}{suffix}-v{FORMAT_VERSION}"

    def opened() -> Bundle | None:
        try:
            return load_bundle(kept, device, graph_cache, threads) if _is_kept(name, kept) else None
        except BeamlessError:
            return None

    if bundle := opened():
        return bundle
    checkpoint = load_checkpoint(name)
    with alone_in(kept):
        if bundle := opened():  # another process has built it
            return bundle
        console().print(f"building the bundle of {name} once, in {kept}")
        shutil.rmtree(kept, ignore_errors=True)
        corrector = pretrained(checkpoint.hash)
        write_bundle(checkpoint, kept, corrector, precision=PROFILES[precision])
        return load_bundle(kept, device, graph_cache, threads)


def open_asked(name: str, device: str, asked: Profile | None) -> Bundle:
    """Open a bundle for production: of a model's name the fast one, unless asked otherwise.

    Raises:
        BeamlessError: as ``open_bundle``; or a folder's bundle is not what is asked for.
    """
    bundle = open_bundle(name, device, precision=asked or "fast")
    if asked and dict(bundle.manifest.precision) != dict(PROFILES[asked]):
        raise BeamlessError(
            f"{name} is a bundle with a precision of its own; name its model, or ask for none"
        )
    return bundle


def _is_kept(name: str, kept: Path) -> bool:
    """Tell whether a model's bundle is kept as this Beamless would build it, with its corrector.

    Raises:
        BeamlessError: what is kept is no bundle, or a damaged one.
    """
    manifest = read_manifest(kept)
    if manifest.builder != builder():
        return False
    if not Path(name).expanduser().is_dir() and manifest.model["name"] != name:
        return False
    ours = pretrained(manifest.model["hash"])
    theirs = manifest.corrector["hash"] if manifest.corrector else None
    calibrated = manifest.confidence is not None or pretrained_confidence(ours) is None
    return theirs == (ours.hash if ours else None) and calibrated


@cache
def builder() -> str:
    """Return what names the code that builds graphs: other code may build others."""
    names = ("operators", "graphs", "corrector_graphs", "fuse", "choice", "projection", "int8")
    sources = [Path(__file__).with_name(f"{name}.py").read_bytes() for name in names]
    return hashlib.sha256(b"".join(sources)).hexdigest()[:16]


def _kept_as(model: str) -> str:
    """Return the cache's name for a model; a folder's changes with its place and its files.

    A name that ends as that of a fast bundle does gets a sign that no model's name holds.
    """
    folder = Path(model).expanduser()
    if not folder.is_dir():
        return model.replace("/", "--") + ("+" if model.endswith("-fast") else "")
    folder = folder.resolve()
    files = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in sorted(folder.iterdir())]
    return f"{folder.name}-{hashlib.sha256(repr((folder, files)).encode()).hexdigest()[:12]}"
