"""``beamless nospeech``: silence, noise, hum and music to a corpus with empty texts, all made.

Every word that ``beamless evaluate`` finds in it was made up; ids name the kind of sound. Nothing
is downloaded, and the seed decides all of it.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from beamless.data_gen.corpus_writer import CorpusWriter, summary_of
from beamless.data_gen.made_music import music
from beamless.inference.audio import SAMPLE_RATE
from beamless.inference.counts import require_between

SHORTEST, LONGEST = 1.0, 29.0  # s
MOST_SEED = 2**32 - 1

Sound = Callable[[int, np.random.Generator], np.ndarray]
"""A number of samples, and what they are drawn from, to samples [n] at 16 kHz."""


def silence(count: int, _: np.random.Generator) -> np.ndarray:
    """Return zeros, as a muted line gives them."""
    return np.zeros(count)


def white(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return a faint hiss, 70 to 40 decibels under full scale."""
    return decibels(rng.uniform(-70, -40)) * rng.normal(size=count)


def pink(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return noise that loses 3 decibels an octave, 50 to 20 under full scale."""
    spectrum = np.fft.rfft(rng.normal(size=count))
    spectrum /= np.sqrt(np.maximum(1, np.arange(len(spectrum))))
    noise = np.fft.irfft(spectrum, count)
    return np.asarray(decibels(rng.uniform(-50, -20)) * noise / noise.std())


def hum(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return a mains' hum of 50 or 60 Hz and its harmonics, over a hiss 30 decibels fainter."""
    time = np.arange(count) / SAMPLE_RATE
    mains = float(rng.choice([50, 60])) * (1 + 0.001 * rng.normal())
    sound = np.zeros(count)
    for harmonic in range(1, 16):
        strength = rng.uniform(0.3, 1.0) / harmonic
        sound += strength * np.sin(2 * np.pi * (mains * harmonic * time + rng.random()))
    sound /= sound.std()
    return decibels(rng.uniform(-50, -20)) * (sound + 0.03 * rng.normal(size=count))


def loud_music(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return music whose peak is 20 to 1 decibels under full scale."""
    return decibels(rng.uniform(-20, -1)) * music(count, rng)


KINDS: dict[str, tuple[Sound, int]] = {
    "silence": (silence, 8),
    "white": (white, 16),
    "pink": (pink, 16),
    "hum": (hum, 16),
    "music": (loud_music, 24),
}
"""Each kind's sound, and how many clips of it there are."""


def decibels(level: float) -> float:
    """Return an amplitude that is so many decibels from 1."""
    return float(10 ** (level / 20))


def no_speech(out: Path, *, seed: int = 0) -> None:
    """Write the corpus: 80 clips of 1 to 29 s; a stopped run goes on.

    Args:
        out: the corpus's folder; new, or one that the same seed began.
        seed: what the sounds are drawn from.

    Raises:
        BeamlessError: the folder holds something else, or the seed is out of range.
    """
    require_between(0, MOST_SEED, seed=seed)
    kinds = {kind: clips for kind, (_, clips) in KINDS.items()}
    with CorpusWriter(out, {"stage": "no speech", "seed": seed, "kinds": kinds}) as writer:
        for place, (kind, (sound, clips)) in enumerate(KINDS.items()):
            for number, seconds in enumerate(np.linspace(SHORTEST, LONGEST, clips), 1):
                name = f"{kind}-{number:02d}"
                if name in writer.done_ids:
                    continue
                rng = np.random.default_rng([seed, place, number])
                samples = sound(round(seconds * SAMPLE_RATE), rng).astype(np.float32)
                writer.add(name, samples, SAMPLE_RATE, "", "", "made", "CC0-1.0", label=kind)
        sys.stdout.write(summary_of(out, writer.finish()) + "\n")
