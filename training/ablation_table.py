"""Rows of ablations as figures: a line for each row, method and dev corpus."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from beamless.training.ablation_recipe import Ablation
from beamless.training.report import Row, gap_closed, summarize

ALL = "all"
THIS = "this row's"


@dataclass(frozen=True)
class Trained:
    """What a row was made of: hours of speech, steps, parameters; None where it has none."""

    hours: float | None
    steps: int | None
    parameters: int | None


@dataclass(frozen=True)
class Line:
    """One row, decoded by one method, on one corpus or on all; a line of ``table.csv``.

    ``wer`` is a fraction; ``gap`` the share of the way from greedy to beam 5, ``gap_low`` and
    ``gap_high`` its 95 % interval; what is not known is empty.
    """

    name: str
    group: str
    method: str
    corpus: str
    hours: float | None
    steps: int | None
    parameters: int | None
    words: int
    errors: int
    wer: float
    gap: float | None
    gap_low: float | None
    gap_high: float | None
    decoder_steps: int
    to_capacity: int


def lines_of(
    row: Ablation, made: Trained, decoded: Sequence[Row], base: Sequence[Row]
) -> list[Line]:
    """Return a row's lines.

    Args:
        row: what was asked for.
        made: what it was made of.
        decoded: its utterances, by each of its methods.
        base: those of the row that holds greedy and beam5, or nothing.
    """
    anchors = [one for one in base if one.method in ("greedy", "beam5")]
    corpora = sorted({one.corpus for one in decoded})
    lines = []
    for method in row.methods:
        own = [replace(one, method=THIS) for one in decoded if one.method == method]
        for corpus in [*corpora, ALL]:
            inside = [one for one in own if corpus in (ALL, one.corpus)]
            beside = [one for one in anchors if corpus in (ALL, one.corpus)]
            figures = summarize(inside)
            gap = gap_closed([*beside, *inside], THIS) if beside else None
            lines.append(
                Line(
                    name=row.name,
                    group=row.group,
                    method=method,
                    corpus=corpus,
                    hours=made.hours,
                    steps=made.steps,
                    parameters=made.parameters,
                    words=figures["words"],
                    errors=sum(one.errors for one in inside),
                    wer=math.nan if figures["wer"] is None else figures["wer"],
                    gap=gap.value if gap else None,
                    gap_low=gap.low if gap else None,
                    gap_high=gap.high if gap else None,
                    decoder_steps=figures["steps"],
                    to_capacity=figures["capacity_hits"],
                )
            )
    return lines


def markdown(lines: Sequence[Line]) -> str:
    """Return ``table.md``: a line for each row and method, a column for each corpus."""
    corpora = [name for name in dict.fromkeys(line.corpus for line in lines) if name != ALL]
    head = ["row", "hours", "steps", "parameters", "method", *corpora, ALL]
    head += ["gap to beam 5 closed (95 %)", "decoder steps", "to capacity"]
    text = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    before = ""
    for line in lines:
        if line.corpus != ALL:
            continue
        rates = {
            one.corpus: f"{one.wer:.2%}"
            for one in lines
            if (one.name, one.method) == (line.name, line.method)
        }
        made = [
            line.name,
            "" if line.hours is None else f"{line.hours:.2f}",
            "" if line.steps is None else f"{line.steps:,}",
            "" if line.parameters is None else f"{line.parameters:,}",
        ]
        cells = ["", "", "", ""] if line.name == before else made
        cells += [line.method, *(rates.get(corpus, "") for corpus in corpora), rates[ALL]]
        cells += [_gap(line), f"{line.decoder_steps:,}", str(line.to_capacity)]
        text.append("| " + " | ".join(cells) + " |")
        before = line.name
    words = sum(line.words for line in lines[: len(corpora)])
    return "\n".join([*text, "", f"Word error rates on {words} words of dev speech.", ""])


def _gap(line: Line) -> str:
    if line.gap is None:
        return ""
    low, high = ("?" if end is None else f"{end:.0%}" for end in (line.gap_low, line.gap_high))
    return f"{line.gap:.0%} ({low} to {high})"
