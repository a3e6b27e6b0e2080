"""Beams' lists as batches of whole utterances, for the minimum expected number of word errors.

Symbols: U utterances, B the longest of their lists, H hypotheses in all, N steps in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from beamless.data_gen.traces import Steps
from beamless.training.steps import Batch, Shuffled, StepsDataset


@dataclass
class ListBatch:
    """U utterances with their lists; not frozen, as ``Batch``.

    Attributes:
        steps: all steps of all hypotheses.
        hypothesis: which hypothesis a step is of, [N].
        members: which hypotheses stand in an utterance's list [U, B], filled up with -1.
        errors: their word errors [U, B], filled up with 0.
        best: the step is one of its list's hypothesis with the fewest errors, [N]; of several
            the one that the beam ranks first.
    """

    steps: Batch
    hypothesis: Tensor
    members: Tensor
    errors: Tensor
    best: Tensor


class ListsDataset(Dataset[int]):
    """All lists of some traces towards the target ``list``, in memory."""

    def __init__(self, steps: Steps, history: int) -> None:
        self.steps = StepsDataset(steps, history)
        ids = [row["id"] for row in steps.rows]
        self._lists = [
            [row for row, _ in group]
            for _, group in groupby(enumerate(ids), key=lambda pair: pair[1])
        ]
        self._errors = [float(row["errors"]) for row in steps.rows]
        self._starts = steps.starts.tolist()

    def __len__(self) -> int:
        return len(self._lists)

    def __getitem__(self, index: int) -> int:
        return index

    @property
    def agrees(self) -> Tensor:
        """For each step of all lists, whether the base model's best token is the hypothesis's."""
        return self.steps.agrees

    def batch(self, indices: Sequence[int]) -> ListBatch:
        """Gather utterances by their indices."""
        lists = [self._lists[index] for index in indices]
        rows = [row for each in lists for row in each]
        longest = max(map(len, lists))
        members = torch.full((len(lists), longest), -1)
        errors = torch.zeros(len(lists), longest)
        best: set[int] = set()
        begin = 0
        for number, each in enumerate(lists):
            counted = [self._errors[row] for row in each]
            members[number, : len(each)] = torch.arange(begin, begin + len(each))
            errors[number, : len(each)] = torch.tensor(counted)
            best.add(begin + int(np.argmin(counted)))
            begin += len(each)
        lengths = [self._starts[row + 1] - self._starts[row] for row in rows]
        hypothesis = torch.repeat_interleave(torch.arange(len(rows)), torch.tensor(lengths))
        at = [step for row in rows for step in range(self._starts[row], self._starts[row + 1])]
        chosen = torch.tensor([row in best for row in range(len(rows))])
        return ListBatch(self.steps.batch(at), hypothesis, members, errors, chosen[hypothesis])

    def loader(self, batch_size: int, shuffle: bool, seed: int) -> DataLoader[int]:
        """Return batches of as many utterances as have about ``batch_size`` steps on average."""
        order = Shuffled(len(self), seed) if shuffle else None
        count = max(1, round(batch_size * len(self) / len(self.steps)))
        return DataLoader(self, count, sampler=order, collate_fn=self.batch)
