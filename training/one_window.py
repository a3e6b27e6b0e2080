"""Utterances of a corpus decoded one by one, each as one window: what several counts begin with."""

from collections.abc import Iterable, Iterator

from beamless.data_gen.corpora import Utterance
from beamless.inference.audio import SAMPLE_RATE, WINDOW_SECONDS, load_audio
from beamless.inference.budget import budget_for
from beamless.inference.bundle import Bundle
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.methods import Decode
from beamless.inference.options import AudioContext
from beamless.inference.window_encoder import WindowEncoder


def decoded_windows(
    bundle: Bundle,
    decode: Decode,
    utterances: Iterable[Utterance],
    audio_context: AudioContext,
    language: str = "en",
) -> Iterator[tuple[Utterance, Hypothesis | None]]:
    """Yield each utterance with what it was heard as; None where it is longer than a window.

    Args:
        bundle: whose encoder is used.
        decode: a method of the same model.
        utterances: in the order that they are to be decoded in.
        audio_context: how much the encoder sees.
        language: what is spoken, for the bound on tokens a second.
    """
    encode = WindowEncoder(bundle)
    for utterance in utterances:
        samples = load_audio(utterance.audio)
        if len(samples) > WINDOW_SECONDS * SAMPLE_RATE:
            yield utterance, None
        else:
            budget = budget_for(samples, language, None)
            yield utterance, decode(encode(samples, audio_context), budget)
