"""``beamless ablate``: trainings that differ in one thing each, and baselines, in one table."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from beamless.data_gen.corpora import named, read_corpus
from beamless.data_gen.subset import place
from beamless.data_gen.traces import planned_ids, shards
from beamless.inference.atomic import begin, require_same, write_text_atomically
from beamless.inference.bundle import Bundle
from beamless.inference.progress import console
from beamless.models.bundle import open_bundle, with_corrector
from beamless.models.corrector import load_corrector
from beamless.models.whisper import load_checkpoint
from beamless.training.ablation_picture import draw_ablations
from beamless.training.ablation_recipe import Ablation, Plan, read_plan
from beamless.training.ablation_table import Line, Trained, lines_of, markdown
from beamless.training.csv_rows import read_csv, write_csv
from beamless.training.evaluate import evaluate_bundle
from beamless.training.fit import train
from beamless.training.last_layer import parameters_of, train_last_layer
from beamless.training.report import Row


def ablate(
    recipe: Path,
    out: Path,
    dev: list[Path],
    *,
    folders: list[str] = [],  # noqa: B006
    heard: list[Path] = [],  # noqa: B006
) -> None:
    """Train and decode each row of a recipe; a stopped run goes on, and done rows are kept.

    Each row has a folder of its own with its corrector and its report; what the encoder makes of
    the dev corpora is kept for all rows in the folder windows. The first row that decodes
    with greedy and beam5 is what the share of the gap closed is measured by.

    Args:
        recipe: a YAML file, such as training/configs/ablations.yaml.
        out: a folder for all rows and for table.md, table.csv and table.png.
        dev: the corpora that rows are compared on; never those of a test.
        folders: where the recipe's folders of traces are, as NAME=PLACE; rows that need another
            one are left out.
        heard: the corpora that the traces were made of, to tell how long they are, and to train
            the last layer.
    """
    plan = read_plan(recipe, folders)
    begin(out, "ablate")
    for left in plan.left_out:
        console().print(f"left out: {left}")
    seconds = {u.id: u.duration for corpus in heard for u in read_corpus(corpus)}
    lines: list[Line] = []
    base: list[Row] | None = None
    for row in plan.rows:
        console().rule(row.name)
        here = out / slug(row.name)
        made = _run_row(row, plan, here, out, dev, heard)
        hours = hours_of(row, seconds) if row.traces else None
        decoded = read_csv(here / "report" / "utterances.csv", Row)
        if base is None and {"greedy", "beam5"} <= {*row.methods}:
            base = decoded
        lines += lines_of(row, Trained(hours, *made), decoded, base or [])
        write_csv(out / "table.csv", Line, lines)
        write_text_atomically(out / "table.md", markdown(lines))
    draw_ablations(lines, out / "table.png")
    console().print(f"wrote {out / 'table.md'}")


def slug(name: str) -> str:
    """Return the name of a row's folder."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")


def hours_of(row: Ablation, seconds: dict[str, float]) -> float | None:
    """Return how much speech a row learns from; None where a recording's length is not known."""
    found: set[str] = set()
    for folder in row.traces:
        parts = shards(folder, row.policies, row.targets)
        ids = {identifier for part in parts for identifier in planned_ids(part)}
        found |= set(sorted(ids, key=place)[: row.limit])
    if not found <= seconds.keys():
        return None
    return sum(seconds[identifier] for identifier in found) / 3600


def _run_row(
    row: Ablation, plan: Plan, here: Path, out: Path, dev: Sequence[Path], heard: Sequence[Path]
) -> tuple[int | None, int | None]:
    """Train and decode a row unless that is done; return its steps and parameters."""
    asked = {**asdict(row), "model": plan.model, "audio_context": plan.audio_context}
    _open_row(here, {**asked, "dev": list(named(dev)), "dev_limit": plan.dev_limit})
    if not (here / "report" / "report.json").is_file():
        evaluate_bundle(
            _bundle_of(row, plan, here, out, heard),
            dev,
            methods=row.methods,
            limit=plan.dev_limit,
            language="en",
            audio_context=plan.audio_context,
            datastore=row.datastore,
            out=here / "report",
            windows=out / "windows",
        )
    if row.last_layer:
        return None, parameters_of(load_checkpoint(plan.model))
    if not row.traces:
        return None, None
    corrector = load_corrector(here / "corrector")
    return int(corrector.config.provenance["steps"]), corrector.parameters


def _bundle_of(row: Ablation, plan: Plan, here: Path, out: Path, heard: Sequence[Path]) -> Bundle:
    """Return what a row decodes with, trained unless that is done."""
    if row.last_layer:
        if not (here / "bundle" / "bundle.json").is_file():
            train_last_layer(
                row.traces,
                heard,
                here / "bundle",
                model=plan.model,
                targets=row.targets,
                limit=row.limit,
                options=row.last_layer,
            )
        return open_bundle(str(here / "bundle"))
    base = open_bundle(plan.model)
    if not row.traces:
        return base
    corrector = here / "corrector"
    if not (corrector / "corrector.json").is_file():
        train(
            [*row.traces],
            corrector,
            model=plan.model,
            targets=[*row.targets],
            policies=[*row.policies],
            limit=row.limit,
            start=out / slug(row.start) / "corrector" if row.start else None,
            fitting=row.fitting,
        )
    return with_corrector(base, load_checkpoint(plan.model), load_corrector(corrector))


def _open_row(here: Path, asked: object) -> None:
    """Note what a row is, or see that a row begun before is the same.

    Raises:
        BeamlessError: it is another one.
    """
    text = json.dumps(asked, indent=2, default=lambda value: Path(value).name) + "\n"
    otherwise = f"{here} holds a row of other settings; remove it, or rename the row"
    require_same(here / "row.json", text, otherwise)
