"""TED-LIUM: STM files with the times of each stretch, and the talks as SPHERE audio."""

import re
from collections.abc import Iterator
from pathlib import Path

from beamless.data_gen.corpora import numbered_lines
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source, audio_inside, needed
from beamless.inference.errors import BeamlessError

NOT_SCORED = "ignore_time_segment_in_scoring"


def read(source: Source) -> Iterator[Recording]:
    """Read ``stm/*.stm`` and ``sph/*.sph`` of the folder, or of its subfolder ``--subset``.

    Stretches that the data set itself leaves out of scoring, or in which a word could not be
    written down, are counted as such. Apostrophes are joined to their words; marks of noises
    and of pronunciation variants are taken out.
    """
    folder = source.folder() / source.subset
    stm = needed(folder / "stm", "tedlium")
    needed(folder / "sph", "tedlium")
    for transcript in sorted(stm.glob("*.stm")):
        for number, line in numbered_lines(transcript):
            if not line.startswith(";;"):
                yield _stretch(line, folder / "sph", f"{transcript}, line {number}")


def _stretch(line: str, sph: Path, where: str) -> Recording:
    """Read ``TALK CHANNEL SPEAKER START END <LABELS> TEXT``."""
    match = re.match(r"(\S+)\s+\S+\s+(\S+)\s+([\d.]+)\s+([\d.]+)\s+(?:<[^>]*>\s*)?(.*)$", line)
    if match is None:
        raise BeamlessError(f"{where}: TALK CHANNEL SPEAKER START END <LABELS> TEXT was expected")
    talk, speaker, start, end, raw = match.groups()
    text = _tidy(raw)
    fault = ""
    if raw.strip() == NOT_SCORED or not text:
        fault = "no transcript"
    elif "<unk>" in raw:
        fault = "a word that is not written down"
    return Recording(
        f"{talk}-{round(float(start) * 100):07d}-{round(float(end) * 100):07d}",
        audio_inside(sph, f"{talk}.sph", where),
        text,
        speaker=f"tedlium-{speaker}",
        start=float(start),
        end=float(end),
        fault=fault,
    )


def _tidy(raw: str) -> str:
    plain = re.sub(r"<[^>]*>|\{[^}]*\}|\[[^\]]*\]|\(\d+\)", " ", raw)
    return " ".join(re.sub(r"\s+'(?=\w)", "'", plain).split())


LAYOUT = Layout("tedlium", read, license="CC-BY-NC-ND-3.0")
