"""The steps of an augmentation recipe: each changes samples and says what it did.

Settings are drawn from the generator that is passed in. audiomentations draws from the global
ones besides: ``augment.augmented`` seeds them for each step and puts them back.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from beamless.data_gen.corpus_writer import MAX_SECONDS
from beamless.inference.errors import BeamlessError
from beamless.inference.interrupts import ctrl_c_waits

Samples = npt.NDArray[np.float32]
Range = tuple[float, float]
Record = dict[str, Any]
Codec = Literal["mp3", "opus", "gsm"]

SOUNDS = (".wav", ".flac", ".ogg", ".opus", ".mp3")
TELEPHONE_RATE = 8_000
REFLECTIONS = 8
"""Highest order of simulated reflections: 12 costs three times as much for a longer tail."""


class Step(Protocol):
    """One kind of change; the fields of the dataclass are its settings in the recipe."""

    limits: ClassVar[dict[str, Range]]

    @property
    def p(self) -> float:
        """The probability that the step is taken."""
        ...

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Return changed samples, float32 ``[m]``, and what was done; an empty record: nothing."""
        ...


@dataclass(frozen=True)
class Speed:
    """Say it faster or slower at the same pitch; never beyond 30 s."""

    p: float = 1.0
    rate: Range = (0.9, 1.1)
    limits: ClassVar[dict[str, Range]] = {"rate": (0.5, 2.0)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Stretch time."""
        factor = _drawn(self.rate, rng)
        if len(samples) / rate / factor > MAX_SECONDS:
            return samples, {}
        change = _audiomentations().TimeStretch(factor, factor, leave_length_unchanged=False, p=1.0)
        return change(samples, rate), {"rate": factor}


@dataclass(frozen=True)
class Pitch:
    """Shift the pitch at the same speed."""

    p: float = 1.0
    semitones: Range = (-2.0, 2.0)
    limits: ClassVar[dict[str, Range]] = {"semitones": (-12.0, 12.0)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Shift the pitch."""
        shift = _drawn(self.semitones, rng)
        return _audiomentations().PitchShift(shift, shift, p=1.0)(samples, rate), {
            "semitones": shift
        }


@dataclass(frozen=True)
class Room:
    """Put the speaker in a simulated room, ``distance`` metres away; loudness stays the same."""

    p: float = 1.0
    rt60: Range = (0.2, 0.6)
    distance: Range = (0.3, 1.5)
    limits: ClassVar[dict[str, Range]] = {"rt60": (0.15, 1.5), "distance": (0.1, 3.0)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Convolve with the impulse response of a room of random size."""
        time, metres = _drawn(self.rt60, rng), _drawn(self.distance, rng)
        simulate = _audiomentations().RoomSimulator(
            min_target_rt60=time,
            max_target_rt60=time,
            min_mic_distance=metres,
            max_mic_distance=metres,
            calculation_mode="rt60",
            use_ray_tracing=False,
            max_order=REFLECTIONS,
            leave_length_unchanged=True,
            p=1.0,
        )
        heard = simulate(samples, rate)
        size = [round(float(simulate.parameters[f"size_{axis}"]), 2) for axis in "xyz"]
        loudness = _rms(samples) / max(_rms(heard), 1e-9)
        return heard * np.float32(loudness), {"rt60": time, "distance": metres, "size": size}


@dataclass(frozen=True)
class Noise:
    """Add a noise from a folder at a signal-to-noise ratio in decibels."""

    folder: Path
    p: float = 1.0
    snr: Range = (5.0, 30.0)
    limits: ClassVar[dict[str, Range]] = {"snr": (-20.0, 80.0)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Mix a stretch of one noise in; silence stays silence, since it has no loudness."""
        if _rms(samples) == 0:
            return samples, {}
        files = noise_files(self.folder)
        file, ratio = files[int(rng.integers(len(files)))], _drawn(self.snr, rng)
        mix = _audiomentations().AddBackgroundNoise(file, ratio, ratio, p=1.0)
        mixed = mix(samples, rate)
        if mixed is samples:  # the file holds silence
            return samples, {}
        offset = round(float(mix.parameters["offset"]), 3)
        name = file.relative_to(self.folder).as_posix()
        return mixed, {"file": name, "snr": ratio, "offset": offset}


@dataclass(frozen=True)
class Hiss:
    """Add noise that needs no files, at a signal-to-noise ratio in decibels.

    Its spectrum falls or rises by ``slope`` decibels an octave: 0 is white, -3 pink, -6 brown.
    """

    p: float = 1.0
    snr: Range = (5.0, 30.0)
    slope: Range = (-6.0, 0.0)
    limits: ClassVar[dict[str, Range]] = {"snr": (-20.0, 80.0), "slope": (-12.0, 12.0)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Mix it in; silence stays silence, since it has no loudness."""
        if _rms(samples) == 0:
            return samples, {}
        ratio, slope = _drawn(self.snr, rng), _drawn(self.slope, rng)
        mix = _audiomentations().AddColorNoise(ratio, ratio, slope, slope, p=1.0)
        return mix(samples, rate), {"snr": ratio, "slope": slope}


@dataclass(frozen=True)
class Gain:
    """Make it louder or softer, in decibels; what passes full scale is clipped, as a card does."""

    p: float = 1.0
    db: Range = (-12.0, 6.0)
    limits: ClassVar[dict[str, Range]] = {"db": (-60.0, 40.0)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Scale and clip."""
        gain = _drawn(self.db, rng)
        louder = _audiomentations().Gain(gain, gain, p=1.0)(samples, rate)
        clipped = float(np.mean(np.abs(louder) > 1.0)) if len(louder) else 0.0
        return np.clip(louder, -1.0, 1.0), {"db": gain, "clipped": round(clipped, 5)}


@dataclass(frozen=True)
class Clipping:
    """Clip the loudest ``percent`` of the samples."""

    p: float = 1.0
    percent: Range = (0.0, 5.0)
    limits: ClassVar[dict[str, Range]] = {"percent": (0.0, 90.0)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Clip at the percentile."""
        percent = round(_drawn(self.percent, rng))
        change = _audiomentations().ClippingDistortion(percent, percent, p=1.0)
        return change(samples, rate), {"percent": percent}


@dataclass(frozen=True)
class Telephone:
    """A landline: 300 to 3,400 Hz, 8 kHz, mu-law (ITU-T G.711)."""

    p: float = 1.0
    limits: ClassVar[dict[str, Range]] = {}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Filter the band, then code."""
        centre, width = 1850.0, 3100.0 / 1850.0
        band = _audiomentations().BandPassFilter(
            centre, centre, width, width, min_rolloff=24, max_rolloff=24, p=1.0
        )
        heard = _coded(band(samples, rate), rate, TELEPHONE_RATE, "WAV", "ULAW")
        return heard, {"law": "mu"}


@dataclass(frozen=True)
class Coding:
    """Code and decode with one of ``codecs``; ``strength`` 0 is the least loss, 1 the most."""

    p: float = 1.0
    codecs: tuple[Codec, ...] = ("mp3", "opus", "gsm")
    strength: Range = (0.5, 0.95)
    limits: ClassVar[dict[str, Range]] = {"strength": (0.0, 0.99)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Code in memory with libsndfile."""
        codec = self.codecs[int(rng.integers(len(self.codecs)))]
        strength = _drawn(self.strength, rng)
        if codec == "gsm":
            coded = _coded(samples, rate, TELEPHONE_RATE, "WAV", "GSM610")
            return coded, {"codec": codec}
        container, subtype = {"mp3": ("MP3", "MPEG_LAYER_III"), "opus": ("OGG", "OPUS")}[codec]
        coded = _coded(samples, rate, 16_000, container, subtype, compression_level=strength)
        return coded, {"codec": codec, "strength": strength}


@dataclass(frozen=True)
class Silence:
    """Put silence before and after, in seconds; never beyond 30 s."""

    p: float = 1.0
    before: Range = (0.0, 1.0)
    after: Range = (0.0, 1.0)
    limits: ClassVar[dict[str, Range]] = {"before": (0.0, 29.0), "after": (0.0, 29.0)}

    def apply(
        self, samples: Samples, rate: int, rng: np.random.Generator
    ) -> tuple[Samples, Record]:
        """Pad with zeros; steps that come later, such as noise, fill them."""
        room = max(0, int(MAX_SECONDS * rate) - len(samples))
        before = min(round(_drawn(self.before, rng) * rate), room)
        after = min(round(_drawn(self.after, rng) * rate), room - before)
        done = {"before": round(before / rate, 4), "after": round(after / rate, 4)}
        return np.pad(samples, (before, after)), done


STEPS: Mapping[str, type[Step]] = {
    "speed": Speed,
    "pitch": Pitch,
    "room": Room,
    "noise": Noise,
    "hiss": Hiss,
    "gain": Gain,
    "clipping": Clipping,
    "telephone": Telephone,
    "codec": Coding,
    "silence": Silence,
}
CODECS: tuple[str, ...] = get_args(Codec)
PLAIN = {"codec", "silence"}  # need no package that an install may lack


@lru_cache
def noise_files(folder: Path) -> tuple[Path, ...]:
    """Return the sounds under a folder in a fixed order.

    Raises:
        BeamlessError: there are none.
    """
    files = tuple(sorted(path for path in folder.rglob("*") if path.suffix.lower() in SOUNDS))
    if not files:
        raise BeamlessError(f"the noise folder {folder} holds no sound ({', '.join(SOUNDS)})")
    return files


def _coded(
    samples: Samples, rate: int, at: int, container: str, subtype: str, **options: float
) -> Samples:
    """Encode at the rate ``at`` and decode again; the length stays the same."""
    if not len(samples):
        return samples
    buffer = io.BytesIO()
    limited = np.clip(soxr.resample(samples, rate, at), -1.0, 1.0)
    with ctrl_c_waits():
        soundfile.write(buffer, limited, at, format=container, subtype=subtype, **options)
        buffer.seek(0)
        heard, decoded_rate = soundfile.read(buffer, dtype="float32")
    back = soxr.resample(heard, decoded_rate, rate)[: len(samples)]
    return np.pad(back, (0, len(samples) - len(back)))


def _drawn(span: Range, rng: np.random.Generator) -> float:
    return round(float(rng.uniform(*span)), 4)


def _rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0


def require_packages(names: Iterable[str]) -> None:
    """Refuse steps that need packages which are not here, before any folder is made for them.

    Raises:
        BeamlessError: one is missing; the message says how to install it.
    """
    if not PLAIN.issuperset(names):
        _audiomentations()


def _audiomentations() -> Any:  # noqa: ANN401 - a module
    try:
        import audiomentations
        import pyroomacoustics  # noqa: F401
    except ImportError as error:
        raise BeamlessError(
            f'augmentation needs {error.name}: pip install "beamless[augment]"'
        ) from None
    return audiomentations
