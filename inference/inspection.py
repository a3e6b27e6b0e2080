"""Looking inside: each window's tokens by several methods, in a table and a picture.

``DIR/0001.png`` shows a window's waveform, log-mel, the attention over its tokens, and the tokens
of greedy, corrected and beam side by side; ``DIR/windows.csv`` has a row for each token.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from math import exp
from pathlib import Path

import numpy as np

from beamless.inference.atomic import is_taken
from beamless.inference.audio import SAMPLE_RATE
from beamless.inference.budget import budget_for
from beamless.inference.bundle import Bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.features import log_mel
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.longform import OnWindow, SeenWindow
from beamless.inference.methods import Method, method_of
from beamless.inference.segments import confidences_of
from beamless.inference.timestamps import SECONDS_A_STEP
from beamless.inference.tokenizer import Tokenizer
from beamless.inference.window_decoder import token_options
from beamless.inference.word_times import token_times

PLACE = ("picture", "file", "start", "end")
COLUMNS = (
    *PLACE,
    *("method", "step", "token", "text", "probability", "confidence", "differs", "time"),
)


@dataclass(frozen=True)
class Reading:
    """What one method made of a window.

    Attributes:
        tokens, texts, probabilities: of each step but the end's.
        confidences: how likely each token is right, None of a time; empty if that is not known, and
            of methods other than the transcript's.
        differs: whether a token is another than greedy's there; of greedy, than the last method's.
        times: when each token was said, in seconds of the recording; empty if that is not known.
        attention: [T, S], the mean of the alignment heads, or None.
    """

    method: str
    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    probabilities: tuple[float, ...]
    differs: tuple[bool, ...]
    times: tuple[float, ...]
    attention: np.ndarray | None
    confidences: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class View:
    """A window and its readings; times are seconds of the recording."""

    file: Path
    start: float
    end: float
    samples: np.ndarray
    mel: np.ndarray
    """The log-mel [M, F] of the window's own length."""
    method: str
    """The one that the transcript is of; its attention is shown."""
    readings: tuple[Reading, ...]


class Inspector:
    """Writes a picture and rows of the table for every window that it is shown.

    Args:
        folder: for them; new, or empty.

    Raises:
        BeamlessError: the folder holds something, or matplotlib is not installed.
    """

    def __init__(self, folder: Path) -> None:
        from beamless.inference.inspection_picture import require_matplotlib

        require_matplotlib()
        if is_taken(folder):
            raise BeamlessError(f"{folder} exists and holds something; name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._count = folder, 0
        self._methods: dict[str, Method] = {}
        self._write_rows([COLUMNS])

    def of(self, file: Path, bundle: Bundle, method: str) -> OnWindow:
        """Return what a transcriber of this bundle and method is to show a recording's windows."""
        return partial(self._look, file, bundle, method)

    def _look(self, file: Path, bundle: Bundle, method: str, seen: SeenWindow) -> None:
        from beamless.inference.inspection_picture import draw

        self._count += 1
        picture = self._folder / f"{self._count:04d}.png"
        view = self._view(file, bundle, method, seen)
        draw(view, picture)
        self._write_rows([[picture.name, *row] for row in rows_of(view)])

    def _view(self, file: Path, bundle: Bundle, method: str, seen: SeenWindow) -> View:
        names = ["greedy", *(["corrected"] if bundle.has_corrector else []), method, "beam5"]
        tokenizer, asked = bundle.tokenizer, seen.options
        previous = () if seen.decoded.forgot else seen.previous
        prompt = tokenizer.prompt(seen.language, asked.task, bool(asked.timestamps), previous)
        budget = budget_for(seen.window.samples, seen.language, asked.tokens_a_second)
        options = token_options(bundle, seen.language, asked, budget)
        found: dict[str, Hypothesis] = {}
        for name in dict.fromkeys(names):
            if name not in self._methods:
                self._methods[name] = method_of(bundle, name)
            align = bool(bundle.manifest.alignment_heads)
            found[name] = self._methods[name].decode(seen.cross_kv, prompt, options, align)[0]
        told = seen.decoded.best
        if told.tokens != found[method].tokens:  # drawn at another temperature
            found[method] = told
        start = seen.window.first / SAMPLE_RATE
        mel = log_mel(seen.window.samples, bundle.manifest.sizes["mels"])[0]
        sure = confidences_of(found[method], tokenizer, bundle.confidence_in(seen.language))
        readings = readings_of(found, tokenizer, start, seen.window.seconds)
        return View(
            file=file,
            start=start,
            end=start + seen.window.seconds,
            samples=seen.window.samples,
            mel=mel[:, : round(100 * seen.window.seconds)],
            method=method,
            readings=tuple(
                replace(each, confidences=sure) if each.method == method else each
                for each in readings
            ),
        )

    def _write_rows(self, rows: Sequence[Sequence[object]]) -> None:
        path = self._folder / "windows.csv"
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


def readings_of(
    found: dict[str, Hypothesis], tokenizer: Tokenizer, start: float, seconds: float
) -> tuple[Reading, ...]:
    """Make readings of the methods' hypotheses; the first is what the others are compared with."""
    names = list(found)
    first, last = found[names[0]].tokens, found[names[-1]].tokens
    readings = []
    for name, hypothesis in found.items():
        other = last if name == names[0] else first
        attention = times = None
        if hypothesis.alignment is not None:
            attention = hypothesis.alignment.mean(axis=1)[: len(hypothesis.tokens)]
            times = start + token_times(hypothesis.alignment, seconds)[: len(hypothesis.tokens)]
        readings.append(
            Reading(
                method=name,
                tokens=hypothesis.tokens,
                texts=tuple(text_of(token, tokenizer) for token in hypothesis.tokens),
                probabilities=tuple(map(exp, hypothesis.logprobs[: len(hypothesis.tokens)])),
                differs=differences(hypothesis.tokens, other),
                times=() if times is None else tuple(times.tolist()),
                attention=attention,
            )
        )
    return tuple(readings)


def text_of(token: int, tokenizer: Tokenizer) -> str:
    """Return what a token says; a time as in ``<1.20>``."""
    if token >= tokenizer.timestamp_begin:
        return f"<{(token - tokenizer.timestamp_begin) * SECONDS_A_STEP:.2f}>"
    return tokenizer.decode([token])


def differences(tokens: Sequence[int], other: Sequence[int]) -> tuple[bool, ...]:
    """Tell of each token whether it has no equal in the other text, aligned with it."""
    same = [False] * len(tokens)
    for at, _, size in SequenceMatcher(None, tokens, other, autojunk=False).get_matching_blocks():
        same[at : at + size] = [True] * size
    return tuple(not each for each in same)


def side_by_side(readings: Sequence[Reading]) -> list[list[list[int]]]:
    """Return where the readings' tokens stand: columns, in each a list of steps a reading.

    A column is one token of the first reading; what others have more stands with the one before.
    """
    first = readings[0].tokens
    columns: list[list[list[int]]] = [[[] for _ in readings] for _ in range(max(1, len(first)))]
    for number, reading in enumerate(readings):
        matcher = SequenceMatcher(None, first, reading.tokens, autojunk=False)
        for _, a, a_end, b, b_end in matcher.get_opcodes():
            for step in range(b, b_end):
                column = min(a + step - b, a_end - 1) if a_end > a else a - 1
                columns[max(0, column)][number].append(step)
    return columns


def rows_of(view: View) -> list[list[object]]:
    """Return the table's rows for a window, without the picture's name."""
    place = [view.file.name, f"{view.start:.3f}", f"{view.end:.3f}"]
    return [
        [
            *place,
            reading.method,
            step,
            token,
            reading.texts[step],
            f"{reading.probabilities[step]:.4f}",
            _confidence(reading, step),
            int(reading.differs[step]),
            f"{reading.times[step]:.2f}" if reading.times else "",
        ]
        for reading in view.readings
        for step, token in enumerate(reading.tokens)
    ]


def _confidence(reading: Reading, step: int) -> str:
    known = reading.confidences[step] if reading.confidences else None
    return "" if known is None else f"{known:.4f}"
