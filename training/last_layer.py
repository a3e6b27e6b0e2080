"""A baseline for the corrector: the decoder's own last layer, trained on the same targets.

It has more to move than the corrector (self-attention, cross-attention and feed-forward: 2.4
million parameters in tiny.en) and gives another model: no corrector can be taken off it, and a
bundle of its own is needed. What does the small network give up against it?

It works on the full audio context, with transformers' Whisper. A stopped training begins again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beamless.data_gen.corpora import Utterance, read_corpus
from beamless.inference.audio import load_audio
from beamless.inference.counts import require_positive
from beamless.inference.errors import BeamlessError
from beamless.inference.features import log_mel
from beamless.inference.progress import track
from beamless.models.bundle import write_bundle
from beamless.models.reference import Model, reference_encode, reference_model
from beamless.models.whisper import Checkpoint, load_checkpoint
from beamless.training.fitting import require_kinds

if TYPE_CHECKING:
    from torch import Tensor

BATCH = 8  # utterances


@dataclass(frozen=True)
class LastLayer:
    """How the last layer is trained.

    Attributes:
        epochs: times through all utterances.
        learning_rate: of AdamW.
        seed: of the order.
    """

    epochs: int = 1
    learning_rate: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no training can be set to."""
        require_kinds(self)
        require_positive(epochs=self.epochs, learning_rate=self.learning_rate)


@dataclass(frozen=True)
class Lesson:
    """One utterance to learn from: its audio's encoding [S, d], and the target with its end."""

    encoded: "Tensor"
    tokens: tuple[int, ...]


def train_last_layer(
    traces: Sequence[Path],
    corpora: Sequence[Path],
    out: Path,
    *,
    model: str,
    targets: Sequence[str],
    limit: int | None,
    options: LastLayer,
) -> None:
    """Train on the targets of teacher-forced traces and write a bundle.

    Args:
        traces: folders that collect made.
        corpora: where the traces' recordings are.
        out: the bundle's folder, new.
        model: the model's name.
        targets: which of the collected targets.
        limit: only so many utterances of each folder.
        options: how it is trained.

    Raises:
        BeamlessError: a recording is in none of the corpora, or the traces are another model's.
    """
    from beamless.training.steps import read_training_steps, require_sizes

    parts, _, model_hash = read_training_steps(traces, targets, ["teacher_forced"], limit)
    checkpoint = load_checkpoint(model)
    if checkpoint.hash != model_hash:
        raise BeamlessError(f"{model} is not the model that made these traces")
    require_sizes(parts, checkpoint.sizes)
    recordings = {u.id: u for corpus in corpora for u in read_corpus(corpus)}
    whisper = reference_model(checkpoint)
    prompt = prompt_of(traces[0])
    lessons = []
    rows = [
        (row["id"], tuple(tokens.tolist()))
        for part in parts
        for row, tokens in zip(part.rows, np.split(part.target_ids, part.starts[1:-1]), strict=True)
    ]
    for identifier, tokens in track(rows, "encode", len(rows)):
        if identifier not in recordings:
            raise BeamlessError(f"the recording of {identifier} is in none of the --heard corpora")
        lessons.append(Lesson(encode(whisper, recordings[identifier]), tokens))
    fit_last_layer(whisper, lessons, prompt, checkpoint, options)
    write_bundle(with_last_layer(checkpoint, whisper), out)


def parameters_of(checkpoint: Checkpoint) -> int:
    """Return how many parameters the decoder's last layer has."""
    place = last_place(checkpoint)
    return sum(array.size for name, array in checkpoint.arrays.items() if name.startswith(place))


def last_place(checkpoint: Checkpoint) -> str:
    """Return how the names of the last layer's arrays begin."""
    return f"model.decoder.layers.{checkpoint.sizes.decoder_layers - 1}."


def prompt_of(traces: Path) -> tuple[int, ...]:
    """Return the ids that open every window of some traces."""
    from beamless.data_gen.traces import read_recipe

    return tuple(read_recipe(traces).prompt)


def encode(whisper: Model, utterance: Utterance) -> "Tensor":
    """Encode a recording on the full audio context, float16 [S, d]."""
    mel = log_mel(load_audio(utterance.audio), whisper.config.num_mel_bins)
    found = reference_encode(whisper, mel)
    encoded: Tensor = found.last_hidden_state[0].half()
    return encoded


def last_layer_of(whisper: Model) -> Any:  # noqa: ANN401 - a torch module
    """Return the decoder's last layer."""
    return whisper.model.decoder.layers[-1]


def fit_last_layer(
    whisper: Model,
    lessons: Sequence[Lesson],
    prompt: Sequence[int],
    checkpoint: Checkpoint,
    options: LastLayer,
) -> None:
    """Train the last layer in place; all else stays as it is."""
    import torch

    layer = last_layer_of(whisper)
    whisper.requires_grad_(False)
    layer.requires_grad_(True)
    optimizer = torch.optim.AdamW(layer.parameters(), options.learning_rate, weight_decay=0.0)
    for epoch in range(options.epochs):
        order = np.random.default_rng((options.seed, epoch)).permutation(len(lessons))
        batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        for batch in track(batches, f"epoch {epoch + 1}", len(batches)):
            steps = sum(len(lessons[index].tokens) for index in batch)
            optimizer.zero_grad()
            for index in batch:  # one by one: they differ in length, and this adds up the same
                loss = lesson_loss(whisper, lessons[index], prompt, checkpoint)
                (loss / steps).backward()
            torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            optimizer.step()


def lesson_loss(
    whisper: Model, lesson: Lesson, prompt: Sequence[int], checkpoint: Checkpoint
) -> "Tensor":
    """Return the summed cross-entropy of a lesson's tokens, suppressed ones left out of it."""
    import torch

    given = torch.tensor([[*prompt, *lesson.tokens[:-1]]])
    decoded = whisper.model.decoder(
        input_ids=given, encoder_hidden_states=lesson.encoded[None].float(), use_cache=False
    )
    logits = whisper.proj_out(decoded.last_hidden_state[0, len(prompt) - 1 :])
    allowed = torch.zeros_like(logits)
    allowed[:, list(checkpoint.suppress_tokens)] = -torch.inf
    allowed[0, list(checkpoint.begin_suppress_tokens)] = -torch.inf
    logprobs = torch.log_softmax(logits + allowed, dim=1)
    chosen = logprobs.gather(1, torch.tensor(lesson.tokens)[:, None])
    return -chosen[torch.isfinite(chosen)].sum()


def with_last_layer(checkpoint: Checkpoint, whisper: Model) -> Checkpoint:
    """Return a checkpoint with the last layer's arrays as they are in ``whisper``."""
    place = last_place(checkpoint)
    arrays = dict(checkpoint.arrays)
    for name, tensor in last_layer_of(whisper).state_dict().items():
        arrays[place + name] = tensor.detach().numpy().copy()
    return replace(checkpoint, arrays=arrays)
