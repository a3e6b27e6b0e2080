"""The choice of the next token among the likeliest ones, where it is not simply the likeliest."""

from dataclasses import dataclass

import numpy as np

from beamless.inference.errors import BeamlessError
from beamless.inference.logits import Tokens

LIKELIEST = 8  # tokens to choose among: as many as ``corrected.xml`` gives


@dataclass(frozen=True)
class TokenOptions:
    """How tokens are chosen; as it stands here, the likeliest and without times.

    Attributes:
        timestamps: follow the timestamp rules.
        eos_boost: nats that the end token is ahead by.
        repetition_penalty: what the logit of a token of text is divided by if the text holds it
            already, or multiplied by if the logit is negative (``weighed``).
        temperature: 0 takes the best; above it a token is drawn.
        budget: tokens of text, times not counted, at which a window is stopped; None: no bound.
        others: how many of the likeliest tokens to note at each step, beside the choice.
        corrected: let a corrector change anything, as it should in what it has learned.
    """

    timestamps: bool = False
    eos_boost: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 0.0
    budget: int | None = None
    others: int = 0
    corrected: bool = True

    @property
    def plain(self) -> bool:
        """Whether the likeliest token is taken."""
        return (self.eos_boost, self.repetition_penalty, self.temperature) == (0.0, 1.0, 0.0)


def require_weights(eos_boost: float, repetition_penalty: float) -> None:
    """Refuse a boost or a penalty that would do the contrary.

    Raises:
        BeamlessError: the first of them.
    """
    if repetition_penalty < 1:
        raise BeamlessError("a repetition penalty below 1 would reward repeats; 1 is none")
    if eos_boost < 0:
        raise BeamlessError("an EOS boost below 0 would forbid the end of text; 0 is none")


def weighed(
    tokens: np.ndarray,
    logprobs: np.ndarray,
    level: float,
    text: Tokens,
    end: int,
    options: TokenOptions,
) -> np.ndarray:
    """Return log-probabilities [K] with the boost and the penalty in them, not normalised anew.

    The penalty is that of CTRL (Keskar et al. 2019, arXiv 1909.05858) as transformers and
    CTranslate2 have it: positive logits are divided by it and negative ones multiplied. Of
    log-probabilities it could not be: in a loop those of what is repeated are next to 0, and stay.

    Args:
        tokens: the ids [K] that they are of.
        logprobs: [K].
        level: log Σ exp of all the logits, which is what these are above their log-probabilities.
        text: the tokens since the prompt; its times and the end token know no penalty.
        end: the end token.
        options: the boost and the penalty.
    """
    weights = logprobs.astype(np.float64)
    if options.repetition_penalty != 1:
        again = np.isin(tokens, text) & (tokens < end)
        logits, penalty = weights[again] + level, options.repetition_penalty
        weights[again] = np.where(logits > 0, logits / penalty, logits * penalty) - level
    weights[tokens == end] += options.eos_boost
    return weights


def preferred(weights: np.ndarray, temperature: float, rng: np.random.Generator) -> np.ndarray:
    """Return the order [K] in which tokens of such weights are taken; above 0, drawn at random.

    Adding Gumbel noise to scores and sorting draws from their softmax without replacement.
    """
    if temperature > 0:
        weights = weights / temperature + rng.gumbel(size=len(weights))
    return np.argsort(-weights, kind="stable")
