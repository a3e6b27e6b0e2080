"""What may be asked of a transcription; the command line has the same options by the same names."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal

from beamless.inference.counts import require_finite
from beamless.inference.errors import BeamlessError
from beamless.inference.hypothesis import NO_SPEECH
from beamless.inference.sampling import LIKELIEST, require_weights

AudioContext = Literal["short", "full"]
DEFAULT_AUDIO_CONTEXT: AudioContext = "short"
MOST_OVERLAP = 5.0  # s


@dataclass(frozen=True)
class DecodingOptions:
    """How a recording is decoded; as it stands here, as plainly and as fast as it can be.

    Attributes:
        language: what is spoken, as a code (sv, sv-SE) or a name (Swedish); detected where the
            model knows several, by default.
        task: transcribe, or translate to English.
        timestamps: let the model write the times of each sentence, by Whisper's rules; without
            them a segment is a window of at most 30 s between pauses. By default on in windows of
            more than 15 s (8 s for a beam), where sentences are lost without them, and on the
            command line for every format but txt.
        word_times: give each word its times and a confidence, by the cross-attention.
        audio_context: let the encoder work on as much of its thirty seconds as a window needs, with
            what it makes of silence behind (short: on windows under 14 s in half the time or less),
            or on all of them (full: as Whisper does).
        vad: decode only where there is speech; off, all of the recording in windows of 30 s.
        overlap: let each window hear so many seconds of its neighbours too, at most 5, where no
            pause parts them, and keep what is its own by the times of words: for speech that
            hardly pauses. Windows are that much shorter, and text comes a window later.
        initial_prompt: text as if it stood before the recording: names and a style to go on with.
        hotwords: words to expect, shown to the model before every window.
        previous_text: show the model the text of the window before. It helps names and style, and
            may make a mistake or a repeat go on; after a window that repeats it is left out.
        temperatures: where a window fails a threshold, decode it again at the next of these; above
            0 tokens are drawn at random, always the same for the same window. Whisper's own are 0
            0.2 0.4 0.6 0.8 1.
        compression_ratio_threshold: text that zlib makes smaller than by this repeats itself, and
            the window fails.
        logprob_threshold: with a mean log-probability below this a window fails.
        no_speech_threshold: a window whose no-speech probability is above this, and that fails the
            log-probability threshold, is silent: it gives no text.
        eos_boost: end the text where the end is within so many nats of the best token, and among
            the eight likeliest; 0.2 to 0.5 against repeats.
        repetition_penalty: divide the logit of a token that the text holds already by this, or
            multiply it where it is negative, as transformers and CTranslate2 do; 1.1 to 1.2 against
            repeats, at the price of words that are said twice.
        tokens_a_second: stop a window as a runaway loop, and keep what it said once, where its text
            takes more tokens than so many for each second of sound (some 12 more are free); 0 never
            stops. By default 8 in English, twice what the densest of real texts takes, and no
            bound in other languages.
        alternatives: other readings of each window, from the list of a beam.
        word_alternatives: for each word, up to so many others that the decoder might have begun it
            with, from its likeliest tokens; with word_times, and at most 7.
    """

    language: str | None = None
    task: Literal["transcribe", "translate"] = "transcribe"
    timestamps: bool | None = None
    word_times: bool = False
    audio_context: AudioContext = DEFAULT_AUDIO_CONTEXT
    vad: bool = True
    overlap: float = 0.0
    initial_prompt: str = ""
    hotwords: str = ""
    previous_text: bool = False
    temperatures: tuple[float, ...] = (0.0,)
    compression_ratio_threshold: float = 2.4
    logprob_threshold: float = -1.0
    no_speech_threshold: float = NO_SPEECH
    eos_boost: float = 0.0
    repetition_penalty: float = 1.0
    tokens_a_second: float | None = None
    alternatives: int = 0
    word_alternatives: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.temperatures, Iterable):
            raise BeamlessError("temperatures are a list of numbers, such as 0 0.2 0.4")
        object.__setattr__(self, "temperatures", tuple(map(float, self.temperatures)))
        for each in fields(self):
            value = getattr(self, each.name)
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, float):
                    require_finite(**{each.name: number})
        if not self.temperatures or min(self.temperatures) < 0:
            raise BeamlessError("temperatures are one or more numbers from 0 on, such as 0 0.2 0.4")
        require_weights(self.eos_boost, self.repetition_penalty)
        if self.tokens_a_second is not None and self.tokens_a_second < 0:
            raise BeamlessError("tokens a second are 0 or more; 0 is no bound")
        _check_overlap(self.overlap, self.previous_text)
        if self.alternatives < 0:
            raise BeamlessError("alternatives are 0 or more")
        if not 0 <= self.word_alternatives < LIKELIEST:
            raise BeamlessError(f"alternatives of words are 0 to {LIKELIEST - 1}")
        if self.word_alternatives and not self.word_times:
            raise BeamlessError("alternatives of words need the words; ask for word times too")


def _check_overlap(seconds: float, previous_text: bool) -> None:
    if not 0 <= seconds <= MOST_OVERLAP:
        raise BeamlessError(f"an overlap is 0 to {MOST_OVERLAP:g} seconds; 0 is none")
    if seconds and previous_text:
        raise BeamlessError(
            "a window that overlaps would be told what it is yet to hear; "
            "ask for overlap or for previous text"
        )
