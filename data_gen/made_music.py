"""Music that nobody sings: chords, bass, a melody and drums, drawn from a generator.

Plain as it is, an ear calls it music: four chords go round in a key, a melody keeps to the key's
scale and to the chords on strong beats, and timbres have partials and envelopes of their own. All
samples are float32 or float64 [n] at 16 kHz.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from beamless.inference.audio import SAMPLE_RATE

MAJOR, MINOR = (0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10)
TURNS = ((0, 4, 5, 3), (0, 5, 3, 4), (0, 3, 4, 0), (5, 3, 0, 4), (1, 4, 0, 5))
"""Degrees of the scale that chords stand on, a bar each."""

RHYTHMS = ((1.0, 1.0, 1.0, 1.0), (1.5, 0.5, 1.0, 1.0), (0.5, 0.5, 1.0, 0.5, 0.5, 1.0), (2.0, 2.0))
"""Beats of a melody's notes in a bar."""

BEATS = 4  # in a bar


@dataclass(frozen=True)
class Timbre:
    """What makes an instrument.

    Attributes:
        partials: frequencies as multiples of the lowest.
        weights: their amplitudes.
        attack, decay: in seconds; what it sounds is 1 − e^(−t ÷ attack), falling by e each decay.
    """

    partials: tuple[float, ...]
    weights: tuple[float, ...]
    attack: float
    decay: float


TIMBRES = {
    "organ": Timbre((1, 2, 3, 4, 6, 8), (1, 0.7, 0.4, 0.4, 0.2, 0.2), 0.02, 20.0),
    "strings": Timbre((1, 2, 3, 4, 5, 6, 7), (1, 0.5, 0.33, 0.25, 0.2, 0.17, 0.14), 0.12, 6.0),
    "plucked": Timbre((1, 2, 3, 4, 5, 6), (1, 0.6, 0.5, 0.3, 0.2, 0.1), 0.003, 0.5),
    "bell": Timbre((1, 2.76, 5.4, 8.93), (1, 0.6, 0.3, 0.2), 0.001, 1.2),
    "flute": Timbre((1, 2, 3), (1, 0.25, 0.08), 0.06, 8.0),
}


def music(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``count`` samples of a piece, its peak at 1."""
    beat = 60 / rng.uniform(70, 140)  # s
    scale = MAJOR if rng.random() < 0.5 else MINOR
    root = int(rng.integers(45, 57))  # as MIDI counts: 69 is 440 Hz
    turn = TURNS[int(rng.integers(len(TURNS)))]
    chords, lead = rng.permutation(list(TIMBRES))[:2]
    drums = rng.random() < 0.6
    piece = np.zeros(count)
    place = 4
    for bar in range(int(np.ceil(count / (BEATS * beat * SAMPLE_RATE)))):
        start, degree = bar * BEATS * beat, turn[bar % len(turn)]
        for step in (0, 2, 4):
            pitch = root + pitch_of(degree + step, scale)
            add(piece, note(pitch, BEATS * beat, TIMBRES[chords]), start, 0.25)
        bass = root - 12 + pitch_of(degree, scale)
        for half in range(2):
            add(piece, note(bass, 2 * beat, TIMBRES["plucked"]), start + half * 2 * beat, 0.5)
        at = 0.0
        for length in RHYTHMS[int(rng.integers(len(RHYTHMS)))]:
            place = walked(place, degree, at, rng)
            pitch = root + 12 + pitch_of(place, scale)
            add(piece, note(pitch, length * beat, TIMBRES[lead]), start + at * beat, 0.45)
            at += length
        if drums:
            for number in range(2 * BEATS):
                add(piece, drum(number, rng), start + number * beat / 2, 0.5)
    return piece / np.abs(piece).max()


def walked(place: int, degree: int, beat: float, rng: np.random.Generator) -> int:
    """Return a melody's next place on the scale, one of the chord's on the bar's strong beats."""
    place = int(np.clip(place + rng.integers(-2, 3), -2, 9))
    if beat % 2:
        return place
    chord = [degree + step + octave for step in (0, 2, 4) for octave in (-7, 0, 7)]
    return min(chord, key=lambda each: abs(each - place))


def pitch_of(place: int, scale: Sequence[int]) -> int:
    """Return the semitones above the root of a place on a scale, which goes on in octaves."""
    octave, step = divmod(place, len(scale))
    return 12 * octave + scale[step]


def note(pitch: int, seconds: float, timbre: Timbre) -> np.ndarray:
    """Return a note [n]; ``pitch`` is as MIDI counts. Partials beyond the rate's half are left."""
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    lowest = 440 * 2 ** ((pitch - 69) / 12)
    pairs = zip(timbre.partials, timbre.weights, strict=True)
    heard = [(lowest * p, weight) for p, weight in pairs if lowest * p < SAMPLE_RATE / 2]
    tone = np.sum([w * np.sin(2 * np.pi * f * time) for f, w in heard], axis=0)
    shape = (1 - np.exp(-time / timbre.attack)) * np.exp(-time / timbre.decay)
    release = np.minimum(1, (seconds - time) / min(0.03, seconds / 4))  # no click at the end
    return np.asarray(tone * shape * release)


def drum(half: int, rng: np.random.Generator) -> np.ndarray:
    """Return what is struck on a half beat of the bar: bass drum, snare, or a closed cymbal."""
    strike: Callable[[np.random.Generator], np.ndarray] = cymbal
    if half in (0, 4):
        strike = bass_drum
    elif half in (2, 6):
        strike = snare
    return strike(rng)


def bass_drum(rng: np.random.Generator) -> np.ndarray:
    """Return a sine [n] that falls from 120 to 45 Hz."""
    time = np.arange(round(0.25 * SAMPLE_RATE)) / SAMPLE_RATE
    phase = 2 * np.pi * (45 * time + 75 * 0.04 * (1 - np.exp(-time / 0.04)))
    return np.asarray(np.sin(phase) * np.exp(-time / 0.08) * rng.uniform(0.9, 1.1))


def snare(rng: np.random.Generator) -> np.ndarray:
    """Return a burst of noise [n] over a short tone."""
    time = np.arange(round(0.2 * SAMPLE_RATE)) / SAMPLE_RATE
    tone = 0.4 * np.sin(2 * np.pi * 190 * time) * np.exp(-time / 0.05)
    return tone + 0.4 * rng.normal(size=len(time)) * np.exp(-time / 0.06)


def cymbal(rng: np.random.Generator) -> np.ndarray:
    """Return a short burst of noise [n] that is mostly high."""
    time = np.arange(round(0.06 * SAMPLE_RATE)) / SAMPLE_RATE
    return 0.15 * np.diff(rng.normal(size=len(time) + 1)) * np.exp(-time / 0.015)


def add(piece: np.ndarray, sound: np.ndarray, seconds: float, loudness: float) -> None:
    """Mix a sound [n] into a piece from a time on, as much of it as the piece has room for."""
    start = round(seconds * SAMPLE_RATE)
    room = piece[start : start + len(sound)]
    room += loudness * sound[: len(room)]
