"""What a training is set to: the options of ``train`` that ``rounds`` and recipes share."""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from beamless.inference.counts import require_between, require_positive
from beamless.inference.errors import BeamlessError
from beamless.models.corrector import CANDIDATES, Family

MOST_LEARNING_RATE = 1.0
MOST_DROPOUT = 0.9
MOST_UNITS = 1 << 16
MOST_STEPS = 1_000_000  # of a batch, and epochs
MOST_WEIGHT = 1000.0
MOST_SEED = 2**31  # below it there is room for those of a round's members

Objective = Literal["cross_entropy", "mwer"]


@dataclass(frozen=True)
class Fitting:
    """A corrector's family and size, and how it is fitted.

    Attributes:
        family: shift moves the hidden state, rerank judges the likeliest tokens, dense changes
            all logits.
        history: hidden states of earlier steps that it sees.
        units: its hidden units; 1024 of shift, 256 of rerank and 64 of dense if not given.
        candidates: how many of the likeliest tokens rerank judges.
        gate: let it tell too how likely its choice is wrong, at each step.
        ledger: tell it how much of the window's budget of tokens the text has spent, so that it can
            learn to stop.
        last_token: show it the last token of text, too.
        objective: cross_entropy, of the targets' tokens; or mwer, the word errors expected over
            the beam's list, for traces towards the target list.
        epochs: times through all traces.
        batch_size: steps in a batch; with mwer, of whole utterances, about so many.
        learning_rate: of AdamW, at the start.
        weight_decay: of AdamW.
        dropout: on the network's input and hidden units.
        kl_weight: pull towards the base model where it agrees with the target.
        cross_entropy_weight: with mwer, how much the cross-entropy of the list's best hypothesis
            counts beside a word error.
        seed: of weights and order; the same seed gives the same corrector.
    """

    family: Family = "shift"
    history: int = 1
    units: int | None = None
    candidates: int = CANDIDATES
    gate: bool = False
    ledger: bool = False
    last_token: bool = False
    objective: Objective = "cross_entropy"
    epochs: int = 3
    batch_size: int = 256
    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    dropout: float = 0.1
    kl_weight: float = 0.3
    cross_entropy_weight: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no training can be set to."""
        require_kinds(self)
        require_positive(history=self.history, learning_rate=self.learning_rate)
        require_between(0, MOST_LEARNING_RATE, learning_rate=self.learning_rate)
        require_between(0, MOST_DROPOUT, dropout=self.dropout)
        require_between(
            0,
            MOST_WEIGHT,
            weight_decay=self.weight_decay,
            kl_weight=self.kl_weight,
            cross_entropy_weight=self.cross_entropy_weight,
        )
        require_between(0, MOST_SEED, seed=self.seed)
        require_between(1, MOST_UNITS, units=1 if self.units is None else self.units)
        require_between(1, MOST_STEPS, epochs=self.epochs, batch_size=self.batch_size)


def require_kinds(settings: Any) -> None:  # noqa: ANN401 - any dataclass
    """Refuse a dataclass whose numbers, switches and choices are of other kinds than it says.

    A YAML file may hold anything; ``1e-3`` is a text to it, ``1.0e-3`` a number.

    Raises:
        BeamlessError: the first of them, by its name.
    """
    told = {int: "a whole number", float: "a number such as 0.001", bool: "true or false"}
    hints = get_type_hints(type(settings))
    for each in fields(settings):
        value, kinds = getattr(settings, each.name), get_args(hints[each.name])
        kinds = kinds or (hints[each.name],)
        if type(value) in kinds or value in kinds or (type(value) is int and float in kinds):
            continue
        wanted = told.get(kinds[0]) or "one of " + ", ".join(map(str, kinds))
        raise BeamlessError(f"{each.name} cannot be {value!r:.40}; it is {wanted}")
