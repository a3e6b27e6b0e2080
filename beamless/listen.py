"""``beamless listen``, and ``beamless.stream``: speech to text while it is spoken."""

import threading
from collections.abc import Iterable, Iterator

import numpy as np

from beamless.inference.audio import SAMPLE_RATE
from beamless.inference.errors import BeamlessError
from beamless.inference.listen import Listening, show_columns, show_text
from beamless.inference.progress import console, screen
from beamless.inference.sources import loudspeaker as open_loudspeaker
from beamless.inference.sources import microphone as open_microphone
from beamless.inference.streaming import StreamEvent
from beamless.inference.streaming import stream as streamed
from beamless.inference.transcribe import Transcriber
from beamless.models.bundle import open_asked
from beamless.models.precision import Profile
from beamless.transcribe import load

SPEAKERS = ("microphone", "loudspeaker")


def stream(
    chunks: Iterable[np.ndarray],
    model: str | Transcriber = "tiny.en",
    *,
    rate: int = SAMPLE_RATE,
    language: str | None = None,
) -> Iterator[StreamEvent]:
    """Yield what is said, while chunks of sound come in: early text, and what an utterance was.

    Args:
        chunks: float within ±1 or int16, [n] or [n, channels], of any length.
        model: a bundle's folder, a model's name, or what ``load`` returned.
        rate: samples a second.
        language: what is spoken, where a name is given; detected where the model knows several, by
            default.

    Raises:
        BeamlessError: the model is not to be had, or a chunk is no sound.
    """
    if isinstance(model, str):
        model = load(model, language=language)
    yield from streamed(chunks, model, rate)


def listen(
    *,
    model: str = "tiny.en",
    method: str | None = None,
    device: str = "CPU",
    language: str | None = None,
    microphone: str = "",
    two_columns: bool = False,
    loudspeaker: str = "",
    precision: Profile | None = None,
) -> None:
    """Write down what is said into a microphone, while it is said; Ctrl-C ends it.

    Args:
        model: a bundle's folder, or a model's name.
        method: greedy, corrected, lookahead, greedy-lookahead, or beam1 to beam10; lookahead by
            default, on top of the corrector where the bundle has one.
        device: an OpenVINO device, such as CPU, GPU or NPU.
        language: what is spoken; detected where the model knows several, by default.
        microphone: its number or a part of its name, or a file to hear in its place.
        two_columns: hear what the loudspeaker plays too, and show both side by side with times.
        loudspeaker: the input that hears it, likewise; one that is called monitor, loopback or
            Stereo Mix by default.
        precision: of a model that is given by its name: fast, by default, or exact.
    """
    if loudspeaker and not two_columns:
        raise BeamlessError("a loudspeaker is heard with --two-columns alone; give that too")
    bundle = open_asked(model, device, precision)
    stop = threading.Event()
    sources = {SPEAKERS[0]: open_microphone(microphone, stop)}
    if two_columns:
        sources[SPEAKERS[1]] = open_loudspeaker(loudspeaker, stop)
    transcribers = {who: Transcriber(bundle, method=method, language=language) for who in sources}
    for transcriber in transcribers.values():
        transcriber.warm_up()
    terminal = console()
    terminal.print("listening; Ctrl-C ends it")
    listening = Listening(sources, transcribers, stop)
    if two_columns:
        show_columns(listening, SPEAKERS, screen())
    else:
        show_text(listening, screen())
    terminal.print(listening.latency())
