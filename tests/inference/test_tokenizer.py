"""Prompts as ids, and ids as text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.errors import BeamlessError
from beamless.inference.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def english(tiny):
    return Tokenizer(tiny.tokenizer_json, tiny.sizes.vocabulary)


@pytest.fixture(scope="session")
def multilingual(base):
    return Tokenizer(base.tokenizer_json, base.sizes.vocabulary)


def test_fault_05_the_multilingual_prompt_has_all_four_tokens(multilingual):
    assert multilingual.prompt() == (50258, 50259, 50359, 50363)


def test_the_english_only_prompt_has_two_tokens(english):
    assert english.prompt() == (50257, 50362)


def test_fault_05_start_and_end_are_two_tokens(english, multilingual):
    assert (english.start, english.end) == (50257, 50256)
    assert (multilingual.start, multilingual.end) == (50258, 50257)


def test_language_and_task_are_the_tokens_of_their_names(multilingual):
    assert multilingual.prompt("sv", "translate") == (50258, 50273, 50358, 50363)
    assert len(multilingual.languages) == 99
    assert multilingual.languages["en"] == 50259


def test_with_timestamps_the_prompt_does_not_forbid_them(english, multilingual):
    assert english.prompt(timestamps=True) == (50257,)
    assert multilingual.prompt(timestamps=True) == (50258, 50259, 50359)
    assert multilingual.timestamp_begin == 50364


def test_fault_04_previous_text_stands_before_the_start_token(english, multilingual):
    for tokenizer in (english, multilingual):
        before = tokenizer.encode(" And so it was.")
        prompt = tokenizer.prompt(previous=before)
        assert prompt[0] == tokenizer.previous
        assert list(prompt[1 : 1 + len(before)]) == before
        assert prompt[1 + len(before) :] == tokenizer.prompt()


@pytest.mark.parametrize("language", ["xx", "", "English", "EN"])
def test_an_unknown_language_is_refused_with_the_list(multilingual, language):
    with pytest.raises(BeamlessError, match="known are: en zh de") as caught:
        multilingual.prompt(language)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("language", "task"), [("sv", "transcribe"), ("en", "translate")])
def test_an_english_only_model_does_english_only(english, language, task):
    with pytest.raises(BeamlessError, match="take a multilingual one"):
        english.prompt(language, task)


def test_an_unknown_task_is_refused(english, multilingual):
    for tokenizer in (english, multilingual):
        with pytest.raises(BeamlessError, match="no task 'summarise'"):
            tokenizer.prompt(task="summarise")


def test_a_tokenizer_of_another_model_is_refused(tiny):
    content = json.loads(tiny.tokenizer_json)
    content["added_tokens"] = []
    with pytest.raises(BeamlessError, match="it is not a Whisper's"):
        Tokenizer(json.dumps(content), 51864)


@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40))
def test_fault_17_text_comes_back_with_every_space_and_no_special_token(english, text):
    tokens = english.encode(text)
    assert all(token < english.end for token in tokens)
    assert english.decode(tokens) == text


@pytest.mark.parametrize(
    "text", ["<|endoftext|>", "<|startofprev|>", "<|notimestamps|>", "<|0.00|>"]
)
def test_a_special_tokens_name_in_a_text_is_no_special_token(english, multilingual, text):
    for tokenizer in (english, multilingual):
        assert all(token < tokenizer.end for token in tokenizer.encode(f" Say {text} now"))


@given(cut=st.integers(0, 9))
def test_fault_17_slices_of_ids_join_without_losing_a_space(english, cut):
    text = " All go home, all go very very good."
    tokens = english.encode(text)
    assert english.decode(tokens[:cut]) + english.decode(tokens[cut:]) == text


def test_special_tokens_and_times_are_no_text(multilingual):
    words = multilingual.encode(" Two words")
    first, second = multilingual.timestamp_begin, multilingual.timestamp_begin + 50
    tokens = [*multilingual.prompt(), first, *words, second, multilingual.end]
    assert multilingual.decode(tokens) == " Two words"


def test_a_character_spread_over_tokens_comes_back_whole(multilingual):
    text = "你好，世界。日本語の仮名"
    tokens = multilingual.encode(text)
    assert len(tokens) > len(text) // 2
    assert multilingual.decode(tokens) == text
    assert "�" not in multilingual.decode(tokens)
