"""Languages by code, region, token and name; detection where none is given."""

import pytest

from beamless.inference.errors import BeamlessError
from beamless.inference.languages import (
    NAMES,
    joined,
    language_code,
    named_language,
    requested_language,
)
from beamless.inference.longform import LongForm
from beamless.inference.methods import method_of
from beamless.inference.options import DecodingOptions
from beamless.inference.transcribe import Transcriber
from beamless.inference.window_decoder import WindowDecoder, language_probabilities


@pytest.mark.parametrize(
    "wanted", ["sv", "SV", "Swedish", "swedish", "sv-SE", "sv_SE", "<|sv|>", " sv "]
)
def test_b28_a_language_may_be_given_in_every_common_form(base_bundle, wanted):
    assert requested_language(wanted, base_bundle.tokenizer) == "sv"


@pytest.mark.parametrize("wanted", [None, "", "auto", "AUTO"])
def test_b28_none_empty_and_auto_ask_for_detection(base_bundle, wanted):
    assert requested_language(wanted, base_bundle.tokenizer) is None


def test_where_nothing_can_be_detected_a_language_has_any_name_but_must_have_one(base_bundle):
    assert named_language("Swedish", base_bundle.tokenizer) == "sv"
    with pytest.raises(BeamlessError, match="name the language"):
        named_language("auto", base_bundle.tokenizer)


@pytest.mark.parametrize("wanted", ["xx", "xx-SE", "Klingon", "s", "<|xx|>"])
def test_b28_an_unknown_language_is_one_line_with_the_list(base_bundle, wanted):
    with pytest.raises(BeamlessError, match=r"known are: en zh de .* su") as caught:
        Transcriber(base_bundle, language=wanted)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "code"),
    [("Chinese", "zh"), ("Mandarin", "zh"), ("haitian creole", "ht"), ("nb-NO", "no")],
)
def test_a_language_has_other_names_and_codes(base_bundle, name, code):
    assert language_code(name, base_bundle.tokenizer.languages) == code


def test_every_language_of_the_model_has_a_name(base_bundle):
    assert set(base_bundle.tokenizer.languages) <= set(NAMES)


def test_an_english_only_model_takes_english_by_any_name_and_no_other(tiny_bundle):
    for wanted in (None, "auto", "en", "English", "en-GB"):
        assert requested_language(wanted, tiny_bundle.tokenizer) == "en"
    with pytest.raises(BeamlessError, match="take a multilingual one"):
        Transcriber(tiny_bundle, language="sv")


@pytest.mark.parametrize("method", ["greedy", "corrected", "beam2"])
def test_speech_tells_its_language_to_every_method(base_bundle, base_window, method):
    opened = method_of(base_bundle, method)
    tokenizer = base_bundle.tokenizer
    outputs = opened.first_outputs(base_window, tokenizer.start)
    found = language_probabilities(outputs, tokenizer.languages)
    assert max(found, key=found.get) == "en"
    assert found["en"] > 0.8
    assert sum(found.values()) == pytest.approx(1)


def test_a_language_once_sure_is_asked_for_no_more(base_bundle):
    decoder = WindowDecoder(base_bundle, "greedy")
    recording = LongForm(decoder, DecodingOptions)
    asked = []

    def listen(**probabilities):
        return lambda: asked.append(1) or probabilities

    options = DecodingOptions()
    assert recording._language(options, listen(en=0.4, de=0.3, nl=0.3)) == "en"
    assert recording._language(options, listen(en=0.1, de=0.9)) == "de"
    assert recording._language(options, listen(en=1.0)) == "de"
    assert len(asked) == 2
    assert recording._language(DecodingOptions(language="sv"), listen()) == "sv"


def test_texts_are_joined_as_their_language_writes():
    assert joined([" One.", "", "Two. "], "en") == "One. Two."
    assert joined(["你好。", "世界"], "zh") == "你好。世界"
