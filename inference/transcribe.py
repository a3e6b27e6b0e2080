"""Recordings to transcripts, with a bundle and nothing else."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from beamless.inference.audio import SAMPLE_RATE, audio_blocks, check_samples
from beamless.inference.budget import budget_for
from beamless.inference.bundle import Bundle, load_bundle
from beamless.inference.decoder import StaticDecoder
from beamless.inference.errors import BeamlessError
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.languages import joined, requested_language
from beamless.inference.longform import LongForm, OnWindow
from beamless.inference.methods import DEFAULT_METHOD
from beamless.inference.options import DecodingOptions
from beamless.inference.transcript import Segment, Transcript
from beamless.inference.window_decoder import WindowDecoder

BLOCK_SECONDS = 5.0
WARM_UP = (2.0, 7.0, 12.0, 29.0)


class Transcriber:
    """One bundle on one device, ready to transcribe.

    Example:
        ``Transcriber("bundle").transcribe("talk.flac").text``

    Attributes:
        method: the method's name.
        language: the code of what was heard last; empty as long as that is not known.
        options: what to decode and how; others may be set at any time, and hold from the next
            window on (vad, overlap and prompts: from the next recording on).
        on_window: called with each window and what was decoded of it, to look inside.
    """

    def __init__(
        self,
        bundle: Bundle | Path | str,
        *,
        device: str = "CPU",
        method: str | None = None,
        language: str | None = None,
        options: DecodingOptions | None = None,
    ) -> None:
        """Load the graphs.

        Args:
            bundle: a loaded bundle, or its folder.
            device: an OpenVINO device; of no effect on a loaded bundle.
            method: greedy, corrected, lookahead, greedy-lookahead, or beam and its size, as
                in beam5; lookahead if None.
            language: what is spoken; short for the option of the same name.
            options: all else that may be asked for.

        Raises:
            BeamlessError: the bundle, the device, the language or the method is not to be had.
        """
        self.bundle = bundle if isinstance(bundle, Bundle) else load_bundle(Path(bundle), device)
        self.method = method or DEFAULT_METHOD
        options = options or DecodingOptions()
        self.options = replace(options, language=language) if language else options
        check_options(self.options, self.bundle, self.method)
        self.language = ""
        self.on_window: OnWindow | None = None
        self._decoder = WindowDecoder(self.bundle, self.method)

    @property
    def decoder(self) -> StaticDecoder:
        """The static decoder that the method drives, for whoever watches its steps."""
        return self._decoder.static_decoder

    def transcribe(
        self,
        audio: Path | str | np.ndarray | Iterator[np.ndarray],
        rate: int = SAMPLE_RATE,
        on_segment: Callable[[Segment], None] | None = None,
    ) -> Transcript:
        """Transcribe a recording of any length.

        Args:
            audio: a file; samples: float [n] within ±1, int16 [n], or [n, channels]; or blocks of
                a recording as they come, float32 [n] at 16 kHz.
            rate: samples a second, where samples are given.
            on_segment: called with each segment as soon as there is one.

        Raises:
            BeamlessError: the file or the samples are no audio.
        """
        began = time.perf_counter()
        recording = LongForm(self._decoder, lambda: self.options, self.on_window)
        segments = []
        for segment in self._followed(recording, blocks_of(audio, rate)):
            segments.append(segment)
            if on_segment:
                on_segment(segment)
        return Transcript(
            text=joined((segment.text for segment in segments), recording.language),
            segments=tuple(segments),
            language=recording.language,
            duration=recording.duration,
            timings={"total": time.perf_counter() - began},
            left_out=recording.left_out,
        )

    def segments(
        self, audio: Path | str | np.ndarray, rate: int = SAMPLE_RATE
    ) -> Iterator[Segment]:
        """Yield the segments of a recording, each as soon as its window is decoded.

        Raises:
            BeamlessError: the file or the samples are no audio.
        """
        recording = LongForm(self._decoder, lambda: self.options, self.on_window)
        return self._followed(recording, blocks_of(audio, rate))

    def _followed(self, recording: LongForm, blocks: Iterator[np.ndarray]) -> Iterator[Segment]:
        for segment in recording.segments(blocks):
            self.language = recording.language
            yield segment

    def warm_up(self) -> None:
        """Decode silence of every length that has an encoder of its own, so that none waits."""
        for seconds in WARM_UP:
            self.decode_window(np.zeros(round(seconds * SAMPLE_RATE), np.float32))
        self.language = ""

    def decode_window(
        self, samples: np.ndarray, options: DecodingOptions | None = None
    ) -> Hypothesis:
        """Decode at most 30 s of 16 kHz mono samples, whatever they hold.

        Args:
            samples: float32 [n].
            options: in place of the transcriber's own.
        """
        options = options or self.options
        cross_kv = self._decoder.encode(samples, options.audio_context)
        language = requested_language(options.language, self.bundle.tokenizer)
        if language is None:
            probabilities = self._decoder.languages(cross_kv)
            language = max(probabilities, key=lambda code: probabilities[code])
        self.language = language
        budget = budget_for(samples, language, options.tokens_a_second)
        return self._decoder.decode(cross_kv, language, (), options, budget).best


def check_options(options: DecodingOptions, bundle: Bundle, method: str) -> None:
    """Refuse options that a bundle or a method cannot meet.

    Raises:
        BeamlessError: they are of no use here.
    """
    language = requested_language(options.language, bundle.tokenizer)
    bundle.tokenizer.prompt(language or "en", options.task)
    if options.alternatives and not method.startswith("beam"):
        raise BeamlessError(f"alternatives come from a beam, not from {method}; take beam5")
    if (options.word_times or options.overlap) and not bundle.manifest.alignment_heads:
        raise BeamlessError(
            "this model's alignment heads are not known, so its words have no times"
        )


def blocks_of(
    audio: Path | str | np.ndarray | Iterator[np.ndarray], rate: int = SAMPLE_RATE
) -> Iterator[np.ndarray]:
    """Yield a recording in blocks of five seconds, float32 [n] at 16 kHz.

    Raises:
        BeamlessError: the file or the samples are no audio.
    """
    if isinstance(audio, Iterator):
        yield from audio
        return
    if not isinstance(audio, np.ndarray):
        yield from audio_blocks(Path(audio), BLOCK_SECONDS)
        return
    samples = check_samples(audio, rate)
    size = round(BLOCK_SECONDS * SAMPLE_RATE)
    yield from (samples[at : at + size] for at in range(0, len(samples), size))
