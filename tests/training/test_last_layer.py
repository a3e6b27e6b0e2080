"""The last layer as a baseline: it alone is trained, and what comes out is a plain Whisper."""

import numpy as np
import pytest
import torch

from beamless.inference.features import log_mel
from beamless.models.reference import reference_encode, reference_logits, reference_model
from beamless.training.last_layer import (
    LastLayer,
    Lesson,
    fit_last_layer,
    last_layer_of,
    lesson_loss,
    parameters_of,
    with_last_layer,
)

TEXT = " The period was short."


@pytest.fixture(scope="module")
def trained(tiny, tiny_bundle, speech):
    """tiny.en that was taught to hear ``TEXT`` in other speech, and the loss before and after."""
    whisper, tokenizer = reference_model(tiny), tiny_bundle.tokenizer
    encoded = reference_encode(whisper, log_mel(speech))
    tokens = (*tokenizer.encode(TEXT), tokenizer.end)
    lesson = Lesson(encoded.last_hidden_state[0].half(), tokens)
    prompt = tokenizer.prompt()
    losses = [lesson_loss(whisper, lesson, prompt, tiny).item()]
    fit_last_layer(whisper, [lesson], prompt, tiny, LastLayer(epochs=6, learning_rate=1e-3))
    losses.append(lesson_loss(whisper, lesson, prompt, tiny).item())
    return whisper, lesson, prompt, losses


def test_what_it_learns_from_becomes_likelier(trained):
    before, after = trained[3]
    assert after < before / 2


def test_nothing_but_the_last_layer_changes(trained, tiny):
    made = with_last_layer(tiny, trained[0])
    changed = {n for n, a in made.arrays.items() if not np.array_equal(a, tiny.arrays[n])}
    assert changed
    assert all(name.startswith("model.decoder.layers.3.") for name in changed)
    whisper = trained[0].state_dict()
    untouched = {n for n in tiny.arrays if not n.startswith("model.decoder.layers.3.")}
    for name in untouched:
        assert np.array_equal(whisper[name].numpy(), tiny.arrays[name].astype(np.float32)), name


def test_it_is_another_model_that_no_corrector_of_the_first_fits(trained, tiny):
    made = with_last_layer(tiny, trained[0])
    assert made.hash != tiny.hash
    assert {n: a.shape for n, a in made.arrays.items()} == {
        n: a.shape for n, a in tiny.arrays.items()
    }


def test_the_loss_is_that_of_the_tokens_behind_the_prompt(tiny, tiny_bundle, trained):
    _, lesson, prompt, _ = trained
    whisper = reference_model(tiny)
    given = [*prompt, *lesson.tokens[:-1]]
    logits = torch.from_numpy(
        reference_logits(whisper, (lesson.encoded[None].float(),), given)
    ).reshape(len(given), -1)[len(prompt) - 1 :]
    logits[:, list(tiny.suppress_tokens)] = -torch.inf
    logits[0, list(tiny.begin_suppress_tokens)] = -torch.inf
    expected = torch.nn.functional.cross_entropy(
        logits, torch.tensor(lesson.tokens), reduction="sum"
    )
    assert lesson_loss(whisper, lesson, prompt, tiny).item() == pytest.approx(
        expected.item(), rel=1e-4
    )
    assert parameters_of(tiny) == sum(p.numel() for p in last_layer_of(whisper).parameters())
