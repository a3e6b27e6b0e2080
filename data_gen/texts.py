"""``beamless texts``: sentences to be spoken, from files, data sets, a grammar or a model."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from beamless.data_gen.grammar import PACKAGED, load_grammar
from beamless.data_gen.llm import Journal, written_texts
from beamless.data_gen.llm_recipe import read_llm_recipe
from beamless.data_gen.recipe_file import read_yaml
from beamless.data_gen.sieve import Sieve
from beamless.data_gen.subset import first
from beamless.data_gen.text_sources import SUFFIXES, rows_of_dataset, rows_of_file
from beamless.inference.atomic import replaced_atomically
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import track

Row = dict[str, Any]


def texts(
    source: str,
    out: Path,
    *,
    count: int | None = None,
    seed: int = 0,
    column: str = "text",
    subset: str = "train",
    language: str = "en",
) -> None:
    """Gather sentences to be spoken, in written and spoken form, for beamless synth.

    Args:
        source: grammar, a .txt, .csv, .tsv or .jsonl file, hf:NAME for a Hugging Face data set
            (on the hub or in a folder), or a .yaml recipe for a language model or a grammar.
        out: the .jsonl file to write.
        count: so many sentences; a grammar gives 1000 by default, files and data sets all, and a
            language model as many as its recipe says.
        seed: another seed draws other sentences from a grammar.
        column: where a table or a data set has its texts.
        subset: the data set's split, or configuration:split.
        language: two-letter code of the texts.

    Raises:
        BeamlessError: the source or the output is not what it must be, or nothing is left.
    """
    if out.suffix != ".jsonl":
        raise BeamlessError(f"{out} must be a .jsonl file")
    if out.exists():
        raise BeamlessError(f"{out} exists; name a new file")
    if count is not None and count < 1:
        raise BeamlessError(f"a count of {count} is not possible; give 1 or more")
    if source.endswith((".yaml", ".yml")) and "endpoint" in read_yaml(Path(source)):
        if count is not None:
            raise BeamlessError(f"{source} has a count of its own; change that, not --count")
        stored, sieve = write_from_model(Path(source), out)
    else:
        sieve = Sieve(language)
        rows = source_rows(source, count, seed, column, subset)
        kept = (row for row in map(sieve.take, rows) if row is not None)
        stored = write_rows(track(first(kept, count), "gathering", total=count), out)
    sys.stdout.write(summary(out, stored, sieve.refused) + "\n")


def source_rows(
    source: str, count: int | None, seed: int, column: str, subset: str
) -> Iterator[Row]:
    """Yield the rows of any source but a language model.

    Raises:
        BeamlessError: there is no such source, or it is a language model's recipe.
    """
    if source.startswith("hf:"):
        return rows_of_dataset(source.removeprefix("hf:"), subset, column)
    if source.endswith(SUFFIXES):
        return rows_of_file(Path(source), column)
    if source == "grammar":
        return load_grammar(PACKAGED).sentences(count or 1000, seed)
    if source.endswith((".yaml", ".yml")):
        if "endpoint" in read_yaml(Path(source)):
            raise BeamlessError(f"{source} asks a language model; run beamless texts on it first")
        return load_grammar(Path(source)).sentences(count or 1000, seed)
    raise BeamlessError(
        f"{source!r} is no source of texts; give 'grammar', a file ({', '.join(SUFFIXES)}), "
        "hf:NAME or a .yaml recipe"
    )


def write_from_model(recipe_path: Path, out: Path) -> tuple[Counter[str], Sieve]:
    """Let a language model write the texts; what a stopped run paid for is used again."""
    recipe = read_llm_recipe(recipe_path)
    journal = Journal(out.with_name(out.name + ".journal"), recipe)
    sieve = Sieve(recipe.language, near=True)
    rows = written_texts(recipe, journal, sieve)
    try:
        stored = write_rows(track(rows, "writing", total=recipe.count), out)
    except BeamlessError as error:
        kept = f"; {len(journal.batches)} answers are kept, run it again to go on"
        raise BeamlessError(f"{error}{kept if journal.batches else ''}") from None
    journal.delete()
    if (total := stored.total()) < recipe.count:
        sys.stderr.write(
            f"beamless: only {total} of {recipe.count} texts, since the budget is spent or the "
            "model repeats itself\n"
        )
    return stored, sieve


def write_rows(rows: Iterable[Row], out: Path) -> Counter[str]:
    """Write rows as JSONL, whole or not at all; return how many of each kind.

    Raises:
        BeamlessError: there are none.
    """
    kinds: Counter[str] = Counter()
    with replaced_atomically(out) as temporary:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                kinds[row["kind"]] += 1
        if not kinds:
            raise BeamlessError(f"no text is left for {out}; nothing was written")
    return kinds


def summary(out: Path, kinds: Counter[str], refused: Counter[str]) -> str:
    """Return one line: how many texts of each kind, and what was left out and why."""
    total = kinds.total()
    parts = ", ".join(f"{kind} {number} ({number / total:.0%})" for kind, number in kinds.items())
    text = f"{out}: {total} texts: {parts}"
    if refused:
        reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(refused.items()))
        text += f"; left out {refused.total()}: {reasons}"
    return text
