"""``beamless train``: traces to a corrector."""

import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beamless.data_gen.traces import Policy, Steps, TargetKind, read_recipe
from beamless.inference.atomic import is_taken, write_text_atomically
from beamless.inference.errors import BeamlessError
from beamless.inference.languages import named_language
from beamless.inference.lock import locked
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT, AudioContext
from beamless.inference.progress import console
from beamless.inference.tokenizer import Tokenizer
from beamless.models.bundle import open_bundle
from beamless.models.corrector import (
    CorrectorConfig,
    config_of,
    load_corrector,
    save_corrector,
)
from beamless.models.parity_record import require_parity
from beamless.models.precision import Profile
from beamless.models.whisper import Checkpoint, load_checkpoint
from beamless.training.fitting import Fitting, Objective
from beamless.training.trace_contexts import context_warning

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from beamless.training.decoded import DecodedErrors
    from beamless.training.lists import ListsDataset
    from beamless.training.module import CorrectorModule
    from beamless.training.steps import StepsDataset

PLAIN = Fitting()


def train(
    traces: list[Path],
    out: Path,
    *,
    model: str | None = None,
    targets: list[TargetKind] = ["best"],  # noqa: B006
    policies: list[Policy] = ["teacher_forced"],  # noqa: B006
    limit: int | None = None,
    dev: list[Path] = [],  # noqa: B006
    dev_limit: int | None = 100,
    audio_context: AudioContext = DEFAULT_AUDIO_CONTEXT,
    language: str = "en",
    precision: Profile = "exact",
    dev_traces: Path | None = None,
    start: Path | None = None,
    devices: int = 1,
    fitting: Fitting = PLAIN,
) -> None:
    """Train a corrector; a stopped run goes on from its last epoch.

    Args:
        traces: folders that collect made, of one model.
        out: the corrector's folder; new, or one that the same command began.
        model: the model's name, if it is no longer known under the one in the traces.
        targets: what to learn from, any of those collected.
        policies: teacher_forced, on_policy, or both.
        limit: only so many utterances of each folder, those that collect takes first.
        dev: corpora of other speakers: the epoch after which these are decoded with the fewest
            word errors is kept, instead of the last.
        dev_limit: only so many utterances of each.
        audio_context: short or full, for decoding them, as the corrector will be used; traces of
            the other one are learned from, too, with a warning.
        language: what is spoken in them.
        precision: what they are decoded in: exact, or fast as production does.
        dev_traces: traces of other speakers, to show how many steps are mended and harmed there.
        start: a corrector to go on from, of the same family and sizes.
        devices: GPUs, or processes where there are none, that share each batch; more than one GPU
            is untested.
        fitting: the corrector's family and size, and how it is fitted.
    """
    import torch

    from beamless.training.decoded import DecodedErrors, read_dev_set
    from beamless.training.processes import is_first, require_devices, say
    from beamless.training.steps import (
        read_training_steps,
        require_seen,
        require_sizes,
    )

    require_objective(fitting.objective, targets)
    require_devices(devices, fitting.batch_size)
    _silence_lightning()
    given = {name: _plain(value) for name, value in locals().items() if name in _RECIPE}
    recipe = {**given, **asdict(fitting)}
    parts, traced_model, model_hash = read_training_steps(traces, targets, policies, limit)
    checkpoint = load_checkpoint(model or traced_model)
    if checkpoint.hash != model_hash:
        raise BeamlessError(f"{checkpoint.name} is not the model that made these traces")
    tokenizer = Tokenizer(checkpoint.tokenizer_json, checkpoint.sizes.vocabulary)
    language = named_language(language, tokenizer)
    config = _config(checkpoint, fitting)
    require_sizes(parts, checkpoint.sizes)
    require_seen(parts, config)
    _require_folder(out, recipe)
    if warning := context_warning(traces, audio_context):
        say(warning)
    data = _dataset(parts, fitting)
    torch.manual_seed(fitting.seed)
    module = _module(checkpoint, config, fitting, start)
    watched = None
    if dev_traces is not None:
        watched = _watched(dev_traces, checkpoint, config, targets, policies, fitting)
    judge = None
    if dev:
        bundle = open_bundle(model or traced_model, precision=precision)
        require_parity(bundle)
        dev_set = read_dev_set(bundle, dev, dev_limit, language, audio_context)
        judge = DecodedErrors(dev_set, checkpoint)
    agreeing = float(data.agrees.float().mean())
    say(
        f"{len(data.agrees)} steps, {1 - agreeing:.1%} of which greedy misses; "
        f"{sum(p.numel() for p in module.network.parameters()):,} parameters"
    )
    if agreeing == 1:
        say("greedy misses none of these steps: there is nothing to learn from them")
    loader = data.loader(fitting.batch_size // devices, True, fitting.seed)
    if is_first():
        write_text_atomically(out / "recipe.json", _told(recipe))
    with locked(out) if is_first() else nullcontext():
        dev_wer = _fit(module, loader, watched, judge, out, fitting.epochs, devices)
    if not is_first():
        return
    learned = sorted({read_recipe(folder).language for folder in traces})
    figures: dict[str, Any] = {"languages": learned, "steps": len(data.agrees)}
    if dev_wer is not None:
        figures["dev_wer"] = dev_wer
    _save(module, out, {**recipe, **figures})


_RECIPE = (
    "traces",
    "targets",
    "policies",
    "limit",
    "dev",
    "dev_limit",
    "audio_context",
    "language",
    "precision",
    "dev_traces",
    "start",
)


def require_objective(objective: Objective, targets: Sequence[TargetKind]) -> None:
    """Refuse an objective that has nothing to do with the targets.

    Raises:
        BeamlessError: mwer without lists, or lists for anything else.
    """
    if objective == "mwer" and [*targets] != ["list"]:
        raise BeamlessError("the objective mwer learns from lists alone; take --targets list")
    if objective != "mwer" and "list" in targets:
        raise BeamlessError("a list holds wrong texts too; it is for --objective mwer")


def _dataset(parts: Sequence[Steps], fitting: Fitting) -> "StepsDataset | ListsDataset":
    from beamless.training.lists import ListsDataset
    from beamless.training.steps import StepsDataset, concatenate

    kind = ListsDataset if fitting.objective == "mwer" else StepsDataset
    return kind(concatenate(parts), fitting.history)


def _watched(
    traces: Path,
    checkpoint: Checkpoint,
    config: CorrectorConfig,
    targets: list[TargetKind],
    policies: list[Policy],
    fitting: Fitting,
) -> "DataLoader[int]":
    """Read the steps of other speakers, that a training is shown and does not learn from."""
    from beamless.training.steps import read_training_steps, require_seen, require_sizes

    parts, model, model_hash = read_training_steps([traces], targets, policies)
    if model_hash != checkpoint.hash:
        raise BeamlessError(f"{traces} is of {model}, the other traces are not")
    require_sizes(parts, checkpoint.sizes)
    require_seen(parts, config)
    return _dataset(parts, fitting).loader(fitting.batch_size, False, fitting.seed)


def _module(
    checkpoint: Checkpoint, config: CorrectorConfig, fitting: Fitting, start: Path | None
) -> "CorrectorModule":
    """Make what is trained, untrained or as the corrector in ``start`` has it."""
    from beamless.training.module import CorrectorModule
    from beamless.training.mwer import MwerModule
    from beamless.training.networks import load_arrays

    options: dict[str, Any] = {
        "learning_rate": fitting.learning_rate,
        "weight_decay": fitting.weight_decay,
        "dropout": fitting.dropout,
        "kl_weight": fitting.kl_weight,
        "seed": fitting.seed,
    }
    if fitting.objective == "mwer":
        options["cross_entropy_weight"] = fitting.cross_entropy_weight
    kind = MwerModule if fitting.objective == "mwer" else CorrectorModule
    module = kind(checkpoint, config, **options)
    if start is not None:
        load_arrays(module.network, arrays_to_start_from(start, config))
    return module


def _config(checkpoint: Checkpoint, fitting: Fitting) -> CorrectorConfig:
    return config_of(
        fitting.family,
        checkpoint.hash,
        checkpoint.sizes.width,
        checkpoint.sizes.vocabulary,
        history=fitting.history,
        units=fitting.units,
        candidates=fitting.candidates,
        gate=fitting.gate,
        ledger=fitting.ledger,
        last_token=fitting.last_token,
    )


def arrays_to_start_from(folder: Path, config: CorrectorConfig) -> Mapping[str, np.ndarray]:
    """Return the arrays of a corrector that is to be trained further.

    Raises:
        BeamlessError: it is of another model, family or size than what is to be trained.
    """
    corrector = load_corrector(folder)
    if replace(corrector.config, provenance={}) != replace(config, provenance={}):
        raise BeamlessError(f"the corrector in {folder} is of another model, family or size")
    return corrector.arrays


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return value.name
    return (
        [Path(v).name if isinstance(v, Path) else v for v in value]
        if isinstance(value, list)
        else value
    )


def _told(recipe: Mapping[str, Any]) -> str:
    return json.dumps(recipe, indent=2) + "\n"


def _require_folder(out: Path, recipe: Mapping[str, Any]) -> None:
    """Refuse a folder that is neither new nor one that the same command began."""
    file = out / "recipe.json"
    if (out / "corrector.json").is_file():
        raise BeamlessError(f"{out} holds a finished corrector; name another folder")
    began = file.is_file() and file.read_bytes() == _told(recipe).encode()
    if is_taken(out) and not began:
        raise BeamlessError(f"{out} exists and is no training of this recipe; name another")


def _fit(
    module: "CorrectorModule",
    loader: "DataLoader[int]",
    watched: "DataLoader[int] | None",
    judge: "DecodedErrors | None",
    out: Path,
    epochs: int,
    devices: int,
) -> float | None:
    """Train; leave the best epoch's weights in the module and return its word error rate on dev.

    Without dev corpora that is the last epoch, and None.
    """
    import lightning
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint, RichProgressBar

    from beamless.training.stopping import StopBetweenBatches, listening

    keep = ModelCheckpoint(
        out / "checkpoints", save_last=True, save_top_k=1, monitor="dev_wer" if judge else None
    )
    stop = StopBetweenBatches()
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="auto",
        devices=devices,
        use_distributed_sampler=False,
        deterministic=True,
        callbacks=[*([judge] if judge else []), keep, stop, RichProgressBar()],
        logger=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    last = out / "checkpoints" / "last.ckpt"
    resumed = str(last) if last.is_file() else None
    if resumed:
        _require_whole(last)
    try:
        with listening(stop):
            trainer.fit(module, loader, watched, ckpt_path=resumed, weights_only=True)
    except SystemExit:  # what Lightning makes of Ctrl-C
        raise KeyboardInterrupt from None
    if judge is None or keep.best_model_score is None:
        return None
    best = torch.load(keep.best_model_path, weights_only=True)
    module.load_state_dict(best["state_dict"], strict=False)
    return float(keep.best_model_score)


def _require_whole(checkpoint: Path) -> None:
    import torch

    try:
        torch.load(checkpoint, weights_only=True)
    except Exception as error:  # torch, zipfile and pickle raise their own kinds
        raise BeamlessError(
            f"{checkpoint} is damaged; remove {checkpoint.parent} and train again"
        ) from error


def _save(module: "CorrectorModule", out: Path, provenance: dict[str, Any]) -> None:
    from beamless.training.networks import to_corrector

    corrector = to_corrector(module.network.eval(), provenance)
    if not all(np.isfinite(array).all() for array in corrector.arrays.values()):
        raise BeamlessError(
            "the training went astray: its weights are not finite; train into another folder with "
            "a smaller --learning-rate or --weight-decay"
        )
    save_corrector(corrector, out)
    console().print(f"wrote {out} ({corrector.parameters:,} parameters)")


def _silence_lightning() -> None:
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
