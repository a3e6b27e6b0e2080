"""Who learns and who judges: speakers of one side are never on the other."""

import json
from types import SimpleNamespace

import pytest
from conftest import SENTENCE

from beamless.data_gen.casting import Cast, Role
from beamless.data_gen.corpora import Utterance
from beamless.inference.atomic import begin
from beamless.inference.errors import BeamlessError
from beamless.models.corrector import config_of, untrained
from beamless.training.adapt import adapt, like, set_aside
from beamless.training.adapt_report import Term, draw_terms, report


def voice(name, *speakers):
    return SimpleNamespace(name=name, speakers=speakers)


def speakers_of(cast):
    return {(role.voice.name, s) for role in cast.roles for s in role.speakers}


def test_a_single_speaker_cannot_be_set_aside():
    cast = Cast((Role(voice("joe", "0")),))
    assert set_aside(cast) == (cast, None)


@pytest.mark.parametrize("count", [2, 9, 40])
def test_a_fifth_of_the_speakers_judges_and_no_other(count):
    cast = Cast((Role(voice("v", *map(str, range(count)))), Role(voice("joe", "0"))))
    learning, judging = set_aside(cast)
    assert judging is not None
    assert not speakers_of(learning) & speakers_of(judging)
    assert len(speakers_of(learning) | speakers_of(judging)) == count + 1
    assert len(speakers_of(judging)) == max(1, (count + 1) // 5)


def test_a_voice_that_is_set_aside_whole_says_nothing_to_learn_from():
    cast = Cast((Role(voice("a", "0")), Role(voice("b", "0"))))
    learning, judging = set_aside(cast)
    assert len(learning.roles) == len(judging.roles) == 1


@pytest.fixture
def words(tmp_path):
    (tmp_path / "words.txt").write_text("Reineke\n", encoding="utf-8")
    return tmp_path / "words.txt"


def test_a_model_that_is_not_to_be_had_is_said_before_a_voice_speaks(words, tmp_path):
    with pytest.raises(BeamlessError, match="there is no model 'huge'"):
        adapt("huge", tmp_path / "out", words=words)
    assert not (tmp_path / "out").exists()


def test_a_model_that_never_passed_the_gate_is_said_before_a_voice_speaks(
    words, tmp_path, monkeypatch
):
    monkeypatch.setenv("BEAMLESS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BeamlessError, match="never checked"):
        adapt("tiny.en", tmp_path / "out", words=words)
    assert not (tmp_path / "out").exists()


def test_a_dev_corpus_without_a_short_utterance_is_said_before_hours_of_work(words, clip, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "fox.wav").write_bytes(clip.read_bytes())
    line = {"id": "fox", "file_name": "fox.wav", "text": "the fox", "duration": 31.0}
    (corpus / "metadata.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(BeamlessError, match="has no utterance of at most 30 s"):
        adapt("huge", tmp_path / "out", words=words, dev=[corpus])
    with pytest.raises(BeamlessError, match="there is no corpus folder"):
        adapt("huge", tmp_path / "out", words=words, dev=[tmp_path / "nowhere"])
    assert not (tmp_path / "out").exists()


def test_traces_that_are_none_are_said_before_a_voice_speaks(words, tmp_path):
    with pytest.raises(BeamlessError, match="holds no traces"):
        adapt("tiny.en", tmp_path / "out", words=words, traces=[tmp_path])
    assert not (tmp_path / "out").exists()


def test_a_bundle_which_has_no_weights_is_refused_before_any_work(words, tiny_bundle, tmp_path):
    with pytest.raises(BeamlessError, match="is a bundle; name the model that it was made from"):
        adapt(str(tiny_bundle.folder), tmp_path / "out", words=words)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_command_is_refused_before_a_model_is_read(words, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BeamlessError, match="not of 'beamless adapt'"):
        adapt("huge", tmp_path / "out", words=words)


def test_a_finished_adaptation_is_not_written_over(words, tmp_path):
    begin(tmp_path / "out", "adapt")
    (tmp_path / "out" / "adapt.json").write_text("{}\n", encoding="utf-8")
    with pytest.raises(BeamlessError, match="holds a finished adaptation; name another folder"):
        adapt("huge", tmp_path / "out", words=words)
    assert (tmp_path / "out" / "adapt.json").read_text(encoding="utf-8") == "{}\n"


@pytest.mark.parametrize(("term", "told"), [("Reineke", True), ("fox", False)])
def test_terms_that_are_heard_no_more_than_before_are_said(
    tiny_bundle, clip, tmp_path, capsys, term, told
):
    said = Utterance("fox", clip, SENTENCE, "joe", 3.0, "", "", extra={"term": term})
    report(tiny_bundle, tiny_bundle, {"terms": [said]}, other_speakers=True, out=tmp_path)
    printed = " ".join(capsys.readouterr().err.split())
    line = "no more terms are heard than before: 0 of 1, now 0; without training, 'beamless"
    assert (f"{line} transcribe --hotwords' may help" in printed) == told


def test_terms_that_are_still_missed_are_named(tiny_bundle, clip, tmp_path, capsys):
    terms = ["fox", *(f"Name{n}" for n in range(11))]
    said = [Utterance(t, clip, SENTENCE, "joe", 3.0, "", "", extra={"term": t}) for t in terms]
    report(tiny_bundle, tiny_bundle, {"terms": said}, other_speakers=True, out=tmp_path)
    printed = " ".join(capsys.readouterr().err.split())
    assert "not always heard: Name0 (0 of 1), Name1 (0 of 1)" in printed
    assert "Name9 (0 of 1) and 1 more" in printed
    assert "fox (" not in printed


@pytest.mark.parametrize("family", ["shift", "rerank", "dense"])
def test_a_corrector_is_trained_further_with_the_sizes_that_it_has(family):
    options = {"units": 16, "gate": True, "ledger": True, "last_token": True, "candidates": 4}
    config = config_of(family, "m" * 64, 12, 30, **options)
    fitting = like(untrained(config))
    sizes = {name: getattr(fitting, name) for name in options}
    assert config_of(family, "m" * 64, 12, 30, history=fitting.history, **sizes) == config


@pytest.mark.parametrize("name", ["$5 # $6", "$a_$", "10$ % 20$"])
def test_a_term_with_signs_of_a_formula_is_drawn_as_it_is(tmp_path, name):
    draw_terms([Term(name, 2, 0, 1)], tmp_path / "terms.png")
    assert (tmp_path / "terms.png").read_bytes().startswith(b"\x89PNG")
