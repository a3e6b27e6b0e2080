"""``beamless mix``: voices and recordings, augmented, to one corpus by one recipe."""

import sys
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from beamless.data_gen.corpora import Utterance, scan_corpus
from beamless.data_gen.corpus_writer import CorpusWriter, refuse_nothing, summary_of
from beamless.data_gen.importers.intake import Intake
from beamless.data_gen.mix_recipe import read_mix
from beamless.inference.progress import console


def mix(
    recipe: Path,
    out: Path,
    *,
    folders: list[str] = [],  # noqa: B006
) -> None:
    """Make one corpus of parts that voices say and parts that people recorded.

    Each utterance keeps which part it is of, its source and licence, and what was done to it. A
    run that was stopped goes on where it was when the same command is given again, and ends with
    the same files. What cannot be used is refused with a reason and counted; nothing is cut.

    Args:
        recipe: a YAML file such as data_gen/mixed.yaml; its paths are relative to it.
        out: the folder of the new corpus; where the recipe splits, it gets train, dev and test.
        folders: where the folders that the recipe names are, as NAME=PLACE. What needs a folder
            that has no place is left out.

    Raises:
        BeamlessError: the recipe, what it names or the folder are not what they must be, or
            nothing could be used.
    """
    mixed = read_mix(recipe, folders)
    for line in mixed.left_out:
        console().print(f"left out: {line}", soft_wrap=True)
    plan = {"stage": "mix", "parts": [part.described for part in mixed.parts]}
    sides = ("",) if mixed.parts[0].split is None else ("train", "dev", "test")
    with ExitStack() as stack:
        writers = {
            side: stack.enter_context(CorpusWriter(out / side, {**plan, "side": side}))
            for side in sides
        }
        for part in mixed.parts:
            intake = Intake(writers, part.split, part.augment, part.name, part.license)
            intake.run(part.recordings, part.name, part.total)
        refuse_nothing(writers.values(), f"nothing that {recipe} names could be used")
        counts = {out / side: writer.finish() for side, writer in writers.items()}
    for folder, count in counts.items():
        sys.stdout.write(summary_of(folder, count) + "\n" + _by_part(folder))


def _by_part(folder: Path) -> str:
    """Return a line for each part of a corpus: its utterances and hours."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for utterance in scan_corpus(folder):
        if isinstance(utterance, Utterance):
            seconds[str(utterance.extra.get("part"))].append(utterance.duration)
    lines = [f"  {name}: {len(s)} utterances, {sum(s) / 3600:.2f} h" for name, s in seconds.items()]
    return "".join(f"{line}\n" for line in lines)
