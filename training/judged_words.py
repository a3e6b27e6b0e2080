"""Words and tokens of a decoded utterance, each with its probability and whether it is right."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from beamless.data_gen.corpora import Utterance
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.segments import word_probability
from beamless.inference.tokenizer import Tokenizer
from beamless.inference.word_times import words_of
from beamless.training.right_words import right_words


@dataclass(frozen=True)
class Judged:
    """One word or token of a decoded utterance: what the model gave it, and whether it is right.

    Attributes:
        unit: ``word`` or ``token``.
        raw: its probability.
        mean: the window's mean log-probability.
        right: whether the reference has the word there.
        half: which half of the speakers it is of.
    """

    unit: str
    raw: float
    mean: float
    right: bool
    half: bool


def judged_words(
    hypothesis: Hypothesis, utterance: Utterance, tokenizer: Tokenizer, language: str
) -> Iterator[Judged]:
    """Yield each word of a hypothesis and each of its tokens, right where the word is."""
    if hypothesis.finish_reason != "stop":
        return
    steps = [at for at, token in enumerate(hypothesis.tokens) if token < tokenizer.end]
    words = words_of([hypothesis.tokens[at] for at in steps], tokenizer, language)
    right = right_words([word.text for word in words], utterance.text, language) or []
    logprobs = np.array([hypothesis.logprobs[at] for at in steps])
    mean, half = hypothesis.avg_logprob, half_of(utterance)
    for word, is_right in zip(words, right, strict=bool(right)):
        if is_right is not None:
            inside = logprobs[word.first : word.stop]
            yield Judged("word", word_probability(inside), mean, is_right, half)
            for probability in np.exp(inside):
                yield Judged("token", float(probability), mean, is_right, half)


def half_of(utterance: Utterance) -> bool:
    """Part utterances in two halves by a hash of their speaker, or of themselves without one."""
    key = utterance.speaker or utterance.id
    return hashlib.sha256(key.encode()).digest()[0] % 2 == 0
