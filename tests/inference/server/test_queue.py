"""Many clients at once: each gets its own text, the queue is bounded, and a stop finishes all."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from beamless.inference.server.models import Offer, Speaker
from beamless.inference.server.requests import transcription_request
from beamless.inference.server.transcriptions import listen
from beamless.inference.server.uploads import Upload
from beamless.inference.server.workers import Cancelled, Job

from .conftest import CLIENT, Tones, serving


class Held(Tones):
    """Speaks when it is let."""

    def __init__(self):
        self.may, self.begun = threading.Event(), threading.Event()

    def say(self, text, speaker=None, speed=1.0):
        self.begun.set()
        assert self.may.wait(30)
        return super().say(text, speaker, speed)


@contextmanager
def held_server(offer, **options):
    voice = Held()
    offer = Offer(offer.listeners, {"held": Speaker("held", voice)})
    with serving(offer, **{"workers": 1, **options}) as running, ThreadPoolExecutor(2) as pool:
        try:
            yield running, voice, pool
        finally:
            voice.may.set()


def say(server, **headers):
    body = {"model": "held", "input": "aaa", "response_format": "wav"}
    return httpx.post(server.url + "/v1/audio/speech", json=body, timeout=60, headers=headers)


def figure(server, name):
    """Return the sum of a figure over its labels."""
    lines = CLIENT.get(server.url + "/metrics").text.splitlines()
    return sum(
        float(line.split()[-1]) for line in lines if re.match(rf"beamless_{name}[ {{]", line)
    )


def until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it never came to that")


def test_requests_at_the_same_time_get_their_own_texts(server, clip_bytes, other_speech, tmp_path):
    import soundfile

    soundfile.write(tmp_path / "other.wav", other_speech, 16000)
    files = [clip_bytes, (tmp_path / "other.wav").read_bytes()] * 4
    alone = [server.text(file) for file in files[:2]]
    assert alone[0] != alone[1]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(server.text, files))
    assert found == alone * 4


def test_a_full_queue_answers_429_and_when_to_come_again(offer, clip_bytes):
    with held_server(offer, max_queue=1) as (server, voice, pool):
        first = pool.submit(say, server)
        assert voice.begun.wait(10)
        second = pool.submit(say, server)
        until(lambda: figure(server, "queue_length") == 1)
        for refused in (say(server), server.post(file=clip_bytes)):
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        voice.may.set()
        assert first.result().status_code == second.result().status_code == 200
        assert server.post(file=clip_bytes).status_code == 200
        assert not server.left()


def test_who_leaves_the_queue_frees_a_place_and_leaves_nothing(offer, clip_bytes):
    with held_server(offer, max_queue=1) as (server, voice, pool):
        first = pool.submit(say, server)
        assert voice.begun.wait(10)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                server.url + "/stt/tiny.en",
                content=clip_bytes,
                timeout=httpx.Timeout(10, read=0.3),
            )
        until(lambda: figure(server, "queue_length") == 0)
        assert not server.left()
        voice.may.set()
        assert first.result().status_code == 200


@pytest.mark.parametrize("stream", ["true", "false"])
def test_who_leaves_while_his_recording_is_decoded_stops_the_work(offer, speech, tmp_path, stream):
    import numpy as np
    import soundfile

    soundfile.write(tmp_path / "long.flac", np.tile(speech, 120), 16000)
    content = (tmp_path / "long.flac").read_bytes()
    with serving(offer, workers=1) as server:
        query = f"?stream={stream}"
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                server.url + "/stt/tiny.en" + query,
                content=content,
                timeout=httpx.Timeout(10, read=0.05 if stream == "true" else 1.0),
            )
        until(lambda: figure(server, "workers_busy") == 0)
        assert not server.left()
        assert figure(server, "audio_seconds_total") == 0, "it was decoded to its end"


class After(threading.Event):
    """Is set once it was looked at so often."""

    def __init__(self, looks):
        super().__init__()
        self.looks = looks

    def is_set(self):
        self.looks -= 1
        return self.looks < 0


@pytest.mark.parametrize("method", ["lookahead", "greedy", "beam5"])
def test_who_leaves_within_a_window_stops_the_work_at_the_next_step(server, clip_bytes, method):
    state = server.state
    text = server.text(clip_bytes, method=method)
    upload = Upload(state.folder / "clip")
    upload.path.write_bytes(clip_bytes)
    fields = {"model": ["tiny.en"], "method": [method]}
    wanted = transcription_request(fields, state.offer, "transcribe")
    job = Job("tiny.en")
    looks_at_blocks = 1
    job.cancelled = After(looks_at_blocks + 4)
    transcriber = wanted.listener.borrow(method)
    wanted.listener.give_back(transcriber)  # the next one to be lent
    told = []
    with pytest.raises(Cancelled):
        listen(state, upload, wanted, job, told.append)
    assert transcriber.decoder.steps == 5
    assert told == []
    upload.delete()
    assert server.text(clip_bytes, method=method) == text  # what was lent is of use again


def test_a_stop_finishes_what_was_begun_and_takes_no_more(offer):
    with held_server(offer) as (server, voice, pool):
        with httpx.Client() as kept:  # a connection that stays open
            assert kept.get(server.url + "/health").json() == {"status": "ok"}
            first = pool.submit(say, server)
            assert voice.begun.wait(10)
            second = pool.submit(say, server)
            until(lambda: figure(server, "queue_length") == 1)
            server.server.should_exit = True
            until(server.state.stopping.is_set)
            with pytest.raises(httpx.TransportError):
                until(lambda: not kept.get(server.url + "/v1/models"))
        voice.may.set()
        assert first.result().status_code == second.result().status_code == 200


def test_queue_wait_and_time_to_first_token_are_measured(offer, clip_bytes):
    with serving(offer) as server:
        server.text(clip_bytes)
        for name in ("queue_wait_seconds", "time_to_first_token_seconds", "work_seconds"):
            assert figure(server, f"{name}_count") == 1
        assert figure(server, "time_to_first_token_seconds_sum") > 0
        assert figure(server, "audio_seconds_total") == pytest.approx(
            len(clip_bytes) / 32000, abs=0.1
        )
        server.post(file=b"nothing")
        assert 'status="400"' in CLIENT.get(server.url + "/metrics").text


def test_no_label_is_of_a_clients_making(server):
    CLIENT.get(server.url + "/made-up-path")
    server.post(file=b"", model="made-up-model")
    assert "made-up" not in CLIENT.get(server.url + "/metrics").text
