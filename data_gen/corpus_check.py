"""``beamless corpus``: whether a corpus is sound, what it holds, and taking bad parts out."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from beamless.data_gen.corpora import Utterance, scan_corpus
from beamless.data_gen.corpus_writer import (
    COMPLETE,
    MAX_SECONDS,
    METADATA,
    RECIPE,
    completed_hash,
    drop_utterances,
    metadata_hash,
    summary_of,
)
from beamless.data_gen.importers.recording import RATE, Recording, UnreadableError, samples_of
from beamless.data_gen.report import report, worse_than
from beamless.inference.counts import require_positive
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import track

SHOWN = 5
TOLERANCE = 0.1
"""Seconds by which a stated duration may miss the true one."""


def corpus(
    action: Literal["check", "report", "drop"],
    folder: Path,
    *,
    out: Path | None = None,
    model: str = "",
    device: str = "CPU",
    language: str = "en",
    limit: int | None = None,
    max_wer: float = 0.5,
) -> None:
    """Check a corpus, report on it, or drop what its report found wrong.

    Args:
        action: check reads every file and names what is wrong; report writes a page (HTML) and
            its figures (JSONL); drop takes out of a corpus what its report heard wrongly.
        folder: the corpus.
        out: the report's page, FOLDER-report.html by default; drop reads the figures beside it.
        model: a bundle or a model's name that listens to every utterance, for the report.
        device: the OpenVINO device that the model runs on.
        language: what is spoken.
        limit: report on the first so many utterances only.
        max_wer: the word error rate above which an utterance counts as wrong.

    Raises:
        BeamlessError: there is no corpus, or it has faults (the first ones are named).
    """
    require_positive(limit=limit)
    page = out or folder.parent / f"{folder.resolve().name}-report.html"
    if action == "check":
        sys.stdout.write(check_corpus(folder) + "\n")
    elif action == "report":
        summary = report(
            folder, page, model=model, device=device, language=language, limit=limit, bound=max_wer
        )
        sys.stdout.write(summary + "\n")
    else:
        bad = worse_than(max_wer, page.with_suffix(".jsonl"), folder.resolve())
        counts = drop_utterances(folder.resolve(), bad, f"heard with a WER above {max_wer:g}")
        sys.stdout.write(summary_of(folder, counts) + "\n")


def check_corpus(folder: Path) -> str:
    """Read every line and every audio file of a corpus and return a summary.

    Raises:
        BeamlessError: there are faults; the message counts them and names the first few.
    """
    folder = Path(folder).resolve()
    utterances: list[Utterance] = []
    faults = list(_marker_faults(folder))
    for entry in scan_corpus(folder):
        if isinstance(entry, Utterance):
            utterances.append(entry)
        else:
            faults.append(str(entry))
    for utterance in track(utterances, "reading", len(utterances)):
        faults.extend(f"{utterance.id}: {fault}" for fault in _audio_faults(utterance))
    if not utterances and not faults:
        faults.append("it holds no utterances")
    if faults:
        more = f"; and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        found = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise BeamlessError(f"{folder} has {found}: {'; '.join(faults[:SHOWN])}{more}")
    return _summary(folder, utterances)


def _marker_faults(folder: Path) -> Iterator[str]:
    """Yield what the completion marker says against a corpus that this program made."""
    if not (folder / RECIPE).is_file():
        return
    if not (folder / COMPLETE).is_file():
        yield "it is unfinished; run the command that makes it again"
        return
    stated = completed_hash(folder)
    if stated is None:
        yield f"{COMPLETE} cannot be read"
    elif stated != metadata_hash(folder):
        yield f"{METADATA} was changed after the corpus was completed"


def _audio_faults(utterance: Utterance) -> Iterator[str]:
    try:
        samples = samples_of(Recording(utterance.id, utterance.audio, utterance.text))
    except UnreadableError as fault:
        yield str(fault)
        return
    seconds = len(samples) / RATE
    if not len(samples):
        yield "no samples"
    if seconds > MAX_SECONDS:
        yield f"longer than {MAX_SECONDS:.0f} s"
    if abs(seconds - utterance.duration) > TOLERANCE:
        yield f"{seconds:.2f} s of audio, but a duration of {utterance.duration:.2f} s"


def _summary(folder: Path, utterances: list[Utterance]) -> str:
    hours = sum(utterance.duration for utterance in utterances) / 3600
    speakers = {utterance.speaker for utterance in utterances if utterance.speaker}
    lines = [
        f"{folder}: sound",
        f"  {len(utterances)} utterances, {hours:.2f} h, {len(speakers)} speakers known",
    ]
    for title, name in (("sources", "source"), ("licences", "license"), ("voices", "voice")):
        counted = Counter(getattr(u, name) or "not stated" for u in utterances)
        if set(counted) != {"not stated"}:
            listed = ", ".join(f"{value} ({number})" for value, number in counted.most_common(8))
            lines.append(f"  {title}: {listed}")
    return "\n".join(lines)
