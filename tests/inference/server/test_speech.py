"""OpenAI's interface for speech: what is said, in which format, and what cannot be said."""

import base64
import io
import json

import numpy as np
import pytest
import soundfile

from beamless.data_gen.voices import load_voice
from beamless.inference.server.models import Offer, Speaker

from .conftest import CLIENT, serving

SPEECH = "/v1/audio/speech"


def say(server, path=SPEECH, **fields):
    return CLIENT.post(server.url + path, json={"model": "tones", "input": "abcde", **fields})


def sound(answer) -> tuple[np.ndarray, int]:
    assert answer.status_code == 200, answer.text
    return soundfile.read(io.BytesIO(answer.content))


def pitch(samples, rate) -> float:
    return float(np.abs(np.fft.rfft(samples)).argmax() * rate / len(samples))


@pytest.mark.parametrize(
    ("kind", "type"),
    [("mp3", "audio/mpeg"), ("opus", "audio/ogg"), ("flac", "audio/flac"), ("wav", "audio/wav")],
)
def test_each_format_holds_what_was_said(server, kind, type):
    answer = say(server, response_format=kind, voice="low")
    assert answer.headers["content-type"] == type
    samples, rate = sound(answer)
    assert len(samples) / rate == pytest.approx(0.5, abs=0.08)
    assert pitch(samples, rate) == pytest.approx(220, abs=8)


def test_pcm_is_16_bit_at_24_khz(server):
    samples = np.frombuffer(say(server, response_format="pcm").content, "<i2")
    assert len(samples) == pytest.approx(12000, abs=10)
    assert pitch(samples, 24000) == pytest.approx(220, abs=8)


def test_aac_is_made_by_pyav(server):
    av = pytest.importorskip("av")
    answer = say(server, response_format="aac")
    with av.open(io.BytesIO(answer.content)) as container:
        frames = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
    assert pitch(np.concatenate(frames), 24000) == pytest.approx(220, abs=8)


def test_mp3_is_the_default_as_openais(server):
    assert say(server).headers["content-type"] == "audio/mpeg"


def test_speakers_and_speed_are_obeyed(server):
    samples, rate = sound(say(server, response_format="wav", voice="high", speed=2))
    assert len(samples) / rate == pytest.approx(0.25, abs=0.01)
    assert pitch(samples, rate) == pytest.approx(880, abs=8)


@pytest.mark.parametrize("voice", ["alloy", {"id": "nova"}, "", None])
def test_openais_voices_and_none_are_the_first_speaker(server, voice):
    samples, rate = sound(say(server, response_format="wav", voice=voice))
    assert pitch(samples, rate) == pytest.approx(220, abs=8)


def test_openais_model_is_the_first_voice(server):
    assert say(server, model="tts-1").status_code == 200


def test_the_users_own_path_takes_plain_text_or_json(server):
    path = server.url + "/tts/tones"
    plain = CLIENT.post(path, content="abcde", headers={"Content-Type": "text/plain"})
    assert plain.headers["content-type"] == "audio/wav"
    assert plain.content == CLIENT.post(path, json={"input": "abcde"}).content
    assert CLIENT.post(server.url + "/tts/none", json={"input": "a"}).status_code == 404


def test_sound_streams_as_events_with_one_end(server):
    answer = say(server, response_format="wav", stream_format="sse")
    events = [json.loads(part.removeprefix("data: ")) for part in answer.text.split("\n\n") if part]
    assert [e["type"] for e in events].count("speech.audio.done") == 1
    joined = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert joined == say(server, response_format="wav").content


@pytest.mark.parametrize(
    "fields",
    [
        {"input": ""},
        {"input": " \n"},
        {"input": "..."},
        {"input": "a" * 5000},
        {"input": 7},
        {"model": ""},
        {"model": ["tones"]},
        {"voice": "nobody"},
        {"voice": 3},
        {"voice": {"id": ["x"]}},
        {"speed": 9},
        {"speed": "fast"},
        {"speed": 1e300},
        {"response_format": "midi"},
        {"response_format": {}},
        {"stream_format": "smoke"},
    ],
    ids=str,
)
def test_what_cannot_be_said_gives_a_400(server, fields):
    answer = say(server, **fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("speed", [0, 0.0, True, False, int("9" * 400)], ids=repr)
def test_a_speed_of_zero_a_switch_or_400_digits_is_no_speed(server, speed):
    answer = say(server, speed=speed)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "speed"


@pytest.fixture(scope="module")
def piper(offer):
    voices = {"joe": Speaker("joe", load_voice("joe"))}
    with serving(Offer(offer.listeners, voices)) as running:
        yield running


@pytest.mark.parametrize("sign", ["\\ud800", "\\udfff", "\\u0000"])
def test_half_a_character_or_nul_within_a_text_gives_a_400(piper, sign):
    body = f'{{"model": "joe", "input": "hello {sign} there"}}'
    answer = CLIENT.post(piper.url + SPEECH, content=body.encode())
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "input"


HALF = b'{"model": "tones", "input": "\\ud800"}'  # of a character


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, HALF, b"null"], ids=range(7)
)
def test_bodies_that_are_no_request_give_a_400(server, body):
    assert CLIENT.post(server.url + SPEECH, content=body).status_code == 400


def test_a_body_beyond_all_text_gives_413(server):
    assert CLIENT.post(server.url + SPEECH, content=bytes(600_000)).status_code == 413
