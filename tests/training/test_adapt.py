"""Who learns and who judges: speakers of one side are never on the other."""

from types import SimpleNamespace

import pytest

from beamless.data_gen.casting import Cast, Role
from beamless.training.adapt import set_aside


def voice(name, *speakers):
    return SimpleNamespace(name=name, speakers=speakers)


def speakers_of(cast):
    return {(role.voice.name, s) for role in cast.roles for s in role.speakers}


def test_a_single_speaker_cannot_be_set_aside():
    cast = Cast((Role(voice("joe", "0")),))
    assert set_aside(cast) == (cast, None)


@pytest.mark.parametrize("count", [2, 9, 40])
def test_a_fifth_of_the_speakers_judges_and_no_other(count):
    cast = Cast((Role(voice("v", *map(str, range(count)))), Role(voice("joe", "0"))))
    learning, judging = set_aside(cast)
    assert judging is not None
    assert not speakers_of(learning) & speakers_of(judging)
    assert len(speakers_of(learning) | speakers_of(judging)) == count + 1
    assert len(speakers_of(judging)) == max(1, (count + 1) // 5)


def test_a_voice_that_is_set_aside_whole_says_nothing_to_learn_from():
    cast = Cast((Role(voice("a", "0")), Role(voice("b", "0"))))
    learning, judging = set_aside(cast)
    assert len(learning.roles) == len(judging.roles) == 1
