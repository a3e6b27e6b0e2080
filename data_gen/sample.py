"""A few short recordings to try things on, from what is installed; nothing is downloaded.

The package moonshine-voice (MIT) ships a reading of the first lines of A Tale of Two Cities, in
the public domain. Without it, an installed voice says them.
"""

from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import soxr

from beamless.data_gen.voices import load_voice
from beamless.inference.audio import SAMPLE_RATE, load_audio
from beamless.inference.errors import BeamlessError

Recording = tuple[str, np.ndarray, str]
"""An id, 16 kHz mono samples float32 [n], and what is said."""

CUTS = (0.00, 4.36, 8.43, 13.10, 17.11, 20.85, 24.31, 28.66, 32.50, 36.73, 42.26)
"""Where the lines begin in the reading, and where the last one ends, in seconds."""

TEXTS = (
    "It was the best of times, it was the worst of times,",
    "it was the age of wisdom, it was the age of foolishness,",
    "it was the epoch of belief, it was the epoch of incredulity,",
    "it was the season of Light, it was the season of Darkness,",
    "it was the spring of hope, it was the winter of despair,",
    "we had everything before us, we had nothing before us,",
    "we were all going direct to Heaven, we were all going direct the other way—",
    "in short, the period was so far like the present period,",
    "that some of its noisiest authorities insisted on its being received,",
    "for good or for evil, in the superlative degree of comparison only.",
)


def sample_recordings() -> list[Recording]:
    """Return ten lines, read by a person where moonshine-voice is installed, else by a voice.

    Raises:
        BeamlessError: neither the recording nor a voice is installed.
    """
    reading = reading_file()
    return _said() if reading is None else _read(reading)


def reading_file() -> Path | None:
    """Return the installed recording, or None; the package that holds it is not imported."""
    found = find_spec("moonshine_voice")
    if found is None or found.origin is None:
        return None
    file = Path(found.origin).parent / "assets" / "two_cities.wav"
    return file if file.is_file() else None


def _read(file: Path) -> list[Recording]:
    samples = load_audio(file)
    at = [round(seconds * SAMPLE_RATE) for seconds in CUTS]
    lines = zip(pairwise(at), TEXTS, strict=True)
    return [
        (f"two-cities-{number:02}", samples[start:stop], text)
        for number, ((start, stop), text) in enumerate(lines)
    ]


def _said() -> list[Recording]:
    try:
        voice = load_voice("joe")
    except BeamlessError:
        raise BeamlessError(
            'no sample recording is installed; run: pip install "beamless[demo]", or give a corpus'
        ) from None
    return [
        (
            f"two-cities-said-{number:02}",
            soxr.resample(voice.say(text), voice.rate, SAMPLE_RATE).astype(np.float32),
            text,
        )
        for number, text in enumerate(TEXTS)
    ]
