"""Speech to text while it is spoken: passes over the utterance so far, of which text only grows.

An utterance begins where the speech detector hears one and ends with a pause. As long as it goes
on it is decoded again and again, and what two passes agree on is told. At its end it is decoded as
any recording is: that pass tells the rest, and its text is the utterance's final one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import soxr

from beamless.inference.agreement import agreed, continuation
from beamless.inference.audio import SAMPLE_RATE, check_samples
from beamless.inference.languages import WITHOUT_SPACES
from beamless.inference.transcribe import Transcriber
from beamless.inference.utterances import Utterance, UtteranceFinder
from beamless.inference.window_decoder import compression_ratio
from beamless.inference.word_times import words_of

EventType = Literal["transcript.text.delta", "transcript.text.segment", "transcript.text.done"]


@dataclass(frozen=True)
class StreamEvent:
    """Something that was heard.

    Attributes:
        type: a delta is new text, early and never taken back; a segment the final text of a whole
            utterance, once it has ended, empty where it turned out to hold no words; one ``done``
            ends the stream with the text of all segments.
        text: the new text, the utterance's, or all.
        start, end: of the utterance so far or the whole, in seconds from the stream's start.
        heard: seconds of audio that had come when this was told.
        language: its code, where that is known.
    """

    type: EventType
    text: str
    start: float
    end: float
    heard: float
    language: str = ""

    def message(self) -> dict[str, Any]:
        """Return it as servers send it, by OpenAI's names."""
        text = "delta" if self.type == "transcript.text.delta" else "text"
        times = {"start": round(self.start, 3), "end": round(self.end, 3)}
        return {"type": self.type, text: self.text, **times, "heard": round(self.heard, 3)}


@dataclass(frozen=True)
class StreamOptions:
    """When to listen again, and when an utterance is over.

    Attributes:
        step: s of new audio from one pass to the next, at least.
        pause: s of silence that end an utterance.
        longest: s after which an utterance is cut at its quietest place.
    """

    step: float = 0.4
    pause: float = 0.6
    longest: float = 25.0


DEFAULT = StreamOptions()
LEAST = 0.3  # s of speech that are worth a pass
SENTENCE_ENDS = ".?!…。？！"  # which Whisper puts wherever the audio stops
FIRST = 0.2  # s from one pass to the next as long as nothing was told


def stream(
    chunks: Iterable[np.ndarray],
    transcriber: Transcriber,
    rate: int = SAMPLE_RATE,
    options: StreamOptions = DEFAULT,
) -> Iterator[StreamEvent]:
    """Yield what is said, while chunks of sound come in.

    There is at most one pass a chunk: whoever cannot be kept waiting gives all sound that has come
    since as one chunk.

    Args:
        chunks: float within ±1 or int16, [n] or [n, channels], of any length.
        transcriber: what decodes; nobody else may use it meanwhile.
        rate: samples a second.
        options: when to listen.

    Raises:
        BeamlessError: a chunk is no sound.
    """
    session = Session(transcriber, options)
    for samples in at_whisper_rate(chunks, rate):
        yield from session.feed(samples)
    yield from session.finish()


def at_whisper_rate(chunks: Iterable[np.ndarray], rate: int) -> Iterator[np.ndarray]:
    """Yield chunks as float32 [n] at 16 kHz.

    Raises:
        BeamlessError: a chunk is no sound.
    """
    if rate == SAMPLE_RATE:
        yield from (check_samples(chunk) for chunk in chunks)
        return
    resampler = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32")
    for chunk in chunks:
        yield resampler.resample_chunk(check_samples(chunk))
    yield resampler.resample_chunk(np.zeros(0, np.float32), last=True)


class Session:
    """One stream of sound and what was told of it.

    Attributes:
        text: the final text of the utterances that have ended.
    """

    def __init__(self, transcriber: Transcriber, options: StreamOptions = DEFAULT) -> None:
        self._transcriber, self._options = transcriber, options
        self._finder = UtteranceFinder(options.pause, options.longest)
        self._language = ""
        self._told: list[str] = []  # words of this utterance
        self._before: list[str] = []  # what the last pass heard
        self._passed = 0.0  # when that was
        self._spoken = False  # something was told, of this utterance or one before
        self.text = ""

    def feed(self, samples: np.ndarray) -> list[StreamEvent]:
        """Take the next samples, float32 [n] at 16 kHz, and return what is new."""
        events = []
        for ended in self._finder.feed(samples):
            events += self._end(ended)
        utterance = self._finder.current
        waited = self._finder.heard - self._passed
        step = self._options.step if self._told else min(FIRST, self._options.step)
        if utterance and self._finder.voiced >= LEAST and waited >= step:
            events += self._listen(utterance)
            self._passed = self._finder.heard
        return events

    def finish(self) -> list[StreamEvent]:
        """Tell the rest, and that this is the end."""
        events = [event for ended in self._finder.finish() for event in self._end(ended)]
        return [*events, self._event("transcript.text.done", self.text, 0.0, self._finder.heard)]

    def _listen(self, utterance: Utterance) -> list[StreamEvent]:
        words = self._words(utterance.samples)
        count, self._before = agreed(self._before, words), words
        at = continuation(self._told, words) if self._told else 0
        new = words[at:count]
        if new and count == len(words):
            new[-1] = new[-1].rstrip(SENTENCE_ENDS) or new[-1]
        return self._tell(new, utterance)

    def _words(self, samples: np.ndarray) -> list[str]:
        """Return what one pass hears, by words; nothing where it hears silence or a loop."""
        asked = self._transcriber.options
        options = replace(
            asked,
            language=asked.language or self._language or None,
            timestamps=False,
            word_times=False,
            word_alternatives=0,
            alternatives=0,
            temperatures=(0.0,),
        )
        found = self._transcriber.decode_window(samples, options)
        tokenizer = self._transcriber.bundle.tokenizer
        silent = found.no_speech_prob > asked.no_speech_threshold
        if silent and found.avg_logprob < asked.logprob_threshold:
            return []
        most = asked.compression_ratio_threshold
        if compression_ratio(tokenizer.decode(found.tokens)) > most:
            return []
        return [word.text for word in words_of(found.tokens, tokenizer, self._transcriber.language)]

    def _end(self, utterance: Utterance) -> list[StreamEvent]:
        """Decode a whole utterance, tell what is missing of it, and then its final text.

        Where it was cut, what was told of the sound behind the cut is the next one's.
        """
        transcript = self._transcriber.transcribe(utterance.samples)
        self._language = transcript.language or self._language
        tokenizer = self._transcriber.bundle.tokenizer
        words = [
            word.text
            for segment in transcript.segments
            for word in words_of(
                [token for token in segment.tokens if token < tokenizer.end],
                tokenizer,
                self._language,
            )
        ]
        over: list[str] = []
        if utterance.cut and words:
            stop = continuation(words, self._told)
            self._told, over = self._told[:stop], self._told[stop:]
        events = self._tell(words[continuation(self._told, words) :], utterance)
        final = transcript.text.strip()
        if self._told or final:
            times = (utterance.start, utterance.end)
            events.append(self._event("transcript.text.segment", final, *times))
        if final:
            self.text += self._space(bool(self.text)) + final
        self._told, self._before = over, []
        return events

    def _tell(self, words: list[str], utterance: Utterance) -> list[StreamEvent]:
        if not words:
            return []
        new = "".join(words)
        if not self._told:
            new = self._space(self._spoken) + new.lstrip()
        self._told += words
        self._spoken = True
        return [self._event("transcript.text.delta", new, utterance.start, utterance.end)]

    def _space(self, between: bool) -> str:
        """Return what stands between utterances."""
        return " " if between and self._language not in WITHOUT_SPACES else ""

    def _event(self, kind: EventType, text: str, start: float, end: float) -> StreamEvent:
        return StreamEvent(kind, text, start, end, self._finder.heard, self._language)
