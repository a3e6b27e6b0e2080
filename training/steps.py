"""Traces as batches of steps for a corrector: hidden states, what came before, and the target."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from beamless.data_gen.subset import place
from beamless.data_gen.traces import UNKNOWN_TOKEN, Steps, padded, read_recipe, read_steps
from beamless.inference.counts import require_positive
from beamless.inference.errors import BeamlessError
from beamless.models.corrector import CorrectorConfig
from beamless.models.whisper import Sizes
from beamless.training.processes import rank_of_all


@dataclass
class Batch:
    """N steps; not frozen, since Lightning moves its tensors to a device in place.

    Attributes:
        hidden: [N, d]; history: the W hidden states before, [N, W·d], zeros where there are none.
        targets: the right tokens of each step [N, A], filled up with -1.
        agrees: the base model's best token is among them, [N].
        first: the step opens a text, [N].
        top_ids, top_logprobs: the base model's likeliest tokens, [N, K].
        log_sum_exp: of its logits, [N].
        text_position: how many tokens of text stand before the one to come, [N].
        spent: the share of the window's budget that they take, [N]; 0 where there is no bound.
        last: the last token of text, [N]; ``NO_TOKEN`` where there is none.
    """

    hidden: Tensor
    history: Tensor
    targets: Tensor
    agrees: Tensor
    first: Tensor
    top_ids: Tensor
    top_logprobs: Tensor
    log_sum_exp: Tensor
    text_position: Tensor
    spent: Tensor
    last: Tensor


class StepsDataset(Dataset[int]):
    """All steps of some traces, in memory."""

    def __init__(self, steps: Steps, history: int) -> None:
        self.hidden = torch.from_numpy(np.array(steps.hidden))
        self.targets = torch.from_numpy(steps.acceptable.astype(np.int64))
        self.agrees = torch.from_numpy((steps.top_ids[:, :1] == steps.acceptable).any(axis=1))
        self.top_ids = torch.from_numpy(steps.top_ids.astype(np.int64))
        self.top_logprobs = torch.from_numpy(steps.top_logprobs.astype(np.float32))
        self.log_sum_exp = torch.from_numpy(steps.log_sum_exp.astype(np.float32))
        self.first = torch.zeros(len(self.targets), dtype=torch.bool)
        self.first[torch.from_numpy(steps.starts[:-1])] = True
        lengths = np.diff(steps.starts)
        self._start = torch.from_numpy(np.repeat(steps.starts[:-1], lengths))
        budgets = np.array([row.get("budget") or 0 for row in steps.rows], np.float32)
        self._budget = torch.from_numpy(np.repeat(budgets, lengths))
        self._last = torch.from_numpy(steps.last_ids.astype(np.int64))
        self._history = history

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> int:
        return index

    def batch(self, indices: Sequence[int]) -> Batch:
        """Gather steps by their indices."""
        at = torch.as_tensor(indices)
        position, budget = at - self._start[at], self._budget[at]
        before = []
        for back in range(self._history, 0, -1):
            inside = (at - back >= self._start[at])[:, None]
            before.append(torch.where(inside, self.hidden[(at - back).clamp(min=0)].float(), 0.0))
        return Batch(
            hidden=self.hidden[at].float(),
            history=torch.cat(before, dim=1) if before else torch.zeros(len(at), 0),
            targets=self.targets[at],
            agrees=self.agrees[at],
            first=self.first[at],
            top_ids=self.top_ids[at],
            top_logprobs=self.top_logprobs[at],
            log_sum_exp=self.log_sum_exp[at],
            text_position=position,
            spent=torch.where(budget > 0, position / budget.clamp(min=1), 0.0),
            last=self._last[at],
        )

    def loader(self, batch_size: int, shuffle: bool, seed: int) -> DataLoader[int]:
        """Return batches, in an order that the seed and the epoch fix."""
        order = Shuffled(len(self), seed) if shuffle else None
        return DataLoader(self, batch_size, sampler=order, collate_fn=self.batch)


class Shuffled(Sampler[int]):
    """An order for each epoch, the same whether or not the training was stopped before it.

    Of several processes each takes its share of every batch; what does not go round is left out.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._seed, self._epoch = size, seed, 0

    def __len__(self) -> int:
        return self._size // rank_of_all()[1]

    def __iter__(self) -> Iterator[int]:
        rank, count = rank_of_all()
        order = np.random.default_rng((self._seed, self._epoch)).permutation(self._size)
        return iter(order[: len(self) * count][rank::count].tolist())

    def set_epoch(self, epoch: int) -> None:
        """Lightning's call before each epoch."""
        self._epoch = epoch


def read_training_steps(
    folders: Sequence[Path],
    targets: Sequence[str],
    policies: Sequence[str],
    limit: int | None = None,
) -> tuple[list[Steps], str, str]:
    """Read the traces of several folders; of each, those of at most ``limit`` utterances.

    Returns:
        Each folder's steps, and the name and the hash of the one model that made them.

    Raises:
        BeamlessError: traces of two models, or none.
    """
    recipes = [read_recipe(folder) for folder in folders]
    if len({recipe.model_hash for recipe in recipes}) != 1:
        named = ", ".join(f"{f} ({r.model})" for f, r in zip(folders, recipes, strict=True))
        raise BeamlessError(f"these traces come from different models: {named}")
    if len({recipe.top_k for recipe in recipes}) != 1:
        named = ", ".join(f"{f} ({r.top_k})" for f, r in zip(folders, recipes, strict=True))
        raise BeamlessError(f"these traces hold different numbers of likeliest tokens: {named}")
    require_positive(limit=limit)
    steps = [first_utterances(read_steps(folder, targets, policies), limit) for folder in folders]
    return steps, recipes[0].model, recipes[0].model_hash


def first_utterances(steps: Steps, limit: int | None) -> Steps:
    """Keep the traces of the utterances that come first by a hash of their ids, as collect does."""
    ids = {row["id"] for row in steps.rows}
    if limit is None or len(ids) <= limit:
        return steps
    chosen = set(sorted(ids, key=place)[:limit])
    kept = np.array([row["id"] in chosen for row in steps.rows])
    lengths = np.diff(steps.starts)
    at = np.repeat(kept, lengths)
    return Steps(
        hidden=steps.hidden[at],
        target_ids=steps.target_ids[at],
        top_ids=steps.top_ids[at],
        top_logprobs=steps.top_logprobs[at],
        log_sum_exp=steps.log_sum_exp[at],
        starts=np.cumsum([0, *lengths[kept]]),
        rows=[row for row in steps.rows if row["id"] in chosen],
        acceptable=steps.acceptable[at],
        last_ids=steps.last_ids[at],
    )


def require_sizes(parts: Sequence[Steps], sizes: Sizes) -> None:
    """Refuse steps that a model of these sizes cannot have taken.

    Raises:
        BeamlessError: some are.
    """
    for part in parts:
        if part.hidden.shape[1] != sizes.width:
            raise BeamlessError(
                f"these traces hold states of {part.hidden.shape[1]} numbers, and the model's "
                f"have {sizes.width}; collect them again"
            )
        ids = np.concatenate([part.target_ids, part.top_ids.ravel()])
        highest = max(ids.max(), part.acceptable.max(), part.last_ids.max())
        if ids.min() < 0 or highest >= sizes.vocabulary:
            raise BeamlessError(
                f"these traces hold tokens that are none of the model's {sizes.vocabulary:,}; "
                "collect them again"
            )


def require_seen(parts: Sequence[Steps], config: CorrectorConfig) -> None:
    """Refuse traces that do not hold all that a corrector sees.

    Raises:
        BeamlessError: some do not.
    """
    require_candidates(parts, config.candidates)
    if config.ledger:
        require_budgets(parts)
    if config.last_token:
        require_last_tokens(parts)


def require_candidates(parts: Sequence[Steps], candidates: int) -> None:
    """Refuse traces that hold fewer of the likeliest tokens than a corrector judges.

    Raises:
        BeamlessError: they do.
    """
    for held in (part.top_ids.shape[1] for part in parts):
        if held < candidates:
            raise BeamlessError(
                f"these traces hold {held} tokens a step; take --candidates {held} or less"
            )


def require_budgets(parts: Sequence[Steps]) -> None:
    """Refuse traces that were made before they told their windows' budgets.

    Raises:
        BeamlessError: some do not.
    """
    if any("budget" not in row for part in parts for row in part.rows):
        raise BeamlessError(
            "these traces do not say how many tokens their windows can hold; "
            "collect them again, or train without a ledger"
        )


def require_last_tokens(parts: Sequence[Steps]) -> None:
    """Refuse traces that were decoded before they told what was decoded.

    Raises:
        BeamlessError: some were.
    """
    if any((part.last_ids == UNKNOWN_TOKEN).any() for part in parts):
        raise BeamlessError(
            "these on-policy traces do not say what was decoded; roll out again, or train without "
            "the last token"
        )


def concatenate(parts: Sequence[Steps]) -> Steps:
    """Join the steps of several folders."""
    offsets = np.cumsum([0, *(part.starts[-1] for part in parts)])
    starts = [part.starts[:-1] + offset for part, offset in zip(parts, offsets, strict=False)]
    return Steps(
        hidden=np.concatenate([part.hidden for part in parts]),
        target_ids=np.concatenate([part.target_ids for part in parts]),
        top_ids=np.concatenate([part.top_ids for part in parts]),
        top_logprobs=np.concatenate([part.top_logprobs for part in parts]),
        log_sum_exp=np.concatenate([part.log_sum_exp for part in parts]),
        starts=np.concatenate([*starts, offsets[-1:]]),
        rows=[row for part in parts for row in part.rows],
        acceptable=padded([row[row >= 0] for part in parts for row in part.acceptable]),
        last_ids=np.concatenate([part.last_ids for part in parts]),
    )
