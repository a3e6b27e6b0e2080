"""The official client, pointed here, with nothing else changed."""

import re

import pytest
from conftest import SENTENCE

from beamless.data_gen.voices import load_voice
from beamless.inference.server.models import Offer, Speaker

from .conftest import serving

openai = pytest.importorskip("openai")


@pytest.fixture(scope="module")
def client(offer):
    speakers = {"joe": Speaker("joe", load_voice("joe"))}
    with (
        serving(Offer(offer.listeners, speakers), api_key="sesame") as running,
        openai.OpenAI(base_url=running.url + "/v1", api_key="sesame", max_retries=0) as client,
    ):
        yield client


def letters(text):
    return re.sub(r"[^a-z]", "", text.lower())


def test_it_transcribes(client, clip):
    with clip.open("rb") as file:
        found = client.audio.transcriptions.create(model="whisper-1", file=file)
    assert letters(found.text) == letters(SENTENCE)


def test_it_gets_words_and_segments(client, clip):
    found = client.audio.transcriptions.create(
        model="tiny.en",
        file=clip,
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
        language="en",
        temperature=0,
    )
    assert letters("".join(word.word for word in found.words)) == letters(SENTENCE)
    assert found.segments[0].avg_logprob < 0
    assert found.duration > 2


@pytest.mark.parametrize("format", ["text", "srt", "vtt"])
def test_it_gets_raw_bodies(client, clip, format):
    found = client.audio.transcriptions.create(model="tiny.en", file=clip, response_format=format)
    assert isinstance(found, str)
    assert "dog" in found


def test_it_streams(client, clip):
    stream = client.audio.transcriptions.create(model="tiny.en", file=clip, stream=True)
    events = list(stream)
    assert [event.type for event in events] == ["transcript.text.delta", "transcript.text.done"]
    assert events[0].delta == events[-1].text


def test_our_own_field_goes_as_an_extra(client, clip):
    more = {"method": "beam5"}
    found = client.audio.transcriptions.create(model="tiny.en", file=clip, extra_body=more)
    assert letters(found.text) == letters(SENTENCE)


def test_what_it_says_is_heard(client, tmp_path):
    spoken = client.audio.speech.create(model="tts-1", voice="alloy", input=SENTENCE)
    spoken.write_to_file(tmp_path / "said.mp3")
    heard = client.audio.transcriptions.create(model="whisper-1", file=tmp_path / "said.mp3")
    assert letters(heard.text) == letters(SENTENCE)


def test_it_lists_models(client):
    assert [model.id for model in client.models.list()] == ["tiny.en", "joe"]


def test_errors_are_the_clients_own(client, clip):
    with pytest.raises(openai.NotFoundError, match="no model"):
        client.audio.transcriptions.create(model="large", file=clip)
    with pytest.raises(openai.BadRequestError, match="English"):
        client.audio.translations.create(model="tiny.en", file=clip)
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()
