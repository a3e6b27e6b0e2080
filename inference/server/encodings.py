"""Samples to the sound files that OpenAI's speech interface knows."""

import io

import numpy as np
import soundfile
import soxr

from beamless.inference.server.errors import ApiError

ENCODINGS = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
"""Formats, and the types that they are answered as."""
FULL_RATE = 24000  # Hz of pcm, by OpenAI's word; of opus too, which knows no 22,050
SUBTYPES = {"mp3": ("MP3", None), "opus": ("OGG", "OPUS"), "flac": ("FLAC", "PCM_16")}


def encode(samples: np.ndarray, rate: int, kind: str) -> bytes:
    """Return samples [n] within ±1 in one of ``ENCODINGS``; pcm is 16-bit at 24 kHz.

    Raises:
        ApiError: the encoder is not installed.
    """
    if kind in ("pcm", "opus", "aac") and rate != FULL_RATE:
        samples, rate = soxr.resample(samples, rate, FULL_RATE), FULL_RATE
    samples = np.clip(samples, -1, 1).astype(np.float32)
    if kind == "pcm":
        return (samples * 32767).astype("<i2").tobytes()
    if kind == "aac":
        return _aac(samples, rate)
    file = io.BytesIO()
    container, subtype = SUBTYPES.get(kind, ("WAV", "PCM_16"))
    soundfile.write(file, samples, rate, format=container, subtype=subtype)
    return file.getvalue()


def _aac(samples: np.ndarray, rate: int) -> bytes:
    try:
        import av
    except ImportError:
        raise ApiError(
            400, 'aac needs PyAV on the server (pip install "beamless[av]"); take mp3', param=None
        ) from None
    file = io.BytesIO()
    with av.open(file, "w", format="adts") as container:
        track = container.add_stream("aac", rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
        frame.sample_rate = rate
        for packet in (*track.encode(frame), *track.encode(None)):
            container.mux(packet)
    return file.getvalue()
