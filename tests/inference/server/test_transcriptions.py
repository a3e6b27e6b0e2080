"""OpenAI's interface for recordings: formats, streams, fields and files, good and bad."""

import io
import json
import re
from itertools import pairwise

import numpy as np
import pytest
import soundfile as sf
from conftest import SENTENCE

from beamless.inference.server.models import Offer, listeners_of

from .conftest import CLIENT, TRANSCRIPTIONS, serving


def words(text):
    return re.sub(r"[^a-z ]", "", text.lower()).split()


def wav(samples, rate=16000) -> bytes:
    file = io.BytesIO()
    sf.write(file, samples, rate, format="WAV")
    return file.getvalue()


def events_of(text):
    found = [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line]
    return [event["type"] for event in found], found


@pytest.fixture(scope="module")
def container(speech):
    """Return the spoken sentence as a file of PyAV's."""

    def encoded(format, codec, rate=48000):
        av = pytest.importorskip("av")
        import soxr

        samples = soxr.resample(speech, 16000, rate)[None]
        file = io.BytesIO()
        with av.open(file, "w", format=format) as out:
            track = out.add_stream(codec, rate=rate, layout="mono")
            frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
            frame.sample_rate = rate
            resampler = av.AudioResampler(track.format, "mono", rate, track.frame_size or None)
            for part in (*resampler.resample(frame), *resampler.resample(None)):
                out.mux(track.encode(part))
            out.mux(track.encode(None))
        return file.getvalue()

    return encoded


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("json", "application/json"),
        ("text", "text/plain"),
        ("srt", "application/x-subrip"),
        ("verbose_json", "application/json"),
        ("vtt", "text/vtt"),
    ],
)
def test_each_format_is_a_raw_body_of_its_own_type(server, clip_bytes, format, kind):
    answer = server.post(file=clip_bytes, response_format=format)
    assert answer.status_code == 200
    assert answer.headers["content-type"].split(";")[0] == kind
    body = answer.text
    if format == "json":
        assert words(answer.json()["text"]) == words(SENTENCE)
    elif format == "verbose_json":
        content = answer.json()
        assert content["language"] == "english"
        assert content["duration"] == pytest.approx(len(clip_bytes) / 32000, abs=0.05)
        assert words(" ".join(each["text"] for each in content["segments"])) == words(SENTENCE)
    else:
        assert not body.startswith(("{", '"'))
        assert words(SENTENCE)[-1] in body
    if format == "srt":
        assert re.match(r"1\n00:00:0\d,\d{3} --> 00:00:0\d,\d{3}\n", body)
    if format == "vtt":
        assert body.startswith("WEBVTT\n")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("response_format", "foo"),
        ("temperature", "hot"),
        ("temperature", "nan"),
        ("temperature", "2"),
        ("stream", "perhaps"),
        ("method", "beam9"),
        ("language", "xx"),
        ("language", "sv"),
        ("timestamp_granularities[]", "hour"),
        ("timestamp_granularities[]", "word"),
    ],
)
def test_a_field_that_cannot_be_met_is_named_in_a_400(server, clip_bytes, field, value):
    answer = server.post(file=clip_bytes, **{field: value})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert field.rstrip("[]") in error["message"] or value in error["message"]


def test_empty_fields_are_as_if_they_were_not_sent(server, clip_bytes):
    empty = dict.fromkeys(
        ("language", "prompt", "response_format", "temperature", "stream", "method"), ""
    )
    assert words(server.text(clip_bytes, **empty)) == words(SENTENCE)


def test_an_unknown_model_is_a_404_that_lists_the_known(server, clip_bytes):
    answer = server.post(file=clip_bytes, model="../../etc/passwd")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert "tiny.en" in answer.json()["error"]["message"]


def test_word_times_come_where_they_are_asked_for(server, clip_bytes):
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": ["word"]}
    content = server.post(file=clip_bytes, **fields).json()
    assert "segments" not in content
    assert words(" ".join(each["word"] for each in content["words"])) == words(SENTENCE)
    assert all(0 <= a["start"] <= a["end"] <= b["end"] for a, b in pairwise(content["words"]))
    fields["timestamp_granularities[]"] = ["word", "segment"]
    assert {"words", "segments"} <= set(server.post(file=clip_bytes, **fields).json())


@pytest.mark.parametrize("format", ["json", "text", "verbose_json"])
def test_a_stream_has_deltas_that_join_to_the_text_of_its_one_end(
    server, speech, other_speech, format
):
    recording = np.concatenate([speech, np.zeros(16000 * 6, np.float32), other_speech])
    answer = server.post(file=wav(recording), stream="true", response_format=format)
    assert answer.headers["content-type"].startswith("text/event-stream")
    kinds, events = events_of(answer.text)
    assert kinds.count("transcript.text.done") == 1
    assert kinds[-1] == "transcript.text.done"
    deltas = [event["delta"] for event in events if event["type"] == "transcript.text.delta"]
    assert len(deltas) >= 2
    assert "".join(deltas) == events[-1]["text"]
    assert ("transcript.text.segment" in kinds) is (format == "verbose_json")
    assert events[-1]["text"] == server.text(wav(recording), temperature="0") or format != "json"


def test_subtitles_are_not_streamed(server, clip_bytes):
    answer = server.post(file=clip_bytes, stream="true", response_format="srt")
    assert answer.status_code == 400


@pytest.mark.parametrize("format", ["json", "text", "srt", "verbose_json", "vtt"])
@pytest.mark.parametrize("samples", [0, 1, 96000], ids=["header", "one", "noise"])
def test_a_recording_without_speech_gives_an_empty_answer(server, format, samples):
    noise = np.random.default_rng(0).normal(0, 0.05, samples)
    answer = server.post(file=wav(noise), response_format=format)
    assert answer.status_code == 200
    expected = {"text": "", "srt": "", "vtt": "WEBVTT"}
    if format in expected:
        assert answer.text.strip() == expected[format]
    else:
        assert answer.json()["text"] == ""
        assert answer.json().get("segments", []) == []


def test_no_speech_streams_one_end_and_no_delta(server):
    kinds, events = events_of(server.post(file=wav(np.zeros(16000)), stream="true").text)
    assert kinds == ["transcript.text.done"]
    assert events[0]["text"] == ""


@pytest.mark.parametrize(
    "content",
    [b"", b"%PDF-1.7\n" + bytes(5000), b"RIFF\xff\xff\xff\xffWAVE", b"\x1a\x45\xdf\xa3" * 50],
    ids=["nothing", "pdf", "cut wav", "cut webm"],
)
def test_what_is_no_recording_gives_400_with_a_plain_reason(server, content):
    answer = server.post(file=("a.wav", content))
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert "the file" in message
    assert str(server.state.folder) not in message


@pytest.mark.filterwarnings("ignore:.*damaged")
def test_a_recording_of_which_nothing_can_be_read_gives_400(server):
    file = io.BytesIO()
    sf.write(file, np.zeros(48000), 16000, format="FLAC")
    damaged = bytearray(file.getvalue())
    damaged[90:290] = b"\xff" * len(damaged[90:290])
    answer = server.post(file=("a.flac", bytes(damaged)))
    assert answer.status_code == 400
    said = "the file is damaged: nothing of its 3.0 s can be read"
    assert answer.json()["error"]["message"] == said


@pytest.mark.filterwarnings("ignore:.*damaged")
def test_a_recording_that_is_damaged_in_part_is_heard_as_far_as_it_goes(server, speech):
    file = io.BytesIO()
    sf.write(file, np.pad(speech, (0, 160_000)), 16000, format="FLAC")
    damaged = bytearray(file.getvalue())
    damaged[-300:-100] = bytes(200)
    assert words(server.text(("a.flac", bytes(damaged)))) == words(SENTENCE)


@pytest.mark.parametrize(
    "name", ["a.m4a", "audio", "blob", "a.mp3", "../../a.wav", "C:\\a.wav", ""]
)
def test_a_format_is_found_from_the_bytes_whatever_the_name(server, container, name):
    m4a = container("ipod", "aac")
    answer = CLIENT.post(
        server.url + TRANSCRIPTIONS,
        data={"model": "tiny.en"},
        files={"file": (name or None, m4a)},
    )
    assert words(answer.json()["text"]) == words(SENTENCE)


def test_webm_without_a_name_is_heard(server, container):
    assert words(server.text(("", container("webm", "libopus")))) == words(SENTENCE)


def test_the_users_own_path_takes_a_form_or_the_bytes_alone(server, clip_bytes):
    form = server.post("/stt/tiny.en", file=clip_bytes)
    bare = CLIENT.post(server.url + "/stt/tiny.en?response_format=text", content=clip_bytes)
    assert form.json()["text"] + "\n" == bare.text
    missing = CLIENT.post(server.url + "/stt/large", content=clip_bytes)
    assert missing.status_code == 404


def test_an_english_model_refuses_to_translate(server, clip_bytes):
    answer = server.post("/v1/audio/translations", file=clip_bytes)
    assert answer.status_code == 400
    assert "English" in answer.json()["error"]["message"]


def test_methods_are_chosen_by_a_field(server, clip_bytes):
    for method in ("lookahead", "greedy", "beam5"):
        assert words(server.text(clip_bytes, method=method)) == words(SENTENCE)


def test_a_prompt_is_shown_to_the_model_and_not_echoed(server, clip_bytes):
    assert words(server.text(clip_bytes, prompt="Glossary: Zorro.")) == words(SENTENCE)


@pytest.fixture(scope="module")
def several(tiny_bundle, base_bundle):
    """A server with an English-only and a multilingual model."""
    offer = Offer(listeners_of({"tiny.en": tiny_bundle, "openai/base": base_bundle}), {})
    with serving(offer, max_minutes=0.1) as running:
        yield running


@pytest.mark.parametrize("language", ["", "en", "EN", "English", "en-US", "<|en|>", "auto"])
def test_a_language_has_many_names_and_none_detects_it(several, clip_bytes, language):
    fields = {"model": "openai/base", "response_format": "verbose_json", "language": language}
    content = several.post(file=clip_bytes, **fields).json()
    assert content["language"] == "english"
    assert words(content["text"]) == words(SENTENCE)


@pytest.mark.parametrize("language", ["sv", "SV", "Swedish", "sv-SE", "<|sv|>"])
def test_a_language_that_is_asked_for_is_the_answers(several, clip_bytes, language):
    fields = {"model": "openai/base", "response_format": "verbose_json", "language": language}
    assert several.post(file=clip_bytes, **fields).json()["language"] == "swedish"


def test_an_unknown_language_gives_400_with_the_codes(several, clip_bytes):
    answer = several.post(file=clip_bytes, model="openai/base", language="xx")
    assert answer.status_code == 400
    assert " sv " in answer.json()["error"]["message"]


def test_a_multilingual_model_translates(several, clip_bytes):
    fields = {"model": "openai/base", "response_format": "verbose_json"}
    answer = several.post("/v1/audio/translations", file=clip_bytes, **fields)
    assert answer.json()["task"] == "translate"
    assert words(answer.json()["text"]) == words(SENTENCE)


def test_models_with_a_slash_in_their_name_have_a_path_too(several, clip_bytes):
    answer = CLIENT.post(several.url + "/stt/openai/base", content=clip_bytes)
    assert words(answer.json()["text"]) == words(SENTENCE)


def test_the_models_are_listed(several):
    listed = CLIENT.get(several.url + "/v1/models").json()["data"]
    assert [each["id"] for each in listed] == ["tiny.en", "openai/base"]
    assert CLIENT.get(several.url + "/v1/models/openai/base").json() == listed[1]
    assert CLIENT.get(several.url + "/v1/models/none").status_code == 404


def test_a_recording_that_is_too_long_by_its_header_gives_413(several):
    assert several.post(file=wav(np.zeros(16000 * 7))).status_code == 413


def test_a_recording_that_hides_its_length_gives_413_too(several, container):
    av = pytest.importorskip("av")
    file = io.BytesIO()
    with av.open(file, "w", format="adts") as out:  # tells no length
        track = out.add_stream("aac", rate=16000, layout="mono")
        frame = av.AudioFrame.from_ndarray(
            np.zeros((1, 16000 * 20), np.float32), format="fltp", layout="mono"
        )
        frame.sample_rate = 16000
        out.mux(track.encode(frame))
        out.mux(track.encode(None))
    assert several.post(file=file.getvalue()).status_code == 413
