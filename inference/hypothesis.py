"""What a decode of one window gives."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

Others = tuple[tuple[int, float], ...]
"""The likeliest tokens of a step and their log-probabilities, best first."""

FinishReason = Literal["stop", "length", "budget"]

NO_SPEECH = 0.6
"""``no_speech_prob`` above which nobody seems to speak: Whisper's own threshold."""


@dataclass(frozen=True)
class Hypothesis:
    """One transcript of a window, in tokens.

    Attributes:
        tokens: the tokens after the prompt; the end token is not among them.
        logprobs: log-probability of each token, and of the end token last where it came.
        finish_reason: ``stop`` at the end token, ``length`` at the capacity, ``budget`` where there
            were more tokens than can be said in the window's time.
        no_speech_prob: probability of ``<|nospeech|>`` after the start token.
        steps: decoder steps that the window took, the prompt's among them.
        hidden: the hidden states [T, d] from which each of ``logprobs`` was made, if recorded.
        alignment: the alignment heads' attention [T, A, S] at the same steps, if recorded.
        temperature: at which its tokens were drawn; 0 if they were the best.
        others: the likeliest tokens at the same steps, if noted.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    no_speech_prob: float
    steps: int
    hidden: np.ndarray | None = None
    alignment: np.ndarray | None = None
    temperature: float = 0.0
    others: tuple[Others, ...] = ()

    @property
    def avg_logprob(self) -> float:
        """The mean log-probability of a token, the end token among them."""
        return sum(self.logprobs) / max(1, len(self.logprobs))

    def score(self, length_penalty: float = 1.0) -> float:
        """Σ log p ÷ T^length_penalty over the T tokens, the end token among them.

        The sum is divided once, here, and never between steps (the score that CTranslate2 and
        transformers rank by).
        """
        return sum(self.logprobs) / max(1, len(self.logprobs)) ** length_penalty
