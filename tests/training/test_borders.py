"""Times of long recordings are judged by where each utterance is known to lie."""

from pathlib import Path

import pytest

from beamless.training.bench.clips import Clip, Part, parts_of
from beamless.training.borders import compare, spoken


def test_utterances_lie_one_behind_the_other_with_a_second_in_between():
    clips = [Clip("a", Path("a"), "the fox", 2.0), Clip("b", Path("b"), "dog", 1.5)]
    assert parts_of(clips, [2.0, 1.5]) == (Part(0.0, 2.0, "the fox"), Part(3.0, 4.5, "dog"))


def test_each_word_said_has_the_borders_of_its_utterance():
    said = spoken([Part(0.0, 2.0, "The fox!"), Part(3.0, 4.0, "Dog.")])
    assert said == [("the", 0.0, 2.0), ("fox", 0.0, 2.0), ("dog", 3.0, 4.0)]


def test_a_word_counts_by_how_far_it_lies_outside_its_utterance_and_a_missed_one_not_at_all():
    said = spoken([Part(0.0, 2.0, "the fox"), Part(3.0, 4.0, "dog sleeps")])
    heard = [("the", 0.1, 0.5), ("box", 0.6, 1.0), ("dog", 2.7, 3.5), ("sleeps", 3.5, 4.2)]
    found = compare(said, heard)
    assert found.words == 3
    assert found.outside == pytest.approx((0.0, 0.3, 0.2))
