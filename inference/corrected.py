"""Corrected greedy: the fused graph's own choice, in the loop of ``greedy.py``."""

from collections.abc import Mapping

import numpy as np

from beamless.inference.bundle import Bundle
from beamless.inference.decoder import StaticDecoder
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Choice, Place, chosen
from beamless.inference.logits import not_finite
from beamless.inference.sampling import TokenOptions, preferred, weighed
from beamless.inference.timestamps import EVERYTHING, TimestampRules


class Corrected:
    """Takes the token that ``corrected.xml`` chose; the host never sees the full logits.

    ``models/fuse.py`` says what the graph reads and gives.

    Attributes:
        strength: 1 corrects, 0 is plain greedy in the same graph; it may be changed at any time.
        options: how a token is chosen; they may be changed between windows.
        rng: what tokens are drawn with, where they are drawn.
        budget: of the window, for a corrector with a ledger, where the options set no bound.
    """

    def __init__(self, bundle: Bundle, capacity: int | None = None, strength: float = 1.0) -> None:
        if not bundle.has_corrector:
            raise BeamlessError(
                f"bundle {bundle.folder} has no corrector; train one, or decode with greedy"
            )
        compiled = bundle.compile("corrected", capacity=capacity)
        self._folder = bundle.folder
        self._start, self._end = bundle.tokenizer.start, bundle.tokenizer.end
        self._rules = TimestampRules.of(bundle.tokenizer)
        self.strength = strength
        self.budget: int | None = None
        self.options = TokenOptions()
        self.rng = np.random.default_rng(0)
        self._history = np.zeros(tuple(compiled.input("history").shape), np.float32)
        self._switches = {n: np.zeros(1, np.float32) for n in ("first", "strength", "timestamps")}
        self._bounds = {n: np.zeros(1, np.int32) for n in ("text_low", "time_low", "time_high")}
        self._text_start = 0
        self._text_position, self._spent = np.zeros(1, np.float32), np.zeros(1, np.float32)
        extra = {"history": self._history, **self._switches, **self._bounds}
        told = {"text_position": self._text_position, "spent": self._spent}
        asked = {port.any_name for port in compiled.inputs}
        extra |= {name: array for name, array in told.items() if name in asked}
        self._has_ledger = "spent" in asked
        self.decoder = StaticDecoder(compiled, extra)

    def next(self, token: int, place: Place) -> Choice:
        """Feed a token and read the one after it."""
        position = self.decoder.position
        if place != "text":
            self._text_start = position
        text = self.decoder.tokens[self._text_start + 1 : position, 0]
        if place == "text":
            text = np.append(text, token)
        timed = self.options.timestamps and place != "prompt"
        self._switches["first"][0] = place == "first"
        idle = place == "prompt" or not self.options.corrected
        self._switches["strength"][0] = 0.0 if idle else self.strength
        self._switches["timestamps"][0] = timed
        allowed = self._rules.allowed(text) if timed else EVERYTHING
        for name, bound in zip(self._bounds, allowed, strict=True):
            self._bounds[name][0] = bound
        self._text_position[0] = position - self._text_start
        if self._has_ledger:
            budget = self.options.budget or self.budget
            self._spent[0] = (text < self._end).sum() / budget if budget else 0.0
        known = min(len(self._history), position - self._text_start)
        self._history.fill(0)
        if known:
            self._history[-known:] = self.decoder.states[position - known : position, 0]
        outputs = self.decoder.step([token]).outputs
        no_speech = float(outputs["no_speech_prob"][0]) if token == self._start else 0.0
        return self._choice(outputs, text, no_speech)

    def _choice(
        self, outputs: Mapping[str, np.ndarray], text: np.ndarray, no_speech: float
    ) -> Choice:
        tokens, logprobs = outputs["top_tokens"], outputs["top_logprobs"]
        if not np.isfinite(logprobs[0]):
            raise not_finite()
        level, noted = self._level(outputs), self.options.others
        scores = weighed(tokens, logprobs, level, text, self._end, self.options)
        order = preferred(scores, self.options.temperature, self.rng)
        others = tuple(zip(tokens[:noted].tolist(), logprobs[:noted].tolist(), strict=True))
        judged = "doubt" in outputs and self.options.corrected and self.strength > 0
        doubt = float(outputs["doubt"][0]) if judged else None
        return chosen(tokens, logprobs, scores, order, no_speech, others, doubt)

    def _level(self, outputs: Mapping[str, np.ndarray]) -> float:
        if self.options.repetition_penalty == 1:
            return 0.0
        if "log_sum_exp" not in outputs:
            raise BeamlessError(
                f"bundle {self._folder} was written before its corrected step knew a repetition "
                "penalty; export it again, or ask for none"
            )
        return float(outputs["log_sum_exp"][0])
