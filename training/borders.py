"""How right the times of long recordings are, by the borders of the utterances in them.

``python -m beamless.training.borders tiny.en CORPUS --join 600 --out long``. Utterances are joined
with a second of silence in between, so that it is known between which times each word was said.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jsonargparse import auto_cli

from beamless.data_gen.word_errors import normalize_english
from beamless.inference.atomic import write_text_atomically
from beamless.inference.options import DecodingOptions
from beamless.inference.progress import track
from beamless.inference.transcribe import Transcriber
from beamless.inference.transcript import Transcript
from beamless.inference.writers import render
from beamless.models.bundle import open_bundle
from beamless.training.bench.clips import Part, read_clips
from beamless.training.differences import common_words
from beamless.training.metrics import wer

Timed = tuple[str, float, float]
"""A normalised word and the two times between which it was said."""


@dataclass(frozen=True)
class Borders:
    """How words lie between the borders of their utterances.

    Attributes:
        words: how many words of the text were found.
        outside: s that each of them lies outside its utterance, 0 for one that lies within.
    """

    words: int
    outside: tuple[float, ...]


def spoken(parts: Sequence[Part]) -> list[Timed]:
    """Return the words of utterances, each with the borders of its utterance."""
    return [
        (word, part.start, part.end)
        for part in parts
        for word in normalize_english(part.text).split()
    ]


def heard(transcript: Transcript) -> list[Timed]:
    """Return the words of a transcript with their times; what a word becomes has its times."""
    words = [word for segment in transcript.segments for word in segment.words]
    return [
        (plain, word.start, word.end)
        for word in words
        for plain in normalize_english(word.text).split()
    ]


def compare(said: Sequence[Timed], found: Sequence[Timed]) -> Borders:
    """Match words in their order and measure how far each lies outside its utterance."""
    left, right = [word for word, *_ in said], [word for word, *_ in found]
    pairs = [(said[a], found[b]) for a, b in common_words(left, right)]
    outside = [max(0.0, first - start, end - last) for (_, first, last), (_, start, end) in pairs]
    return Borders(len(pairs), tuple(outside))


def borders(
    model: str,
    corpus: Path,
    *,
    out: Path,
    limit: int | None = None,
    join: float = 600.0,
    method: str | None = None,
) -> None:
    """Transcribe joined recordings, write them as srt, and print how right their times are.

    Args:
        model: a bundle's folder, or a model's name.
        corpus: a corpus's folder.
        out: a folder for the recordings and their subtitles.
        limit: so many of its utterances.
        join: s of a recording, at least.
        method: as in ``beamless transcribe``.
    """
    options = DecodingOptions(timestamps=True, word_times=True)
    transcriber = Transcriber(open_bundle(model), method=method, options=options)
    for clip in track(read_clips([corpus], limit, None, join, out), "recordings"):
        transcript = transcriber.transcribe(clip.path)
        write_text_atomically(out / f"{clip.path.stem}.srt", render(transcript, "srt"))
        said = spoken(clip.parts)
        found = compare(said, heard(transcript))
        rate = wer([(clip.text, transcript.text)])
        within = sum(each <= 0 for each in found.outside) / max(1, found.words)
        far = sum(each > 0.5 for each in found.outside)
        most = max(found.outside, default=0.0)
        p99 = float(np.percentile(found.outside or (0.0,), 99))
        sys.stdout.write(
            f"{clip.id}: {clip.seconds:.0f} s, {len(clip.parts)} utterances, WER {rate:.2%}; of "
            f"{len(said)} words {found.words} found, {within:.1%} of them within their utterance, "
            f"99 % within {p99:.2f} s of it, {far} more than 0.5 s off, the furthest {most:.2f} s\n"
        )


if __name__ == "__main__":
    auto_cli(borders, as_positional=True)
