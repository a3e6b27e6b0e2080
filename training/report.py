"""An evaluation's numbers: from one row an utterance and method to a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from beamless.inference.progress import screen
from beamless.training.calibration import quality
from beamless.training.csv_rows import NO_COLUMN
from beamless.training.forced_steps import RANKS
from beamless.training.metrics import GapClosed, bootstrap_gap_closed, unit

COLUMNS = (
    "WER",
    "sub",
    "ins",
    "del",
    "better/worse",
    "steps",
    "ms/token",
    "seconds",
    "cut by budget",
    "to capacity",
    "gap closed",
)
AT_HALF = "precision_at_half"
STEP_COLUMNS = (
    "steps mended",
    "steps harmed",
    "calibration error, raw",
    "calibrated",
    "wrong words: recall",
    "precision",
)


@dataclass(frozen=True)
class Run:
    """What was run on what.

    ``parity`` tells whether the bundle had passed the gate by then; ``datastore`` holds the names
    of the traces that kNN looked its neighbours up in.
    """

    model: str
    bundle_hash: str
    corpora: tuple[str, ...]
    device: str
    language: str
    methods: tuple[str, ...]
    limit: int | None
    parity: bool
    audio_context: str = "full"
    datastore: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One utterance, decoded by one method; a line of ``utterances.csv``.

    ``tokens`` are those of the hypothesis, its end token among them; look-ahead takes more steps.
    ``missed_steps`` and what follows are as ``forced_steps.StepCounts`` has them. ``judged`` holds
    of each word its raw probability, its confidence (the same where none was fitted), and 1 where
    it is right; it is no column of the file.
    """

    corpus: str
    id: str
    speaker: str
    duration: float
    method: str
    reference: str
    hypothesis: str
    substitutions: int
    insertions: int
    deletions: int
    words: int
    steps: int
    encoder_seconds: float
    decoder_seconds: float
    finish_reason: str
    avg_logprob: float
    no_speech_prob: float
    tokens: int = 0
    missed_steps: int = 0
    mended_steps: int = 0
    right_steps: int = 0
    harmed_steps: int = 0
    within_2: int = 0
    within_4: int = 0
    within_8: int = 0
    judged: list[list[float]] = field(default_factory=list, metadata=NO_COLUMN)

    @property
    def errors(self) -> int:
        """Word errors of all three kinds."""
        return self.substitutions + self.insertions + self.deletions


def summarize(rows: Sequence[Row]) -> dict[str, Any]:
    """Pool one method's rows; WER is a fraction, time in seconds."""
    words = sum(row.words for row in rows)
    decoder = sum(row.decoder_seconds for row in rows)
    steps = sum(row.steps for row in rows)
    tokens = sum(row.tokens for row in rows)
    return {
        "words": words,
        "wer": sum(row.errors for row in rows) / words if words else None,
        "substitutions": sum(row.substitutions for row in rows),
        "insertions": sum(row.insertions for row in rows),
        "deletions": sum(row.deletions for row in rows),
        "seconds": decoder + sum(row.encoder_seconds for row in rows),
        "decoder_seconds": decoder,
        "steps": steps,
        "ms_per_step": 1000 * decoder / max(1, steps),
        "tokens": tokens,
        "ms_per_token": 1000 * decoder / max(1, tokens),
        "capacity_hits": sum(row.finish_reason == "length" for row in rows),
        "budget_hits": sum(row.finish_reason == "budget" for row in rows),
        "target_steps": _target_steps(rows),
        "confidence": _confidence(rows),
    }


def _target_steps(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return the rates at which steps along the target are mended and harmed.

    None of a method that does not choose token by token, or where there was no target.
    """
    missed, right = (sum(getattr(row, f"{n}_steps") for row in rows) for n in ("missed", "right"))
    if not missed + right:
        return None
    mended, harmed = (sum(getattr(row, f"{n}_steps") for row in rows) for n in ("mended", "harmed"))
    return {
        "missed": missed,
        "mended": mended,
        "fix_rate": mended / missed if missed else None,
        "right": right,
        "harmed": harmed,
        "harm_rate": harmed / right if right else None,
        "coverage": {k: sum(getattr(row, f"within_{k}") for row in rows) / missed for k in RANKS}
        if missed
        else None,
    }


def _confidence(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Judge the words' probabilities, raw and calibrated; None where no word could be judged."""
    words = np.array([word for row in rows for word in row.judged]).reshape(-1, 3)
    if not len(words):
        return None
    right = words[:, 2] == 1
    raw, fitted = (_judged(words[:, at], right) for at in (0, 1))
    calibrated = None if np.array_equal(words[:, 0], words[:, 1]) else fitted
    return {
        "words": len(words),
        "wrong": float((~right).mean()),
        "raw": raw,
        "calibrated": calibrated,
    }


def _judged(probabilities: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    """Judge probabilities [N] by what was right [N]; None stands where there is nothing to tell."""
    found = quality(probabilities, right).as_dict()
    if right.all() or not right.any():
        found["ranking"] = None
    if right.all():
        found |= dict.fromkeys(("threshold", "precision", "recall", "recall_at_half"))
    if not (probabilities < 0.5).any():
        found["precision_at_half"] = None
    return found


def compared(rows: Sequence[Row], first: str, method: str) -> dict[str, int]:
    """Count the utterances in which a method makes fewer, more and as many errors as the first."""
    before = {(row.corpus, row.id): row.errors for row in rows if row.method == first}
    change = [row.errors - before[row.corpus, row.id] for row in rows if row.method == method]
    return {
        "improved": sum(errors < 0 for errors in change),
        "harmed": sum(errors > 0 for errors in change),
        "unchanged": change.count(0),
    }


def gap_closed(rows: Sequence[Row], method: str, beam: str = "beam5") -> GapClosed | None:
    """Return the share of the gap from greedy to the beam that a method closes.

    None where greedy or the beam was not run, or the method is one of them.
    """
    errors: dict[str, list[int]] = {name: [] for name in ("greedy", method, beam)}
    speakers: list[str] = []
    for row in rows:
        if row.method in errors:
            errors[row.method].append(row.errors)
        if row.method == "greedy":
            speakers.append(row.speaker)
    if method in ("greedy", beam) or not all(errors.values()):
        return None
    return bootstrap_gap_closed(errors["greedy"], errors[method], errors[beam], speakers)


def report(rows: Sequence[Row], run: Run) -> dict[str, Any]:
    """Return the contents of ``report.json``."""
    first_rows = [row for row in rows if row.method == run.methods[0]]
    content: dict[str, Any] = {
        "model": run.model,
        "bundle_hash": run.bundle_hash,
        "parity": run.parity,
        "corpus": " + ".join(run.corpora),
        "device": run.device,
        "audio_context": run.audio_context,
        "utterances": len(first_rows),
        "hours": sum(row.duration for row in first_rows) / 3600,
        "words": sum(row.words for row in first_rows),
        "unit": unit(run.language),
        "empty_references": sum(row.words == 0 for row in first_rows),
        "methods": {
            method: summarize([row for row in rows if row.method == method])
            for method in run.methods
        },
    }
    gaps = {method: gap_closed(rows, method) for method in run.methods}
    for method, gap in gaps.items():
        if gap is not None:
            content["methods"][method]["gap_closed"] = gap._asdict()
        content["methods"][method] |= compared(rows, run.methods[0], method)
    corrected = gaps.get("corrected")
    content["gap_closed"] = corrected._asdict() if corrected else None
    return content


def counted(content: Mapping[str, Any]) -> str:
    """Say what a report's error rates are of: words or characters, and references without any."""
    said = f"{content['words']} {content['unit']}s"
    empty = content["empty_references"]
    return f"{said}, {empty} of the references empty" if empty else said


class Reports(NamedTuple):
    """What ``report`` tells of all rows, and of those of each corpus."""

    whole: dict[str, Any]
    by_corpus: dict[str, dict[str, Any]]


def reports(rows: Sequence[Row], run: Run) -> Reports:
    """Work an evaluation's figures out, once for all who show them."""
    by_corpus = {name: report(part, run) for name, part in parts_of(rows, run).items()}
    only = next(iter(by_corpus.values())) if len(by_corpus) == 1 else None
    return Reports(only or report(rows, run), by_corpus)


def print_report(found: Reports) -> None:
    """Print a table for each corpus, and one for all together."""
    output = screen()
    for name, content in found.by_corpus.items():
        output.print(_table(content, name))
    if len(found.by_corpus) > 1:
        output.print(_table(found.whole, "all"))
    output.print(_step_table(found.whole))
    output.print(step_note(found.whole), soft_wrap=True)


def parts_of(rows: Sequence[Row], run: Run) -> dict[str, list[Row]]:
    """Split the rows by corpus."""
    return {name: [row for row in rows if row.corpus == name] for name in run.corpora}


def cells(figures: Mapping[str, Any]) -> list[str]:
    """Return one method's line of a table, as ``COLUMNS`` has it."""
    return [
        f"{figures['wer']:.2%}" if figures["words"] else "no words",
        str(figures["substitutions"]),
        str(figures["insertions"]),
        str(figures["deletions"]),
        f"{figures['improved']}/{figures['harmed']}",
        str(figures["steps"]),
        f"{figures['ms_per_token']:.1f}",
        f"{figures['seconds']:.1f}",
        str(figures["budget_hits"]),
        str(figures["capacity_hits"]),
        _gap(figures.get("gap_closed")),
    ]


def step_cells(figures: Mapping[str, Any]) -> list[str]:
    """Return one method's line of the second table, as ``STEP_COLUMNS`` has it."""
    steps, words = figures["target_steps"], figures["confidence"]
    mended = _share(steps["mended"], steps["missed"], 0) if steps else ""
    harmed = _share(steps["harmed"], steps["right"], 2) if steps else ""
    if words is None:
        return [mended, harmed, "", "", "", ""]
    raw, fitted = words["raw"], words["calibrated"]
    best = fitted or raw
    return [
        mended,
        harmed,
        f"{raw['calibration_error']:.3f}",
        f"{fitted['calibration_error']:.3f}" if fitted else "",
        *("" if best[n] is None else f"{best[n]:.0%}" for n in ("recall_at_half", AT_HALF)),
    ]


def _share(part: int, whole: int, digits: int) -> str:
    return f"{part} of {whole}" + (f" ({part / whole:.{digits}%})" if whole else "")


def step_note(content: Mapping[str, Any]) -> str:
    """Say what the second table counts, and what greedy's likeliest tokens cover."""
    said = (
        "Steps along the best text of the beam's list: those where greedy misses its next token, "
        "and those where it does not. Recall and precision: of wrong words, by a confidence below "
        "one half"
    )
    counts = [f["target_steps"] for f in content["methods"].values() if f["target_steps"]]
    if not counts or not counts[0]["coverage"]:
        return f"{said}."
    covered = ", ".join(f"{counts[0]['coverage'][k]:.0%} of them in {k}" for k in RANKS)
    return f"{said}. Greedy's likeliest tokens hold the one it misses: {covered}."


def _step_table(content: Mapping[str, Any]) -> Table:
    lines = {method: step_cells(figures) for method, figures in content["methods"].items()}
    return _lines_as_table("steps and confidence", STEP_COLUMNS, lines)


def _table(content: dict[str, Any], name: str) -> Table:
    about = f"{content['utterances']} utterances, {content['hours']:.2f} h, {counted(content)}"
    title = f"{content['model']} on {content['device']}, {name}: {about}"
    lines = {method: cells(figures) for method, figures in content["methods"].items()}
    return _lines_as_table(title, COLUMNS, lines)


def _lines_as_table(
    title: str, columns: Sequence[str], lines: Mapping[str, Sequence[str]]
) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("method", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for method, line in lines.items():
        table.add_row(method, *line)
    return table


def _gap(gap: dict[str, float | None] | None) -> str:
    if gap is None:
        return ""
    if gap["value"] is None:
        return "no gap"
    low, high = ("?" if gap[end] is None else f"{gap[end]:.0%}" for end in ("low", "high"))
    return f"{gap['value']:.0%} ({low} to {high})"
