"""What a transcription is: text, its segments and words with their times, and how it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from beamless.inference.languages import joined


@dataclass(frozen=True)
class Word:
    """One word as the model wrote it, its leading space included but for a segment's first.

    Times are seconds from the recording's start; the probability is the mean of its tokens',
    calibrated where the bundle is: then so many of such words are right. ``alternatives`` are what
    the decoder might have begun the word with instead.
    """

    start: float
    end: float
    text: str
    probability: float
    alternatives: tuple["Alternative", ...] = ()


@dataclass(frozen=True)
class Alternative:
    """Another reading, of a window or of a word's beginning."""

    text: str
    avg_logprob: float


@dataclass(frozen=True)
class Segment:
    """A piece of a recording and its text; times are seconds from the recording's start.

    ``words``, where there are any, joined give ``text``. ``finish_reason`` says why the decoder
    stopped: ``"stop"`` at the end of text, ``"budget"`` where that was more than can be said in the
    window's time, ``"length"`` at its capacity. ``alternatives`` are of the whole window that the
    segment is the first of. ``confidences`` say of each of ``tokens`` how likely it is right, None
    of a time; there are none where the bundle is not calibrated.
    """

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]
    avg_logprob: float
    no_speech_prob: float
    finish_reason: str
    words: tuple[Word, ...] = ()
    speaker: str = ""
    alternatives: tuple[Alternative, ...] = ()
    confidences: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Transcript:
    """The text of a recording of ``duration`` seconds; ``timings`` are seconds spent by stage.

    ``left_out`` is how many seconds of it gave no text, as no speech was heard there.
    """

    text: str
    segments: tuple[Segment, ...]
    language: str
    duration: float
    timings: Mapping[str, float] = field(default_factory=dict)
    left_out: float = 0.0


def side_by_side(transcripts: Sequence[Transcript], speakers: Sequence[str]) -> Transcript:
    """Put transcripts of the same time, one a speaker, into one in the order of their segments.

    The language is the first speaker's who said anything; timings are added up. How much was left
    out is not told: where one is silent another may speak.
    """
    segments = sorted(
        (
            replace(segment, speaker=speaker)
            for transcript, speaker in zip(transcripts, speakers, strict=True)
            for segment in transcript.segments
        ),
        key=lambda segment: segment.start,
    )
    heard = [transcript for transcript in transcripts if transcript.segments] or transcripts[:1]
    language = heard[0].language if heard else ""
    timings: dict[str, float] = {}
    for transcript in transcripts:
        for stage, seconds in transcript.timings.items():
            timings[stage] = timings.get(stage, 0.0) + seconds
    return Transcript(
        text=joined((segment.text for segment in segments), language),
        segments=tuple(segments),
        language=language,
        duration=max((transcript.duration for transcript in transcripts), default=0.0),
        timings=timings,
    )
