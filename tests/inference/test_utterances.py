"""Utterances begin with speech, end with a pause, and lose no sound, however it comes."""

from itertools import pairwise

import numpy as np
import pytest

from beamless.inference.silero import CHUNK
from beamless.inference.utterances import PADDING, UtteranceFinder

SECOND = 16000


def silence(seconds):
    return np.zeros(round(seconds * SECOND), np.float32)


def found(samples, size=1600, pause=0.6, longest=25.0):
    finder = UtteranceFinder(pause, longest)
    ended = []
    for at in range(0, len(samples), size):
        ended += finder.feed(samples[at : at + size])
    return [*ended, *finder.finish()], finder


@pytest.fixture(scope="module")
def talk(speech, other_speech):
    return np.concatenate([silence(3), speech, silence(1.5), other_speech, silence(1.5)])


def test_each_sentence_is_one_utterance_at_its_place(talk, speech, other_speech):
    utterances, _ = found(talk)
    second = 3 + len(speech) / SECOND + 1.5
    assert len(utterances) == 2
    for utterance, start, length in zip(
        utterances, (3, second), (len(speech), len(other_speech)), strict=True
    ):
        assert start - 0.5 <= utterance.start <= start + 0.3
        assert start + length / SECOND - 0.5 <= utterance.end <= start + length / SECOND + 0.6
        np.testing.assert_array_equal(
            utterance.samples, talk[utterance.first :][: len(utterance.samples)]
        )


@pytest.mark.parametrize("size", [1, 700, 4000, 200_000])
def test_utterances_do_not_depend_on_how_sound_comes(speech, size):
    samples = np.concatenate([silence(0.5), speech, silence(1)])[: 2000 if size == 1 else None]
    wanted, given = found(samples)[0], found(samples, size)[0]
    assert [(u.first, len(u.samples)) for u in wanted] == [(u.first, len(u.samples)) for u in given]


def test_silence_and_noise_are_no_utterance_and_are_not_kept():
    noise = np.random.default_rng(0).normal(0, 0.003, 60 * SECOND).astype(np.float32)
    utterances, finder = found(noise)
    assert utterances == []
    assert sum(map(len, finder._kept)) <= (PADDING + 8) * CHUNK


def test_an_utterance_without_pause_is_cut_and_loses_nothing(speech):
    spoken = speech[np.abs(speech).cumsum() > 0.01]
    samples = np.tile(spoken[: 2 * SECOND], 6)
    utterances, _ = found(samples, longest=4.0)
    assert any(utterance.cut for utterance in utterances)
    assert not utterances[-1].cut
    for before, after in pairwise(utterances):
        assert len(before.samples) <= 4.2 * SECOND
        if before.cut:
            assert after.first == before.first + len(before.samples)


def test_sound_that_ends_within_a_word_ends_the_utterance(speech):
    utterances, finder = found(speech[: len(speech) // 2])
    assert len(utterances) == 1
    assert utterances[0].end <= finder.heard == len(speech) // 2 / SECOND
