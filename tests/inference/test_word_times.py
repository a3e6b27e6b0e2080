"""Words out of tokens, and their times out of attention."""

import string
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from beamless.inference.hypothesis import Hypothesis
from beamless.inference.segments import Place, segments_of
from beamless.inference.timestamps import TimedSlice
from beamless.inference.tokenizer import Tokenizer
from beamless.inference.word_times import (
    MEDIAN_WIDTH,
    cheapest_path,
    median_filter,
    spoken_interval,
    token_times,
    words_of,
)

TEXTS = st.text(
    st.sampled_from("ab é你好世界日本語🎉👩🏽 .,!?\"'(-" + string.digits), min_size=1, max_size=30
)


@pytest.fixture(scope="module")
def tokenizer(base):
    return Tokenizer(base.tokenizer_json, base.sizes.vocabulary)


def texts_of(words):
    return [word.text for word in words]


# --- words ----------------------------------------------------------------------------------


@given(TEXTS, st.sampled_from(["en", "zh"]), st.integers(0, 3))
def test_b20_words_joined_are_the_text_without_broken_characters(tokenizer, text, language, cut):
    tokens = tokenizer.encode(text)
    tokens = tokens[: len(tokens) - cut] if cut < len(tokens) else tokens
    words = words_of(tokens, tokenizer, language)
    assert "".join(texts_of(words)) == tokenizer.decode(tokens).replace("\ufffd", "")
    assert [w.first for w in words] == [0, *(w.stop for w in words)][:-1]
    assert words[-1].stop == len(tokens)
    assert all(w.first < w.stop and w.first <= w.spoken <= w.stop for w in words)


def test_words_are_parted_at_spaces(tokenizer):
    words = words_of(tokenizer.encode(" The extraordinary fox"), tokenizer, "en")
    assert texts_of(words) == [" The", " extraordinary", " fox"]


def test_b20_without_spaces_each_whole_character_is_a_word(tokenizer):
    text = "鬱陶しい。魑魅"  # rare characters: three tokens each
    assert len(tokenizer.encode(text)) > len(text)
    words = texts_of(words_of(tokenizer.encode(text), tokenizer, "ja"))
    assert words == ["鬱", "陶", "しい。", "魑", "魅"]


def test_punctuation_stands_with_its_word_and_takes_no_time(tokenizer):
    words = words_of(tokenizer.encode(' He said, "Go (now)!" Well.'), tokenizer, "en")
    assert texts_of(words) == [" He", " said,", ' "Go', ' (now)!"', " Well."]
    assert [w.stop - w.spoken for w in words][1] == 1


def test_a_hyphenated_word_and_a_contraction_are_one_word_each(tokenizer):
    words = words_of(tokenizer.encode(" It isn't well-known"), tokenizer, "en")
    assert texts_of(words)[:2] == [" It", " isn't"]


# --- times ----------------------------------------------------------------------------------


def all_ways(height, width):
    if (height, width) == (1, 1):
        yield [(0, 0)]
        return
    for back in ((1, 1), (1, 0), (0, 1)):
        if height - back[0] >= 1 and width - back[1] >= 1:
            for way in all_ways(height - back[0], width - back[1]):
                yield [*way, (height - 1, width - 1)]


@given(
    arrays.arrays(
        np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.integers(-9, 9)
    )
)
def test_the_path_is_the_cheapest_of_all(costs):
    rows, columns = cheapest_path(costs)
    way = list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert way in list(all_ways(*costs.shape))
    assert costs[rows, columns].sum() == min(
        sum(costs[cell] for cell in way) for way in all_ways(*costs.shape)
    )


@given(
    arrays.arrays(
        np.float32, st.tuples(st.integers(1, 2), st.integers(4, 20)), elements=st.integers(-9, 9)
    )
)
def test_the_median_filter_is_the_median_of_each_neighbourhood(values):
    half = MEDIAN_WIDTH // 2
    padded = np.pad(values, [(0, 0), (half, half)], mode="reflect")
    expected = [
        [np.median(row[at : at + MEDIAN_WIDTH]) for at in range(values.shape[1])] for row in padded
    ]
    np.testing.assert_array_equal(median_filter(values, MEDIAN_WIDTH), expected)


def test_tokens_begin_where_their_attention_does():
    """Four tokens and the end look at one stretch each, seen by two heads, a third sees nothing."""
    bounds = [0, 20, 50, 60, 90, 100]
    alignment = np.full((5, 3, 150), 1e-4, np.float32)
    for step, (first, last) in enumerate(pairwise(bounds)):
        alignment[step, :2, first:last] = 1.0
    times = token_times(alignment, seconds=2.0)
    np.testing.assert_allclose(times, np.array(bounds) * 0.02, atol=0.041)


@given(st.integers(1, 12), st.floats(0.001, 30), st.integers(0, 2**32 - 1))
def test_times_never_fall_and_stay_within_the_audio(steps, seconds, seed):
    alignment = np.random.default_rng(seed).random((steps, 2, 1500)).astype(np.float32)
    times = token_times(alignment, seconds)
    assert len(times) == steps + 1
    assert times[0] == 0 and np.all(np.diff(times) >= 0)
    assert times[-1] <= max(0.02, seconds + 0.01)


def test_a_word_keeps_to_the_speech_that_it_lies_in():
    speech = [(0.5, 2.0), (5.0, 6.0)]
    assert spoken_interval(1.0, 4.9, speech) == (1.0, 2.1)
    assert spoken_interval(2.0, 5.6, speech) == (4.9, 5.6)
    assert spoken_interval(3.0, 3.2, speech) == (3.0, 3.2)
    assert spoken_interval(3.0, 3.2, []) == (3.0, 3.2)


@settings(max_examples=30)
@given(TEXTS, st.floats(0.05, 30), st.integers(0, 2**32 - 1), st.sampled_from(["en", "ja"]))
@example("0 -'", 1.0, 0, "en")  # a closing mark behind an opening one
def test_b20_segments_hold_valid_text_their_words_joined_and_times_in_order(
    tokenizer, text, seconds, seed, language
):
    rng = np.random.default_rng(seed)
    begin = tokenizer.timestamp_begin
    ids = tokenizer.encode(text)
    tokens = (begin, *ids, begin + 40, begin + 40, *ids[::-1], begin + 1500)
    slices = [TimedSlice(0.0, 0.8, 0, len(ids) + 2)]
    slices += [TimedSlice(0.8, 30.0, len(ids) + 2, len(tokens))]
    hypothesis = Hypothesis(
        tokens,
        (-0.5,) * (len(tokens) + 1),
        "stop",
        0.0,
        9,
        alignment=rng.random((len(tokens) + 1, 2, 1500)).astype(np.float32),
    )
    place = Place(7.0, 7.0 + seconds, [(0.0, seconds)])
    found = segments_of(hypothesis, slices, place, tokenizer, language)
    words = [word for segment in found for word in segment.words]
    for segment in found:
        segment.text.encode("utf-8")
        assert segment.text and "\ufffd" not in segment.text
        assert "".join(word.text for word in segment.words) == segment.text
        assert (segment.start, segment.end) == (segment.words[0].start, segment.words[-1].end)
    assert all(7.0 <= w.start < w.end <= 7.0 + seconds for w in words)
    assert all(a.end <= b.start for a, b in pairwise(words))
    assert all(0 < w.probability <= 1 for w in words)
