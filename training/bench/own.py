"""Beamless among the bench's implementations."""

import time
from dataclasses import replace
from pathlib import Path

from beamless.inference.bundle import Bundle, load_bundle, read_manifest
from beamless.inference.errors import BeamlessError
from beamless.inference.options import DecodingOptions
from beamless.inference.transcribe import Transcriber
from beamless.models.bundle import open_bundle
from beamless.training.bench.implementation import Heard, Setup

FAST = "fast-"  # before a method: int8, and the encoder in what the device likes best
FULL = "-full"  # behind a method: with the encoder's full context


class Beamless:
    """A bundle and one of its methods, on the CPU."""

    variants = (
        "greedy",
        "corrected",
        "lookahead",
        "beam5",
        "fast-greedy",
        "fast-corrected",
        "fast-lookahead",
        "fast-beam5",
        "greedy-full",
        "beam5-full",
    )

    @staticmethod
    def prepare(setup: Setup) -> None:
        """Build the model's bundle."""
        bundle_of(setup)

    def __init__(self, setup: Setup) -> None:
        bundle = bundle_of(setup)
        options = DecodingOptions(language=setup.language)
        if setup.variant.endswith(FULL):
            options = replace(options, audio_context="full")
        method = setup.variant.removeprefix(FAST).removesuffix(FULL)
        self._transcriber = Transcriber(bundle, method=method, options=options)
        self._prompt = len(bundle.tokenizer.prompt(setup.language))
        self._began = 0.0
        self._steps: list[float] = []
        self._transcriber.decoder.on_step = lambda: self._steps.append(time.perf_counter())

    def transcribe(self, path: Path) -> Heard:
        """Transcribe with the default options; decoder steps are counted on the way."""
        self._steps.clear()
        began = time.perf_counter()
        text = self._transcriber.transcribe(path).text
        steps = self._steps
        first = steps[self._prompt - 1] - began if len(steps) >= self._prompt else None
        return Heard(text, first, len(steps))


def bundle_of(setup: Setup) -> Bundle:
    """Open the bundle with the setup's threads and its folder for compiled graphs.

    Raises:
        BeamlessError: a bundle that has its own precision is asked for another.
    """
    fast = setup.variant.startswith(FAST)
    opened = open_bundle(setup.model, precision="fast" if fast else "exact")
    if fast and opened.folder == Path(setup.model):
        raise BeamlessError(f"{setup.model} has its own precision; name its model to measure fast")
    return load_bundle(opened.folder, "CPU", setup.graphs, setup.threads)


def model_name(setup: Setup) -> str:
    """Return the Whisper that a setup is about; of a bundle, the one that it was made from."""
    folder = Path(setup.model)
    if (folder / "bundle.json").is_file():
        return read_manifest(folder).model["name"]
    return setup.model
