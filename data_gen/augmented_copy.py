"""A corpus once more, in rooms, with noise and over lines: what else its texts sound like."""

from pathlib import Path

from beamless.data_gen.augment import Recipe
from beamless.data_gen.corpus_writer import METADATA, CorpusWriter, refuse_nothing
from beamless.data_gen.importers import read_layout
from beamless.data_gen.importers.intake import Intake
from beamless.data_gen.importers.source import Source
from beamless.data_gen.text_lines import digest_of


def augmented_copy(corpus: Path, out: Path, recipe: Recipe) -> None:
    """Store a corpus's utterances augmented, under the same ids; a stopped run goes on.

    Args:
        corpus: a finished corpus, which stays as it is.
        out: the folder of the new one.
        recipe: what is done to them.

    Raises:
        BeamlessError: the corpus is none, the folder holds something else, or nothing is left.
    """
    recordings = read_layout("corpus", Source(str(corpus)))
    plan = {"stage": "augment", "of": digest_of(corpus / METADATA), "augment": recipe.described}
    with CorpusWriter(out, plan) as writer:
        intake = Intake({"": writer}, None, recipe, corpus.name, "")
        intake.run(recordings, "augmenting", len(recordings))
        refuse_nothing([writer], f"no utterance of {corpus} could be augmented")
        writer.finish()
