"""Servers with OpenAI's interface: a dead one, a broken one and half an answer are clear errors."""

import io

import numpy as np
import pytest
import soundfile

from beamless.data_gen.endpoint import Endpoint
from beamless.data_gen.voices import Voice, load_voice
from beamless.inference.errors import BeamlessError


def wav(seconds=0.5, rate=24_000):
    file = io.BytesIO()
    times = np.arange(round(seconds * rate)) / rate
    soundfile.write(file, 0.3 * np.sin(2 * np.pi * 300 * times), rate, format="WAV")
    return file.getvalue()


def endpoint(address, retries=2):
    return Endpoint(address, retries=retries, wait=0.01, timeout=5)


def voice(address, **settings):
    return load_voice(f"openai:{address}", {"retries": 1, "wait": 0.01, **settings})


def test_a_busy_server_is_asked_again(server):
    with server((503, b"busy"), (429, b"slow"), (200, b"fine")) as (address, requests):
        assert endpoint(address).post("speak", {"a": 1}) == b"fine"
    assert [(path, body) for path, body, _ in requests] == [("/v1/speak", {"a": 1})] * 3


def test_a_server_that_stays_busy_is_one_clear_line(server):
    said = r"no answer in 3 tries .*500: out of memory"
    busy = server((500, b'{"error": {"message": "out of\\nmemory"}}'))
    with busy as (address, requests), pytest.raises(BeamlessError, match=said):
        endpoint(address).post("speak", {})
    assert len(requests) == 3


def test_a_refused_request_is_not_sent_again(server):
    said = r"refused the request .*no such model"
    refusing = server((404, b'{"error": "no such model"}'))
    with refusing as (address, requests), pytest.raises(BeamlessError, match=said):
        endpoint(address).post("speak", {})
    assert len(requests) == 1


def test_a_dead_server_is_one_clear_line(server):
    with server((200, b"")) as (address, _):
        pass
    with pytest.raises(BeamlessError, match="gave no answer in 3 tries"):
        endpoint(address).post("speak", {})


def test_an_answer_cut_short_is_asked_again(server):
    with server((200, b"half", 100), (200, b"whole")) as (address, _):
        assert endpoint(address).post("speak", {}) == b"whole"


@pytest.mark.parametrize("address", ["", "localhost:80", "file:///etc/passwd", "http://"])
def test_an_address_of_another_kind_is_refused(address):
    with pytest.raises(BeamlessError, match="is no address"):
        Endpoint(address)


def test_the_key_comes_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    with server((200, b"x")) as (address, requests):
        Endpoint(address, key_name="MY_KEY").post("speak", {})
        Endpoint(address, key_name="NO_KEY").post("speak", {})
    assert [key for *_, key in requests] == ["Bearer secret", None]


def test_a_speech_server_is_a_voice(server):
    with server((200, wav(0.5))) as (address, requests):
        speaking = voice(address, model="m", speakers=["nova", "echo"])
        samples = speaking.say("Hello there", "echo", 1.5)
    assert isinstance(speaking, Voice)
    assert (speaking.rate, len(samples)) == (16_000, 8_000)
    path, body, _ = requests[0]
    assert path == "/v1/audio/speech"
    assert body == {
        "model": "m",
        "input": "Hello there",
        "voice": "echo",
        "speed": 1.5,
        "response_format": "wav",
    }


def test_a_text_over_the_interfaces_limit_is_sent_in_pieces(server):
    with server((200, wav(0.1))) as (address, requests):
        voice(address).say("one two three. " * 600)
    assert len(requests) == 3
    assert (
        " ".join(body["input"] for _, body, _ in requests).split() == ["one", "two", "three."] * 600
    )


@pytest.mark.parametrize("content", [wav()[:-2000], wav()[:30], b'{"error": 1}', b""])
def test_half_an_audio_or_none_is_one_clear_line(server, content):
    said = "did not send a whole recording"
    with server((200, content)) as (address, _), pytest.raises(BeamlessError, match=said) as raised:
        voice(address).say("Hello")
    assert "\n" not in str(raised.value)
