"""Any recording becomes float32, one channel, 16 kHz; what is wrong with it is said."""

import os
import struct
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import soundfile

from beamless.inference.audio import (
    SAMPLE_RATE,
    AudioWarning,
    audio_blocks,
    audio_duration,
    check_samples,
    load_audio,
    load_channels,
)
from beamless.inference.errors import BeamlessError

av = pytest.importorskip("av")


def tone(seconds: float, rate: int = SAMPLE_RATE, hertz: float = 440.0) -> np.ndarray:
    """A tone that swells, so that a shift in time shows."""
    t = np.arange(round(seconds * rate)) / rate
    return (0.5 * np.sin(2 * np.pi * hertz * t) * np.minimum(t / seconds, 1)).astype(np.float32)


def noisy(seconds: float) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal(round(seconds * SAMPLE_RATE))
    return (0.1 * noise).astype(np.float32)


def write_container(path: Path, kind: str, codec: str, samples: np.ndarray, rate: int) -> None:
    with path.open("wb") as file, av.open(file, "w", format=kind) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        for start in range(0, len(samples), 960):
            part = samples[None, start : start + 960]
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(part), "fltp", "mono")
            frame.sample_rate, frame.pts = rate, start
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def assert_close(found: np.ndarray, wanted: np.ndarray, bound: float) -> None:
    assert found.dtype == np.float32
    assert abs(len(found) - len(wanted)) <= 2
    n = min(len(found), len(wanted)) - 200
    assert np.abs(found[200:n] - wanted[200:n]).max() < bound


# --- every kind of file gives the same samples ----------------------------------------------


@pytest.mark.parametrize(
    ("container", "subtype", "bound"),
    [
        ("WAV", "PCM_16", 1e-3),
        ("WAV", "PCM_24", 1e-3),
        ("WAV", "PCM_32", 1e-3),
        ("WAV", "FLOAT", 1e-3),
        ("WAV", "DOUBLE", 1e-3),
        ("WAV", "PCM_U8", 2e-2),
        ("WAV", "ALAW", 3e-2),
        ("WAV", "ULAW", 3e-2),
        ("WAVEX", "PCM_24", 1e-3),
        ("AIFF", "PCM_16", 1e-3),
        ("FLAC", "PCM_16", 1e-3),
        ("OGG", "VORBIS", 5e-2),
        ("OGG", "OPUS", 5e-2),
    ],
)
def test_a_wav_that_is_not_16_bit_is_read_as_what_it_is(tmp_path, container, subtype, bound):
    path = tmp_path / "sound"
    soundfile.write(path, tone(2, 48000), 48000, format=container, subtype=subtype)
    assert_close(load_audio(path), tone(2), bound)


def test_an_mp3s_decoder_does_not_chatter_on_standard_error(tmp_path, capfd):
    path = tmp_path / "a.mp3"
    soundfile.write(path, noisy(3), 16000)
    content = path.read_bytes()
    path.write_bytes(content[:2000] + bytes(500) + content[2000:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AudioWarning)
        assert len(load_audio(path)) > 2 * 16000
    os.write(2, b"ours")
    assert capfd.readouterr().err == "ours"


def test_mp3_is_read(tmp_path):
    soundfile.write(tmp_path / "a.mp3", tone(2, 44100), 44100)
    found = load_audio(tmp_path / "a.mp3")
    assert len(found) / SAMPLE_RATE == pytest.approx(2, abs=0.1)
    assert np.abs(found).max() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 44100, 48000, 192000, 12345])
def test_any_rate_becomes_16_khz(tmp_path, rate):
    soundfile.write(tmp_path / "a.wav", tone(2, rate), rate, subtype="FLOAT")
    assert_close(load_audio(tmp_path / "a.wav"), tone(2), 1e-3)


@pytest.mark.parametrize("rate", [1, 5])
def test_a_rate_of_a_few_samples_a_second_is_read_whole(tmp_path, rate):
    soundfile.write(tmp_path / "a.wav", np.full(20, 0.5, np.float32), rate)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AudioWarning)
        assert len(load_audio(tmp_path / "a.wav")) == 20 * SAMPLE_RATE // rate


def test_six_channels_are_averaged(tmp_path):
    parts = np.stack([tone(1, 48000) * gain for gain in (0.2, 0.4, 0.6, 0.8, 1.0, 0.0)], axis=1)
    soundfile.write(tmp_path / "a.wav", parts, 48000, format="WAVEX", subtype="PCM_24")
    assert_close(load_audio(tmp_path / "a.wav"), tone(1) * 0.5, 1e-3)


@pytest.mark.parametrize(
    ("name", "kind", "codec"),
    [
        ("a.m4a", "ipod", "aac"),
        ("a.mp4", "mp4", "aac"),
        ("audio", "ipod", "aac"),
        ("a.mp3", "ipod", "aac"),
        ("a.mkv", "matroska", "aac"),
        ("blob", "webm", "libopus"),
        ("a.aac", "adts", "aac"),
    ],
)
def test_the_format_is_found_from_the_bytes_and_not_from_the_name(tmp_path, name, kind, codec):
    write_container(tmp_path / name, kind, codec, tone(2, 48000), 48000)
    found = load_audio(tmp_path / name)
    assert len(found) / SAMPLE_RATE == pytest.approx(2, abs=0.1)
    assert np.abs(found).max() == pytest.approx(0.5, abs=0.05)
    assert audio_duration(tmp_path / name) == pytest.approx(2, abs=0.3)


def test_a_wav_with_a_wrong_name_is_read(tmp_path):
    for name in ("a.mp3", "a.raw", "blob"):
        soundfile.write(tmp_path / name, tone(1), SAMPLE_RATE, format="WAV")
        assert_close(load_audio(tmp_path / name), tone(1), 1e-3)


def test_names_with_kana_spaces_dashes_and_dots_are_read(tmp_path):
    for name in ("日本 かな 1.wav", "-x.wav", "a.b.c.wav", "é ü.wav"):
        soundfile.write(tmp_path / name, tone(1), SAMPLE_RATE, format="WAV")
        assert len(load_audio(tmp_path / name)) == SAMPLE_RATE


def test_a_missing_decoder_is_named(tmp_path, monkeypatch):
    write_container(tmp_path / "a.m4a", "ipod", "aac", tone(1), SAMPLE_RATE)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(BeamlessError, match=r'pip install "beamless\[av\]"'):
        load_audio(tmp_path / "a.m4a")


# --- what is not a recording ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 bytes"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 40, "not an audio file"),
        (b"hello, this is text\n" * 50, "not an audio file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(4000), "not an audio file"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "not an audio file"),
        (b"\x00\x00\x00\x20ftypM4A " + bytes(4000), "not an audio file"),
        (b"\xff\xd8\xff\xe0" + bytes(4000), "not an audio file"),
    ],
)
def test_what_is_not_audio_is_refused_in_one_line(tmp_path, content, reason):
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(BeamlessError, match=reason) as error:
        load_audio(path)
    assert "\n" not in str(error.value) and "a.wav" in str(error.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(BeamlessError, match="no such file"):
        load_audio(tmp_path / "none.wav")
    with pytest.raises(BeamlessError, match="not a file"):
        load_audio(tmp_path)


def test_a_header_without_samples_gives_an_empty_array(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(0, np.float32), 44100)
    assert load_audio(tmp_path / "a.wav").shape == (0,)
    assert audio_duration(tmp_path / "a.wav") == 0.0
    assert list(audio_blocks(tmp_path / "a.wav", 1.0)) == []


def test_one_sample_is_a_recording(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([0.5], np.float32), SAMPLE_RATE, subtype="FLOAT")
    assert load_audio(tmp_path / "a.wav").tolist() == [0.5]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_one_nan_sample_is_named_and_never_becomes_features(tmp_path, value):
    samples = tone(1)
    samples[8000] = value
    soundfile.write(tmp_path / "a.wav", samples, SAMPLE_RATE, subtype="FLOAT")
    with pytest.raises(BeamlessError, match=r"sample 8000, at 0\.500 s"):
        load_audio(tmp_path / "a.wav")
    with pytest.raises(BeamlessError, match=r"sample 8000, at 0\.500 s"):
        check_samples(samples)


def test_loud_float_files_are_not_clipped(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(1) * 1000, SAMPLE_RATE, subtype="FLOAT")
    assert_close(load_audio(tmp_path / "a.wav"), tone(1) * 1000, 1e-3)


# --- damage is reported with its place ------------------------------------------------------


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "mp3"])
def test_a_file_cut_in_half_gives_what_is_there_and_says_where_it_ends(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    soundfile.write(path, noisy(10), SAMPLE_RATE)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.warns(AudioWarning, match=r"a\.\w+: cut short.* [45]\.\d s"):
        found = load_audio(path)
    assert 4 < len(found) / SAMPLE_RATE < 6


def zero_the_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 3000] = bytes(3000)
    path.write_bytes(content)


def test_damage_in_the_middle_of_a_flac_does_not_lose_the_rest_or_shift_it(tmp_path):
    path = tmp_path / "a.flac"
    soundfile.write(path, noisy(10), SAMPLE_RATE)
    zero_the_middle(path)
    with pytest.warns(AudioWarning, match=r"a\.flac: damaged at [45]\.\d s"):
        found = load_audio(path)
    assert_close(found[-3 * SAMPLE_RATE :], noisy(10)[-3 * SAMPLE_RATE :], 1e-3)
    assert len(found) == 10 * SAMPLE_RATE


@pytest.mark.filterwarnings("ignore:.*cut short or damaged")
def test_damage_in_the_middle_of_an_mp3_loses_only_the_damaged_part(tmp_path):
    path = tmp_path / "a.mp3"
    soundfile.write(
        path, noisy(10) * np.repeat([1, 2], [9 * SAMPLE_RATE, SAMPLE_RATE]), SAMPLE_RATE
    )
    zero_the_middle(path)
    with pytest.warns(AudioWarning, match=r"a\.mp3: damaged at [45]\.\d s"):
        found = load_audio(path)
    assert 9 < len(found) / SAMPLE_RATE <= 10
    loudness = [found[part].std() for part in (slice(SAMPLE_RATE), slice(-SAMPLE_RATE // 2, None))]
    assert loudness[1] / loudness[0] == pytest.approx(2, abs=0.3)


@pytest.mark.parametrize("length", [0, 0xFFFFFFFF, 0x7FFFFFFF])
def test_a_wav_from_a_pipe_has_no_length_and_no_damage(tmp_path, length):
    path = tmp_path / "a.wav"
    soundfile.write(path, tone(1), SAMPLE_RATE, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    content[40:44] = struct.pack("<I", length)
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AudioWarning)
        found = load_audio(path)
    assert len(found) in ((0, SAMPLE_RATE) if length == 0 else (SAMPLE_RATE,))


@pytest.mark.parametrize("kind", ["wav", "flac", "ogg", "mp3"])
def test_a_whole_file_brings_no_warning(tmp_path, kind):
    soundfile.write(tmp_path / f"a.{kind}", noisy(3), SAMPLE_RATE)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AudioWarning)
        load_audio(tmp_path / f"a.{kind}")


# --- channels -------------------------------------------------------------------------------


def test_stereo_whose_channels_cancel_is_noticed(tmp_path):
    left = noisy(3)
    left[:SAMPLE_RATE] = 0
    soundfile.write(tmp_path / "a.wav", np.stack([left, -left], axis=1), SAMPLE_RATE, "FLOAT")
    with pytest.warns(AudioWarning, match="channels cancel each other from 1 s"):
        found = load_audio(tmp_path / "a.wav")
    assert_close(found, left, 1e-6)


def test_ordinary_stereo_brings_no_warning(tmp_path):
    both = np.stack([noisy(2), noisy(2)[::-1]], axis=1)
    soundfile.write(tmp_path / "a.wav", both, SAMPLE_RATE, "FLOAT")
    with warnings.catch_warnings():
        warnings.simplefilter("error", AudioWarning)
        assert_close(load_audio(tmp_path / "a.wav"), both.mean(axis=1), 1e-6)


def test_two_channels_can_be_read_apart(tmp_path):
    left, right = tone(2, 44100), tone(2, 44100, 700)
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), 44100, "FLOAT")
    found = load_channels(tmp_path / "a.wav")
    assert len(found) == 2
    assert_close(found[0], tone(2), 1e-3)
    assert_close(found[1], tone(2, hertz=700), 1e-3)


# --- streams --------------------------------------------------------------------------------


def test_blocks_joined_are_the_whole_file(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(5.3, 44100), 44100, subtype="FLOAT")
    blocks = list(audio_blocks(tmp_path / "a.wav", 1.0))
    assert [len(block) for block in blocks[:-1]] == [SAMPLE_RATE] * 5
    assert 0 < len(blocks[-1]) < SAMPLE_RATE
    np.testing.assert_array_equal(np.concatenate(blocks), load_audio(tmp_path / "a.wav"))


def test_audio_beyond_thirty_seconds_and_a_short_rest_are_not_lost(tmp_path):
    soundfile.write(tmp_path / "a.flac", tone(60.25, 8000), 8000)
    assert len(load_audio(tmp_path / "a.flac")) == round(60.25 * SAMPLE_RATE)
    lengths = [len(block) for block in audio_blocks(tmp_path / "a.flac", 30.0)]
    assert lengths == [30 * SAMPLE_RATE, 30 * SAMPLE_RATE, SAMPLE_RATE // 4]


def test_a_long_file_is_read_at_flat_memory(tmp_path):
    soundfile.write(tmp_path / "a.flac", np.zeros(600 * SAMPLE_RATE, np.float32), SAMPLE_RATE)
    tracemalloc.start()
    total = sum(len(block) for block in audio_blocks(tmp_path / "a.flac", 30.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 600 * SAMPLE_RATE
    assert peak < 12e6  # the whole would be 38 MB


# --- samples from Python --------------------------------------------------------------------


def test_samples_of_every_wav_type_are_scaled():
    wanted = tone(1)
    for kind, peak in ((np.int16, 32767), (np.int32, 2147483000)):
        assert_close(check_samples((wanted * peak).astype(kind), SAMPLE_RATE), wanted, 1e-3)
    assert_close(check_samples((wanted * 127 + 128).astype(np.uint8), SAMPLE_RATE), wanted, 2e-2)
    assert_close(check_samples(wanted.astype(np.float64), SAMPLE_RATE), wanted, 1e-6)


def test_stereo_samples_of_either_order_and_any_rate_are_taken():
    left, right = tone(1, 44100), tone(1, 44100) * 0.5
    for stereo in (np.stack([left, right], axis=1), np.stack([left, right])):
        assert_close(check_samples(stereo, 44100), tone(1) * 0.75, 1e-3)


EMPTY = [np.zeros((0, 16000), np.float32), np.zeros((16000, 0), np.float32)]  # no channel


def test_samples_that_are_no_audio_are_refused():
    for wrong in (np.zeros((2, 3, 4)), np.zeros(()), np.zeros((20, 20)), np.array(["a"]), *EMPTY):
        with pytest.raises(BeamlessError, match="samples"):
            check_samples(wrong, SAMPLE_RATE)
    with pytest.raises(BeamlessError, match="rate"):
        check_samples(tone(1), 0)
    assert check_samples(np.zeros(0, np.float32), SAMPLE_RATE).shape == (0,)
