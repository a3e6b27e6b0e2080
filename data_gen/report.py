"""What a corpus sounds like, measured utterance by utterance and shown on one page."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from beamless.data_gen.corpora import Utterance, json_object, numbered_lines, read_corpus
from beamless.data_gen.corpus_writer import completed_hash, metadata_hash
from beamless.data_gen.importers.recording import (
    Recording,
    Samples,
    UnreadableError,
    samples_of,
)
from beamless.data_gen.report_page import page_of
from beamless.data_gen.word_errors import normalize, word_errors
from beamless.inference.atomic import write_text_atomically
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import track

Listener = Callable[[Samples], str]
"""Samples, float32 ``[n]`` at 16 kHz, to the text that was heard."""

CLIPPED_RUN = 3


@dataclass(frozen=True)
class Figures:
    """One utterance measured.

    ``rate`` is that of the file; ``level`` is in dB below full scale, without digital silence;
    ``clipped`` is the share of samples that stand at the peak three or more times running;
    ``wer`` and ``heard`` are those of the model that listened, if one did.
    """

    id: str
    text: str
    speaker: str
    voice: str
    source: str
    seconds: float
    rate: int
    level: float
    clipped: float
    words: int
    words_per_second: float
    wer: float | None = None
    heard: str | None = None


def report(
    folder: Path,
    page: Path,
    *,
    model: str = "",
    device: str = "CPU",
    language: str = "en",
    limit: int | None = None,
    bound: float = 0.5,
    listener: Listener | None = None,
) -> str:
    """Measure a corpus, write the page and, beside it, the figures; return a summary.

    A run that was stopped goes on where it was: the figures are written one by one.

    Args:
        folder: the corpus.
        page: the HTML file to write; the figures get its name with ``.jsonl``.
        model: a bundle or a model's name that listens; nobody does if empty.
        device: the OpenVINO device that it runs on.
        language: what is spoken.
        limit: the first so many utterances only.
        bound: the word error rate above which an utterance is shown as wrong.
        listener: what listens instead of ``model``.

    Raises:
        BeamlessError: no corpus, a page that exists, or figures of another corpus or model.
    """
    if page.exists():
        raise BeamlessError(f"{page} exists; name another with --out, or remove it")
    utterances = read_corpus(folder)[:limit]
    plan = {
        "metadata_sha256": metadata_hash(folder),
        "model": model,
        "language": language,
    }
    journal = page.with_suffix(".jsonl")
    known = _begun(journal, plan)
    listen = listener or (_listener(model, device, language) if model else None)
    measured: list[Figures] = []
    with journal.open("a", encoding="utf-8", newline="\n") as lines:
        for utterance in track(utterances, "measuring", len(utterances)):
            if utterance.id in known:
                measured.append(known[utterance.id])
                continue
            figures = measure(utterance, listen, language)
            lines.write(json.dumps(asdict(figures), ensure_ascii=False) + "\n")
            lines.flush()
            measured.append(figures)
    write_text_atomically(page, page_of(folder.resolve().name, measured, bound))
    return summary_of_figures(measured, bound) + f"\npage: {page}\nfigures: {journal}"


def measure(
    utterance: Utterance, listener: Listener | None = None, language: str = "en"
) -> Figures:
    """Measure one utterance.

    Raises:
        BeamlessError: its audio cannot be read.
    """
    try:
        samples = samples_of(Recording(utterance.id, utterance.audio, utterance.text))
    except UnreadableError as fault:
        raise BeamlessError(f"{utterance.audio}: {fault}; see 'beamless corpus check'") from None
    words = len(utterance.text.split())
    seconds = len(samples) / 16_000
    heard = listener(samples) if listener else None
    error = None
    if heard is not None:
        spoken = str(utterance.extra.get("spoken") or utterance.text)
        forms = {normalize(text, language) for text in (utterance.text, spoken)}
        error = min(word_errors(form, normalize(heard, language)).rate for form in forms)
    return Figures(
        id=utterance.id,
        text=utterance.text,
        speaker=utterance.speaker,
        voice=utterance.voice,
        source=utterance.source,
        seconds=round(seconds, 3),
        rate=_rate(utterance.audio),
        level=_level(samples),
        clipped=clipped_share(samples),
        words=words,
        words_per_second=round(words / seconds, 3) if seconds else 0.0,
        wer=None if error is None else round(error, 4),
        heard=heard,
    )


def clipped_share(samples: Samples) -> float:
    """Return the share of samples at the peak in runs of three or more.

    Speech touches its peak once; a run of equal extremes is a flat top. Quiet peaks count too,
    since a clipped recording may have been turned down afterwards.
    """
    if not len(samples):
        return 0.0
    size = np.abs(samples)
    peak = float(size.max())
    if peak < 0.01:
        return 0.0
    top = np.concatenate([[0], (size >= peak * 0.999).astype(np.int8), [0]])
    edges = np.flatnonzero(np.diff(top))
    runs = edges[1::2] - edges[::2]
    return round(float(runs[runs >= CLIPPED_RUN].sum()) / len(samples), 6)


def worse_than(bound: float, figures: Path, folder: Path) -> set[str]:
    """Return the ids of a corpus that its report heard with a WER above ``bound``.

    Raises:
        BeamlessError: there are no figures, they are of another corpus or of what it was before
            it was changed, or no model has listened.
    """
    if not figures.is_file():
        raise BeamlessError(f"there are no figures {figures}; run 'beamless corpus report' first")
    plan, *rows = _rows(figures) or [{}]
    if plan.get("metadata_sha256") not in (metadata_hash(folder), completed_hash(folder)):
        raise BeamlessError(
            f"{figures} is of another corpus, or of an earlier {folder}; report anew"
        )
    if not any(row.get("wer") is not None for row in rows):
        raise BeamlessError(f"nobody listened for {figures}; run the report with --model")
    return {row["id"] for row in rows if (row["wer"] or 0.0) > bound}


def summary_of_figures(measured: list[Figures], bound: float) -> str:
    """Return the report in a few lines."""
    seconds = sum(figures.seconds for figures in measured)
    speakers = len({figures.speaker for figures in measured if figures.speaker})
    clipped = sum(figures.clipped > 0 for figures in measured)
    lines = [
        f"{len(measured)} utterances, {seconds / 3600:.2f} h, {speakers} speakers known",
        f"{np.median([f.words_per_second for f in measured]):.2f} words a second (median), "
        f"{clipped} utterances clipped",
    ]
    heard = [figures for figures in measured if figures.wer is not None]
    if heard:
        words = sum(max(1, figures.words) for figures in heard)
        errors = sum((figures.wer or 0.0) * max(1, figures.words) for figures in heard)
        bad = sum((figures.wer or 0.0) > bound for figures in heard)
        lines.append(f"round trip: WER {100 * errors / words:.1f} %, {bad} above {bound:.0%}")
    return "\n".join(lines)


def _listener(model: str, device: str, language: str) -> Listener:
    from beamless.inference.transcribe import Transcriber
    from beamless.models.bundle import open_bundle

    bundle = open_bundle(model, device)
    transcriber = Transcriber(bundle, method="greedy", language=language)
    return lambda samples: transcriber.transcribe(samples).text


def _begun(journal: Path, plan: dict[str, Any]) -> dict[str, Figures]:
    """Return the figures that an earlier run of the same plan wrote; drop a torn last line."""
    if not journal.is_file():
        write_text_atomically(journal, json.dumps(plan) + "\n")
        return {}
    content = journal.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        write_text_atomically(journal, whole.decode())
    rows = _rows(journal)
    if not rows or rows[0] != plan:
        raise BeamlessError(f"{journal} holds the figures of another corpus or model; remove it")
    return {row["id"]: Figures(**row) for row in rows[1:]}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json_object(line, f"{path}, line {n}") for n, line in numbered_lines(path)]


def _rate(audio: Path) -> int:
    try:
        return int(soundfile.info(audio).samplerate)
    except soundfile.LibsndfileError:
        return 0


def _level(samples: Samples) -> float:
    """Return the loudness of what is not digital silence, in dB below full scale."""
    sounding = samples[np.abs(samples) > 1e-4]
    if not len(sounding):
        return -120.0
    return round(float(10 * np.log10(np.mean(np.square(sounding, dtype=np.float64)))), 1)
