"""Voices behind any server with OpenAI's ``/v1/audio/speech``."""

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from beamless.data_gen.endpoint import Endpoint
from beamless.data_gen.voices import Samples, chosen_speaker
from beamless.data_gen.voices.split import join_pieces, split_text
from beamless.inference.audio import SAMPLE_RATE, AudioWarning, load_audio
from beamless.inference.errors import BeamlessError

CHARACTERS = 4000
"""A little under what the interface takes in one request."""


class SpeechServer:
    """A speech server; its answers are brought to 16 kHz."""

    rate = SAMPLE_RATE

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        speakers: Sequence[str],
        language: str = "en",
        license: str = "unknown",
    ) -> None:
        """Name the server, its model and those of its voices that are used."""
        self._endpoint, self._model = endpoint, model
        self.name = f"openai/{model}"
        self.language, self.license = language, license
        self.speakers = tuple(speakers)

    def say(self, text: str, speaker: str | None = None, speed: float = 1.0) -> Samples:
        """Return mono samples ``[N]`` at 16 kHz.

        Raises:
            BeamlessError: the server gives no answer, or one that is not a whole recording.
        """
        who = chosen_speaker(self, speaker)
        pieces = [self._say(piece, who, speed) for piece in split_text(text, CHARACTERS)]
        return join_pieces(pieces, self.rate)

    def _say(self, text: str, speaker: str, speed: float) -> Samples:
        body = {
            "model": self._model,
            "input": text,
            "voice": speaker,
            "speed": speed,
            "response_format": "wav",
        }
        answer = self._endpoint.post("audio/speech", body)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            path = Path(folder) / "answer.wav"
            path.write_bytes(answer)
            warnings.simplefilter("error", AudioWarning)
            try:
                return load_audio(path)
            except (BeamlessError, AudioWarning) as error:
                reason = str(error).replace(str(path), "it")
                raise BeamlessError(
                    f"{self._endpoint.url} did not send a whole recording ({reason})"
                ) from None


def openai_speech(
    argument: str,
    *,
    model: str = "tts-1",
    speakers: Sequence[str] = ("alloy",),
    language: str = "en",
    license: str = "unknown",
    key_name: str = "OPENAI_API_KEY",
    timeout: float = 120.0,
    retries: int = 4,
    wait: float = 1.0,
) -> SpeechServer:
    """Name a speech server.

    Args:
        argument: its address up to ``/v1``.
        model: the model that it is asked for.
        speakers: the names of its voices that may be chosen.
        language: two-letter code of the language that it speaks.
        license: the licence of what it says.
        key_name: the environment variable that holds the key, where one is needed.
        timeout: seconds that one answer may take.
        retries: how often a request that fails is sent again.
        wait: seconds before the first of them.
    """
    endpoint = Endpoint(argument, key_name, timeout, retries, wait)
    return SpeechServer(endpoint, model, speakers, language, license)
