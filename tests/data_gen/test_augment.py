"""Augmentation: seeded, recorded, true to its settings, and never beyond 30 s or full scale."""

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beamless.data_gen import augment
from beamless.data_gen.augment import Join, augmented, load_recipe
from beamless.data_gen.augment_steps import STEPS
from beamless.data_gen.augmented_copy import augmented_copy
from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.importers import import_corpus
from beamless.data_gen.importers.joining import Unit, units
from beamless.data_gen.importers.recording import Recording
from beamless.inference.errors import BeamlessError

pytest.importorskip("audiomentations", reason="the extra augment is not installed")
RATE = 16_000
ALL = """
seed: 7
steps:
  - speed
  - pitch: {semitones: [-1, 1]}
  - silence
  - room
  - noise: {folder: noise, snr: [5, 20]}
  - hiss
  - gain
  - clipping
  - telephone
  - codec
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, corpora):
    """A folder of recipes with a folder of noises beside them."""
    folder = tmp_path_factory.mktemp("recipes")
    noise = np.random.default_rng(0).normal(size=RATE).astype(np.float32)
    corpora.store(folder / "noise" / "hiss.wav", 0.1 * noise)
    corpora.store(folder / "noise" / "deep" / "hum.flac", corpora.tone(3.0, 100))
    return folder


@pytest.fixture(scope="module")
def recipe(folder):
    """Make a recipe of a text."""

    def make(text):
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.yaml"
        path.write_text(text, encoding="utf-8")
        return load_recipe(path)

    return make


def one(recipe, step):
    return recipe(f"steps: [{{{step}}}]")


def rms(samples):
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


def spectrum(samples, low, high):
    power = np.abs(np.fft.rfft(samples)) ** 2
    pitch = np.fft.rfftfreq(len(samples), 1 / RATE)
    return power[(pitch >= low) & (pitch < high)].sum() / power.sum()


# Seeds


def test_an_utterance_becomes_the_same_alone_and_in_any_order(recipe, corpora):
    every, samples = recipe(ALL), corpora.tone(0.5)
    first = [augmented(samples, RATE, every, id) for id in ("a", "b", "c")]
    again = [augmented(samples, RATE, every, id) for id in ("c", "b", "a")][::-1]
    for (one_way, record), (other_way, same) in zip(first, again, strict=True):
        assert np.array_equal(one_way, other_way)
        assert record == same
    assert first[0][1] != first[1][1]


def test_another_seed_gives_another_result(recipe, corpora):
    _, first = augmented(corpora.tone(), RATE, recipe(ALL), "a")
    _, other = augmented(corpora.tone(), RATE, recipe(ALL.replace("7", "8", 1)), "a")
    assert first != other


def test_another_process_gives_the_same_samples(folder, recipe, corpora):
    samples, _ = augmented(corpora.tone(0.5), RATE, recipe(ALL), "a")
    (folder / "same.yaml").write_text(ALL, encoding="utf-8")
    code = """
import sys, hashlib, pathlib, numpy as np
from beamless.data_gen.augment import augmented, load_recipe
times = np.arange(8000) / 16000
tone = (0.3 * np.sin(2 * np.pi * 440 * times)).astype(np.float32)
samples, _ = augmented(tone, 16000, load_recipe(pathlib.Path(sys.argv[1])), "a")
print(hashlib.sha256(samples.tobytes()).hexdigest())
"""
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder / "same.yaml")]
    heard = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert heard == hashlib.sha256(samples.tobytes()).hexdigest()


def test_the_global_random_generators_are_left_alone(recipe, corpora):
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    augmented(corpora.tone(), RATE, recipe(ALL), "a")
    assert (random.random(), np.random.random()) == expected


def test_a_step_is_taken_as_often_as_its_probability_says(recipe, corpora):
    half = one(recipe, "gain: {p: 0.5, db: -3}")
    samples = corpora.tone(0.01)
    taken = sum(bool(augmented(samples, RATE, half, str(n))[1]) for n in range(400))
    assert taken == pytest.approx(200, abs=45)
    assert not augmented(samples, RATE, one(recipe, "gain: {p: 0}"), "a")[1]


# Steps


@settings(max_examples=25)
@given(st.integers(0, 3000), st.floats(0.001, 3.0), st.sampled_from(sorted(STEPS)), st.text())
def test_every_step_keeps_samples_finite_mono_and_within_full_scale(
    recipe, corpora, length, loudness, name, id
):
    setting = "{folder: noise}" if name == "noise" else "{}"
    samples = corpora.tone(length / RATE, loudness=loudness)
    changed, record = augmented(samples, RATE, one(recipe, f"{name}: {setting}"), id)
    assert changed.dtype == np.float32
    assert changed.ndim == 1
    assert np.isfinite(changed).all()
    assert np.abs(changed).max(initial=0.0) <= 1.0
    assert set(record) <= {name}
    if name not in ("speed", "silence"):
        assert len(changed) == length


def test_speed_changes_the_length_and_not_the_pitch(recipe, corpora):
    faster, record = augmented(corpora.tone(1.0), RATE, one(recipe, "speed: {rate: 1.25}"), "a")
    assert len(faster) == pytest.approx(RATE / 1.25, abs=2)
    assert record == {"speed": {"rate": 1.25}}
    assert spectrum(faster, 420, 460) > 0.9


def test_pitch_shifts_and_keeps_the_length(recipe, corpora):
    higher, record = augmented(corpora.tone(1.0), RATE, one(recipe, "pitch: {semitones: 12}"), "a")
    assert record == {"pitch": {"semitones": 12.0}}
    assert len(higher) == RATE
    assert spectrum(higher, 840, 920) > 0.9


def test_noise_is_mixed_at_the_ratio_that_is_recorded(recipe, corpora):
    samples = corpora.tone(1.0)
    noisy, record = augmented(samples, RATE, one(recipe, "noise: {folder: noise, snr: 10}"), "a")
    assert record["noise"]["file"] in ("hiss.wav", "deep/hum.flac")
    assert 20 * np.log10(rms(samples) / rms(noisy - samples)) == pytest.approx(10, abs=0.2)


def test_a_noise_shorter_than_the_speech_is_repeated(recipe, corpora):
    samples = corpora.tone(5.0)
    mixed, _ = augmented(samples, RATE, one(recipe, "noise: {folder: noise, snr: 0}"), "a")
    assert rms((mixed - samples)[-RATE:]) > 0.1 * rms(samples)


@pytest.mark.parametrize(("slope", "low_share"), [(-6, 0.9), (0, 0.3)])
def test_hiss_has_the_ratio_and_the_slope_that_are_recorded(recipe, corpora, slope, low_share):
    samples = corpora.tone(1.0)
    step = one(recipe, f"hiss: {{snr: 10, slope: {slope}}}")
    noisy, record = augmented(samples, RATE, step, "a")
    assert record == {"hiss": {"snr": 10.0, "slope": float(slope)}}
    assert 20 * np.log10(rms(samples) / rms(noisy - samples)) == pytest.approx(10, abs=0.2)
    assert (spectrum(noisy - samples, 0, 2000) > low_share) == (slope < 0)


def test_silence_gets_no_noise_since_it_has_no_loudness(recipe):
    nothing = np.zeros(RATE, np.float32)
    for step in ("noise: {folder: noise}", "hiss: {}"):
        changed, record = augmented(nothing, RATE, one(recipe, step), "a")
        assert not changed.any()
        assert record == {}


def test_a_room_adds_a_tail_and_keeps_the_loudness(recipe, corpora):
    burst = np.concatenate([corpora.tone(0.2), np.zeros(RATE // 2, np.float32)])
    room = one(recipe, "room: {rt60: 0.5, distance: 1}")
    heard, record = augmented(burst, RATE, room, "a")
    assert record["room"]["rt60"] == 0.5
    assert len(record["room"]["size"]) == 3
    assert rms(heard[4000:6000]) > 1e-3
    assert rms(heard) == pytest.approx(rms(burst), rel=0.01)


def test_gain_clips_what_passes_full_scale_and_says_how_much(recipe, corpora):
    loud, record = augmented(corpora.tone(), RATE, one(recipe, "gain: {db: 20}"), "a")
    assert np.abs(loud).max() == 1.0
    assert record["gain"]["clipped"] == pytest.approx(np.mean(np.abs(loud) == 1.0), abs=0.01)
    soft, record = augmented(corpora.tone(), RATE, one(recipe, "gain: {db: -20}"), "a")
    assert rms(soft) == pytest.approx(rms(corpora.tone()) / 10, rel=0.01)
    assert record["gain"] == {"db": -20.0, "clipped": 0.0}


def test_clipping_flattens_the_top(recipe, corpora):
    flat, _ = augmented(corpora.tone(), RATE, one(recipe, "clipping: {percent: 20}"), "a")
    assert np.mean(np.abs(flat) >= 0.999 * np.abs(flat).max()) > 0.15


def test_a_telephone_passes_its_band_only(recipe, corpora):
    def share(pitch):
        samples = corpora.tone(0.5, pitch)
        heard, _ = augmented(samples, RATE, one(recipe, "telephone: {}"), "a")
        return rms(heard) / rms(samples)

    assert share(1000) > 0.7
    assert share(60) < 0.1
    assert share(6000) < 0.1


@pytest.mark.parametrize("codec", ["mp3", "opus", "gsm"])
def test_a_codec_loses_something_and_moves_nothing(recipe, corpora, codec):
    samples = corpora.tone(0.5) * np.hanning(8000).astype(np.float32)
    coder = one(recipe, f"codec: {{codecs: {codec}, strength: 0.9}}")
    heard, record = augmented(samples, RATE, coder, "a")
    assert record["codec"]["codec"] == codec
    assert 0 < rms(heard - samples) < 0.3 * rms(samples)


def test_silence_is_put_before_and_after_and_recorded(recipe, corpora):
    quiet = one(recipe, "silence: {before: 0.5, after: 0.25}")
    padded, record = augmented(corpora.tone(1.0), RATE, quiet, "a")
    assert record == {"silence": {"before": 0.5, "after": 0.25}}
    assert len(padded) == round(1.75 * RATE)
    assert not padded[: RATE // 2].any()
    assert not padded[-RATE // 4 :].any()


def test_nothing_grows_beyond_thirty_seconds(recipe, corpora):
    long = corpora.tone(29.5)
    padded, record = augmented(long, RATE, one(recipe, "silence: {before: 0.4, after: 9}"), "a")
    assert len(padded) == 30 * RATE
    assert record["silence"] == {"before": 0.4, "after": 0.1}
    slower, record = augmented(long, RATE, one(recipe, "speed: {rate: 0.8}"), "a")
    assert len(slower) == len(long)
    assert record == {}


def test_a_copy_of_a_corpus_is_augmented_under_the_same_ids(folder, recipe, corpora, tmp_path):
    (tmp_path / "said").mkdir()
    rows = []
    for name in ("a", "b"):
        corpora.store(tmp_path / "said" / f"{name}.wav", corpora.tone(0.5))
        rows.append({"id": name, "file_name": f"{name}.wav", "text": name, "term": "A"})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "said" / "metadata.jsonl").write_text(lines, encoding="utf-8")
    silent = one(recipe, "silence: {before: 0.5, after: 0}")
    augmented_copy(tmp_path / "said", tmp_path / "copy", silent)
    copies = read_corpus(tmp_path / "copy")
    assert [(u.id, u.text, u.extra["term"]) for u in copies] == [("a", "a", "A"), ("b", "b", "A")]
    assert all(u.augment == {"silence": {"before": 0.5, "after": 0.0}} for u in copies)
    assert [u.duration for u in copies] == [1.0, 1.0]
    made = {p: p.stat().st_mtime_ns for p in (tmp_path / "copy").rglob("*.flac")}
    augmented_copy(tmp_path / "said", tmp_path / "copy", silent)
    assert made == {p: p.stat().st_mtime_ns for p in (tmp_path / "copy").rglob("*.flac")}


# Recipes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: [echo]", "there is no step 'echo'; there are speed, pitch"),
        ("steps: [gain: {loud: 3}]", "gain: there is no setting 'loud'"),
        ("steps: [gain: {db: loud}]", "gain: db is a number or [least, most]"),
        ("steps: [gain: {db: [3, 1]}]", "gain: db is a number or [least, most]"),
        ("steps: [gain: {db: .nan}]", "gain: db is a number"),
        ("steps: [gain: {db: 900}]", "gain: db must be from -60.0 to 40.0"),
        ("steps: [gain: {p: 1.5}]", "gain: p is a probability from 0 to 1"),
        ("steps: [gain: {p: [0, 1]}]", "gain: p is a probability from 0 to 1"),
        ("steps: [gain: 3]", "gain: settings were expected"),
        ("steps: [noise]", "noise: the setting 'folder' is missing"),
        ("steps: [noise: {folder: none}]", "holds no sound"),
        ("steps: [codec: {codecs: [aac]}]", "codecs are mp3, opus, gsm"),
        ("steps: [gain, gain]", "the step gain stands there twice"),
        ("steps: [{gain: {}, speed: {}}]", "one step a list entry, not gain, speed"),
        ("steps: gain", "steps must be a list"),
        ("join: {seconds: [5, 60]}", "join: seconds must be from 0 to 30"),
        ("seed: one\nsteps: [gain]", "the seed must be a whole number"),
        ("stages: [gain]", "'stages' is not seed, steps or join"),
        ("seed: 3", "there are neither steps nor join"),
        ("- gain", "must hold 'name: value' entries"),
        ("steps: [", "is not YAML"),
    ],
)
def test_a_recipe_that_is_wrong_says_what_and_what_there_is(recipe, text, said):
    with pytest.raises(BeamlessError) as fault:
        recipe(text)
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_recipe_that_is_missing_says_so(tmp_path):
    with pytest.raises(BeamlessError, match="there is no recipe"):
        load_recipe(tmp_path / "none.yaml")


def test_without_the_extra_the_message_names_it(recipe, corpora, monkeypatch):
    monkeypatch.setitem(sys.modules, "audiomentations", None)
    with pytest.raises(BeamlessError, match=r'pip install "beamless\[augment\]"'):
        augmented(corpora.tone(), RATE, one(recipe, "gain: {}"), "a")


def test_the_recipe_that_is_shipped_can_be_read_and_names_every_step():
    path = Path(augment.__file__).with_name("augment.yaml")
    shipped = load_recipe(path)
    assert shipped.join
    named = {name for name, _ in shipped.steps} | {"noise", "hiss"}
    assert named == set(STEPS)
    assert "- noise: {p: 0.5, folder: noise" in path.read_text(encoding="utf-8")


# Joining


def recordings(folder, corpora, speakers, seconds=1.0):
    path = corpora.store(folder / "a.wav", corpora.tone(seconds))
    return [Recording(f"u{n}", path, f"t{n}", speaker=who) for n, who in enumerate(speakers)]


def test_utterances_of_one_speaker_are_joined_in_order_with_gaps(tmp_path, corpora):
    listed = recordings(tmp_path, corpora, "aaabbc")
    made = list(units(listed, Join(seconds=(30, 30), gap=(0.5, 0.5)), 0, lambda _: "", {}))
    assert [unit.id for unit in made] == ["u0+2", "u3+1", "u5"]
    assert made[0].text == "t0 t1 t2"
    samples = made[0].samples()
    assert len(samples) == round((3 + 2 * 0.5) * RATE)
    assert not samples[RATE : round(1.5 * RATE)].any()
    assert rms(samples[:RATE]) == pytest.approx(rms(samples[-RATE:]), rel=1e-6)


@settings(max_examples=30)
@given(st.text("ab", max_size=12), st.integers(0, 99), st.floats(0, 1))
def test_joining_loses_repeats_and_reorders_nothing_and_stays_within_its_length(
    folder, corpora, speakers, seed, p
):
    listed = recordings(folder, corpora, speakers)
    made = list(units(listed, Join(p=p, seconds=(2, 4), gap=(0.1, 0.3)), seed, lambda _: "", {}))
    assert [recording for unit in made for recording in unit.recordings] == listed
    assert len({unit.id for unit in made}) == len(made)
    for unit in made:
        assert len({recording.speaker for recording in unit.recordings}) == 1
        assert len(unit.recordings) + sum(unit.gaps) <= 4


def test_joined_utterances_keep_what_holds_for_all_and_how_each_was_said():
    facts = {"spoken": "five dollars", "speed": 1.0, "part": "a"}, {"spoken": "", "part": "a"}
    more = {"spoken": "six", "speed": 1.1, "part": "a"}
    units = [
        Unit(tuple(Recording("u", Path("x"), "t", extra=extra) for extra in pair))
        for pair in ((facts[0],), (facts[0], more), facts)
    ]
    alone, both, unsaid = (unit.extra for unit in units)
    assert alone == facts[0]
    assert both == {"spoken": "five dollars six", "part": "a"}
    assert unsaid == {"part": "a"}


@settings(max_examples=30)
@given(st.integers(0, 12), st.integers(0, 99), st.integers(0, 12))
def test_what_an_earlier_run_joined_is_not_said_again(count, seed, stored):
    said = []

    def line(number):
        def say():
            said.append(number)
            return np.zeros(RATE, np.float32)

        return Recording(f"u{number}", say, "t", fault="mute" if number % 5 == 4 else "")

    lines = [line(number) for number in range(count)]
    join = Join(p=0.7, seconds=(2, 4), gap=(0.1, 0.3))
    whole = [u for u in units(lines, join, seed, lambda _: "", {}) if not u.recordings[0].fault]
    said.clear()
    done = {unit.recordings[0].id: len(unit.recordings) for unit in whole[:stored]}
    rest = list(units(lines, join, seed, lambda _: "", done))
    assert [unit for unit in rest if not unit.recordings[0].fault] == whole[stored:]
    assert set(said) == {int(r.id[1:]) for unit in whole[stored:] for r in unit.recordings}


def test_what_stands_on_different_sides_is_not_joined(tmp_path, corpora):
    listed = recordings(tmp_path, corpora, "aaaa")
    made = units(listed, Join(), 0, lambda recording: recording.id[-1] in "01", {})
    assert [unit.id for unit in made] == ["u0+1", "u2+1"]


# Stored


def test_what_was_done_is_written_in_the_manifest_and_a_second_run_is_identical(
    tmp_path, folder, corpora
):
    rows = [{"speaker": "ann", "text": f"t{n}", "duration": 1.0} for n in range(4)]
    corpora.write(tmp_path / "in", rows)
    path = folder / "stored.yaml"
    path.write_text("join: {p: 0.5, seconds: [2, 3]}" + ALL, encoding="utf-8")
    for name in ("one", "two"):
        import_corpus("corpus", str(tmp_path / "in"), tmp_path / name, augment=path)
    utterances = read_corpus(tmp_path / "one")
    said = " ".join(utterance.text for utterance in utterances)
    assert said == "t0 t1 t2 t3"
    assert all({"speed", "noise", "codec"} <= set(u.augment) for u in utterances)
    joined = [u for u in utterances if "joined" in u.augment]
    assert all(len(u.augment["joined"]["parts"]) == len(u.text.split()) for u in joined)
    for pair in zip(utterances, read_corpus(tmp_path / "two"), strict=True):
        assert pair[0].audio.read_bytes() == pair[1].audio.read_bytes()
        assert pair[0].augment == pair[1].augment


def test_a_joined_recording_that_is_damaged_does_not_take_the_others_with_it(
    tmp_path, folder, corpora
):
    folder_in = corpora.write(tmp_path / "in", [{"speaker": "ann", "duration": 1.0}] * 3)
    early = folder_in / "audio" / "u1.flac"
    early.write_bytes(early.read_bytes()[:-4000])
    path = folder / "join.yaml"
    path.write_text("join: {}", encoding="utf-8")
    for _ in range(2):
        import_corpus("corpus", str(folder_in), tmp_path / "out", augment=path)
        assert [u.id for u in read_corpus(tmp_path / "out")] == ["u0", "u2"]
    refused = corpora.marker_of(tmp_path / "out")["refused"]
    assert refused == {"audio that is damaged or cut short": 1}


def test_an_earlier_augmentation_is_kept_beside_the_new_one(tmp_path, folder, corpora):
    corpora.write(tmp_path / "in", [{"augment": {"gain": {"db": 3.0}}}])
    path = folder / "again.yaml"
    path.write_text("steps: [gain: {db: -3}]", encoding="utf-8")
    import_corpus("corpus", str(tmp_path / "in"), tmp_path / "out", augment=path)
    [utterance] = read_corpus(tmp_path / "out")
    assert utterance.augment["earlier"] == {"gain": {"db": 3.0}}
    assert utterance.augment["gain"]["db"] == -3.0
