"""The encoder: one window's log-mel to the cross-KV that every step of it reads.

Dimension symbols: M mel bands, F frames, S encoder positions, H heads, e width of a head.
"""

from collections.abc import Mapping

import numpy as np
import openvino as ov

from beamless.inference.decoder import CrossKV


class Encoder:
    """A compiled encoder with its own infer request.

    Attributes:
        mels, frames: M and F.
    """

    def __init__(self, compiled: ov.CompiledModel) -> None:
        self._compiled = compiled
        self._request = compiled.create_infer_request()
        self.mels, self.frames = (int(size) for size in compiled.input(0).shape[1:])

    def __call__(self, log_mel: np.ndarray, out: Mapping[str, np.ndarray] | None = None) -> CrossKV:
        """Encode a window.

        Args:
            log_mel: [1, M, F] float32.
            out: arrays to write to; new ones if None, so that a decoder may still read those of
                the window before.

        Raises:
            ValueError: the shape or type is another one.
        """
        expected = tuple(self._compiled.input(0).shape)
        if log_mel.shape != expected or log_mel.dtype != np.float32:
            given = f"{log_mel.dtype} {log_mel.shape}"
            raise ValueError(f"input 'log_mel' takes float32 {expected}, not {given}")
        window = np.ascontiguousarray(log_mel)
        self._request.set_tensor("log_mel", ov.Tensor(window, shared_memory=True))
        cross_kv = self.arrays() if out is None else out
        for port in self._compiled.outputs:
            tensor = ov.Tensor(cross_kv[port.any_name], shared_memory=True)
            self._request.set_tensor(port, tensor)
        self._request.infer()
        return cross_kv

    def arrays(self) -> dict[str, np.ndarray]:
        """Return new arrays [1, H, S, e] for what the encoder gives."""
        ports = self._compiled.outputs
        return {port.any_name: np.empty(tuple(port.shape), np.float32) for port in ports}
