"""``beamless calibrate``: recordings whose text is known, to a bundle whose confidence holds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from beamless.data_gen.corpora import Utterance, corpus_name, read_corpus
from beamless.data_gen.subset import spread
from beamless.inference.atomic import is_taken, write_text_atomically
from beamless.inference.bundle import Bundle
from beamless.inference.confidence import Confidence
from beamless.inference.errors import BeamlessError
from beamless.inference.inspection_picture import require_matplotlib
from beamless.inference.languages import named_language
from beamless.inference.lock import locked
from beamless.inference.methods import DEFAULT_METHOD, open_method
from beamless.inference.progress import console, progress, screen
from beamless.models.bundle import open_bundle
from beamless.models.precision import Profile
from beamless.training.calibration import Sample, calibrated, fit, quality
from beamless.training.calibration_picture import draw_calibration
from beamless.training.judged_words import Judged, judged_words
from beamless.training.one_window import decoded_windows

UNITS = ("word", "token")
HALVES = (False, True)
KINDS = {"raw": "raw", "before": "as it was", "calibrated": "calibrated"}


def calibrate(
    bundle: str,
    corpora: list[Path],
    *,
    out: Path,
    limit: int | None = None,
    language: str = "en",
    device: str = "CPU",
    precision: Profile = "fast",
) -> None:
    """Fit a bundle's confidence on recordings whose text is known, and write it into the bundle.

    Reported is each half of the speakers with numbers fitted on the other half; kept are numbers
    fitted on all, unless those fitted on the other half make confidence worse. Tokens do not
    change.

    Args:
        bundle: a bundle's folder, or a model's name.
        corpora: corpus folders; not those that it will be tested on.
        out: a new folder for calibration.json and calibration.png.
        limit: only so many utterances of each corpus, spread by a hash of their ids.
        language: what is spoken.
        device: an OpenVINO device.
        precision: of a model that is given by its name: fast as in transcribe, or exact.
    """
    require_matplotlib()
    if is_taken(out):
        raise BeamlessError(f"{out} exists; name another folder")
    work = [u for folder in corpora for u in spread(read_corpus(folder), limit)]
    opened = open_bundle(bundle, device, precision=precision)
    language = named_language(language, opened.tokenizer)
    out.mkdir(parents=True, exist_ok=True)
    with locked(opened.folder):
        judged = list(judge(opened, work, language))
        keep(opened, corpora, work, judged, language, out)


def keep(
    opened: Bundle,
    corpora: Sequence[Path],
    work: Sequence[Utterance],
    judged: list[Judged],
    language: str,
    out: Path,
) -> None:
    """Write what was judged into the report's folder, and its numbers into the bundle.

    Raises:
        BeamlessError: confidence would be worse than raw; nothing is written then.
    """
    try:
        content, probabilities = results(judged, opened.confidence_in(language))
        require_better(content)
    except BeamlessError:
        if not any(out.iterdir()):
            out.rmdir()
        raise
    method = DEFAULT_METHOD
    content |= {"method": method, "language": language, "utterances": len(work)}
    content["corpora"] = [corpus_name(folder) for folder in corpora]
    write_text_atomically(out / "calibration.json", json.dumps(content, indent=2) + "\n")
    words = content["words"]["reported"]
    about = f"{opened.manifest.model['name']}, {method}, {', '.join(content['corpora'])}"
    title = f"{about}: {words} words"
    right = np.concatenate([sample_of(judged, "word", half).right for half in HALVES])
    draw_calibration(probabilities, right, title, out / "calibration.png")
    _print(content, title)
    kept = {name: content[name] for name in (*UNITS, "method", "language", "corpora")}
    manifest = replace(opened.manifest, confidence=kept)
    write_text_atomically(opened.folder / "bundle.json", manifest.to_json())
    console().print(f"wrote {out}, and the numbers into {opened.folder / 'bundle.json'}")


def judge(bundle: Bundle, work: list[Utterance], language: str) -> Iterator[Judged]:
    """Decode utterances with the bundle's own method and yield their words and tokens, judged.

    Left out are utterances longer than a window, those that did not end by themselves (a loop has
    hundreds of wrong words, all of them sure), and those whose words cannot be aligned fairly (see
    ``right_words``).
    """
    tokenizer, left_out = bundle.tokenizer, 0
    decode = open_method(bundle, DEFAULT_METHOD, language)
    with progress("utterances", len(work)) as advance:
        for utterance, found in decoded_windows(bundle, decode, work, "short", language):
            told = list(judged_words(found, utterance, tokenizer, language)) if found else []
            left_out += not told
            yield from told
            advance()
    if left_out:
        reasons = "too long, a loop, no words, or hard to align"
        console().print(f"left out {left_out} utterances: {reasons}")


def results(
    judged: list[Judged], before: Confidence | None = None
) -> tuple[dict[str, Any], Mapping[str, np.ndarray]]:
    """Fit on all, and on each half to judge the other; judge what was fitted ``before``, too.

    Returns:
        What ``calibration.json`` holds; and the words' probabilities [N], raw and calibrated, half
        by half.
    """
    content: dict[str, Any] = {}
    shown: dict[str, np.ndarray] = {}
    for unit in UNITS:
        halves = [sample_of(judged, unit, half) for half in HALVES]
        numbers = [fit(half) for half in halves]
        content[unit] = list(fit(joined(halves)))
        right = joined(halves).right
        fair = [calibrated(n, half) for n, half in zip(reversed(numbers), halves, strict=True)]
        found = {"raw": joined(halves).raw, "calibrated": np.concatenate(fair)}
        shown = shown or found
        judged_too = {"before": calibrated(getattr(before, unit), joined(halves))} if before else {}
        content[f"{unit}s"] = {
            "reported": len(right),
            "wrong": float((~right).mean()),
            **{name: quality(p, right).as_dict() for name, p in {**found, **judged_too}.items()},
        }
    return content, shown


def require_better(content: Mapping[str, Any]) -> None:
    """Refuse numbers that make confidence worse on speakers that they were not fitted on.

    Raises:
        BeamlessError: the log loss of words or tokens rises.
    """
    for unit in UNITS:
        raw, fitted = (content[f"{unit}s"][kind]["log_loss"] for kind in ("raw", "calibrated"))
        if fitted > raw:
            raise BeamlessError(
                f"calibrating makes the confidence of {unit}s worse: log loss {raw:.3f} before, "
                f"{fitted:.3f} after, on speakers set aside; give more recordings"
            )


def joined(samples: Sequence[Sample]) -> Sample:
    """Put samples one behind the other."""
    columns = ([getattr(sample, name) for sample in samples] for name in ("raw", "means", "right"))
    return Sample(*map(np.concatenate, columns))


def sample_of(judged: list[Judged], unit: str, half: bool) -> Sample:
    """Return the words or tokens of one half."""
    rows = [row for row in judged if row.unit == unit and row.half == half]
    return Sample(
        raw=np.array([row.raw for row in rows], np.float64),
        means=np.array([row.mean for row in rows], np.float64),
        right=np.array([row.right for row in rows], bool),
    )


def _print(content: Mapping[str, Any], title: str) -> None:
    table = Table("", title=title, title_justify="left")
    columns = ("n", "wrong", "calibration error", "log loss", "ranking", "errors found", "of them")
    for column in columns:
        table.add_column(column, justify="right")
    for unit in UNITS:
        part = content[f"{unit}s"]
        for kind in (kind for kind in KINDS if kind in part):
            figures = part[kind]
            table.add_row(
                f"{unit}s, {KINDS[kind]}",
                str(part["reported"]),
                f"{part['wrong']:.1%}",
                f"{figures['calibration_error']:.3f}",
                f"{figures['log_loss']:.3f}",
                f"{figures['ranking']:.3f}",
                f"{figures['recall_at_half']:.0%}",
                f"{figures['precision_at_half']:.0%}",
            )
    screen().print(table)
    screen().print("errors found: words below one half, recall; of them: precision")
