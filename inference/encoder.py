"""The encoder: one window's log-mel to the cross-KV that every step of it reads.

Dimension symbols: M mel bands, F frames, S encoder positions (half as many), H heads, e width of a
head.
"""

from collections.abc import Mapping

import numpy as np
import openvino as ov

from beamless.inference.decoder import CrossKV
from beamless.inference.shapes import fixed_shape

FRAMES_A_POSITION = 2  # the stride of Whisper's second convolution


class Encoder:
    """A compiled encoder with its own infer request; its graph fixes F, or leaves it open."""

    def __init__(self, compiled: ov.CompiledModel) -> None:
        self._compiled = compiled
        self._request = compiled.create_infer_request()

    def __call__(self, log_mel: np.ndarray, out: Mapping[str, np.ndarray] | None = None) -> CrossKV:
        """Encode a window.

        Args:
            log_mel: [1, M, F] float32.
            out: arrays to write to; new ones if None, so that a decoder may still read those of
                the window before.

        Raises:
            ValueError: the shape or type is another one.
        """
        expected = fixed_shape(self._compiled.input(0), log_mel.shape[-1])
        if log_mel.shape != expected or log_mel.dtype != np.float32:
            given = f"{log_mel.dtype} {log_mel.shape}"
            raise ValueError(f"input 'log_mel' takes float32 {expected}, not {given}")
        window = np.ascontiguousarray(log_mel)
        self._request.set_tensor("log_mel", ov.Tensor(window, shared_memory=True))
        cross_kv = self.arrays(log_mel.shape[2]) if out is None else out
        for port in self._compiled.outputs:
            tensor = ov.Tensor(cross_kv[port.any_name], shared_memory=True)
            self._request.set_tensor(port, tensor)
        self._request.infer()
        return cross_kv

    def arrays(self, frames: int) -> dict[str, np.ndarray]:
        """Return new arrays [1, H, S, e] for what the encoder gives of so many frames."""
        positions = -(-frames // FRAMES_A_POSITION)
        return {
            port.any_name: np.empty(fixed_shape(port, positions), np.float32)
            for port in self._compiled.outputs
        }
