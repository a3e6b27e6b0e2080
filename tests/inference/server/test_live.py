"""Live streams over a WebSocket: the same events, and nothing that a client does is a fault."""

import base64
import json
import re

import numpy as np
import pytest
from conftest import SENTENCE
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from .conftest import CLIENT, serving

COMMIT = json.dumps({"type": "input_audio_buffer.commit"})


def address(server, path="/stt/tiny.en"):
    return server.url.replace("http", "ws") + path


def pcm(samples) -> bytes:
    return (samples * 32767).astype("<i2").tobytes()


def all_of(socket):
    """Return the messages until the server closes, and the code it closes with."""
    found = []
    try:
        while True:
            found.append(json.loads(socket.recv(timeout=60)))
    except ConnectionClosed as closed:
        return found, closed.rcvd.code


def live_streams(server):
    text = CLIENT.get(server.url + "/metrics").text
    return float(re.search(r"^beamless_live_streams (\S+)$", text, re.M)[1])


def test_sound_gives_deltas_a_segment_and_one_end(server, speech):
    with connect(address(server, "/v1/audio/transcriptions?model=whisper-1")) as socket:
        sound = pcm(np.pad(speech, 8000))
        for at in range(0, len(sound), 6400):
            socket.send(sound[at : at + 6400])
        socket.send(COMMIT)
        events, code = all_of(socket)
    kinds = [event["type"].removeprefix("transcript.text.") for event in events]
    assert code == 1000
    assert kinds.count("done") == kinds.count("segment") == 1
    assert kinds[-1] == "done"
    joined = "".join(event.get("delta", "") for event in events)
    for text in (joined, events[-1]["text"]):
        assert SENTENCE.lower().split()[-2] in text.lower()


def test_sound_in_openais_messages_and_at_another_rate_is_taken(server, speech):
    import soxr

    sound = pcm(soxr.resample(speech, 16000, 24000))
    encoded = base64.b64encode(sound).decode()
    with connect(address(server, "/stt/tiny.en?rate=24000")) as socket:
        socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": encoded}))
        socket.send(COMMIT)
        events, _ = all_of(socket)
    assert "fox" in events[-1]["text"].lower()


@pytest.mark.parametrize(
    "path",
    ["/stt/none", "/stt/tiny.en?rate=1", "/stt/tiny.en?rate=x", "/stt/tiny.en?language=xx",
     "/stt/tiny.en?method=beam9", "/v1/audio/transcriptions"],
)  # fmt: skip
def test_a_stream_that_cannot_be_met_is_told_why(server, path):
    with connect(address(server, path)) as socket:
        events, code = all_of(socket)
    assert events[-1]["type"] == "error"
    assert events[-1]["error"]["message"]
    assert code == 1008


@pytest.mark.parametrize("rate", ["0000160009999999", "00001600000000000000", "9" * 5000], ids=len)
def test_a_rate_of_many_digits_is_refused_and_others_are_still_heard(server, speech, rate):
    with connect(address(server, f"/stt/tiny.en?rate={rate}")) as socket:
        events, code = all_of(socket)
    assert (events[-1]["error"]["param"], code) == ("rate", 1008)
    with connect(address(server)) as socket:
        socket.send(pcm(speech))
        socket.send(COMMIT)
        assert "fox" in all_of(socket)[0][-1]["text"].lower()


@pytest.mark.parametrize(
    "message", [b"odd", "", "text", "[]", "{}", '{"type": "session.update"}',
                '{"type": "input_audio_buffer.append", "audio": "?"}', "[" * 50_000],
)  # fmt: skip
def test_a_message_of_no_use_is_told_so(server, message):
    with connect(address(server)) as socket:
        socket.send(message)
        events, code = all_of(socket)
    assert events[-1]["error"]["type"] == "invalid_request_error"
    assert code == 1008


def test_a_message_beyond_all_measure_ends_the_stream(server):
    with connect(address(server)) as socket:
        socket.send(bytes(3_000_000))
        _, code = all_of(socket)
    assert code == 1009


def test_limits_of_streams_length_and_patience_are_kept(offer):
    with serving(offer, max_live=1, max_idle=0.5, max_minutes=0.05) as server:
        with connect(address(server)) as first, connect(address(server)) as second:
            events, code = all_of(second)
            assert (events[-1]["error"]["type"], code) == ("invalid_request_error", 1013)
            events, code = all_of(first)
            assert "nothing was sent" in events[-1]["error"]["message"]
        with connect(address(server)) as third:
            third.send(bytes(200_000))
            events, _ = all_of(third)
            assert "minutes" in events[-1]["error"]["message"]


def test_a_client_that_breaks_off_frees_its_place(offer, speech):
    with serving(offer, max_live=1) as server:
        for _ in range(3):
            with connect(address(server)) as socket:
                socket.send(pcm(speech))
                socket.socket.close()
            for _ in range(600):
                if not live_streams(server):
                    break
            else:
                pytest.fail("the place is still taken")


def test_a_stop_tells_the_rest_of_a_stream(offer, speech, other_speech):
    with serving(offer) as server, connect(address(server)) as socket:
        socket.send(pcm(np.pad(speech, (0, 24000))))
        first = json.loads(socket.recv(timeout=120))
        socket.send(pcm(other_speech))
        server.server.should_exit = True
        events, code = all_of(socket)
    assert first["type"] == "transcript.text.delta"
    assert code == 1000
    assert events[-1]["type"] == "transcript.text.done"
    assert "dog" in events[-1]["text"].lower()
