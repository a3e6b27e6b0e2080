"""The static decoder: one persistent infer request, buffers bound once, one token a step.

Dimension symbols: B hypotheses, C capacity, d width, V vocabulary, A alignment heads, S encoder
positions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import openvino as ov

from beamless.inference.errors import BeamlessError
from beamless.inference.kv_cache import KeyValueCache, attention_mask
from beamless.inference.shapes import fixed_shape

POSITION_AXIS = -2

CrossKV = Mapping[str, np.ndarray]
"""``cross_key.l`` and ``cross_value.l`` [1, H, S, e] of a window, as the encoder gives them.

``cross_bias`` [1, S] may be there too: log n where a position stands for n that are alike. Without
it each stands for itself.
"""


@dataclass(frozen=True)
class Step:
    """What one step gave. The arrays are the graph's own: copy what must outlive the next step.

    Attributes:
        outputs: the step graph's outputs by name, such as ``logits`` [B, 1, V].
    """

    outputs: Mapping[str, np.ndarray]

    @property
    def logits(self) -> np.ndarray:
        """The scores [B, V] of the next token."""
        return self.outputs["logits"][:, 0]

    @property
    def hidden(self) -> np.ndarray:
        """The decoder's last hidden state [B, d], from which the logits follow."""
        return self.outputs["hidden"][:, 0]


@dataclass(frozen=True)
class Passage:
    """What the steps at positions ``start`` to ``stop`` - 1 left in the decoder."""

    start: int
    stop: int
    slots: Mapping[str, np.ndarray]
    states: np.ndarray
    tokens: np.ndarray
    alignments: np.ndarray | None


class StaticDecoder:
    """A compiled step graph with its cache.

    Every size is read from the graph. Positions run from 0 to capacity - 1; the last one has no
    slot of its own, since no token follows it.

    Attributes:
        batch, capacity: B and C.
        position: where the next token goes.
        steps: infer calls since the window began; more than ``position`` where it was rewound.
        states: the hidden states [C, B, d] of the positions so far.
        tokens: what was fed [C, B] at the positions so far.
        alignments: the alignment heads' attention [C, B, A, S] at the positions so far, where
            ``record_alignments`` asks for it.
        on_step: called behind each step, where it is set; what it raises ends the decoding.

    Args:
        compiled: the step graph, compiled.
        extra_inputs: inputs beside the contract's own, by name; their arrays are bound once and
            may be written to between steps.

    Where the graph leaves S open each window may have its own.
    """

    def __init__(
        self, compiled: ov.CompiledModel, extra_inputs: Mapping[str, np.ndarray] | None = None
    ) -> None:
        self._ports = {port.any_name: port for port in compiled.inputs}
        self._request = compiled.create_infer_request()
        names = [name for name in self._ports if name.startswith("past_")]
        shape = tuple(self._ports["past_key.0"].shape)
        self.batch, self.capacity = int(shape[0]), int(shape[2]) + 1
        self.cache = KeyValueCache(names, shape)
        self.position = self.steps = 0
        self._tokens = np.zeros((self.batch, 1), np.int32)
        self._positions = np.zeros(1, np.int32)
        self._mask = np.zeros((1, self.capacity), np.float32)
        self._bound: dict[str, np.ndarray] = {}  # the request itself keeps no array alive
        self._audio_positions = 0
        self._cross_names = {name for name in self._ports if name.startswith("cross_")}
        own = {
            "input_ids": self._tokens,
            "position_ids": self._positions,
            "attention_mask": self._mask,
            **self.cache.buffers,
            **(extra_inputs or {}),
        }
        if missing := set(self._ports) - set(own) - self._cross_names:
            raise ValueError(f"nothing is bound to the step's inputs {sorted(missing)}")
        for name, array in own.items():
            self.bind(name, array)
        self._outputs: dict[str, np.ndarray] = {}
        self._open_outputs = [p for p in compiled.outputs if p.partial_shape.is_dynamic]
        for port in compiled.outputs:
            if port.partial_shape.is_static:
                self._give(port)
        width = self._outputs["hidden"].shape[-1]
        self.states = np.zeros((self.capacity, self.batch, width), np.float32)
        self.tokens = np.zeros((self.capacity, self.batch), np.int32)
        self._gives_alignment = any(port.any_name == "alignment" for port in compiled.outputs)
        self._recording = False
        self.alignments: np.ndarray | None = None
        self.on_step: Callable[[], None] | None = None

    def _give(self, port: ov.ConstOutput) -> None:
        """Make the array that an output is written to."""
        shape = fixed_shape(port, self._audio_positions)
        array = np.zeros(shape, port.element_type.to_dtype())
        self._request.set_tensor(port, ov.Tensor(array, shared_memory=True))
        self._outputs[port.any_name] = array

    @property
    def outputs(self) -> Mapping[str, np.ndarray]:
        """What the last step gave, by name; the next step writes over it."""
        return self._outputs

    def record_alignments(self, wanted: bool) -> None:
        """Keep the attention over the audio from the next window on, or do not.

        Raises:
            BeamlessError: the graph does not give it.
        """
        if wanted and not self._gives_alignment:
            raise BeamlessError(
                "this model's alignment heads are not known, so its words have no times; "
                "ask for times of segments"
            )
        self._recording = wanted
        if not wanted:
            self.alignments = None

    def bind(self, name: str, array: np.ndarray) -> None:
        """Let an input read from ``array`` from now on.

        Raises:
            ValueError: there is no such input, or the shape or type is not the one it takes.
        """
        if name not in self._ports:
            raise ValueError(f"the step has no input {name!r}; it has {sorted(self._ports)}")
        port = self._ports[name]
        expected = fixed_shape(port, self._audio_positions)
        dtype = port.element_type.to_dtype()
        if array.shape != expected or array.dtype != dtype:
            given = f"{array.dtype} {array.shape}"
            raise ValueError(f"input {name!r} takes {dtype} {expected}, not {given}")
        if not array.flags.c_contiguous:
            raise ValueError(f"input {name!r} takes a contiguous array")
        self._bound[name] = array
        self._request.set_tensor(port, ov.Tensor(array, shared_memory=True))

    def start(self, cross_kv: CrossKV) -> None:
        """Begin a window: bind its cross-KV, clear the cache and stand at position 0.

        Raises:
            ValueError: an input of the graph is missing or misshaped.
        """
        if missing := self._cross_names - {"cross_bias"} - set(cross_kv):
            raise ValueError(f"cross-KV lacks the step's inputs {sorted(missing)}")
        self._open_for(cross_kv)
        for name in self._cross_names:
            if name in cross_kv:
                self.bind(name, cross_kv[name])
            else:
                shape = fixed_shape(self._ports[name], self._audio_positions)
                self.bind(name, np.zeros(shape, np.float32))
        if self._recording:
            shape = (self.capacity, *self._outputs["alignment"].shape)
            if self.alignments is None or self.alignments.shape != shape:
                self.alignments = np.zeros(shape, np.float32)
        self.cache.clear()
        self.position = self.steps = 0

    def _open_for(self, cross_kv: CrossKV) -> None:
        """Let the sizes that the graph leaves open be those of a window."""
        name = "cross_key.0"
        if name not in self._ports or self._ports[name].partial_shape.is_static:
            return
        positions = max(1, cross_kv[name].shape[POSITION_AXIS])
        if positions != self._audio_positions:
            self._audio_positions = positions
            for port in self._open_outputs:
                self._give(port)

    def step(self, tokens: Sequence[int]) -> Step:
        """Feed one token a hypothesis [B], and store its keys and values in its slot.

        Raises:
            ValueError: no window was started, or the number of tokens is not B.
            IndexError: the capacity is used up.
        """
        if not self._cross_names <= set(self._bound):
            raise ValueError("start() a window before the first step")
        if len(tokens) != self.batch:
            raise ValueError(f"a step takes {self.batch} tokens, not {len(tokens)}")
        if self.position >= self.capacity:
            raise IndexError(f"the capacity of {self.capacity} tokens is used up")
        self._tokens[:, 0] = tokens
        self._positions[0] = self.position
        self._mask[:] = attention_mask(self.position, self.capacity)
        self._request.infer()
        if self.position < self.cache.slots:
            for name in self.cache.buffers:
                present = self._outputs[name.replace("past_", "present_")]
                self.cache.write(name, self.position, present)
        self.states[self.position] = self._outputs["hidden"][:, 0]
        self.tokens[self.position] = tokens
        if self.alignments is not None:
            self.alignments[self.position] = self._outputs["alignment"]
        self.position += 1
        self.steps += 1
        if self.on_step:
            self.on_step()
        return Step(self._outputs)

    def prefill(self, prompt: Sequence[int]) -> Step:
        """Feed every prompt token, at the positions that follow, and return the last step.

        Raises:
            ValueError: the prompt is empty.
            IndexError: the prompt is longer than the capacity.
        """
        if not prompt:
            raise ValueError("a prompt holds at least the start token")
        for token in prompt:
            step = self.step([token] * self.batch)
        return step

    def rewind(self, position: int) -> None:
        """Stand at an earlier position again; the slots behind it will be written over.

        Raises:
            ValueError: the position has not been reached yet.
        """
        if not 0 <= position <= self.position:
            raise ValueError(f"position {position} has not been reached; now at {self.position}")
        self.position = position

    def keep(self, start: int) -> Passage:
        """Copy what the steps from ``start`` on left, so that another try may go over it."""
        stop = min(self.position, self.cache.slots)
        slots = {name: b[:, :, start:stop].copy() for name, b in self.cache.buffers.items()}
        steps = slice(start, self.position)
        states, tokens = self.states[steps].copy(), self.tokens[steps].copy()
        alignments = None if self.alignments is None else self.alignments[steps].copy()
        return Passage(start, self.position, slots, states, tokens, alignments)

    def put_back(self, passage: Passage) -> None:
        """Stand where a passage ended, as if nothing had gone over it."""
        for name, kept in passage.slots.items():
            end = passage.start + kept.shape[2]
            self.cache.buffers[name][:, :, passage.start : end] = kept
        self.states[passage.start : passage.stop] = passage.states
        self.tokens[passage.start : passage.stop] = passage.tokens
        if self.alignments is not None and passage.alignments is not None:
            self.alignments[passage.start : passage.stop] = passage.alignments
        self.position = passage.stop

    def reorder(self, parents: Sequence[int]) -> int:
        """Let hypothesis b go on from hypothesis ``parents[b]``; return the rows copied."""
        return self.cache.reorder(parents, min(self.position, self.cache.slots))
