"""What ``bundle.json`` may hold: an entry that somebody spoilt is named, not met later on."""

import re
from collections.abc import Mapping
from typing import Any

import openvino as ov

from beamless.inference.devices import PRECISIONS
from beamless.inference.errors import BeamlessError

SIZES = (
    "mels",
    "frames",
    "audio_positions",
    "text_positions",
    "width",
    "heads",
    "encoder_layers",
    "decoder_layers",
    "vocabulary",
)
WEIGHTS = ("f16", "f32", "int8")
LARGEST = 1 << 24  # above any size of a Whisper
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def check_manifest(content: Mapping[str, Any], least_capacity: int) -> None:
    """Refuse what no export has written.

    Args:
        content: ``bundle.json``, as JSON gives it.
        least_capacity: the least that a bundle can have.

    Raises:
        ValueError: an entry is of another kind or out of range; it is named.
        KeyError: an entry is missing.
    """
    for name in ("model", "sizes", "precision", "files"):
        _expect(isinstance(content[name], dict), name, "an object")
    for name in ("name", "hash"):
        _expect(isinstance(content["model"][name], str), f"model.{name}", "a text")
    sizes = content["sizes"]
    for name in SIZES:
        _expect(_whole(sizes[name], 1, LARGEST), f"sizes.{name}", "a whole number from 1")
    twice = 2 * sizes["audio_positions"]
    _expect(sizes["frames"] == twice, "sizes.frames", f"twice its positions, {twice}")
    _expect(sizes["width"] % sizes["heads"] == 0, "sizes.width", "a multiple of its heads")
    most = sizes["text_positions"]
    reach = f"a whole number from {least_capacity} to {most}"
    _expect(_whole(content["capacity"], least_capacity, most), "capacity", reach)
    for name, known in (("encoder", PRECISIONS), ("decoder", PRECISIONS), ("weights", WEIGHTS)):
        found = content["precision"][name]
        _expect(found in known, f"precision.{name}", f"one of {', '.join(known)}")
    _check_tokens(content, sizes)
    _check_corrector(content["corrector"])
    _check_files(content["files"], content["corrector"] is not None)
    _expect(isinstance(content.get("builder", ""), str), "builder", "a text")
    if content.get("confidence") is not None:
        _check_confidence(content["confidence"])


def check_graph(graph: str, model: ov.Model, sizes: Mapping[str, int], capacity: int) -> None:
    """Refuse a manifest whose sizes are not those of the graph that lies beside it.

    Args:
        graph: its name, ``encoder`` or one of the steps.
        model: as it is on disk.
        sizes, capacity: the manifest's.

    Raises:
        BeamlessError: they are not.
    """
    heads, last = sizes["heads"], sizes["decoder_layers"] - 1
    each = sizes["width"] // heads
    cross = (1, heads, sizes["audio_positions"], each)
    if graph == "encoder":
        expected = {"log_mel": (1, sizes["mels"], sizes["frames"]), f"cross_key.{last}": cross}
    else:
        past = (1, heads, capacity - 1, each)
        expected = {f"past_key.{last}": past, f"cross_key.{last}": cross}
        if graph == "decoder":
            expected["logits"] = (1, 1, sizes["vocabulary"])
    found = {port.any_name: tuple(port.shape) for port in (*model.inputs, *model.outputs)}
    if any(found.get(name) != shape for name, shape in expected.items()):
        raise BeamlessError(
            f"the sizes in bundle.json are not those of {graph}.xml beside it; export it again"
        )


def _check_tokens(content: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        found, most = content[name], sizes["vocabulary"] - 1
        fits = isinstance(found, list) and all(_whole(token, 0, most) for token in found)
        _expect(fits, name, "a list of tokens of the model")
    found, layers, heads = content["alignment_heads"], sizes["decoder_layers"], sizes["heads"]
    fits = isinstance(found, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and _whole(pair[0], 0, layers - 1)
        and _whole(pair[1], 0, heads - 1)
        for pair in found
    )
    _expect(fits, "alignment_heads", "a list of [layer, head] of the model")


def _check_corrector(about: object) -> None:
    if about is None:
        return
    if not isinstance(about, dict):
        raise ValueError("corrector must be an object or null")
    for name in ("family", "hash"):
        _expect(isinstance(about[name], str), f"corrector.{name}", "a text")
    provenance = about["provenance"]
    _expect(isinstance(provenance, dict), "corrector.provenance", "an object")
    languages = provenance.get("languages", [])
    _expect(isinstance(languages, list), "corrector.provenance.languages", "a list")


def _check_files(files: Mapping[str, Any], corrected: bool) -> None:
    for name, digest in files.items():
        _expect(bool(PLAIN_NAME.fullmatch(name)), f"files: {name!r:.60}", "a plain name")
        _expect(isinstance(digest, str), f"files.{name}", "a SHA-256")
    stems = ("encoder", "decoder", "corrected") if corrected else ("encoder", "decoder")
    wanted = [f"{stem}.{kind}" for stem in stems for kind in ("xml", "bin")]
    for name in (*wanted, "tokenizer.json"):
        if name not in files:
            raise KeyError(name)


def _check_confidence(stored: object) -> None:
    if not isinstance(stored, dict):
        raise ValueError("confidence must be an object")
    for name in ("word", "token"):
        found = stored[name]
        fits = isinstance(found, list) and len(found) == 3 and all(map(_number, found))
        _expect(fits, f"confidence.{name}", "three numbers")


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _number(value: object) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) <= 1e9  # type: ignore[arg-type, operator]


def _expect(fits: bool, entry: str, wanted: str) -> None:
    if not fits:
        raise ValueError(f"{entry} must be {wanted}")
