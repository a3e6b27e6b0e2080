"""What a reader would try before training anything: greedy decoding by another rule.

Contenders of an evaluation (``contenders.py``) that production does not know: the second-best token
where the first is unsure, and the neighbours of the hidden state among those of traces.

Symbols: V vocabulary, d the decoder's width, M steps in a datastore.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from beamless.data_gen.traces import Steps, read_recipe, read_steps
from beamless.inference.bundle import Bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Choice, Greedy, Place, two_largest
from beamless.inference.logits import Suppression, log_sum_exp, top_k
from beamless.inference.sampling import TokenOptions

Rule = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Log-probabilities [V] and hidden state [d] to the scores [V] of which the largest is taken."""


class ByRule:
    """A chooser over the step graph of ``Greedy`` that takes the best token by a rule."""

    def __init__(self, greedy: Greedy, bundle: Bundle, rule: Rule) -> None:
        manifest = bundle.manifest
        self.decoder, self.rng = greedy.decoder, greedy.rng
        self.options = TokenOptions()
        self._rule = rule
        self._suppression = Suppression.of(manifest.suppress_tokens, manifest.begin_suppress_tokens)

    def next(self, token: int, place: Place) -> Choice:
        """Feed a token and choose the one after it; inside a prompt there is nothing to choose."""
        step = self.decoder.step([token])
        logits = self._suppression.apply(step.logits, place == "first")
        logprobs = (logits - log_sum_exp(logits))[0]
        scores = logprobs if place == "prompt" else self._rule(logprobs, step.hidden[0])
        best, second = two_largest(scores.copy())
        first, other = float(logprobs[best]), float(logprobs[second])
        return Choice(best, first, first, second, other, other, 0.0)


def second_where_unsure(threshold: float) -> Rule:
    """Return the rule: the second-best token where the entropy is above a threshold, in nats."""

    def scores(logprobs: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        if entropy(logprobs) <= threshold:
            return logprobs
        without = logprobs.copy()
        without[logprobs.argmax()] = -np.inf
        return without

    return scores


def entropy(logprobs: np.ndarray) -> float:
    """Return the entropy of log-probabilities [V], in nats."""
    finite = logprobs[np.isfinite(logprobs)]
    return float(-(np.exp(finite) * finite).sum())


@dataclass(frozen=True)
class Neighbours:
    """How a kNN contender asks its datastore (kNN on Whisper's states: arXiv 2410.18850).

    Attributes:
        count: how many of the nearest steps.
        mix: what share of the probability they have; the model has the rest.
        temperature: their weights are softmax(−squared distance ÷ temperature). Between the
            nearest of tiny.en's states a squared distance is some 24,000.
    """

    count: int = 16
    mix: float = 0.1
    temperature: float = 10_000.0

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing (ValueError)."""
        if self.count < 1 or not 0 <= self.mix <= 1 or self.temperature <= 0:
            raise ValueError("neighbours are one or more, their share from 0 to 1")


@dataclass(frozen=True)
class Datastore:
    """Hidden states [M, d] of traces, what their targets said next [M], and |state|² [M]."""

    states: np.ndarray
    tokens: np.ndarray
    squares: np.ndarray


def datastore_of(states: np.ndarray, tokens: np.ndarray) -> Datastore:
    """Make a datastore of float32 states [M, d] and the tokens [M] that came after them."""
    return Datastore(states, tokens, np.einsum("md,md->m", states, states))


def nearest(store: Datastore, hidden: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens of the states nearest to one and their squared distances, nearest first."""
    distances = store.squares - 2 * (store.states @ hidden) + hidden @ hidden
    rows = top_k(-distances, count)
    return store.tokens[rows], np.maximum(distances[rows], 0)


def read_datastore(folders: Sequence[Path], model_hash: str) -> Datastore:
    """Read the teacher-forced steps of traces towards ``best``.

    Raises:
        BeamlessError: there are none, or they are of another model.
    """
    if not folders:
        raise BeamlessError("knn looks its neighbours up in traces; name some with --datastore")
    parts: list[Steps] = []
    for folder in folders:
        if read_recipe(folder).model_hash != model_hash:
            raise BeamlessError(f"{folder} holds traces of another model than the bundle's")
        parts.append(read_steps(folder, ["best"]))
    states = np.concatenate([part.hidden for part in parts]).astype(np.float32)
    return datastore_of(states, np.concatenate([part.target_ids for part in parts]))


def with_neighbours(store: Datastore, options: Neighbours) -> Rule:
    """Return the rule: the model's probabilities mixed with those of the nearest states."""

    def scores(logprobs: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        tokens, distances = nearest(store, hidden, options.count)
        weights = np.exp((distances[0] - distances) / options.temperature)
        mixed = (1 - options.mix) * np.exp(logprobs)
        np.add.at(mixed, tokens, options.mix * weights / weights.sum())
        mixed[np.isneginf(logprobs)] = 0  # a suppressed token stays so
        return mixed

    return scores
