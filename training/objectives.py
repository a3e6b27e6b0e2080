"""What a corrector is trained to do: say the target's token, and leave the base model alone.

Or to make few word errors on average over a beam's list. Symbols: N steps, V vocabulary, U
utterances, B the longest of their lists, H hypotheses in all.
"""

import torch
from torch import Tensor
from torch.nn import functional


def correction_loss(
    logits: Tensor, base_logits: Tensor, targets: Tensor, agrees: Tensor, kl_weight: float
) -> Tensor:
    """Return the mean cross-entropy on the right tokens plus KL to the base where it has one.

    Where several tokens are right, their probabilities add up. A suppressed token has no
    probability under any correction; steps with no other right token count for nothing.

    Args:
        logits: corrected logits [N, V], suppressed tokens at minus infinity.
        base_logits: the base model's, likewise.
        targets: the right tokens [N, A], filled up with -1.
        agrees: True where the base model's best token is right, [N].
        kl_weight: of KL(base ‖ corrected), in units of the cross-entropy.
    """
    logprobs = functional.log_softmax(logits, dim=1)
    chosen = logprobs.gather(1, targets.clamp(min=0)).masked_fill(targets < 0, -torch.inf)
    possible = torch.isfinite(chosen).any(dim=1)
    loss = -torch.logsumexp(chosen[possible], dim=1).sum()
    kept = agrees & possible
    if kl_weight and kept.any():
        base = functional.log_softmax(base_logits[kept], dim=1)
        loss = loss + kl_weight * divergence(base, logprobs[kept]).sum()
    return loss / possible.sum().clamp(min=1)


def divergence(base: Tensor, corrected: Tensor) -> Tensor:
    """Return KL(base ‖ corrected) of log-probabilities [N, V], as [N]; suppressed tokens add 0."""
    finite = torch.isfinite(base)
    difference = torch.where(finite, base - corrected, torch.zeros_like(base))
    return (base.exp() * difference).sum(dim=1)


def expected_errors(logprobs: Tensor, members: Tensor, errors: Tensor) -> Tensor:
    """Return the word errors expected of each list, above those of its mean hypothesis, as [U].

    The probabilities of a list's hypotheses are taken to add up to one (minimum word error rate
    training over N-best lists: Prabhavalkar et al. 2018, arXiv 1712.01818).

    Args:
        logprobs: of each whole hypothesis, [H].
        members: which hypotheses stand in each list [U, B], filled up with -1.
        errors: their word errors, [U, B].
    """
    there = members >= 0
    scores = logprobs[members.clamp(min=0)].masked_fill(~there, -torch.inf)
    mean = (errors * there).sum(dim=1, keepdim=True) / there.sum(dim=1, keepdim=True)
    return (torch.softmax(scores, dim=1) * (errors - mean)).sum(dim=1)


def hypothesis_logprobs(logits: Tensor, targets: Tensor, hypothesis: Tensor, count: int) -> Tensor:
    """Add up the log-probabilities of each hypothesis's tokens, as [H].

    Args:
        logits: corrected logits [N, V].
        targets: the hypothesis's own token of each step [N, A], first of its row.
        hypothesis: which one a step is of, [N].
        count: H.
    """
    chosen = functional.log_softmax(logits, dim=1).gather(1, targets[:, :1])[:, 0]
    return logits.new_zeros(count).index_add(0, hypothesis, chosen)
