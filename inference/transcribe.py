"""Recordings to transcripts, with a bundle and nothing else."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from beamless.inference.audio import SAMPLE_RATE, audio_blocks, check_samples
from beamless.inference.bundle import Bundle, load_bundle
from beamless.inference.encoder import Encoder
from beamless.inference.features import log_mel
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.methods import default_method, open_method
from beamless.inference.transcript import Segment, Transcript

WINDOW_SECONDS = 30.0


class Transcriber:
    """One bundle on one device, ready to transcribe.

    Example:
        ``Transcriber("bundle").transcribe("talk.flac").text``

    Attributes:
        method: the method's name.
    """

    def __init__(
        self,
        bundle: Bundle | Path | str,
        *,
        device: str = "CPU",
        method: str | None = None,
        language: str = "en",
    ) -> None:
        """Load the graphs.

        Args:
            bundle: a loaded bundle, or its folder.
            device: an OpenVINO device; of no effect on a loaded bundle.
            method: greedy, corrected, or beam and its size, as in beam5; corrected where the
                bundle has a corrector, else greedy, if None.
            language: what is spoken.

        Raises:
            BeamlessError: the bundle, the device, the language or the method is not to be had.
        """
        self.bundle = bundle if isinstance(bundle, Bundle) else load_bundle(Path(bundle), device)
        self.method = method or default_method(self.bundle)
        self.language = language
        prompt = self.bundle.tokenizer.prompt(language)
        self._encoder = Encoder(self.bundle.compile("encoder"))
        self._decode = open_method(self.bundle, self.method, prompt)

    def transcribe(self, audio: Path | str | np.ndarray, rate: int = SAMPLE_RATE) -> Transcript:
        """Transcribe a recording of any length.

        Args:
            audio: a file, or samples: float [n] within ±1, int16 [n], or [n, channels].
            rate: samples a second, where samples are given.

        Raises:
            BeamlessError: the file or the samples are no audio.
        """
        began = time.perf_counter()
        segments = list(self.segments(audio, rate))
        duration = segments[-1].end if segments else 0.0
        spoken = [segment for segment in segments if segment.text]
        return Transcript(
            text=" ".join(segment.text for segment in spoken),
            segments=tuple(spoken),
            language=self.language,
            duration=duration,
            timings={"total": time.perf_counter() - began},
        )

    def segments(
        self, audio: Path | str | np.ndarray, rate: int = SAMPLE_RATE
    ) -> Iterator[Segment]:
        """Yield a segment for each window of 30 s, as soon as it is decoded."""
        for start, window in windows(audio, rate):
            hypothesis = self.decode_window(window)
            yield Segment(
                start=start,
                end=start + len(window) / SAMPLE_RATE,
                text=self.bundle.tokenizer.decode(hypothesis.tokens).strip(),
                tokens=hypothesis.tokens,
                avg_logprob=hypothesis.avg_logprob,
                no_speech_prob=hypothesis.no_speech_prob,
                finish_reason=hypothesis.finish_reason,
            )

    def decode_window(self, samples: np.ndarray) -> Hypothesis:
        """Decode at most 30 s of 16 kHz mono samples."""
        mels = self.bundle.manifest.sizes["mels"]
        return self._decode(self._encoder(log_mel(samples, mels)))


def windows(
    audio: Path | str | np.ndarray, rate: int = SAMPLE_RATE
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield (start in seconds, 16 kHz mono samples) of consecutive windows of 30 s."""
    if isinstance(audio, np.ndarray):
        samples = check_samples(audio, rate)
        size = int(WINDOW_SECONDS * SAMPLE_RATE)
        blocks = iter([samples[at : at + size] for at in range(0, len(samples), size)])
    else:
        blocks = audio_blocks(Path(audio), WINDOW_SECONDS)
    start = 0.0
    for block in blocks:
        yield start, block
        start += len(block) / SAMPLE_RATE
