"""Options of a transcription: what they change, what they refuse, and how they are given."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.command_line import build_parser, load_command, regroup, run
from beamless.inference.errors import BeamlessError
from beamless.inference.longform import LongForm
from beamless.inference.options import DecodingOptions
from beamless.inference.prompt import previous_tokens, room_for_previous
from beamless.inference.transcribe import Transcriber
from beamless.inference.window_decoder import WindowDecoder, compression_ratio

PLAIN = DecodingOptions()
FOX = "quick brown fox jumps over the lazy dog"


@pytest.fixture(scope="module")
def decoder(tiny_bundle):
    return WindowDecoder(tiny_bundle, "greedy")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"temperatures": ()}, "one or more numbers"),
        ({"temperatures": (-0.1,)}, "from 0 on"),
        ({"repetition_penalty": 0.9}, "would reward repeats"),
        ({"eos_boost": -1}, "would forbid the end"),
        ({"alternatives": -1}, "0 or more"),
        ({"temperatures": 0.2}, "a list of numbers"),
        ({"temperatures": (float("inf"),)}, "--temperatures must be a number, not inf"),
        ({"eos_boost": float("nan")}, "--eos-boost must be a number, not nan"),
        ({"repetition_penalty": float("inf")}, "--repetition-penalty must be a number, not inf"),
        ({"tokens_a_second": float("inf")}, "--tokens-a-second must be a number, not inf"),
        ({"word_alternatives": 8, "word_times": True}, "0 to 7"),
        ({"word_alternatives": 2}, "ask for word times too"),
    ],
)
def test_options_without_sense_are_refused_in_one_line(wrong, message):
    with pytest.raises(BeamlessError, match=message):
        DecodingOptions(**wrong)


# --- the text before ------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)), st.integers(0, 12))
def test_fault_10_what_does_not_fit_is_cut_on_the_left(hotwords, text, room):
    kept = previous_tokens(hotwords, text, room)
    assert len(kept) == min(room, len(hotwords) + len(text))
    words = min(len(hotwords), room)
    assert kept[:words] == tuple(hotwords)[len(hotwords) - words :]
    assert kept[words:] == tuple(text)[len(text) - (len(kept) - words) :]


def test_the_text_before_leaves_two_thirds_of_the_capacity():
    assert room_for_previous(224) == 73
    assert room_for_previous(8) == 1


def fed(transcriber):
    decoder = transcriber._decoder._method.decoder
    return decoder.tokens[: decoder.position, 0].tolist()


def test_hotwords_stand_before_every_window_and_the_initial_prompt_before_the_first(
    tiny_bundle, speech
):
    options = DecodingOptions(initial_prompt="A fable.", hotwords="Zorro, Reineke")
    transcriber = Transcriber(tiny_bundle, method="greedy", options=options)
    tokenizer = tiny_bundle.tokenizer
    words, fable = tokenizer.encode(" Zorro, Reineke"), tokenizer.encode(" A fable.")
    starts = []
    for segment in transcriber.segments(np.concatenate([speech, np.zeros(160_000), speech])):
        assert "lazy dog" in segment.text and "fable" not in segment.text.lower()
        starts.append(fed(transcriber))
    assert starts[0][: len(words) + len(fable) + 1] == [tokenizer.previous, *words, *fable]
    assert starts[1][: len(words) + 2] == [tokenizer.previous, *words, tokenizer.start]


def test_previous_text_is_shown_to_the_next_window_if_asked_for(tiny_bundle, speech):
    options = DecodingOptions(previous_text=True, timestamps=True)
    transcriber = Transcriber(tiny_bundle, method="greedy", options=options)
    tokenizer = tiny_bundle.tokenizer
    segments = list(transcriber.segments(np.concatenate([speech, np.zeros(160_000), speech])))
    before = [token for token in segments[0].tokens if token < tokenizer.end]
    head = [tokenizer.previous, *before, tokenizer.start]
    assert fed(transcriber)[: len(head)] == head


def test_a_prompt_that_does_not_fit_is_told(decoder):
    options = DecodingOptions(hotwords="one two three four five six " * 20)
    with pytest.warns(UserWarning, match="hotwords of 120 tokens is longer than the 73 that fit"):
        LongForm(decoder, lambda: options)


def test_b09_a_window_that_repeats_is_decoded_again_without_the_text_before(decoder, tiny_window):
    always = replace(PLAIN, compression_ratio_threshold=0.1)
    before = decoder.tokenizer.encode(" The fox, the fox, the fox,")
    again = decoder.decode(tiny_window, "en", before, always)
    alone = decoder.decode(tiny_window, "en", (), PLAIN)
    assert again.repeats and again.forgot and not alone.forgot
    assert again.best.tokens == alone.best.tokens
    assert not decoder.decode(tiny_window, "en", before, PLAIN).forgot


def test_b09_after_a_window_that_repeats_no_text_is_context(tiny_bundle, speech):
    options = DecodingOptions(previous_text=True, compression_ratio_threshold=0.1)
    transcriber = Transcriber(tiny_bundle, method="greedy", options=options)
    list(transcriber.segments(np.concatenate([speech, np.zeros(160_000), speech])))
    assert fed(transcriber)[0] == tiny_bundle.tokenizer.start


# --- thresholds -----------------------------------------------------------------------------


def test_text_that_repeats_has_a_great_compression_ratio():
    assert compression_ratio("The same again. " * 12) > 2.4 > compression_ratio(FOX)


def test_a_window_that_fails_is_decoded_at_each_temperature_and_the_best_is_kept(
    decoder, tiny_window, monkeypatch
):
    tried = []
    once = decoder._once
    monkeypatch.setattr(decoder, "_once", lambda *a, **k: tried.append(once(*a, **k)) or tried[-1])
    strict = replace(PLAIN, temperatures=(0.0, 0.5, 1.0), logprob_threshold=0.0)
    kept = decoder.decode(tiny_window, "en", (), strict)
    assert [found.best.temperature for found in tried] == [0.0, 0.5, 1.0]
    assert kept.best.avg_logprob == max(found.best.avg_logprob for found in tried)
    tried.clear()
    decoder.decode(tiny_window, "en", (), replace(strict, logprob_threshold=-1.0))
    assert len(tried) == 1


def test_a_window_without_speech_is_silent_by_both_thresholds(decoder, tiny_window):
    unsure = replace(PLAIN, logprob_threshold=0.0, no_speech_threshold=-1.0)
    assert decoder.decode(tiny_window, "en", (), unsure).silent
    assert not decoder.decode(tiny_window, "en", (), replace(unsure, logprob_threshold=-9)).silent
    assert not decoder.decode(tiny_window, "en", (), PLAIN).silent


# --- the rest -------------------------------------------------------------------------------


def test_alternatives_are_the_other_readings_of_a_beam(tiny_bundle, speech):
    options = DecodingOptions(alternatives=2)
    made = Transcriber(tiny_bundle, method="beam3", options=options).transcribe(speech)
    readings = [alternative.text for alternative in made.segments[0].alternatives]
    assert len(readings) == 2
    assert len({made.text, *readings}) == 3
    with pytest.raises(BeamlessError, match="alternatives come from a beam, not from greedy"):
        Transcriber(tiny_bundle, method="greedy", options=options)


def test_alternatives_are_there_too_where_hypotheses_differ_in_their_times_alone(
    tiny_bundle, speech
):
    words = {"word_times": True, "word_alternatives": 1}
    options = DecodingOptions(alternatives=2, timestamps=True, **words)
    made = Transcriber(tiny_bundle, method="beam3", options=options).transcribe(speech)
    readings = [alternative.text for alternative in made.segments[0].alternatives]
    assert len(readings) == 2
    assert len({made.segments[0].text, *readings}) == 3


@pytest.mark.parametrize("method", ["greedy", "corrected", "lookahead", "beam3"])
def test_words_have_what_they_might_have_begun_with_and_the_text_stays(tiny_bundle, speech, method):
    options = DecodingOptions(word_times=True)
    transcriber = Transcriber(tiny_bundle, method=method, options=options)
    plain = transcriber.transcribe(speech)
    transcriber.options = replace(options, word_alternatives=2)
    made = transcriber.transcribe(speech)
    assert made.text == plain.text
    assert not any(word.alternatives for word in plain.segments[0].words)
    for word in made.segments[0].words:
        texts = [each.text for each in word.alternatives]
        assert len(set(texts)) == len(texts) <= 2
        assert word.text not in (f" {text}" for text in texts)
        assert all(each.avg_logprob < 0 for each in word.alternatives)
    assert sum(len(word.alternatives) for word in made.segments[0].words) >= 8


def test_an_english_only_model_does_not_translate(tiny_bundle):
    with pytest.raises(BeamlessError, match="take a multilingual one"):
        Transcriber(tiny_bundle, options=DecodingOptions(task="translate"))


def test_translation_asks_the_model_for_it(base_bundle, speech):
    options = DecodingOptions(task="translate")
    transcriber = Transcriber(base_bundle, method="greedy", options=options)
    assert "lazy dog" in transcriber.transcribe(speech).text
    tokenizer = base_bundle.tokenizer
    assert fed(transcriber)[:3] == [tokenizer.start, tokenizer.languages["en"], tokenizer.translate]


def test_options_may_change_between_windows(tiny_bundle, speech):
    transcriber = Transcriber(tiny_bundle, method="greedy")
    found = []
    for segment in transcriber.segments(np.concatenate([speech, np.zeros(160_000), speech])):
        found.append(segment)
        transcriber.options = replace(transcriber.options, word_times=True)
    assert [bool(segment.words) for segment in found] == [False, True]


def test_decode_window_hears_all_that_it_is_given(tiny_bundle, speech):
    hypothesis = Transcriber(tiny_bundle, method="greedy").decode_window(speech)
    assert FOX in tiny_bundle.tokenizer.decode(hypothesis.tokens).lower()


# --- how they are given ---------------------------------------------------------------------


def parsed(*arguments):
    function = load_command("transcribe")
    parser = build_parser(function, "transcribe")
    values = parser.instantiate(parser.parse_args(["a.wav", *map(str, arguments)])).as_dict()
    return regroup(function, values)["options"]


def test_every_option_is_one_of_the_command_line_with_the_same_default():
    assert parsed() == DecodingOptions()
    given = ("--language", "sv", "--word_times", "--no_vad", "--temperatures", 0, 0.4)
    expected = DecodingOptions("sv", word_times=True, vad=False, temperatures=(0.0, 0.4))
    assert parsed(*given) == expected


def test_options_come_from_yaml_as_well(tmp_path):
    file = tmp_path / "options.yaml"
    file.write_text("temperatures: [0, 0.2]\ntimestamps: true\n", encoding="utf-8")
    assert parsed("--config", file) == DecodingOptions(timestamps=True, temperatures=(0, 0.2))


def test_the_command_line_writes_subtitles_with_the_models_times(tiny_bundle, clip, capsys):
    model = ("--model", str(tiny_bundle.folder), "--method", "greedy")
    assert run(["transcribe", str(clip), *model, "--format", "srt"]) == 0
    written = capsys.readouterr().out.splitlines()
    assert written[0] == "1" and written[1].startswith("00:00:00,")
    assert "lazy dog" in written[2]


def test_an_option_without_sense_is_one_line_on_the_command_line(clip):
    with pytest.raises(BeamlessError, match="would reward repeats"):
        run(["transcribe", str(clip), "--repetition-penalty", "0.5"])
