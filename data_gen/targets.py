"""What a corrector may learn from: the beam, the best of its list, the reference, a teacher."""

from collections.abc import Sequence

import numpy as np

from beamless.data_gen.word_errors import Errors, normalize, word_errors
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.logits import log_sum_exp, top_k
from beamless.inference.tokenizer import Tokenizer


def errors_of(tokens: Sequence[int], reference: str, tokenizer: Tokenizer, language: str) -> Errors:
    """Count the word errors of decoded tokens against a reference text, both normalised."""
    return word_errors(
        normalize(reference, language), normalize(tokenizer.decode(tokens), language)
    )


def best_of(
    hypotheses: Sequence[Hypothesis],
    reference: str,
    tokenizer: Tokenizer,
    language: str,
    length_penalty: float,
) -> Hypothesis | None:
    """Return the hypothesis with the fewest word errors against the reference, ties by score.

    It keeps Whisper's own casing, punctuation and tokens, where the reference text does not. None,
    no text at all, where the reference has no words: a beam of noise may hold nothing but words.
    """
    if not normalize(reference, language):
        return None

    def order(hypothesis: Hypothesis) -> tuple[int, float]:
        errors = errors_of(hypothesis.tokens, reference, tokenizer, language)
        return errors.total, -hypothesis.score(length_penalty)

    return min(hypotheses, key=order)


def reference_tokens(text: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return a reference text's own tokens; a text of Whisper's opens with a space."""
    text = " ".join(text.split())
    return tuple(tokenizer.encode(" " + text)) if text else ()


def describe_steps(
    hidden: np.ndarray, embedding: np.ndarray, always: np.ndarray, begin: np.ndarray, k: int
) -> dict[str, np.ndarray]:
    """Recompute what greedy saw at each step from its hidden state.

    In float64, so that the float32 that is kept is the same however many threads multiply: which
    sums they split depends on their number, on some CPUs.

    Args:
        hidden: [T, d]; the first row is a window's first step.
        embedding: the tied output projection [V, d], float64.
        always, begin: ids suppressed at every step, and at the first.
        k: candidates to keep.

    Returns:
        ``top_ids`` int32 and ``top_logprobs`` float32 [T, K], ``log_sum_exp`` float32 [T].
    """
    logits = hidden.astype(np.float64) @ embedding.T
    logits[:, always] = -np.inf
    logits[0, begin] = -np.inf
    total = log_sum_exp(logits)
    ids = np.stack([top_k(row, k) for row in logits])
    logprobs = np.take_along_axis(logits, ids, 1) - total
    return {
        "top_ids": ids.astype(np.int32),
        "top_logprobs": logprobs.astype(np.float32),
        "log_sum_exp": total[:, 0].astype(np.float32),
    }
