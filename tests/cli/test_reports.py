"""What people reported of tools like ours, one test a report, named by its number and symptom.

Others of the same list stand where their subject is tested; their names begin with the number too.
"""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import soundfile as sf
import soxr

from beamless.command_line import run
from beamless.inference import audio_files
from beamless.inference.bundle import load_bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.transcribe import Transcriber

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]


@pytest.fixture(scope="module")
def greedy(tiny_bundle):
    return Transcriber(tiny_bundle, method="greedy")


def words_off(text: str) -> int:
    """How many words of ``SENTENCE`` are missing in a text."""
    found = text.lower().replace(".", "").replace("-", " ").split()
    return sum(word not in found for word in WORDS) + abs(len(found) - len(WORDS))


def test_b03_every_beam_width_works_on_one_model_and_changes_nothing_for_the_next(
    tiny_bundle, speech
):
    made = [Transcriber(tiny_bundle, method=f"beam{n}").transcribe(speech) for n in (1, 2, 5, 1)]
    assert all(words_off(each.text) <= 1 for each in made)
    assert replace(made[0], timings={}) == replace(made[3], timings={})


@pytest.mark.parametrize(
    ("name", "format", "subtype", "rate", "channels", "off"),
    [
        ("six channels, 24 bit, 48 kHz", "WAVEX", "PCM_24", 48_000, 6, 0),
        ("float", "WAV", "FLOAT", 16_000, 1, 0),
        ("8 bit", "WAV", "PCM_U8", 16_000, 1, 1),
        ("A-law", "WAV", "ALAW", 8_000, 1, 1),
    ],
)
def test_b18_a_wav_of_every_kind_gives_its_text(
    greedy, speech, tmp_path, name, format, subtype, rate, channels, off
):
    path = tmp_path / f"{name}.wav"
    loud = 0.9 * speech / np.abs(speech).max()  # as recordings are; 8 bits of a whisper are noise
    samples = np.clip(soxr.resample(loud, 16_000, rate), -1, 1)
    sf.write(path, np.stack([samples] * channels, axis=1), rate, subtype, format=format)
    usual = words_off(greedy.transcribe(loud).text)
    assert words_off(greedy.transcribe(path).text) <= usual + off


@pytest.mark.parametrize(
    ("name", "kind", "codec"), [("a.m4a", "ipod", "aac"), ("a.webm", "webm", "libopus")]
)
def test_b18_containers_give_their_text_and_a_missing_decoder_is_named(
    greedy, speech, tmp_path, monkeypatch, name, kind, codec
):
    av = pytest.importorskip("av")
    rate, path = 48_000, tmp_path / name
    samples = soxr.resample(speech, 16_000, rate).astype(np.float32)
    with path.open("wb") as file, av.open(file, "w", format=kind) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        for start in range(0, len(samples), 960):
            part = np.ascontiguousarray(samples[None, start : start + 960])
            layout = "fltp" if codec == "aac" else "flt"
            frame = av.AudioFrame.from_ndarray(part, layout, "mono")
            frame.sample_rate, frame.pts = rate, start
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert words_off(greedy.transcribe(path).text) <= 1

    def missing(path):
        raise BeamlessError(f"{path} needs PyAV")

    monkeypatch.setattr(audio_files, "_import_av", missing)
    with pytest.raises(BeamlessError, match=rf"{name} needs PyAV"):
        greedy.transcribe(path)


def test_b21_names_of_every_script_for_model_cache_and_recordings(
    tiny_bundle, clip, tmp_path, monkeypatch
):
    monkeypatch.setenv("BEAMLESS_CACHE", str(tmp_path / "caché ü"))
    model = tmp_path / "modèle é"
    shutil.copytree(tiny_bundle.folder, model, copy_function=os.link)
    names = ("日本 かな 1.wav", "-x.wav", "a.b.c.wav")
    for name in names:
        shutil.copy(clip, tmp_path / name)
    out = tmp_path / "öut"
    options = ("--model", str(model), "--method", "greedy", "--out", str(out))
    assert run(["transcribe", *(str(tmp_path / name) for name in names), *options]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["-x.txt", "a.b.c.txt", "日本 かな 1.txt"]
    assert all(words_off(p.read_text(encoding="utf-8")) <= 1 for p in out.iterdir())
    assert list((tmp_path / "caché ü" / "graphs").iterdir())
    assert load_bundle(model).hash == tiny_bundle.hash


def test_b25_a_word_said_four_times_takes_no_longer_than_another_clip(greedy, speech):
    from conftest import say

    greedy.transcribe(speech)
    usual = greedy.decoder.steps
    six = np.concatenate([say("Six."), np.zeros(2_400, np.float32)])
    greedy.transcribe(np.concatenate([six] * 4))
    assert greedy.decoder.steps <= 2 * usual
