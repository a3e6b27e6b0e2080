"""Coqui in process. The real library is tried where it is installed: it needs its own torch."""

import json
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from beamless.data_gen.voices import Voice, load_voice
from beamless.data_gen.voices.coqui import CoquiVoice
from beamless.inference.errors import BeamlessError

torch = pytest.importorskip("torch", reason="torch is not installed")
needs_coqui = pytest.mark.skipif(
    find_spec("TTS") is None, reason="the extra 'coqui' is not installed here"
)


class Library:
    """Stands for ``TTS.api.TTS``: a model whose samples are torch's random numbers."""

    def __init__(self, speakers=None, languages=None, clones=False, **model):
        self.speakers, self.languages = speakers, languages
        self.is_multi_speaker, self.is_multi_lingual = bool(speakers), bool(languages)
        self.model = SimpleNamespace(config=SimpleNamespace(supports_cloning=clones), **model)
        self.synthesizer = SimpleNamespace(output_sample_rate=22_050, tts_model=self.model)
        self.asked = []

    def tts(self, text, split_sentences=True, **options):
        self.asked.append((text, options))
        return torch.rand(100).tolist()


def test_a_model_of_one_voice_is_a_voice():
    voice = CoquiVoice(Library(), "vits", "en", {})
    assert isinstance(voice, Voice)
    assert (voice.name, voice.speakers, voice.rate) == ("coqui/vits", ("0",), 22_050)
    np.testing.assert_array_equal(voice.say("Hello"), voice.say("Hello"))
    assert not np.array_equal(voice.say("Hello"), voice.say("Goodbye"))


def test_speaker_and_language_are_handed_over(tmp_path):
    library = Library(["ann"], ["en", "fr"], clones=True)
    voice = CoquiVoice(library, "xtts", "fr", {"bob": tmp_path / "bob.wav"})
    assert voice.speakers == ("bob", "ann")
    voice.say("Bonjour", "ann")
    voice.say("Salut", "bob")
    assert library.asked == [
        ("Bonjour", {"speaker": "ann", "language": "fr"}),
        ("Salut", {"speaker_wav": str(tmp_path / "bob.wav"), "language": "fr"}),
    ]


def test_a_long_text_is_said_piece_by_piece():
    library = Library()
    CoquiVoice(library, "vits", "en", {}).say("one two three " * 40)
    pieces = [text for text, _ in library.asked]
    assert len(pieces) == 3
    assert " ".join(pieces).split() == ["one", "two", "three"] * 40


def test_a_speed_is_the_models_length_scale():
    library = Library(length_scale=1.2)
    voice = CoquiVoice(library, "vits", "en", {})
    for _ in range(2):
        voice.say("Hello", speed=1.5)
        assert library.model.length_scale == pytest.approx(0.8)


def test_a_model_of_one_pace_refuses_another():
    voice = CoquiVoice(Library(), "tacotron", "en", {})
    with pytest.raises(BeamlessError, match="has one pace only"):
        voice.say("Hello", speed=1.5)


def test_a_model_that_cannot_clone_or_speak_the_language_says_so(tmp_path):
    with pytest.raises(BeamlessError, match="cannot clone"):
        CoquiVoice(Library(), "vits", "en", {"bob": tmp_path / "bob.wav"})
    with pytest.raises(BeamlessError, match="does not speak 'sv', but en, fr"):
        CoquiVoice(Library(languages=["en", "fr"]), "xtts", "sv", {})


def test_a_model_that_fails_is_one_clear_line():
    library = Library()
    library.tts = lambda *_, **__: int("no\nnumber")
    with pytest.raises(BeamlessError, match="coqui/vits cannot say 'Hello'") as raised:
        CoquiVoice(library, "vits", "en", {}).say("Hello")
    assert "\n" not in str(raised.value)


def test_a_missing_recording_to_clone_is_one_clear_line(tmp_path):
    clones = {"bob": str(tmp_path / "bob.wav")}
    with pytest.raises(BeamlessError, match=r"there is no recording .*bob\.wav"):
        load_voice("coqui:tts_models/x", {"clones": clones})


@pytest.mark.skipif(find_spec("TTS") is not None, reason="the extra 'coqui' is installed here")
def test_without_the_package_the_extra_is_named():
    with pytest.raises(BeamlessError, match=r'pip install "beamless\[coqui\]"'):
        load_voice("coqui:tts_models/en/vctk/vits")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A very small VITS with random weights, and its settings."""
    from TTS.tts.configs.vits_config import VitsConfig
    from TTS.tts.models.vits import Vits, VitsArgs

    sizes = VitsArgs(
        hidden_channels=32,
        hidden_channels_ffn_text_encoder=32,
        num_heads_text_encoder=2,
        num_layers_text_encoder=1,
        num_layers_posterior_encoder=1,
        num_layers_flow=1,
        upsample_initial_channel_decoder=32,
    )
    config = VitsConfig(model_args=sizes, text_cleaner="english_cleaners", use_phonemes=False)
    torch.manual_seed(0)
    model = Vits(config)
    folder = tmp_path_factory.mktemp("coqui")
    torch.save({"model": model.state_dict()}, folder / "small.pth")
    config.save_json(str(folder / "config.json"))
    return folder / "small.pth"


@needs_coqui
def test_a_local_checkpoint_is_loaded_and_says_the_same_text_the_same_way(checkpoint):
    voice = load_voice(f"coqui:{checkpoint}")
    assert (voice.name, voice.rate) == ("coqui/small", 22_050)
    first = voice.say("Hello there.")
    assert len(first) > 1000
    assert np.isfinite(first).all()
    voice.say("Something else.")
    np.testing.assert_array_equal(voice.say("Hello there."), first)


@needs_coqui
def test_a_broken_checkpoint_is_one_clear_line(checkpoint, tmp_path):
    with pytest.raises(BeamlessError, match="there is no Coqui file"):
        load_voice(f"coqui:{tmp_path / 'none.pth'}")
    (tmp_path / "bad.pth").write_bytes(b"no weights")
    (tmp_path / "config.json").write_text(json.dumps({"model": "vits"}), encoding="utf-8")
    with pytest.raises(BeamlessError, match="Coqui cannot load"):
        load_voice(f"coqui:{tmp_path / 'bad.pth'}")
