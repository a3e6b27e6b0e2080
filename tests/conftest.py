"""What many tests share: real Whisper weights, bundles of them, and a voice, each made once.

Everything is made in a temporary folder; ``BEAMLESS_CACHE`` points there, also for the programs
that tests start.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf
import soxr
from hypothesis import settings

from beamless.data_gen.voices import load_voice
from beamless.inference.bundle import Bundle, load_bundle
from beamless.inference.decoder import CrossKV
from beamless.inference.encoder import Encoder
from beamless.inference.features import log_mel
from beamless.models.bundle import write_bundle
from beamless.models.corrector import CorrectorConfig, untrained
from beamless.models.reference import reference_encode, reference_model
from beamless.models.whisper import Checkpoint, load_checkpoint

SENTENCE = "The quick brown fox jumps over the lazy dog."
OTHER_SENTENCE = "In short, the period was so far like the present period."

INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
runpy.run_module("beamless", run_name="__main__", alter_sys=True)
"""
"""A program that runs a command line and heeds Ctrl-C."""

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory) -> Path:
    """The cache folder of all tests."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["BEAMLESS_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def tiny() -> Checkpoint:
    """Whisper tiny.en, English-only."""
    return load_checkpoint("tiny.en")


@pytest.fixture(scope="session")
def base() -> Checkpoint:
    """Whisper base, multilingual."""
    return load_checkpoint("base")


@pytest.fixture(scope="session")
def tiny_reference(tiny):
    """tiny.en as transformers runs it."""
    return reference_model(tiny)


@pytest.fixture(scope="session")
def tiny_encoded(tiny_reference, speech):
    """``SENTENCE`` encoded by transformers' tiny.en."""
    return reference_encode(tiny_reference, log_mel(speech))


def build(checkpoint: Checkpoint, folder: Path) -> Bundle:
    config = CorrectorConfig("shift", checkpoint.hash, checkpoint.sizes.width)
    write_bundle(checkpoint, folder, untrained(config))
    return load_bundle(folder)


@pytest.fixture(scope="session")
def tiny_bundle(tiny, tmp_path_factory) -> Bundle:
    """tiny.en with an untrained corrector, on the CPU."""
    return build(tiny, tmp_path_factory.mktemp("bundles") / "tiny.en")


@pytest.fixture(scope="session")
def base_bundle(base, tmp_path_factory) -> Bundle:
    """Base with an untrained corrector, on the CPU."""
    return build(base, tmp_path_factory.mktemp("bundles") / "base")


def say(text: str) -> np.ndarray:
    """Say a text with the Piper voice, as float32 samples [n] at 16 kHz."""
    voice = load_voice("joe")
    return soxr.resample(voice.say(text), voice.rate, 16000).astype(np.float32)


@pytest.fixture(scope="session")
def speech() -> np.ndarray:
    """``SENTENCE`` as samples."""
    return say(SENTENCE)


@pytest.fixture(scope="session")
def other_speech() -> np.ndarray:
    """``OTHER_SENTENCE`` as samples."""
    return say(OTHER_SENTENCE)


@pytest.fixture(scope="session")
def clip(speech, tmp_path_factory) -> Path:
    """``SENTENCE`` as a WAV file of 16 kHz, mono."""
    path = tmp_path_factory.mktemp("clips") / "fox.wav"
    sf.write(path, speech, 16000)
    return path


@pytest.fixture(scope="session")
def tiny_window(tiny_bundle, speech) -> CrossKV:
    """``SENTENCE`` encoded by tiny.en."""
    return Encoder(tiny_bundle.compile("encoder"))(log_mel(speech))


@pytest.fixture(scope="session")
def base_window(base_bundle, speech) -> CrossKV:
    """``SENTENCE`` encoded by base."""
    return Encoder(base_bundle.compile("encoder"))(log_mel(speech))
