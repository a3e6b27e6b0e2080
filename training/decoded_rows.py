"""Every contender on the same utterances: one row a method and utterance, for an evaluation."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from beamless.data_gen.corpora import Utterance
from beamless.data_gen.targets import errors_of
from beamless.data_gen.word_errors import Errors
from beamless.inference.audio import SAMPLE_RATE, WINDOW_SECONDS, load_audio
from beamless.inference.budget import budget_for
from beamless.inference.bundle import Bundle
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.methods import Method
from beamless.inference.options import AudioContext
from beamless.inference.progress import console
from beamless.inference.timing import timed
from beamless.inference.window_encoder import WindowEncoder
from beamless.training.contenders import Contender, decode
from beamless.training.forced_steps import StepCounts, forced_counts, target_of
from beamless.training.judged_words import judged_words
from beamless.training.kept_windows import KeptWindows
from beamless.training.report import Row

Lists = Mapping[Contender, tuple[list[Hypothesis], float]]
"""What each decoding found, best first, and the seconds that it took."""


def decode_all(
    bundle: Bundle,
    contenders: Sequence[Contender],
    methods: Mapping[Contender, Method],
    language: str,
    work: Sequence[tuple[str, Utterance]],
    windows: Path | None = None,
) -> Iterator[list[Row]]:
    """Yield one row a method for each (corpus, utterance); none where it is longer than 30 s.

    A method's seconds are those of the encoder, which those of the same audio context share, and
    its own decoding. Methods take turns in an order drawn anew for each utterance, the same in each
    run: of two that read the same weights, the first pays for bringing them into the processor's
    cache.
    """
    prompt = bundle.tokenizer.prompt(language)
    encoder = KeptWindows(bundle, windows) if windows else WindowEncoder(bundle)
    contexts = {one.audio_context for one in contenders}
    encoder.prepare(contexts)
    for corpus, utterance in work:
        samples = load_audio(utterance.audio)
        if len(samples) > WINDOW_SECONDS * SAMPLE_RATE:
            console().print(f"left out {utterance.id}: longer than 30 s")
            yield []
            continue
        budget = budget_for(samples, language, None)
        encoded = {context: timed(encoder, samples, context) for context in contexts}
        turns = list(dict.fromkeys(one.decoding for one in contenders))
        random.Random(utterance.id).shuffle(turns)
        lists: dict[Contender, tuple[list[Hypothesis], float]] = {}
        for one in turns:
            cross_kv, _ = encoded[one.audio_context]
            lists[one] = timed(decode, one, methods[one], cross_kv, prompt, budget)
        errors = {
            one: [errors_of(h.tokens, utterance.text, bundle.tokenizer, language) for h in found]
            for one, (found, _) in lists.items()
        }
        cross_kvs = {context: cross_kv for context, (cross_kv, _) in encoded.items()}
        targets = _targets(lists, errors, bundle.tokenizer.end)
        steps = forced_counts(contenders, methods, cross_kvs, prompt, targets)
        yield [
            _row(
                bundle,
                language,
                one,
                (corpus, utterance, len(samples) / SAMPLE_RATE),
                lists[one.decoding],
                errors[one.decoding],
                encoded[one.audio_context][1],
                steps.get(one.decoding, StepCounts()),
            )
            for one in contenders
        ]


def _targets(
    lists: Lists, errors: Mapping[Contender, Sequence[Errors]], end: int
) -> dict[AudioContext, list[int]]:
    """Return, by audio context, the best text of the widest beam's list; none without a beam."""
    found: dict[AudioContext, list[int]] = {}
    beams = [one for one in lists if one.method.startswith("beam") and one.options.plain]
    for one in sorted(beams, key=lambda beam: len(lists[beam][0])):
        target = target_of(lists[one][0], [e.total for e in errors[one]], end)
        if target is not None:
            found[one.audio_context] = target
    return found


def _row(
    bundle: Bundle,
    language: str,
    contender: Contender,
    spoken: tuple[str, Utterance, float],
    decoded: tuple[list[Hypothesis], float],
    counted: Sequence[Errors],
    encoder_seconds: float,
    steps: StepCounts,
) -> Row:
    corpus, utterance, duration = spoken
    found, decoder_seconds = decoded
    ranks = range(len(found) if contender.oracle else 1)
    best = min(ranks, key=lambda rank: counted[rank].total)
    hypothesis, errors = found[best], counted[best]
    words = judged_words(hypothesis, utterance, bundle.tokenizer, language)
    fitted = bundle.confidence_in(language)
    return Row(
        corpus=corpus,
        id=utterance.id,
        speaker=utterance.speaker,
        duration=duration,
        method=contender.name,
        reference=utterance.text,
        hypothesis=bundle.tokenizer.decode(hypothesis.tokens).strip(),
        substitutions=errors.substitutions,
        insertions=errors.insertions,
        deletions=errors.deletions,
        words=errors.words,
        steps=hypothesis.steps,
        encoder_seconds=encoder_seconds,
        decoder_seconds=decoder_seconds,
        finish_reason=hypothesis.finish_reason,
        avg_logprob=hypothesis.avg_logprob,
        no_speech_prob=hypothesis.no_speech_prob,
        tokens=len(hypothesis.logprobs),
        missed_steps=steps.missed,
        mended_steps=steps.mended,
        right_steps=steps.right,
        harmed_steps=steps.harmed,
        within_2=steps.within[0],
        within_4=steps.within[1],
        within_8=steps.within[2],
        judged=[
            [w.raw, fitted.of_word(w.raw, w.mean) if fitted else w.raw, float(w.right)]
            for w in words
            if w.unit == "word"
        ],
    )
