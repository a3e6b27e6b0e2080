"""How good and how soon live text is: each utterance of a corpus as a stream, against the clock.

``python -m beamless.training.live tiny.en CORPUS``. Time is that of the sound, plus that of each
pass: the clock's or the processor's, whichever is less. On a quiet machine the clock's would be no
more than either, so that a busy one makes the figures worse and never better.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jsonargparse import auto_cli

from beamless.data_gen.corpora import read_corpus
from beamless.inference.agreement import plain
from beamless.inference.audio import SAMPLE_RATE, load_audio
from beamless.inference.options import DecodingOptions
from beamless.inference.progress import track
from beamless.inference.streaming import Session
from beamless.inference.transcribe import Transcriber
from beamless.inference.transcript import Word
from beamless.models.bundle import open_bundle
from beamless.training.differences import common_words
from beamless.training.metrics import wer

BLOCK_SECONDS = 0.1
BEFORE, BEHIND = 0.5, 1.0  # s of silence around each utterance


@dataclass(frozen=True)
class Heard:
    """A live stream's words, each with the time at which it was told."""

    text: str
    words: tuple[tuple[str, float], ...]


def heard_live(samples: np.ndarray, transcriber: Transcriber) -> Heard:
    """Stream samples, float32 [n] at 16 kHz, as fast as they were spoken."""
    session = Session(transcriber)
    block, clock, at = round(BLOCK_SECONDS * SAMPLE_RATE), 0.0, 0
    words: list[tuple[str, float]] = []
    while at < len(samples):
        stop = min(len(samples), max(at + block, int(clock * SAMPLE_RATE)))
        clock = max(clock, stop / SAMPLE_RATE)
        began = time.perf_counter(), time.process_time()
        events = session.feed(samples[at:stop])
        if stop == len(samples):
            events += session.finish()
        clock += min(time.perf_counter() - began[0], time.process_time() - began[1])
        for event in events:
            if event.type == "transcript.text.delta":
                words += [(word, clock) for word in event.text.split()]
        at = stop
    return Heard(session.text, tuple(words))


def lags(told: Sequence[tuple[str, float]], spoken: Sequence[Word]) -> list[float]:
    """Return how long after its end each word was told, of the words that both have."""
    left, right = [plain(word) for word, _ in told], [plain(word.text) for word in spoken]
    return [told[a][1] - spoken[b].end for a, b in common_words(left, right)]


def live(model: str, corpus: Path, *, limit: int = 40, method: str | None = None) -> None:
    """Print word error rates, live and offline, and how soon words were told.

    Args:
        model: a bundle's folder, or a model's name.
        corpus: a corpus's folder.
        limit: utterances.
        method: as in ``beamless transcribe``.
    """
    transcriber = Transcriber(open_bundle(model), method=method)
    transcriber.warm_up()
    pairs: dict[str, list[tuple[str, str]]] = {"offline": [], "live": []}
    first: list[float] = []
    late: list[float] = []
    for utterance in track(read_corpus(corpus)[:limit], "live", limit):
        sound = load_audio(utterance.audio)
        samples = np.pad(sound, [round(s * SAMPLE_RATE) for s in (BEFORE, BEHIND)])
        transcriber.options = DecodingOptions(word_times=True)
        offline = transcriber.transcribe(samples)
        transcriber.options = DecodingOptions()
        told = heard_live(samples, transcriber)
        pairs["offline"].append((utterance.text, offline.text))
        pairs["live"].append((utterance.text, told.text))
        spoken = [word for segment in offline.segments for word in segment.words]
        if spoken and told.words:
            first.append(told.words[0][1] - spoken[0].start)
        late += lags(told.words, spoken)
    for name, each in pairs.items():
        sys.stdout.write(f"{name} WER {100 * wer(each):.2f} %\n")
    for name, values in (("first text after speech began", first), ("lag of a word", late)):
        middle, most = np.percentile(values, [50, 95])
        sys.stdout.write(f"{name}: {middle:.2f} s, 95 % within {most:.2f} s\n")


if __name__ == "__main__":
    auto_cli(live, as_positional=True)
