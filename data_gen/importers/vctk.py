"""VCTK: a folder of audio and a folder of texts for each speaker."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from beamless.data_gen.corpora import numbered_lines
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source, needed
from beamless.inference.errors import BeamlessError

AUDIO = ("wav48_silence_trimmed", "wav48", "wav")
MICROPHONES = ("mic1", "mic2")


def read(source: Source) -> Iterator[Recording]:
    """Read one microphone's recordings (``--subset mic1`` or ``mic2``; ``mic1`` by default).

    Both microphones hold the same utterances. Recordings whose text is missing, as all of p315,
    are counted as such.
    """
    folder = source.folder()
    texts = needed(folder / "txt", "vctk")
    audio = next((folder / name for name in AUDIO if (folder / name).is_dir()), None)
    if audio is None:
        raise BeamlessError(f"{folder} is not of layout vctk: it has none of {', '.join(AUDIO)}")
    microphone = source.subset or MICROPHONES[0]
    if microphone not in MICROPHONES:
        raise BeamlessError(f"VCTK's subsets are {' and '.join(MICROPHONES)}, not {microphone!r}")
    about = _speakers(folder)
    for path in sorted([*audio.glob("*/*.flac"), *audio.glob("*/*.wav")]):
        id, _, heard_by = path.stem.partition("_mic")
        if heard_by and f"mic{heard_by}" != microphone:
            continue
        reader = path.parent.name
        text = texts / reader / f"{id}.txt"
        spoken = text.read_text(encoding="utf-8-sig").strip() if text.is_file() else ""
        yield Recording(
            id,
            path,
            spoken,
            speaker=f"vctk-{reader}",
            fault="" if spoken else "no transcript",
            extra=about.get(reader, {}),
        )


def _speakers(folder: Path) -> Mapping[str, dict[str, str]]:
    """Read ``ID AGE GENDER ACCENTS REGION`` lines of speaker-info.txt."""
    table = folder / "speaker-info.txt"
    found: dict[str, dict[str, str]] = {}
    for _, line in numbered_lines(table) if table.is_file() else ():
        name, *fields = line.split()
        facts = dict(zip(("age", "gender", "accent"), fields, strict=False))
        for key in {name, f"p{name}"}:
            found[key] = facts
    return found


LAYOUT = Layout("vctk", read, license="CC-BY-4.0")
