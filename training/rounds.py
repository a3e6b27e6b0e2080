"""``beamless rounds``: corpora to a bundle: collect, train, and learn from the own mistakes.

Round 0 learns from the target's own prefixes (teacher forcing). Each further round lets the
corrector of the round before decode freely, labels every prefix that it visits with the tokens
that are best there (optimal completion, Sabour et al. 2019), and trains again on all there is.
The round with the fewest word errors on all of the dev set is kept.

The recipes in ``training/configs/`` are this function's arguments.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from beamless.data_gen.collect import collect
from beamless.data_gen.corpora import corpus_name, read_corpus
from beamless.data_gen.rollout import rollout
from beamless.data_gen.traces import TargetKind
from beamless.inference.atomic import begin, require_own, write_text_atomically
from beamless.inference.bundle import read_manifest
from beamless.inference.counts import require_positive
from beamless.inference.errors import BeamlessError
from beamless.inference.languages import named_language
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT, AudioContext
from beamless.inference.progress import console
from beamless.models.average import average_of
from beamless.models.bundle import open_bundle
from beamless.models.corrector import Corrector, load_corrector, save_corrector
from beamless.models.parity_record import require_parity
from beamless.models.precision import Profile
from beamless.models.whisper import load_checkpoint
from beamless.training.checked_bundle import checked_bundle, require_model
from beamless.training.fit import PLAIN, train
from beamless.training.fitting import Fitting

if TYPE_CHECKING:
    from beamless.training.decoded import DevSet


def rounds(
    corpora: list[Path],
    out: Path,
    *,
    model: str = "tiny.en",
    dev: list[Path] = [],  # noqa: B006
    limit: int | None = None,
    dev_limit: int | None = 100,
    rounds: int = 1,
    target: TargetKind = "best",
    audio_context: AudioContext = DEFAULT_AUDIO_CONTEXT,
    language: str = "en",
    precision: Profile = "exact",
    beam_size: int = 5,
    workers: int = 1,
    members: int = 1,
    fitting: Fitting = PLAIN,
) -> None:
    """Make a corrected bundle out of corpora; a stopped run goes on where it was.

    Args:
        corpora: what to learn from.
        out: a folder for all that is made; corrector and bundle are in it when it is done.
        model: the Whisper to correct, past 'beamless check'.
        dev: corpora of other speakers, to choose the epoch and the round by: a round by all of
            them, which tell the more from luck.
        limit: only so many utterances of each corpus.
        dev_limit: only so many utterances of each dev corpus for the epochs.
        rounds: on-policy rounds after the first training.
        target: what to steer to.
        audio_context: short or full, as the bundle will be used.
        language: what is spoken.
        precision: what all is decoded in, and the bundle is: exact, or fast as in production.
        beam_size: of the beam whose list the target is chosen from.
        workers: how many processes collect and roll out.
        members: trainings a round, of seeds that count up from the fitting's; the round's corrector
            is their mean, as of 'beamless average'.
        fitting: the corrector's family and size, and how it is fitted.
    """
    from beamless.training.decoded import read_dev_set

    require_positive(beam_size=beam_size, limit=limit, dev_limit=dev_limit)
    require_positive(workers=workers, members=members)
    if rounds < 0:
        raise BeamlessError(f"there are no {rounds} rounds; 0 is teacher forcing alone")
    if not dev:
        raise BeamlessError("name corpora of other speakers to choose the epoch by, with --dev")
    require_model(model)
    require_own(out, "rounds")
    names = names_of(corpora)
    for corpus in (*corpora, *dev):
        read_corpus(corpus)
    bundle = open_bundle(model, precision=precision)
    require_parity(bundle)
    language = named_language(language, bundle.tokenizer)
    begin(out, "rounds")
    traces = {name: out / "traces" / name for name in names}
    for name, corpus in names.items():
        console().rule(f"collect {name}")
        collect(
            corpus,
            traces[name],
            targets=[target],
            model=str(bundle.folder),
            language=language,
            beam_size=beam_size,
            audio_context=audio_context,
            limit=limit,
            workers=workers,
        )
    visited: list[Path] = []
    for number in range(rounds + 1):
        here = out / f"round-{number}"
        if number:
            before = str(out / f"round-{number - 1}" / "bundle")
            for name, corpus in names.items():
                console().rule(f"round {number}: roll out {name}")
                visited.append(here / "rollouts" / name)
                rollout(
                    corpus,
                    traces[name],
                    visited[-1],
                    model=before,
                    target=target,
                    limit=limit,
                    workers=workers,
                )
        seeds = range(fitting.seed, fitting.seed + members)
        folders = [here / (f"member-{seed}" if members > 1 else "corrector") for seed in seeds]
        for seed, folder in zip(seeds, folders, strict=True):
            if not (folder / "corrector.json").is_file():
                console().rule(f"round {number}: train with seed {seed}")
                train(
                    [*traces.values(), *visited],
                    folder,
                    model=model,
                    targets=[target],
                    policies=["teacher_forced", "on_policy"],
                    dev=dev,
                    dev_limit=dev_limit,
                    audio_context=audio_context,
                    language=language,
                    precision=precision,
                    fitting=replace(fitting, seed=seed),
                )
        if not (here / "corrector" / "corrector.json").is_file():
            mean = average_of([load_corrector(folder) for folder in folders])
            save_corrector(mean, here / "corrector")
        checked_bundle(model, here / "corrector", here / "bundle", precision)
    dev_set = read_dev_set(bundle, dev, None, language, audio_context)
    _keep_best(model, dev_set, out, rounds, precision)


def names_of(corpora: Sequence[Path]) -> dict[str, Path]:
    """Name corpora by their last two folders.

    Raises:
        BeamlessError: two have the same name.
    """
    names = {corpus_name(corpus).replace("/", "-"): corpus for corpus in corpora}
    if len(names) < len(corpora):
        raise BeamlessError("two of the corpora have the same name; rename a folder of one")
    return names


def _keep_best(model: str, dev_set: "DevSet", out: Path, rounds: int, precision: Profile) -> None:
    """Keep the best round's corrector in float16, as it is shipped, and a bundle with it."""
    from beamless.training.decoded import corrected_errors

    checkpoint = load_checkpoint(model)
    trained = {n: load_corrector(out / f"round-{n}" / "corrector") for n in range(rounds + 1)}
    rates = {}
    for number, corrector in trained.items():
        rates[number] = corrected_errors(dev_set, checkpoint, corrector)[0].rate
        console().print(f"round {number}: dev WER {rates[number]:.2%}")
    best = min(rates, key=lambda number: (rates[number], number))
    write_text_atomically(out / "rounds.json", json.dumps({"dev_wer": rates, "kept": best}) + "\n")
    kept = trained[best]
    known = {**kept.config.provenance, "dev_wer": rates[best]}
    config = replace(kept.config, provenance=known)
    save_corrector(replace(kept, config=config), out / "corrector", half=True)
    _remove_other(out / "bundle", load_corrector(out / "corrector"))
    checked_bundle(model, out / "corrector", out / "bundle", precision)
    console().print(f"kept round {best}: {out / 'bundle'}")


def _remove_other(bundle: Path, corrector: Corrector) -> None:
    """Remove the bundle that an earlier run kept, where more rounds have found a better one."""
    if (bundle / "bundle.json").is_file():
        known = read_manifest(bundle).corrector
        if known is None or known["hash"] != corrector.hash:
            shutil.rmtree(bundle)
