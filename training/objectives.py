"""What a corrector is trained to do: say the target's token, and leave the base model alone.

Symbols: N steps, V vocabulary.
"""

import torch
from torch import Tensor
from torch.nn import functional


def correction_loss(
    logits: Tensor, base_logits: Tensor, targets: Tensor, agrees: Tensor, kl_weight: float
) -> Tensor:
    """Return the mean cross-entropy on the targets plus KL to the base model where they agree.

    A target that is suppressed has no probability under any correction; such steps count for
    nothing.

    Args:
        logits: corrected logits [N, V], suppressed tokens at minus infinity.
        base_logits: the base model's, likewise.
        targets: ids [N].
        agrees: True where the base model's best token is the target, [N].
        kl_weight: of KL(base ‖ corrected), in units of the cross-entropy.
    """
    logprobs = functional.log_softmax(logits, dim=1)
    possible = torch.isfinite(logits.gather(1, targets[:, None])[:, 0])
    chosen = logprobs.gather(1, targets[:, None])[:, 0]
    cross_entropy = -torch.where(possible, chosen, torch.zeros_like(chosen))
    loss = cross_entropy.sum()
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
