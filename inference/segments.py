"""A window's hypothesis to segments with text, times and words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from beamless.inference.confidence import Confidence
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.intervals import Interval, fitted
from beamless.inference.timestamps import TimedSlice
from beamless.inference.tokenizer import Tokenizer
from beamless.inference.transcript import Alternative, Segment, Word
from beamless.inference.word_times import (
    BROKEN,
    TokenWord,
    spoken_interval,
    token_times,
    trimmed,
    words_of,
)

SHORT_PAUSE = 0.3  # s: speech before and behind it is one stretch, for word times


@dataclass(frozen=True)
class Place:
    """Where a window lies in its recording, in seconds.

    Attributes:
        start, end: no time is outside.
        speech: where speech was detected in it, from its start; None if nobody looked.
    """

    start: float
    end: float
    speech: Sequence[Interval] | None = None


def segments_of(
    hypothesis: Hypothesis,
    slices: Sequence[TimedSlice],
    place: Place,
    tokenizer: Tokenizer,
    language: str,
    confidence: Confidence | None = None,
) -> list[Segment]:
    """Return the segments that slices of a hypothesis make; those without text are left out.

    Times are those of the recording, positive in length, in order and inside the window. Where the
    hypothesis has an alignment the words are in the segments, which then begin and end with them;
    ``confidence`` calibrates their probabilities, and tells those of tokens.
    """
    texts = [_text(hypothesis.tokens[s.first : s.stop], tokenizer) for s in slices]
    spoken = [(s, text) for s, text in zip(slices, texts, strict=True) if text]
    seconds = place.end - place.start
    times = [
        (place.start + s.start, place.start + (seconds if s.end is None else s.end))
        for s, _ in spoken
    ]
    confidences = confidences_of(hypothesis, tokenizer, confidence)
    segments = [
        Segment(
            start=start,
            end=end,
            text=text,
            tokens=hypothesis.tokens[s.first : s.stop],
            avg_logprob=_mean_logprob(hypothesis, s),
            no_speech_prob=hypothesis.no_speech_prob,
            finish_reason=hypothesis.finish_reason if s.end is None else "stop",
            confidences=confidences[s.first : s.stop],
        )
        for (s, text), (start, end) in zip(
            spoken, fitted(times, place.start, place.end), strict=True
        )
    ]
    if hypothesis.alignment is None or not segments:
        return segments
    where = (place, tokenizer, language, confidence)
    return _with_words(segments, hypothesis, [s for s, _ in spoken], *where)


def confidences_of(
    hypothesis: Hypothesis, tokenizer: Tokenizer, confidence: Confidence | None
) -> tuple[float | None, ...]:
    """Return how likely each token of a hypothesis is right, None of a time.

    There are none where that is not known.
    """
    if confidence is None:
        return ()
    tokens = hypothesis.tokens
    right = confidence.of_tokens(hypothesis.logprobs[: len(tokens)], hypothesis.avg_logprob)
    return tuple(
        float(each) if token < tokenizer.end else None
        for token, each in zip(tokens, right, strict=True)
    )


def alternatives_of(
    hypotheses: Sequence[Hypothesis], tokenizer: Tokenizer, count: int
) -> tuple[Alternative, ...]:
    """Return the texts of a window's other hypotheses that differ, best first."""
    readings: dict[str, Alternative] = {}
    for hypothesis in hypotheses:
        text = _text(hypothesis.tokens, tokenizer)
        readings.setdefault(text, Alternative(text, hypothesis.avg_logprob))
    return tuple(readings.values())[1 : count + 1]


def beginnings(hypothesis: Hypothesis, step: int, tokenizer: Tokenizer) -> tuple[Alternative, ...]:
    """Return what else a step might have begun a word with, best first."""
    found = [
        Alternative(_text([token], tokenizer), logprob)
        for token, logprob in hypothesis.others[step]
        if token != hypothesis.tokens[step] and np.isfinite(logprob)
    ]
    return tuple(each for each in found if each.text)


def _text(tokens: Sequence[int], tokenizer: Tokenizer) -> str:
    """Decode tokens; what is left of a character that was cut in two is left out."""
    return tokenizer.decode(tokens).replace(BROKEN, "").strip()


def _mean_logprob(hypothesis: Hypothesis, piece: TimedSlice) -> float:
    last = piece.stop == len(hypothesis.tokens)
    stop = None if last else piece.stop  # the end token's is among the last one's
    logprobs = hypothesis.logprobs[piece.first : stop]
    return sum(logprobs) / max(1, len(logprobs))


def _with_words(
    segments: Sequence[Segment],
    hypothesis: Hypothesis,
    slices: Sequence[TimedSlice],
    place: Place,
    tokenizer: Tokenizer,
    language: str,
    confidence: Confidence | None,
) -> list[Segment]:
    assert hypothesis.alignment is not None
    ids = np.array(hypothesis.tokens, np.int64)
    text_steps = np.flatnonzero(ids < tokenizer.end)
    steps = [*text_steps, *range(len(ids), len(hypothesis.alignment))]  # the end's too
    times = token_times(hypothesis.alignment[steps], place.end - place.start)
    row_of = {int(step): row for row, step in enumerate(text_steps)}
    words: list[list[Word]] = []
    for piece in slices:
        inside = [step for step in range(piece.first, piece.stop) if step in row_of]
        first = row_of[inside[0]]
        parts = words_of(ids[inside].tolist(), tokenizer, language)
        logprobs = np.array([hypothesis.logprobs[step] for step in inside])
        group = [_word(part, times[first:], logprobs, place) for part in trimmed(parts)]
        group = [_calibrated(word, confidence, hypothesis.avg_logprob) for word in group]
        if hypothesis.others:
            begins = [inside[part.first] for part in trimmed(parts)]
            group = [
                replace(word, alternatives=beginnings(hypothesis, step, tokenizer))
                for word, step in zip(group, begins, strict=True)
            ]
        words.append(group)
    found = [replace(s, words=tuple(group)) for s, group in zip(segments, words, strict=True)]
    return fitted_segments(found, place.start, place.end)


def fitted_segments(segments: Sequence[Segment], low: float, high: float) -> list[Segment]:
    """Move words between ``low`` and ``high`` s where they are not; segments go with them."""
    spans = [(each.start, each.end) for s in segments for each in s.words or (s,)]
    placed = iter(fitted(spans, low, high))
    found = []
    for segment in segments:
        times = [next(placed) for _ in segment.words or (segment,)]
        words = [
            replace(word, start=start, end=end)
            for word, (start, end) in zip(segment.words, times, strict=False)
        ]
        start, end = times[0][0], times[-1][1]
        found.append(replace(segment, start=start, end=end, words=tuple(words)))
    return found


def _word(part: TokenWord, times: np.ndarray, logprobs: np.ndarray, place: Place) -> Word:
    start, end = float(times[part.first]), float(times[max(part.spoken, part.first + 1)])
    if place.speech is not None:
        start, end = spoken_interval(start, end, _without_short_pauses(place.speech))
    probability = word_probability(logprobs[part.first : part.stop])
    return Word(place.start + start, place.start + end, part.text, probability)


def word_probability(logprobs: np.ndarray) -> float:
    """Return a word's raw probability by its tokens' log-probabilities [T]: their mean."""
    return float(np.exp(logprobs).mean())


def _calibrated(word: Word, confidence: Confidence | None, avg_logprob: float) -> Word:
    if confidence is None:
        return word
    return replace(word, probability=confidence.of_word(word.probability, avg_logprob))


def _without_short_pauses(speech: Sequence[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for start, end in speech:
        if found and start - found[-1][1] < SHORT_PAUSE:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
