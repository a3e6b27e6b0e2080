"""A training is judged by decoding its dev set as production will."""

from conftest import SENTENCE

from beamless.data_gen.corpora import Utterance
from beamless.inference.greedy import Greedy
from beamless.training import decoded
from beamless.training.decoded import DevSet, decoded_errors


def dev_set(bundle, clip, speech):
    heard = Utterance("fox", clip, SENTENCE, "joe", len(speech) / 16000, "piper", "")
    return DevSet(bundle, [heard], "en", "short")


def test_a_text_that_ends_by_itself_did_not_run_away(tiny_bundle, clip, speech):
    errors, runaway = decoded_errors(dev_set(tiny_bundle, clip, speech), Greedy(tiny_bundle))
    assert errors.rate < 0.3
    assert runaway == 0


def test_a_runaway_text_is_stopped_where_production_stops_it(
    tiny_bundle, clip, speech, monkeypatch
):
    monkeypatch.setattr(decoded, "budget_for", lambda samples, language, rate: 3)
    errors, runaway = decoded_errors(dev_set(tiny_bundle, clip, speech), Greedy(tiny_bundle))
    assert errors.deletions > errors.insertions
    assert runaway == 1
