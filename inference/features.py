"""Whisper's front end: the log-mel spectrogram of one window of at most thirty seconds.

The method is that of Radford et al. 2022 (arXiv 2212.04356, section 2.2): 25 ms Hann windows
every 10 ms, power spectrum, 80 or 128 mel bands, logarithm, eight decades of dynamic range. It
equals transformers' ``WhisperFeatureExtractor`` within 1e-4.
"""

from functools import cache

import numpy as np

SAMPLE_RATE = 16000
N_FFT = 400
HOP = 160
WINDOW_FRAMES = 3000
FLOOR = 1e-10  # power under which a band counts as silent
DECADES = 8.0
FRAMES_AT_A_TIME = 16  # a larger product wakes BLAS's threads, which then spin beside the encoder's


def log_mel(samples: np.ndarray, n_mels: int = 80, frames: int = WINDOW_FRAMES) -> np.ndarray:
    """Return the features [1, n_mels, frames] of float32 samples [n] at 16 kHz.

    What is missing to ``frames`` is silence, as if the recording went on with zeros. Fewer frames
    than 3,000 give the first ``frames`` of the full window (for an encoder of short context).

    Raises:
        ValueError: the samples are longer than ``frames``, are not one-dimensional, or hold a
            value that is not finite.
    """
    if samples.ndim != 1:
        raise ValueError(f"samples have shape {samples.shape}, not [n]")
    if len(samples) > frames * HOP:
        raise ValueError(f"{len(samples)} samples do not fit in {frames} frames of {HOP}")
    if not np.isfinite(samples).all():
        raise ValueError("a sample is not finite")
    padded = _padded(samples, frames)
    heard = min(frames, -(-(len(samples) + N_FFT // 2) // HOP))
    bands = np.full((n_mels, frames), FLOOR, np.float32)
    strided = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]  # [frames, N_FFT]
    window, filters = hann(), mel_filters(n_mels)
    for start in range(0, heard, FRAMES_AT_A_TIME):
        stop = min(start + FRAMES_AT_A_TIME, heard)
        spectrum = np.fft.rfft(strided[start:stop] * window)  # [f, N_FFT // 2 + 1]
        power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
        np.matmul(filters, power.T, out=bands[:, start:stop])
    features = np.log10(np.maximum(bands, FLOOR))
    features = np.maximum(features, features.max() - DECADES)
    return ((features + 4.0) / 4.0)[None]


def _padded(samples: np.ndarray, frames: int) -> np.ndarray:
    """Return samples with half a window on both sides, frame i starting at i * HOP.

    The front is mirrored. So is the end of a full thirty seconds, and silence follows otherwise.
    """
    half = N_FFT // 2
    whole = np.zeros(frames * HOP + N_FFT)
    whole[half : half + len(samples)] = samples
    whole[:half] = whole[2 * half : half : -1]
    if frames == WINDOW_FRAMES:
        end = half + frames * HOP
        whole[end:] = whole[end - 2 : end - 2 - half : -1]
    return whole


@cache
def hann() -> np.ndarray:
    """Return the periodic Hann window [N_FFT]."""
    return np.hanning(N_FFT + 1)[:-1]


@cache
def mel_filters(n_mels: int) -> np.ndarray:
    """Return the mel filter bank float32 [n_mels, N_FFT // 2 + 1].

    Triangles equally wide on Slaney's mel scale from 0 Hz to 8 kHz, each of area one (Slaney 1998,
    Auditory Toolbox), as Whisper was trained with.
    """
    bins = np.linspace(0, SAMPLE_RATE / 2, N_FFT // 2 + 1)  # Hz
    corners = _mel_to_hertz(np.linspace(0, _hertz_to_mel(SAMPLE_RATE / 2), n_mels + 2))
    slopes = (bins - corners[:, None]) / np.diff(corners, append=np.inf)[:, None]
    rising, falling = slopes[:-2], 1 - slopes[1:-1]
    triangles = np.maximum(0, np.minimum(rising, falling))
    return (triangles * (2 / (corners[2:] - corners[:-2]))[:, None]).astype(np.float32)


def _hertz_to_mel(hertz: float) -> float:
    """Slaney's scale: 15 mels to 1 kHz, then 27 mels for every factor of 6.4."""
    return float(15 + 27 * np.log(hertz / 1000) / np.log(6.4)) if hertz >= 1000 else hertz * 0.015


def _mel_to_hertz(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel / 0.015, 1000 * 6.4 ** ((mel - 15) / 27))
