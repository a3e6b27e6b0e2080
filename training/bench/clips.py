"""What the bench measures on: utterances of corpora, as they are or joined to long recordings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from beamless.data_gen.corpora import Utterance, read_corpus
from beamless.data_gen.subset import spread
from beamless.inference.atomic import replaced_atomically
from beamless.inference.audio import SAMPLE_RATE, WINDOW_SECONDS, load_audio
from beamless.inference.errors import BeamlessError

PAUSE_SECONDS = 1.0


@dataclass(frozen=True)
class Part:
    """An utterance in a joined recording: where it lies, in seconds, and what is said in it."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Clip:
    """A file, what is said in it, its length in seconds, and what it was joined from, if it was."""

    id: str
    path: Path
    text: str
    seconds: float
    parts: tuple[Part, ...] = ()


def read_clips(
    corpora: Sequence[Path], limit: int | None, longest: float | None, join: float | None, out: Path
) -> list[Clip]:
    """Return what to measure on.

    Args:
        corpora: their folders.
        limit: so many utterances of each corpus, spread by a hash of their ids.
        longest: utterances of at most so many seconds.
        join: make recordings of about so many seconds out of them, a second of silence in between.
        out: the folder for such recordings.

    Raises:
        BeamlessError: there is no such corpus, or nothing is left of it.
    """
    clips = []
    for folder in corpora:
        heard = read_corpus(folder)
        fitting = [u for u in heard if longest is None or u.duration <= longest]
        clips += [clip_of(utterance, folder) for utterance in spread(fitting, limit)]
    if not clips:
        raise BeamlessError(f"no utterance is of at most {longest} s; take a larger --longest")
    return joined(clips, join, out) if join else clips


def opening(clips: Sequence[Clip], out: Path) -> Path:
    """Return the first recording; of one that is longer than a window, a file of its first one."""
    if clips[0].seconds <= WINDOW_SECONDS:
        return clips[0].path
    path = out / "audio" / "opening.wav"
    samples = load_audio(clips[0].path)[: round(WINDOW_SECONDS * SAMPLE_RATE)]
    with replaced_atomically(path) as temporary:
        soundfile.write(temporary, samples, SAMPLE_RATE)
    return path


def warming(clips: Sequence[Clip]) -> list[Clip]:
    """Return four clips from the shortest to the longest, for whoever prepares for lengths.

    Those that are longer than a window are of windows that all have the same length.
    """
    ordered = sorted((c for c in clips if c.seconds <= WINDOW_SECONDS), key=lambda c: c.seconds)
    places = {round(part * (len(ordered) - 1) / 3) for part in range(4)} if ordered else set()
    return [ordered[place] for place in sorted(places)]


def clip_of(utterance: Utterance, folder: Path) -> Clip:
    """Return an utterance as a clip; its id begins with its corpus's name."""
    name = f"{folder.resolve().name}/{utterance.id}"
    return Clip(name, utterance.audio, utterance.text, utterance.duration)


def joined(clips: Sequence[Clip], seconds: float, out: Path) -> list[Clip]:
    """Join clips one behind the other to wav files of at least so many seconds each."""
    groups: list[list[Clip]] = [[]]
    for clip in clips:
        if sum(each.seconds + PAUSE_SECONDS for each in groups[-1]) >= seconds:
            groups.append([])
        groups[-1].append(clip)
    found = []
    silence = np.zeros(round(PAUSE_SECONDS * SAMPLE_RATE), np.float32)
    for number, group in enumerate(groups):
        path = out / "audio" / f"{number:04d}.wav"
        sounds = [load_audio(clip.path) for clip in group]
        samples = np.concatenate([part for sound in sounds for part in (sound, silence)])
        with replaced_atomically(path) as temporary:
            soundfile.write(temporary, samples, SAMPLE_RATE)
        text = " ".join(clip.text for clip in group)
        seconds = len(samples) / SAMPLE_RATE
        parts = parts_of(group, [len(sound) / SAMPLE_RATE for sound in sounds])
        found.append(Clip(f"joined/{number:04d}", path, text, seconds, parts))
    return found


def parts_of(clips: Sequence[Clip], seconds: Sequence[float]) -> tuple[Part, ...]:
    """Return where clips of so many seconds lie, one behind the other with pauses in between."""
    starts = np.cumsum([0.0, *(each + PAUSE_SECONDS for each in seconds)])[:-1]
    placed = zip(starts.tolist(), seconds, clips, strict=True)
    return tuple(Part(start, start + length, clip.text) for start, length, clip in placed)
