"""Common Voice: a table of sentences beside ``clips/``."""

import csv
from collections.abc import Iterator

from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source, audio_inside, needed
from beamless.data_gen.importers.tables import table_rows
from beamless.inference.errors import BeamlessError

COLUMNS = ("client_id", "path", "sentence")
KEPT = {"age": "age", "gender": "gender", "accents": "accent", "accent": "accent"}


def read(source: Source) -> Iterator[Recording]:
    """Read one of the tables (``--subset validated``, the default, or ``train``, ``dev``, ...).

    The same sentence is read by several people: split by text.
    """
    folder = source.folder()
    table = needed(folder / f"{source.subset or 'validated'}.tsv", "common-voice")
    clips = needed(folder / "clips", "common-voice")
    for where, row in table_rows(table, delimiter="\t", quoting=csv.QUOTE_NONE):
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise BeamlessError(f"{where}: the column {missing[0]!r} is missing")
        name = row["path"]
        yield Recording(
            name.rsplit(".", 1)[0],
            audio_inside(clips, name if "." in name else f"{name}.mp3", where),
            row["sentence"],
            speaker=row["client_id"],
            fault="" if row["sentence"].strip() else "no transcript",
            extra={kept: row[name] for name, kept in KEPT.items() if row.get(name)},
        )


LAYOUT = Layout("common-voice", read, license="CC0-1.0")
