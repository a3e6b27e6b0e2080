"""One item ahead: in order, no further, with errors in their place, and really at the same time."""

from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beamless.inference.ahead import ahead
from beamless.inference.devices import encodes_beside
from beamless.inference.longform import LongForm, Window
from beamless.inference.options import DecodingOptions
from beamless.inference.window_decoder import WindowDecoder

WAIT = 60.0  # s; only a failure takes so long


@given(st.lists(st.integers()))
def test_nothing_is_lost_and_nothing_changes_its_place(items):
    assert list(ahead(items, lambda item: item + 1)) == [(item, item + 1) for item in items]


def test_the_next_item_is_worked_on_before_the_last_is_done():
    begun = [Event() for _ in range(3)]
    for item, _ in ahead(range(3), lambda item: begun[item].set()):
        assert all(event.wait(WAIT) for event in begun[: item + 2])


def test_it_is_one_item_ahead_and_no_more():
    taken = []

    def items():
        for item in range(9):
            taken.append(item)
            yield item

    for item, _ in ahead(items(), abs):
        assert len(taken) <= item + 2


def test_an_error_comes_behind_the_items_before_it():
    def work(item):
        return 1 / (2 - item)

    seen = []
    with pytest.raises(ZeroDivisionError):
        for item, _ in ahead(range(9), work):
            seen.append(item)
    assert seen == [0, 1]


@pytest.fixture(scope="module")
def decoder(tiny_bundle):
    return WindowDecoder(tiny_bundle, "greedy")


@pytest.fixture
def windows(speech, other_speech, monkeypatch):
    """A recording of three windows."""
    parts = (speech, other_speech, speech)
    planned = [Window(at * 160_000, part) for at, part in enumerate(parts)]
    monkeypatch.setattr("beamless.inference.longform.speech_windows", lambda *_: iter(planned))
    return planned


def test_a_window_is_encoded_while_the_one_before_is_decoded(decoder, windows, monkeypatch):
    encoded = [Event() for _ in windows]
    count = iter(encoded)
    encode, decode = decoder.encode, decoder.decode
    overlapped = []

    def watched_encode(*arguments):
        found = encode(*arguments)
        next(count).set()
        return found

    def watched_decode(*arguments):
        overlapped.append(encoded[min(2, len(overlapped) + 1)].wait(WAIT))
        return decode(*arguments)

    monkeypatch.setattr(WindowDecoder, "encodes_beside", True)
    monkeypatch.setattr(decoder, "encode", watched_encode)
    monkeypatch.setattr(decoder, "decode", watched_decode)
    texts = [segment.text for segment in LongForm(decoder, DecodingOptions).segments([])]
    assert overlapped == [True] * 3
    assert texts[0] == texts[2] == "The quick brown fox jumps over the lazy dog."
    assert texts[1].startswith("In short")


def test_two_cores_do_one_behind_the_other(decoder, windows, monkeypatch):
    done = []
    encode, decode = decoder.encode, decoder.decode
    monkeypatch.setattr(WindowDecoder, "encodes_beside", False)
    monkeypatch.setattr(decoder, "encode", lambda *a: [done.append("encode"), encode(*a)][1])
    monkeypatch.setattr(decoder, "decode", lambda *a: [done.append("decode"), decode(*a)][1])
    texts = [segment.text for segment in LongForm(decoder, DecodingOptions).segments([])]
    assert done == ["encode", "decode"] * 3
    assert texts[0] == texts[2] == "The quick brown fox jumps over the lazy dog."


@pytest.mark.parametrize(
    ("device", "threads", "beside"),
    [("CPU", 2, False), ("CPU", 1, False), ("CPU", 8, True), ("NPU", 2, True), ("GPU", None, True)],
)
def test_who_encodes_the_next_window_meanwhile(device, threads, beside):
    assert encodes_beside(device, threads) is beside


def test_a_context_changed_in_between_holds_for_the_window_encoded_already(
    decoder, windows, monkeypatch
):
    options = [DecodingOptions(audio_context="short")]
    starts = []
    decode = decoder.decode

    def watched(cross_kv, *arguments):
        starts.append(cross_kv["cross_key.0"][0, 0, -1].copy())
        return decode(cross_kv, *arguments)

    monkeypatch.setattr(decoder, "decode", watched)
    monkeypatch.setattr(WindowDecoder, "encodes_beside", True)
    for _ in LongForm(decoder, lambda: options[0]).segments([]):
        options[0] = replace(options[0], audio_context="full")
    full = decoder.encode(windows[1].samples, "full")["cross_key.0"][0, 0, -1]
    np.testing.assert_array_equal(starts[1], full)
    assert (starts[0] != starts[1]).any()
