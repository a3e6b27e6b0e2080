"""``beamless train``: traces to a corrector."""

import logging
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beamless.data_gen.traces import Policy, TargetKind
from beamless.inference.atomic import write_text_atomically
from beamless.inference.counts import require_positive
from beamless.inference.errors import BeamlessError
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT, AudioContext
from beamless.inference.progress import console
from beamless.models.bundle import open_bundle
from beamless.models.corrector import CANDIDATES, Family, config_of, save_corrector
from beamless.models.parity_record import require_parity
from beamless.models.whisper import load_checkpoint

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    from beamless.training.decoded import DecodedErrors
    from beamless.training.module import CorrectorModule


def train(
    traces: list[Path],
    out: Path,
    *,
    model: str | None = None,
    targets: list[TargetKind] = ["best"],  # noqa: B006
    policies: list[Policy] = ["teacher_forced"],  # noqa: B006
    dev: list[Path] = [],  # noqa: B006
    dev_limit: int | None = 100,
    audio_context: AudioContext = DEFAULT_AUDIO_CONTEXT,
    language: str = "en",
    dev_traces: Path | None = None,
    family: Family = "shift",
    history: int = 1,
    units: int | None = None,
    candidates: int = CANDIDATES,
    gate: bool = False,
    epochs: int = 3,
    batch_size: int = 256,
    learning_rate: float = 5e-4,
    weight_decay: float = 0.01,
    dropout: float = 0.1,
    kl_weight: float = 0.3,
    seed: int = 0,
) -> None:
    """Train a corrector; a stopped run goes on from its last epoch.

    Args:
        traces: folders that collect made, of one model.
        out: the corrector's folder; new, or one that the same command began.
        model: the model's name, if it is no longer known under the one in the traces.
        targets: what to learn from, any of those collected.
        policies: teacher_forced, on_policy, or both.
        dev: corpora of other speakers: the epoch after which these are decoded with the fewest
            word errors is kept, instead of the last.
        dev_limit: only so many utterances of each.
        audio_context: short or full, for decoding them.
        language: what is spoken in them.
        dev_traces: traces of other speakers, to show how many steps are mended and harmed there.
        family: shift moves the hidden state, rerank judges the likeliest tokens, dense changes
            all logits.
        history: hidden states of earlier steps that it sees.
        units: its hidden units; 1024 of shift, 256 of rerank and 64 of dense if not given.
        candidates: how many of the likeliest tokens rerank judges.
        gate: let it tell too how likely its choice is wrong, at each step.
        epochs: times through all traces.
        batch_size: steps in a batch.
        learning_rate: of AdamW, at the start.
        weight_decay: of AdamW.
        dropout: on the network's input and hidden units.
        kl_weight: pull towards the base model where it agrees with the target.
        seed: of weights and order; the same seed gives the same corrector.
    """
    require_positive(
        history=history,
        units=1 if units is None else units,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
    )
    import torch

    from beamless.training.decoded import DecodedErrors, read_dev_set
    from beamless.training.module import CorrectorModule
    from beamless.training.steps import (
        StepsDataset,
        concatenate,
        read_training_steps,
        require_candidates,
    )

    _silence_lightning()
    recipe = {name: _plain(value) for name, value in locals().items() if name in _RECIPE}
    parts, traced_model, model_hash = read_training_steps(traces, targets, policies)
    checkpoint = load_checkpoint(model or traced_model)
    if checkpoint.hash != model_hash:
        raise BeamlessError(f"{checkpoint.name} is not the model that made these traces")
    sizes = checkpoint.sizes
    config = config_of(
        family,
        model_hash,
        sizes.width,
        sizes.vocabulary,
        history=history,
        units=units,
        candidates=candidates,
        gate=gate,
    )
    require_candidates(parts, config.candidates)
    _open_folder(out, recipe)
    data = StepsDataset(concatenate(parts), history)
    torch.manual_seed(seed)
    module = CorrectorModule(
        checkpoint,
        config,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        dropout=dropout,
        kl_weight=kl_weight,
        seed=seed,
    )
    watched = None
    if dev_traces is not None:
        dev_parts, _, _ = read_training_steps([dev_traces], targets, policies)
        watched = StepsDataset(concatenate(dev_parts), history).loader(batch_size, False, seed)
    judge = None
    if dev:
        bundle = open_bundle(model or traced_model)
        require_parity(bundle)
        dev_set = read_dev_set(bundle, dev, dev_limit, language, audio_context)
        judge = DecodedErrors(dev_set, checkpoint)
    agreeing = float(data.agrees.float().mean())
    console().print(
        f"{len(data)} steps, {1 - agreeing:.1%} of which greedy misses; "
        f"{sum(p.numel() for p in module.network.parameters()):,} parameters"
    )
    if agreeing == 1:
        console().print("greedy misses none of these steps: there is nothing to learn from them")
    dev_wer = _fit(module, data.loader(batch_size, True, seed), watched, judge, out, epochs)
    figures = {"steps": len(data), **({} if dev_wer is None else {"dev_wer": dev_wer})}
    _save(module, out, {**recipe, **figures})


_RECIPE = (
    "traces",
    "targets",
    "policies",
    "dev",
    "dev_limit",
    "audio_context",
    "language",
    "dev_traces",
    "family",
    "history",
    "units",
    "candidates",
    "gate",
    "epochs",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "dropout",
    "kl_weight",
    "seed",
)


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return value.name
    return (
        [Path(v).name if isinstance(v, Path) else v for v in value]
        if isinstance(value, list)
        else value
    )


def _open_folder(out: Path, recipe: dict[str, Any]) -> None:
    import json

    text = json.dumps(recipe, indent=2) + "\n"
    file = out / "recipe.json"
    if (out / "corrector.json").is_file():
        raise BeamlessError(f"{out} holds a finished corrector; name another folder")
    if out.exists() and any(out.iterdir()):
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            raise BeamlessError(f"{out} exists and is no training of this recipe; name another")
        return
    write_text_atomically(file, text)


def _fit(
    module: "CorrectorModule",
    loader: "DataLoader[int]",
    watched: "DataLoader[int] | None",
    judge: "DecodedErrors | None",
    out: Path,
    epochs: int,
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
        deterministic=True,
        callbacks=[*([judge] if judge else []), keep, stop, RichProgressBar()],
        logger=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=1.0,
    )
    last = out / "checkpoints" / "last.ckpt"
    resumed = str(last) if last.is_file() else None
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


def _save(module: "CorrectorModule", out: Path, provenance: dict[str, Any]) -> None:
    from beamless.training.networks import to_corrector

    corrector = to_corrector(module.network.eval(), provenance)
    save_corrector(corrector, out)
    console().print(f"wrote {out} ({corrector.parameters:,} parameters)")


def _silence_lightning() -> None:
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
