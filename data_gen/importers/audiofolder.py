"""A corpus of our own format, to be augmented, split or joined with others anew."""

from collections.abc import Iterator

from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import Layout, Source


def read(source: Source) -> Iterator[Recording]:
    """Read a corpus; each utterance keeps its source and licence."""
    for utterance in read_corpus(source.folder()):
        yield Recording(
            utterance.id,
            utterance.audio,
            utterance.text,
            speaker=utterance.speaker,
            source=utterance.source,
            license=utterance.license,
            voice=utterance.voice,
            augment=utterance.augment,
            extra=utterance.extra,
        )


LAYOUT = Layout("corpus", read)
