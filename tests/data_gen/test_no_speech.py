"""Sounds in which nobody speaks: what they are, that the seed decides them, that they are read."""

from collections import Counter

import numpy as np
import pytest

from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.made_music import MAJOR, TIMBRES, music, note, pitch_of, walked
from beamless.data_gen.no_speech import KINDS, no_speech
from beamless.inference.audio import load_audio
from beamless.inference.errors import BeamlessError
from beamless.training.evaluate import evaluate


@pytest.fixture
def few(monkeypatch):
    """Two clips of each kind, of a second and of three."""
    monkeypatch.setattr("beamless.data_gen.no_speech.LONGEST", 3.0)
    for kind, (sound, _) in KINDS.items():
        monkeypatch.setitem(KINDS, kind, (sound, 2))


def sounds_of(folder):
    return {each.id: load_audio(each.audio) for each in read_corpus(folder)}


def test_every_kind_is_there_in_all_lengths_and_nothing_is_said(tmp_path):
    no_speech(tmp_path)
    clips = read_corpus(tmp_path)
    assert Counter(each.id.rpartition("-")[0] for each in clips) == {
        kind: count for kind, (_, count) in KINDS.items()
    }
    assert not any(each.text for each in clips)
    assert all(each.extra["label"] in each.id for each in clips)
    for kind in KINDS:
        seconds = [each.duration for each in clips if each.extra["label"] == kind]
        assert (min(seconds), max(seconds)) == (1.0, 29.0)


@pytest.mark.usefixtures("few")
def test_the_seed_decides_every_sample(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        no_speech(tmp_path / name, seed=seed)
    first, again, other = (sounds_of(tmp_path / name) for name in "abc")
    for name, samples in first.items():
        np.testing.assert_array_equal(samples, again[name])
        assert np.array_equal(samples, other[name]) == name.startswith("silence")


@pytest.mark.usefixtures("few")
def test_what_lies_there_is_kept_and_a_stopped_run_goes_on(tmp_path):
    no_speech(tmp_path / "made")
    metadata = (tmp_path / "made" / "metadata.jsonl").read_bytes()
    no_speech(tmp_path / "made")
    assert (tmp_path / "made" / "metadata.jsonl").read_bytes() == metadata
    with pytest.raises(BeamlessError, match="a corpus of another recipe; name a new folder"):
        no_speech(tmp_path / "made", seed=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(BeamlessError, match="not empty; name a new folder"):
        no_speech(tmp_path / "mine")
    with pytest.raises(BeamlessError, match="--seed must be from 0"):
        no_speech(tmp_path / "new", seed=-1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_sounds_are_as_loud_as_they_should_be(kind, seed):
    samples = KINDS[kind][0](40_000, np.random.default_rng(seed))
    assert samples.shape == (40_000,)
    peak, loudness = np.abs(samples).max(), samples.std()
    if kind == "silence":
        assert peak == 0
    elif kind == "music":
        assert 0.1 <= peak <= 0.9
    else:
        assert 3e-4 < loudness < 0.11
        assert peak < 0.6


def test_pink_noise_loses_three_decibels_an_octave():
    samples = KINDS["pink"][0](160_000, np.random.default_rng(0))
    power = np.square(np.abs(np.fft.rfft(samples)))
    octaves = [power[hertz * 10 : hertz * 20].mean() for hertz in (200, 400, 800, 1600, 3200)]
    np.testing.assert_allclose(np.diff(10 * np.log10(octaves)), -3, atol=0.4)


def test_a_hum_is_at_the_mains_and_its_multiples():
    samples = KINDS["hum"][0](160_000, np.random.default_rng(0))
    loudest = np.argsort(-np.abs(np.fft.rfft(samples)))[:3] / 10  # Hz
    assert any(np.all(np.abs(loudest / m - np.round(loudest / m)) < 0.05) for m in (50, 60))


@pytest.mark.parametrize("name", TIMBRES)
def test_a_note_has_its_pitch_and_no_click_at_its_end(name):
    samples = note(69, 1.0, TIMBRES[name])
    assert np.argmax(np.abs(np.fft.rfft(samples))) == 440
    assert abs(samples[-1]) < 0.01


def test_music_keeps_to_a_key_and_a_melody_to_the_chords_on_strong_beats():
    assert [pitch_of(place, MAJOR) for place in (-1, 0, 7, 9)] == [-1, 0, 12, 16]
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert (walked(4, 3, 2.0, rng) - 3) % 7 in (0, 2, 4)
    samples = music(80_000, rng)
    assert np.abs(samples).max() == pytest.approx(1)
    pieces = samples.reshape(50, -1).std(axis=1)
    assert np.median(pieces) > 0.02  # it goes on


@pytest.mark.usefixtures("few")
def test_evaluate_reads_it_and_counts_what_was_made_up(tiny_bundle, tmp_path):
    no_speech(tmp_path / "made")
    evaluate(str(tiny_bundle.folder), [tmp_path / "made"], methods=["greedy"], out=tmp_path / "out")
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "10 utterances" in report
    assert "10 of the references empty" in report
