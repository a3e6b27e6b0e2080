"""``beamless import``: data sets of other layouts, and corpora to be augmented, to a corpus."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from beamless.data_gen.augment import load_recipe
from beamless.data_gen.corpus_writer import CorpusWriter, refuse_nothing, summary_of
from beamless.data_gen.importers import (
    audiofolder,
    common_voice,
    hugging_face,
    kaldi,
    lhotse,
    librispeech,
    ljspeech,
    long,
    nemo,
    tables,
    tedlium,
    vctk,
)
from beamless.data_gen.importers.intake import Intake, SplitBy
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source
from beamless.data_gen.subset import first
from beamless.inference.counts import require_positive
from beamless.inference.errors import BeamlessError

__all__ = [
    "LAYOUTS",
    "Recording",
    "Source",
    "column_choice",
    "import_corpus",
    "layout_named",
    "read_layout",
    "recordings_of",
]

LAYOUTS: Mapping[str, Layout] = {
    layout.name: layout
    for layout in (
        ljspeech.LAYOUT,
        librispeech.LAYOUT,
        common_voice.LAYOUT,
        vctk.LAYOUT,
        tedlium.LAYOUT,
        kaldi.LAYOUT,
        nemo.LAYOUT,
        lhotse.LAYOUT,
        long.LAYOUT,
        tables.CSV,
        tables.TSV,
        tables.JSONL,
        hugging_face.LAYOUT,
        audiofolder.LAYOUT,
    )
}


def import_corpus(
    layout: str,
    source: str,
    out: Path,
    *,
    subset: str = "",
    columns: str = "",
    audio_root: Path | None = None,
    split: SplitBy | None = None,
    augment: Path | None = None,
    name: str = "",
    license: str = "",
    limit: int | None = None,
    model: str = "tiny.en",
    device: str = "CPU",
    language: str = "en",
) -> None:
    """Turn a data set of another layout into a corpus.

    A run that was stopped goes on where it was when the same command is given again. What
    cannot be used is refused with a reason and counted; nothing is cut.

    Args:
        layout: ljspeech, librispeech, common-voice, vctk, tedlium, kaldi, nemo, lhotse, csv, tsv,
            jsonl, hf (Hugging Face datasets), long (recordings with a .txt beside each, but no
            times) or corpus (this project's own).
        source: its folder or file; for hf also a name on the hub.
        out: the folder of the new corpus; with --split it gets train, dev and test.
        subset: a part of it, such as dev-clean (librispeech), train (common-voice), mic2 (vctk)
            or configuration:split (hf).
        columns: how the columns of csv, tsv, jsonl and hf are called, such as
            audio=path,text=sentence; also id, speaker, start, end, license.
        audio_root: the folder that the paths of a manifest are relative to, by default the
            manifest's own; paths that lead out of it are refused.
        split: write train, dev and test, by speaker, by text where the same sentences are read
            by several people, or by both, which leaves out what would stand on two sides.
        augment: a recipe of noise, rooms, codecs and more, such as data_gen/augment.yaml.
        name: what the corpus calls its source; the layout's name by default.
        license: the licence of the audio, where the layout does not know it.
        limit: read the first so many recordings only.
        model: a bundle's folder or a model's name, for the layout long: it hears what is said
            where, so that the text can be cut.
        device: the OpenVINO device that the model runs on.
        language: what is spoken, for the layout long.

    Raises:
        BeamlessError: the layout, the source, the recipe or the folder are not what they must
            be, or nothing could be used.
    """
    chosen = layout_named(layout)
    recipe = load_recipe(augment) if augment else None
    root = audio_root and audio_root.absolute()
    place = Source(source, subset, column_choice(columns), root, model, device, language)
    plan: dict[str, Any] = {
        "stage": "import",
        "layout": layout,
        "source": source,
        "subset": subset,
        "columns": columns,
        "audio_root": str(audio_root or ""),
        "split": split,
        "augment": recipe.described if recipe else None,
        "name": name,
        "license": license,
        "limit": limit,
    }
    if layout == long.LAYOUT.name:
        plan |= {"model": model, "language": language}
    require_positive(limit=limit)
    recordings = recordings_of(layout, place, limit)
    total = len(recordings) if isinstance(recordings, list) else None
    sides = ("train", "dev", "test") if split else ("",)
    counts = {}
    with ExitStack() as stack:
        writers = {
            side: stack.enter_context(CorpusWriter(out / side, {**plan, "side": side}))
            for side in sides
        }
        intake = Intake(writers, split, recipe, name or layout, license or chosen.license)
        intake.run(recordings, "importing", total)
        refuse_nothing(writers.values(), f"no recording of {source} could be used")
        counts = {out / side: writer.finish() for side, writer in writers.items()}
    sys.stdout.write("".join(summary_of(*entry) + "\n" for entry in counts.items()))


def layout_named(name: str) -> Layout:
    """Return a layout by its name.

    Raises:
        BeamlessError: there is none of that name.
    """
    if name not in LAYOUTS:
        raise BeamlessError(f"there is no layout {name!r}; there are {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def recordings_of(
    layout: str, source: Source, limit: int | None = None
) -> list[Recording] | Iterator[Recording]:
    """Return the first so many recordings of a data set.

    They are a list, and no audio is read, except where a layout brings them with their audio:
    those come one by one.

    Raises:
        BeamlessError: it is not of that layout, holds none, or two of them have the same id.
    """
    found = first(layout_named(layout).read(source), limit)
    return _begun(found, source.place) if LAYOUTS[layout].streamed else _listed(found, source.place)


def read_layout(layout: str, source: Source) -> list[Recording]:
    """Return all recordings of a data set; no audio is read.

    Raises:
        BeamlessError: it is not of that layout, or two of them have the same id.
    """
    return _listed(LAYOUTS[layout].read(source), source.place)


def _listed(recordings: Iterable[Recording], source: str) -> list[Recording]:
    """List the recordings of a layout, so that a fault at its end is found at the start."""
    listed = list(recordings)
    seen: set[str] = set()
    for recording in listed:
        if recording.id in seen:
            raise BeamlessError(f"{source}: the id {recording.id!r} stands there twice")
        seen.add(recording.id)
    if not listed:
        raise BeamlessError(f"{source} holds no recordings")
    return listed


def _begun(recordings: Iterator[Recording], source: str) -> Iterator[Recording]:
    """Take the first recording, so that a source that cannot be read is found at the start."""
    first = next(recordings, None)
    if first is None:
        raise BeamlessError(f"{source} holds no recordings")
    return chain([first], recordings)


def column_choice(given: str) -> dict[str, str]:
    """Read ``audio=path,text=sentence``.

    Raises:
        BeamlessError: it is of another form, or there is no such field.
    """
    pairs = [pair.partition("=") for pair in given.split(",") if pair]
    for field, equals, column in pairs:
        if field not in tables.FIELDS or not equals or not column:
            raise BeamlessError(
                f"--columns takes {', '.join(tables.FIELDS)}, such as audio=path; not {given!r}"
            )
    return {field: column for field, _, column in pairs}
