"""NeMo manifests: one JSON object a line with ``audio_filepath``, ``duration`` and ``text``."""

from collections.abc import Iterator

from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import (
    Layout,
    Source,
    audio_inside,
    field_of,
    json_rows,
    tidy_id,
)

READ = {"audio_filepath", "duration", "offset", "text", "speaker", "id"}


def read(source: Source) -> Iterator[Recording]:
    """Read a manifest; paths are relative to ``--audio-root`` (its own folder if none)."""
    manifest = source.file()
    root = source.audio_root or manifest.parent
    for where, row in json_rows(manifest):
        audio = audio_inside(root, field_of(row, "audio_filepath", str, where), where)
        text = field_of(row, "text", str, where)
        id, start, end = tidy_id(audio, root), 0.0, None
        if row.get("offset") is not None:
            start = float(field_of(row, "offset", (int, float), where))
            end = start + float(field_of(row, "duration", (int, float), where))
            id = f"{id}-{round(start * 1000):08d}"
        yield Recording(
            str(row.get("id") or id),
            audio,
            text,
            speaker=str(row.get("speaker") or ""),
            start=start,
            end=end,
            extra={name: value for name, value in row.items() if name not in READ},
        )


LAYOUT = Layout("nemo", read)
