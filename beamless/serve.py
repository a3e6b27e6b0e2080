"""``beamless serve``: models and voices by name, to a server.

The server is in ``inference``, which knows no voices; this front door hands them in.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from beamless.inference.errors import BeamlessError
from beamless.inference.progress import console
from beamless.inference.server.options import ServerOptions
from beamless.models.bundle import open_asked
from beamless.models.precision import Profile

if TYPE_CHECKING:
    from beamless.inference.server.models import Speaker

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    *,
    models: list[str] = ["tiny.en"],  # noqa: B006 - never changed
    voices: list[str] = [],  # noqa: B006
    methods: list[str] = [],  # noqa: B006
    device: str = "CPU",
    precision: Profile | None = None,
    options: ServerOptions = ServerOptions(),  # noqa: B008 - frozen
) -> None:
    """Answer transcription requests as OpenAI's interface has them, and show a page to try it.

    Args:
        models: bundles' folders or models' names; NAME=PLACE serves one by another name.
        voices: what says text, such as joe, a Piper file or kokoro:VOICES; NAME=PLACE here too.
        methods: what clients may choose from, the first by default: the bundle's own, greedy and
            beam5 without it.
        device: an OpenVINO device.
        precision: of models that are given by their names: fast, by default, or exact.
        options: where to listen, whom to answer, and how much to take.
    """
    try:
        from beamless.inference.server.app import create_app
        from beamless.inference.server.models import (
            Offer,
            check_names,
            listeners_of,
            name_and_place,
        )
        from beamless.inference.server.run import listen_at, run
    except ImportError as error:
        raise BeamlessError(
            f'serving needs {error.name}; run: pip install "beamless[serve]"'
        ) from None
    if not options.is_locked:
        options = replace(options, api_key=os.environ.get("BEAMLESS_API_KEY", options.api_key))
    terminal = console()
    named = [name_and_place(model) for model in models]
    check_names([name for name, _ in named])
    listening = listen_at(options)
    speakers = speakers_of(voices)
    bundles = {name: open_asked(place, device, precision) for name, place in named}
    offer = Offer(listeners_of(bundles, methods), speakers)
    if options.host not in LOOPBACK and not options.is_locked:
        terminal.print(
            f"anyone who reaches {options.host} may use this server: set BEAMLESS_API_KEY",
            style="bold red",
        )

    def on_start(port: int) -> None:
        host = f"[{options.host}]" if ":" in options.host else options.host
        terminal.print(f"listening at http://{host}:{port} – Ctrl-C stops it")

    run(create_app(offer, options), options, listening, on_start)


def speakers_of(voices: list[str]) -> "dict[str, Speaker]":
    """Load voices by their names, ``NAME=PLACE`` or ``PLACE``.

    Raises:
        BeamlessError: a voice is not to be had, its name cannot stand in an address, or two have
            one name.
    """
    from beamless.data_gen.voices import load_voice
    from beamless.inference.server.models import Speaker, check_names

    named = []
    for voice in voices:
        name, equals, place = voice.partition("=")
        if not equals:
            name, place = (Path(voice).stem if voice.endswith(".onnx") else voice), voice
        named.append((name, place))
    check_names([name for name, _ in named])
    return {name: Speaker(name, load_voice(place)) for name, place in named}
