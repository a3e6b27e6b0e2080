"""Coqui ``TTS`` in process: its own model names, local checkpoints, and cloned speakers.

The package ``coqui-tts`` ties torch to a version, so it stands in an environment of its own.
"""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from beamless.data_gen.voices import Samples, chosen_speaker
from beamless.data_gen.voices.split import join_pieces, split_text
from beamless.inference.errors import BeamlessError

CHARACTERS = 220
"""Longest piece said at once; XTTS drops the end of an English text of more than 250."""

ONLY = "0"
"""Name of the speaker of a model that has one without a name."""


class CoquiVoice:
    """A Coqui model with its own speakers and those that recordings lend their voices to."""

    def __init__(self, tts: Any, name: str, language: str, clones: Mapping[str, Path]) -> None:  # noqa: ANN401
        """Take a loaded ``TTS.api.TTS``.

        Raises:
            BeamlessError: the model cannot clone, does not speak the language, or has nobody to
                speak.
        """
        self._tts, self._clones = tts, clones
        model = tts.synthesizer.tts_model
        if clones and not model.config.supports_cloning:
            raise BeamlessError(f"Coqui model {name} cannot clone the voice of a recording")
        known = tts.languages or [language]
        if language not in known:
            raise BeamlessError(
                f"Coqui model {name} does not speak {language!r}, but {', '.join(known)}"
            )
        own = list(tts.speakers or []) if tts.is_multi_speaker else [ONLY]
        if not own and not clones:
            raise BeamlessError(f"Coqui model {name} needs 'clones' to know whose voice it has")
        self.name, self.language, self.license = f"coqui/{name}", language, "unknown"
        self.rate = int(tts.synthesizer.output_sample_rate)
        self.speakers = (*clones, *own)
        self._length_scale = getattr(model, "length_scale", None)
        self._takes_speed = "xtts" in type(model).__name__.lower()

    def say(self, text: str, speaker: str | None = None, speed: float = 1.0) -> Samples:
        """Return mono samples ``[N]``.

        Raises:
            BeamlessError: the model has one pace only and another is asked for, or it fails.
        """
        import torch

        who = chosen_speaker(self, speaker)
        options: dict[str, Any] = {}
        if who in self._clones:
            options["speaker_wav"] = str(self._clones[who])
        elif self._tts.is_multi_speaker:
            options["speaker"] = who
        if self._tts.is_multi_lingual:
            options["language"] = self.language
        if self._takes_speed:
            options["speed"] = speed
        elif self._length_scale is not None:
            self._tts.synthesizer.tts_model.length_scale = self._length_scale / speed
        elif speed != 1.0:
            raise BeamlessError(f"{self.name} has one pace only; leave its speeds at 1")
        pieces = []
        for piece in split_text(text, CHARACTERS):
            seed = blake2b(f"{who}\n{speed}\n{piece}".encode(), digest_size=6).digest()
            torch.manual_seed(int.from_bytes(seed, "big"))
            try:
                said = self._tts.tts(piece, split_sentences=False, **options)
            except Exception as error:
                reason = " ".join(str(error).split())[:160]
                raise BeamlessError(f"{self.name} cannot say {piece!r} ({reason})") from None
            pieces.append(np.asarray(said, np.float32).reshape(-1))
        return join_pieces(pieces, self.rate)


def coqui(
    argument: str,
    *,
    config: str = "",
    language: str = "en",
    clones: Mapping[str, str] | None = None,
) -> CoquiVoice:
    """Load a Coqui model.

    Args:
        argument: a model's name, as in ``tts_models/en/vctk/vits``, or a checkpoint's file.
        config: the checkpoint's settings; ``config.json`` beside it by default.
        language: two-letter code, for models of many languages.
        clones: names of further speakers, each with a recording of that voice.

    Raises:
        BeamlessError: coqui-tts is not installed, or the model or a recording is not there.
    """
    recordings = {name: Path(path) for name, path in (clones or {}).items()}
    for name, path in recordings.items():
        if not path.is_file():
            raise BeamlessError(f"there is no recording {path} for the speaker {name!r}")
    try:
        from TTS.api import TTS
    except (ImportError, OSError) as error:
        raise BeamlessError(
            'Coqui needs an environment of its own; run: pip install "beamless[coqui]" there '
            f"({' '.join(str(error).split())[:100]})"
        ) from None
    if not argument:
        raise BeamlessError("Coqui needs a model: give coqui:NAME or coqui:CHECKPOINT.pth")
    checkpoint = Path(argument)
    try:
        if not checkpoint.suffix:
            return CoquiVoice(TTS(argument, progress_bar=False), argument, language, recordings)
        settings = Path(config) if config else checkpoint.with_name("config.json")
        for path in (checkpoint, settings):
            if not path.is_file():
                raise BeamlessError(f"there is no Coqui file {path}")
        loaded = TTS(model_path=str(checkpoint), config_path=str(settings), progress_bar=False)
    except BeamlessError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:160]
        raise BeamlessError(f"Coqui cannot load {argument} ({reason})") from None
    return CoquiVoice(loaded, checkpoint.stem, language, recordings)
