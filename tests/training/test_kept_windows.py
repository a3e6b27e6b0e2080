"""Windows that are kept: the same arrays as the encoder's, of this model and context alone."""

from dataclasses import replace

import numpy as np
import pytest

from beamless.inference.window_encoder import WindowEncoder
from beamless.training.kept_windows import KeptWindows


@pytest.fixture(scope="module")
def kept(tiny_bundle, speech, tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    KeptWindows(tiny_bundle, folder)(speech, "short")
    return folder


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.safetensors"))


def test_what_is_read_back_is_what_the_encoder_made(kept, tiny_bundle, speech):
    made = WindowEncoder(tiny_bundle)(speech, "short")
    read = KeptWindows(tiny_bundle, kept)(speech, "short")
    assert read.keys() == made.keys()
    assert all(np.array_equal(read[name], made[name]) for name in made)


def test_other_samples_and_another_context_are_other_windows(kept, tiny_bundle, speech):
    before = files(kept)
    encoder = KeptWindows(tiny_bundle, kept)
    encoder(speech, "short")
    assert files(kept) == before
    encoder(speech, "full")
    encoder(speech[:16000], "short")
    assert len(files(kept)) == len(before) + 2


def test_another_models_windows_are_not_taken(kept, tiny_bundle, speech):
    manifest = replace(tiny_bundle.manifest, model={**tiny_bundle.manifest.model, "hash": "f" * 64})
    before = files(kept)
    KeptWindows(replace(tiny_bundle, manifest=manifest), kept)(speech, "short")
    assert len(files(kept)) == len(before) + 1
