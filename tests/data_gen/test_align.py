"""Cutting a long recording by what was heard: sure stretches are right, doubtful ones left out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.data_gen.align import UNSURE, Heard, cut_text, recall
from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.importers import import_corpus

WORDS = st.sampled_from(["the", "a", "boat", "sails", "over", "quiet", "water", "nobody", "sees"])
PARTS = st.lists(st.lists(WORDS, min_size=1, max_size=8), min_size=1, max_size=6)


def windows(*texts):
    return [Heard(10.0 * n, 10.0 * n + 8.0, text) for n, text in enumerate(texts)]


def texts_of(text, *heard):
    return [stretch.text for stretch in cut_text(text, windows(*heard))]


def faults_of(text, *heard):
    return [stretch.fault for stretch in cut_text(text, windows(*heard))]


@given(PARTS)
def test_what_is_heard_word_for_word_is_cut_where_the_windows_are(parts):
    written = [" ".join(part) for part in parts]
    assert texts_of(" ".join(written), *written) == written


@given(PARTS, PARTS)
def test_whatever_is_heard_stretches_are_disjoint_parts_of_the_text_in_order(parts, heard):
    text = " ".join(f"{word}{n}" for n, part in enumerate(parts) for word in part)
    mixed = [" ".join(f"{word}{n % 3}" for n, word in enumerate(part)) for part in heard]
    stretches = cut_text(text, windows(*mixed))
    place = 0
    for stretch in stretches:
        if not stretch.fault:
            place = text.index(stretch.text, place) + len(stretch.text)
    assert 0.0 <= recall(stretches, text)[0] <= 1.0


def test_text_keeps_its_case_punctuation_and_numbers():
    text = 'In 1455, Mr. O\'Neil - the printer - said: "No!" Then forty-two Bibles came.'
    heard = ("in 1455 Mister ONeil the printer said no", "Then forty two bibles came.")
    assert texts_of(text, *heard) == [
        'In 1455, Mr. O\'Neil - the printer - said: "No!"',
        "Then forty-two Bibles came.",
    ]


def test_a_misheard_word_at_a_border_stays_on_its_side():
    text = "the printer was Jenson however he came from Rome"
    heard = ("the printer was Jensen", "however he came from Roam")
    assert texts_of(text, *heard) == ["the printer was Jenson", "however he came from Rome"]


def test_words_nobody_heard_between_two_windows_make_both_doubtful():
    text = "one two three four LOST WORDS five six seven eight nine ten eleven twelve"
    heard = ("one two three four", "five six seven eight", "nine ten eleven twelve")
    assert faults_of(text, *heard)[:2] == [UNSURE] * 2
    assert texts_of(text, *heard)[2] == "nine ten eleven twelve"


def test_words_misheard_on_both_sides_of_a_border_in_another_number_are_doubtful():
    text = "one two three x y z four five six"
    assert faults_of(text, "one two three p", "q four five six") == [UNSURE] * 2


def test_a_border_inside_a_written_word_is_doubtful():
    assert set(faults_of("we saw forty-two birds", "we saw forty", "two birds")) == {UNSURE}


def test_speech_that_is_not_in_the_text_is_left_out():
    text = "one two three four five six seven eight"
    heard = ("this is a free recording by volunteers", "one two three four five six seven eight")
    more = (*heard, "and the rest of it is said here")
    faults = faults_of(f"{text} and the rest of it is said here", *more)
    assert faults == [UNSURE, UNSURE, ""]


def test_a_window_without_words_is_left_out_and_disturbs_nothing():
    stretches = cut_text("one two three four", windows("one two", " ... ", "three four"))
    assert [stretch.fault for stretch in stretches] == ["", "no words heard", ""]


def test_what_is_heard_too_differently_is_left_out_with_its_error():
    text = "a boat sails over quiet water"
    [kept] = cut_text(text, windows("a goat fails under quiet water"), bound=0.5)
    [left] = cut_text(text, windows("a goat fails under quiet water"), bound=0.4)
    assert kept.wer == left.wer == 0.5
    assert (kept.fault, left.fault) == ("", "heard differently than it is written")


def test_recall_counts_placed_words_and_the_errors_among_them():
    text = "a boat sails over quiet water and nobody sees it"
    stretches = cut_text(text, windows("a boat sails over", "quiet water and nobody seize it"))
    assert recall(stretches, text) == (1.0, pytest.approx(0.1, abs=1e-3))
    assert recall(stretches[:1], text) == (0.4, 0.0)


def test_nothing_heard_and_nothing_written_cut_nothing():
    assert cut_text("", []) == []
    assert faults_of("one two") == []
    assert faults_of("", "one two") == [UNSURE]


def test_a_long_recording_becomes_a_corpus_with_the_words_in_their_place(
    tmp_path, tiny_bundle, speech, other_speech, corpora
):
    pause = np.zeros(6 * 16_000, np.float32)
    talk = np.concatenate([pause, speech, pause, other_speech, pause])
    corpora.store(tmp_path / "talks" / "joe" / "talk.flac", talk)
    sentences = [
        "The quick brown fox jumps over the lazy dog.",
        "In short, the period was so far like the present period.",
    ]
    text = tmp_path / "talks" / "joe" / "talk.txt"
    text.write_text("\ufeff" + "\n".join(sentences), encoding="utf-8")
    model = str(tiny_bundle.folder)
    import_corpus("long", str(tmp_path / "talks"), tmp_path / "out", model=model)
    first, second = read_corpus(tmp_path / "out")
    assert [first.text, second.text] == sentences
    assert first.speaker == "joe"
    assert first.id.startswith("joe/talk-")
    seconds = len(speech) / 16_000
    assert seconds - 0.5 < first.duration < seconds + 1.0
    assert int(second.id.rsplit("-", 1)[1]) / 1000 == pytest.approx(12 + seconds, abs=0.6)
