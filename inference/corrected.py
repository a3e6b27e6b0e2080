"""Corrected greedy: the fused graph's own choice, in the loop of ``greedy.py``."""

import numpy as np

from beamless.inference.bundle import Bundle
from beamless.inference.decoder import StaticDecoder
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Choice, Place


class Corrected:
    """Takes the token that ``corrected.xml`` chose; the host never sees the full logits.

    ``models/fuse.py`` says what the graph reads and gives.

    Attributes:
        strength: 1 corrects, 0 is plain greedy in the same graph; it may be changed at any time.
    """

    def __init__(self, bundle: Bundle, capacity: int | None = None, strength: float = 1.0) -> None:
        if not bundle.has_corrector:
            raise BeamlessError(
                f"bundle {bundle.folder} has no corrector; train one, or decode with greedy"
            )
        compiled = bundle.compile("corrected", capacity=capacity)
        self._start = bundle.tokenizer.start
        self.strength = strength
        self._first = np.zeros(1, np.float32)
        self._strength = np.zeros(1, np.float32)
        self._history = np.zeros(tuple(compiled.input("history").shape), np.float32)
        self._text_start = 0
        extra = {"first": self._first, "strength": self._strength, "history": self._history}
        self.decoder = StaticDecoder(compiled, extra)

    def next(self, token: int, place: Place) -> Choice:
        """Feed a token and read the one after it."""
        self._first[0] = place == "first"
        self._strength[0] = 0.0 if place == "prompt" else self.strength
        position = self.decoder.position
        if place != "text":
            self._text_start = position
        known = min(len(self._history), position - self._text_start)
        self._history.fill(0)
        if known:
            self._history[-known:] = self.decoder.states[position - known : position, 0]
        outputs = self.decoder.step([token]).outputs
        logprob = float(outputs["top_logprobs"][0])
        if not np.isfinite(logprob):
            raise BeamlessError("the decoder gave a logit that is not finite; try precision f32")
        no_speech = float(outputs["no_speech_prob"][0]) if token == self._start else 0.0
        return Choice(
            token=int(outputs["top_tokens"][0]),
            logprob=logprob,
            runner_up=int(outputs["top_tokens"][1]),
            runner_up_logprob=float(outputs["top_logprobs"][1]),
            no_speech_prob=no_speech,
        )
