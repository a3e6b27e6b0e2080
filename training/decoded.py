"""Word errors of a real corrected decode after each epoch: what says which epoch is the best.

A loss on traces does not: it sees single steps on prefixes that somebody else chose, and a
corrector that is a little too bold there may run into loops of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lightning

from beamless.data_gen.corpora import Utterance, read_corpus
from beamless.data_gen.subset import spread
from beamless.data_gen.targets import errors_of
from beamless.data_gen.word_errors import Errors
from beamless.inference.audio import SAMPLE_RATE, WINDOW_SECONDS, load_audio
from beamless.inference.budget import budget_for
from beamless.inference.bundle import Bundle
from beamless.inference.corrected import Corrected
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Chooser, Greedy, greedy
from beamless.inference.options import AudioContext
from beamless.inference.sampling import TokenOptions
from beamless.inference.window_encoder import WindowEncoder
from beamless.models.bundle import with_corrector
from beamless.models.corrector import Corrector
from beamless.models.whisper import Checkpoint
from beamless.training.module import CorrectorModule
from beamless.training.networks import to_corrector
from beamless.training.processes import say


@dataclass(frozen=True)
class DevSet:
    """What a training is judged by.

    Attributes:
        bundle: the uncorrected model, past the parity gate.
        utterances: of speakers that the training does not hear.
        language: what is spoken.
        audio_context: how much the encoder sees.
    """

    bundle: Bundle
    utterances: Sequence[Utterance]
    language: str
    audio_context: AudioContext


def read_dev_set(
    bundle: Bundle,
    corpora: Sequence[Path],
    limit: int | None,
    language: str,
    audio_context: AudioContext,
) -> DevSet:
    """Read the first utterances of each corpus, spread by a hash of their ids.

    Raises:
        BeamlessError: none is short enough for one window.
    """
    found = [u for corpus in corpora for u in spread(read_corpus(corpus), limit)]
    short = [u for u in found if u.duration <= WINDOW_SECONDS]
    if not short:
        raise BeamlessError(f"no utterance of {', '.join(map(str, corpora))} is within 30 s")
    return DevSet(bundle, short, language, audio_context)


def decoded_errors(dev: DevSet, chooser: Chooser) -> tuple[Errors, int]:
    """Decode the dev set without look-ahead; return its word errors and how many ran away."""
    encode, tokenizer = WindowEncoder(dev.bundle), dev.bundle.tokenizer
    prompt = tokenizer.prompt(dev.language)
    total, runaway = Errors(), 0
    for utterance in dev.utterances:
        samples = load_audio(utterance.audio)[: int(WINDOW_SECONDS * SAMPLE_RATE)]
        chooser.options = TokenOptions(budget=budget_for(samples, dev.language, None))
        found = greedy(chooser, encode(samples, dev.audio_context), prompt, tokenizer.end)
        total += errors_of(found.tokens, utterance.text, tokenizer, dev.language)
        runaway += found.finish_reason != "stop"
    return total, runaway


def corrected_errors(
    dev: DevSet, checkpoint: Checkpoint, corrector: Corrector
) -> tuple[Errors, int]:
    """Decode the dev set with a corrector; return what ``decoded_errors`` does."""
    bundle = with_corrector(dev.bundle, checkpoint, corrector)
    return decoded_errors(dev, Corrected(bundle))


class DecodedErrors(lightning.Callback):
    """Logs ``dev_wer`` after each epoch, and says it beside greedy's own."""

    def __init__(self, dev: DevSet, checkpoint: Checkpoint) -> None:
        self._dev, self._checkpoint = dev, checkpoint
        self._greedy: tuple[Errors, int] | None = None

    def on_train_epoch_end(
        self, trainer: lightning.Trainer, module: lightning.LightningModule
    ) -> None:
        """Lightning's hook."""
        assert isinstance(module, CorrectorModule)
        if self._greedy is None:
            self._greedy = decoded_errors(self._dev, Greedy(self._dev.bundle))
        training = module.network.training
        corrector = to_corrector(module.network.eval(), {})
        module.network.train(training)
        errors, runaway = corrected_errors(self._dev, self._checkpoint, corrector)
        module.log("dev_wer", errors.rate)
        plain, plain_runaway = self._greedy
        count = len(self._dev.utterances)
        say(
            f"epoch {trainer.current_epoch + 1}: dev WER {errors.rate:.2%} (greedy "
            f"{plain.rate:.2%}), {runaway} of {count} ran away ({plain_runaway})"
        )
