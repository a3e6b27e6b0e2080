"""Hugging Face ``datasets``: a hub name, a folder of Parquet files, or one saved to disk."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source, audio_inside
from beamless.data_gen.importers.tables import column_names, other_columns
from beamless.inference.errors import BeamlessError


def read(source: Source) -> Iterator[Recording]:
    """Read a data set row by row; ``--subset`` is its split, or ``configuration:split``.

    Rows are taken as Arrow, so that nothing decodes the audio but soundfile: torchcodec and
    FFmpeg are not needed.
    """
    rows = open_dataset(source.place, source.subset).with_format("arrow")
    names = column_names(source)
    for index, table in enumerate(rows):
        row = table.to_pylist()[0]
        for name in {"audio", "text", *source.columns}:
            if names[name] not in row:
                have = ", ".join(map(repr, row))
                raise BeamlessError(
                    f"{source.place}: there is no column {names[name]!r} for the {name}, "
                    f"but {have}; name it with --columns"
                )
        yield Recording(
            id=str(row.get(names["id"]) or f"{index:08d}"),
            audio=_audio(row[names["audio"]], source, f"{source.place}, row {index}"),
            text=str(row[names["text"]] or ""),
            speaker=str(row.get(names["speaker"]) or ""),
            license=str(row.get(names["license"]) or ""),
            extra=_plain(other_columns(row, names)),
        )


def open_dataset(name: str, subset: str) -> Any:  # noqa: ANN401
    """Open a data set; one on the hub or in files is streamed.

    Args:
        name: a name on the hub, a folder of data files, or one saved to disk.
        subset: its split (train if empty), or ``configuration:split``.

    Raises:
        BeamlessError: datasets is not installed, or there is no such data set or split.
    """
    if not name.strip():
        raise BeamlessError("a data set needs a name, as in hf:NAME, or its folder")
    try:
        import datasets
    except ImportError:
        raise BeamlessError(
            'Hugging Face datasets need a package; run: pip install "beamless[train]"'
        ) from None
    configuration, _, split = subset.rpartition(":")
    split, folder = split or "train", Path(name)
    try:
        if (folder / "state.json").is_file():
            return datasets.load_from_disk(str(folder))
        if (folder / "dataset_dict.json").is_file():
            return datasets.load_from_disk(str(folder))[split]
        return datasets.load_dataset(name, configuration or None, split=split, streaming=True)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise BeamlessError(f"data set {name!r} cannot be opened: {reason}") from None


def _audio(value: object, source: Source, where: str) -> Path | bytes:
    if not isinstance(value, Mapping) or not {"bytes", "path"} & set(value):
        raise BeamlessError(f"{where}: the audio column holds {type(value).__name__}, not audio")
    if value.get("bytes"):
        return bytes(value["bytes"])
    root = source.audio_root or Path(source.place).absolute()
    return audio_inside(root, str(value.get("path") or ""), where)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what JSON can hold."""
    kinds = str | int | float | bool
    return {name: value for name, value in row.items() if isinstance(value, kinds)}


LAYOUT = Layout("hf", read, streamed=True)
