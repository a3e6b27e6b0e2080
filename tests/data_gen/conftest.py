"""Small audio files and corpora, made of tones."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

RATE = 16_000


def tone(seconds=0.2, pitch=440.0, loudness=0.3, rate=RATE):
    times = np.arange(round(seconds * rate)) / rate
    return (loudness * np.sin(2 * np.pi * pitch * times)).astype(np.float32)


def store(path: Path, samples=None, rate=RATE, **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, tone() if samples is None else samples, rate, **options)
    return path


def write_corpus(folder: Path, rows: list[dict], audio: bool = True) -> Path:
    """Write ``rows`` as ``metadata.jsonl`` and a tone for each file that they name."""
    lines = []
    for number, row in enumerate(rows):
        full = {"id": f"u{number}", "file_name": f"audio/u{number}.flac", "text": "hello"} | row
        if audio:
            store(folder / full["file_name"], tone(full.get("duration", 0.2)))
        lines.append(json.dumps(full, ensure_ascii=False) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def rows_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metadata.jsonl").open(encoding="utf-8")]


def marker_of(folder: Path) -> dict:
    return json.loads((folder / "_COMPLETE").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def corpora():
    """The functions above, for test modules."""
    return SimpleNamespace(
        tone=tone, store=store, write=write_corpus, rows_of=rows_of, marker_of=marker_of
    )
