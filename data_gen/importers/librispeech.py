"""LibriSpeech: ``SPEAKER/CHAPTER/*.trans.txt`` beside the audio, under any parent folder."""

from collections.abc import Iterator
from pathlib import Path

from beamless.data_gen.corpora import numbered_lines
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source
from beamless.inference.errors import BeamlessError


def read(source: Source) -> Iterator[Recording]:
    """Read every transcript under the folder, or under its subfolder ``--subset``."""
    folder = source.folder() / source.subset
    transcripts = sorted(folder.rglob("*.trans.txt"))
    if not transcripts:
        raise BeamlessError(f"{folder} is not of layout librispeech: it has no *.trans.txt")
    genders = _genders(source.folder())
    for transcript in transcripts:
        for _, line in numbered_lines(transcript):
            id, _, text = line.partition(" ")
            reader = id.split("-")[0]
            yield Recording(
                id,
                transcript.parent / f"{id}.flac",
                text.strip(),
                speaker=f"librispeech-{reader}",
                fault="" if text.strip() else "no transcript",
                extra={"gender": genders[reader]} if reader in genders else {},
            )


def _genders(folder: Path) -> dict[str, str]:
    """Read ``ID | SEX | ...`` lines of SPEAKERS.TXT, which stands above the parts if at all."""
    found: dict[str, str] = {}
    for table in (folder / "SPEAKERS.TXT", folder.parent / "SPEAKERS.TXT"):
        for _, line in numbered_lines(table) if table.is_file() else ():
            fields = [part.strip() for part in line.split("|")]
            if len(fields) > 2 and not line.startswith(";"):
                found.setdefault(fields[0], fields[1].lower())
    return found


LAYOUT = Layout("librispeech", read, license="CC-BY-4.0")
