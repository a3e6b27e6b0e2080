"""LJSpeech: one reader, ``metadata.csv`` beside ``wavs/``."""

from collections.abc import Iterator

from beamless.data_gen.corpora import numbered_lines
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source, audio_inside, needed
from beamless.inference.errors import BeamlessError


def read(source: Source) -> Iterator[Recording]:
    """Read ``ID|text as written|text as spoken`` lines.

    The text is the spoken form; where the written one differs, it is kept as ``written``.
    """
    folder = source.folder()
    metadata = needed(folder / "metadata.csv", "ljspeech")
    wavs = needed(folder / "wavs", "ljspeech")
    for number, line in numbered_lines(metadata):
        where = f"{metadata}, line {number}"
        id, *texts = line.split("|")
        if not texts:
            raise BeamlessError(f"{where}: ID|text|text was expected")
        written, spoken = texts[0], texts[-1]
        yield Recording(
            id,
            audio_inside(wavs, f"{id}.wav", where),
            spoken,
            speaker="lj",
            extra={"written": written} if written != spoken else {},
        )


LAYOUT = Layout("ljspeech", read, license="public domain")
