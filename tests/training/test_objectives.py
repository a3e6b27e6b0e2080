"""The loss: suppressed targets count for nothing; only agreeing steps are pulled to the base."""

import pytest
import torch

from beamless.training.objectives import correction_loss, divergence

INF = float("inf")


def test_a_suppressed_target_adds_no_loss_and_no_gradient():
    logits = torch.tensor([[1.0, -INF, 0.5], [0.2, -INF, 0.1]], requires_grad=True)
    targets = torch.tensor([[1], [0]])
    loss = correction_loss(logits, logits.detach(), targets, torch.tensor([False, False]), 1.0)
    loss.backward()
    assert torch.isfinite(loss)
    assert not logits.grad[0].any()
    assert logits.grad[1].any()


def test_all_targets_suppressed_is_no_loss_rather_than_nan():
    logits = torch.tensor([[1.0, -INF]])
    loss = correction_loss(logits, logits, torch.tensor([[1]]), torch.tensor([False]), 1.0)
    assert loss.item() == 0


def test_a_differing_step_is_not_pulled_to_the_base():
    logits = torch.tensor([[3.0, 0.0]])
    base = torch.tensor([[0.0, 3.0]])
    targets, differs = torch.tensor([[0]]), torch.tensor([False])
    assert correction_loss(logits, base, targets, differs, 5.0) == pytest.approx(
        correction_loss(logits, base, targets, differs, 0.0).item()
    )
    agrees = torch.tensor([True])
    assert correction_loss(logits, base, targets, agrees, 5.0) > correction_loss(
        logits, base, targets, agrees, 0.0
    )


def test_divergence_is_that_of_the_distributions():
    base = torch.log_softmax(torch.tensor([[1.0, 2.0, -INF]]), 1)
    other = torch.log_softmax(torch.tensor([[2.0, 1.0, -INF]]), 1)
    p = base.exp()[0, :2]
    expected = (p * (base - other)[0, :2]).sum()
    assert torch.allclose(divergence(base, other), expected)
    assert divergence(base, base).item() == 0


def test_two_right_tokens_share_their_probability():
    logits = torch.tensor([[0.3, 0.1, -0.2]])
    one = correction_loss(logits, logits, torch.tensor([[0, -1]]), torch.tensor([False]), 0.0)
    two = correction_loss(logits, logits, torch.tensor([[0, 2]]), torch.tensor([False]), 0.0)
    probabilities = torch.softmax(logits, 1)[0]
    assert one.item() == pytest.approx(-probabilities[0].log().item())
    assert two.item() == pytest.approx(-(probabilities[0] + probabilities[2]).log().item())
