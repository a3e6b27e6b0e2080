"""Windows of samples to cross-KV, on as many frames as there is audio, or on all thirty seconds.

Whisper's encoder always works on thirty seconds, most of which are silence in a short recording.
With the short context it runs on the first frames alone, and the cross-KV of the other positions
is its own on thirty seconds of silence, as ``silence.py`` keeps it: zeros there make the decoder
loop, and so does nothing.

Where the device takes windows of any size (``Bundle.any_size``) the encoder runs on the seconds
that there are, and behind them one position stands for 25 of silence: their mean, and a bias of
log 25 on the attention to it. The last second's stand for themselves (``silence.group_starts``).
Each step then reads a third or less of the positions and gives the same; a single position for all
of the silence, or 200 of them and nothing behind, make twice the errors. Elsewhere shapes are
fixed: the encoder has four sizes, and all positions of silence follow.

Dimension symbols: S encoder positions, T of them that a short encoder gives, H heads, e width of
a head.
"""

import weakref
from collections.abc import Collection, Mapping
from threading import Lock

import numpy as np

from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV
from beamless.inference.encoder import FRAMES_A_POSITION, Encoder
from beamless.inference.features import HOP, SAMPLE_RATE, log_mel
from beamless.inference.options import AudioContext
from beamless.inference.silence import group_starts, silence_of

SHARES = (6, 3, 2, 1)  # what part of a window's positions a fixed encoder has: 5, 10, 15 and 30 s
GRAIN = 50  # positions between two sizes of an encoder that takes any: 1 s
LEAST = 250  # positions of its smallest size: on fewer it mishears single words
SILENCE_BEHIND = 1.0  # s that must be left behind the audio, so that its end is heard as one


class WindowEncoder:
    """A bundle's encoder in every length that is asked for; each is compiled on its first use.

    Attributes:
        sizes: how many positions T its encoders have, from the shortest to the full one.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._mels = bundle.manifest.sizes["mels"]
        self.positions = bundle.manifest.sizes["audio_positions"]
        if bundle.any_size:
            self.sizes = (*range(min(LEAST, self.positions), self.positions, GRAIN), self.positions)
        else:
            self.sizes = tuple(-(-self.positions // share) for share in SHARES)
        self._encoders: dict[int, Encoder] = {}
        self._parts: dict[int, dict[str, np.ndarray]] = {}
        self._buffers: Buffers | None = None
        self._silence: CrossKV | None = None
        self._starts = group_starts(self.positions)
        self._busy = Lock()

    def __call__(self, samples: np.ndarray, audio_context: AudioContext) -> CrossKV:
        """Encode a window.

        The arrays [1, H, S, e], or of less positions behind a short window, are not written to as
        long as any of them is held. Threads that ask at the same time are served one after the
        other.

        Args:
            samples: at most 30 s, float32 [n] at 16 kHz.
            audio_context: on as many frames as they need, or on all.

        Raises:
            ValueError: the samples are longer, or not finite.
        """
        size = self.size_for(len(samples)) if audio_context == "short" else self.positions
        features = log_mel(samples, self._mels, size * FRAMES_A_POSITION)
        with self._busy:
            encoder = self._encoder(size)
            if size == self.positions:
                return encoder(features)
            if self._bundle.any_size:
                return with_silence(encoder(features), self._grouped_silence(), self._starts)
            if size not in self._parts:
                self._parts[size] = encoder.arrays(features.shape[2])
            return self._shared().lend(encoder(features, self._parts[size]), size)

    def prepare(self, audio_contexts: Collection[AudioContext]) -> None:
        """Compile all that windows under these contexts may need, so that none waits for it."""
        self._encoder(self.positions)
        if "short" not in audio_contexts:
            return
        if self._bundle.any_size:
            self._grouped_silence()
            return
        for size in self.sizes:
            self._encoder(size)
        self._shared()

    def prepare_first(self) -> None:
        """Compile what every window needs, where that is one graph for all of them."""
        if self._bundle.any_size:
            self._encoder(self.positions)

    def size_for(self, samples: int) -> int:
        """Return how many positions samples need: those of the smallest size that holds them."""
        needed = (samples + SILENCE_BEHIND * SAMPLE_RATE) / (HOP * FRAMES_A_POSITION)
        return next((size for size in self.sizes if size >= needed), self.positions)

    def _encoder(self, size: int) -> Encoder:
        key = 0 if self._bundle.any_size else size
        if key not in self._encoders:
            compiled = self._bundle.compile("encoder", frames=size * FRAMES_A_POSITION)
            self._encoders[key] = Encoder(compiled)
        return self._encoders[key]

    def _shared(self) -> "Buffers":
        if self._buffers is None:
            every = np.arange(self.positions)
            self._buffers = Buffers(silence_of(self._bundle, self._encode_silence, every))
        return self._buffers

    def _grouped_silence(self) -> CrossKV:
        if self._silence is None:
            self._silence = silence_of(self._bundle, self._encode_silence, self._starts)
        return self._silence

    def _encode_silence(self) -> CrossKV:
        return self._encoder(self.positions)(log_mel(np.zeros(0, np.float32), self._mels))


def with_silence(part: CrossKV, silence: CrossKV, starts: np.ndarray) -> CrossKV:
    """Return a window's first T positions with silence behind them, a few positions for the rest.

    Args:
        part: [1, H, T, e]; a group begins at T.
        silence: of every group of positions, [1, H, N, e].
        starts: where the groups [N] begin; the last is of one position.
    """
    size = part["cross_key.0"].shape[2]
    first = int(np.searchsorted(starts, size))
    window = {name: np.concatenate([part[name], silence[name][:, :, first:]], 2) for name in part}
    counts = np.diff(starts[first:], append=starts[-1] + 1)
    bias = np.concatenate([np.zeros(size), np.log(counts)]).astype(np.float32)
    return {**window, "cross_bias": bias[None]}


class Buffers:
    """Arrays that hold silence wherever nothing was heard; used again when nobody holds them.

    A decoder reads those of one window while the next is encoded: two sets are enough for it.
    """

    def __init__(self, silence: CrossKV) -> None:
        self._silence = silence
        self._sets: list[Buffer] = []

    def lend(self, part: Mapping[str, np.ndarray], size: int) -> CrossKV:
        """Return ``part`` [1, H, T, e], T being ``size``, with silence behind it [1, H, S, e]."""
        free = next((buffer for buffer in self._sets if not buffer.held()), None)
        if free is None:
            free = Buffer({name: np.array(array) for name, array in self._silence.items()})
            self._sets.append(free)
        return free.fill(part, size, self._silence)


class Buffer:
    """One set of arrays, its first positions those of the last window that it was lent for."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays
        self._heard = 0
        self._lent: list[weakref.ref[np.ndarray]] = []

    def held(self) -> bool:
        """Tell whether somebody still holds what was lent."""
        return any(array() is not None for array in self._lent)

    def fill(self, part: Mapping[str, np.ndarray], size: int, silence: CrossKV) -> CrossKV:
        """Write a window, and silence where a longer one was; return views of the arrays."""
        for name, array in self._arrays.items():
            array[:, :, :size] = part[name]
            array[:, :, size : self._heard] = silence[name][:, :, size : self._heard]
        self._heard = size
        lent = {name: array[:] for name, array in self._arrays.items()}
        self._lent = [weakref.ref(array) for array in lent.values()]
        return lent
