"""What a bench found out: from turns of clips to one line of figures an implementation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from beamless.inference.tokenizer import Tokenizer
from beamless.training.bench.clips import Clip
from beamless.training.bench.process import Answer
from beamless.training.metrics import Errors, normalize, word_errors

BASELINE = "beamless:greedy"


@dataclass(frozen=True)
class Turn:
    """One implementation's turn in one round: a process started, and all clips, in their order.

    ``cold`` is the start with nothing kept from before, in the first round only.
    """

    name: str
    round: int
    cold: float | None
    start: float
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Line:
    """One clip by one implementation; times are medians over the rounds, in seconds."""

    implementation: str
    clip: str
    duration: float
    reference: str
    text: str
    substitutions: int
    insertions: int
    deletions: int
    words: int
    seconds: float
    processor_seconds: float
    first_token: float | None
    tokens: int
    steps: int | None

    @property
    def errors(self) -> Errors:
        """Its word errors."""
        return Errors(self.substitutions, self.insertions, self.deletions, self.words)


@dataclass(frozen=True)
class Figures:
    """One implementation over all clips.

    Attributes:
        wer: word error rate as a fraction, after Whisper's normaliser.
        seconds, processor_seconds: all clips together, each by the median of its rounds; by the
            clock, and of all cores together.
        real_time_factor: seconds ÷ seconds of audio.
        first_token: median over the clips, in seconds; None where nobody tells.
        ms_per_token: milliseconds ÷ tokens of the text in the model's own tokenizer.
        steps: decoder steps; None where nobody tells.
        memory: peak of the process in bytes, the median of the rounds.
        cold, cached: seconds from starting the process to the first recording's text, with nothing
            kept from before and with what starts keep.
        time_ratio, memory_ratio: by those of our greedy decoding, where it was measured.
    """

    implementation: str
    wer: float
    seconds: float
    processor_seconds: float
    real_time_factor: float
    first_token: float | None
    ms_per_token: float
    steps: int | None
    memory: float | None
    cold: float | None
    cached: float
    time_ratio: float | None = None
    memory_ratio: float | None = None


def lines_of(
    turns: Sequence[Turn], clips: Sequence[Clip], language: str, tokenizer: Tokenizer
) -> list[Line]:
    """Return a line for each clip of one implementation's turns; the text is the first round's."""
    lines = []
    for index, clip in enumerate(clips):
        answers = [turn.answers[index] for turn in turns]
        first = answers[0]
        errors = word_errors(normalize(clip.text, language), normalize(first.text, language))
        lines.append(
            Line(
                implementation=turns[0].name,
                clip=clip.id,
                duration=clip.seconds,
                reference=clip.text,
                text=first.text,
                substitutions=errors.substitutions,
                insertions=errors.insertions,
                deletions=errors.deletions,
                words=errors.words,
                seconds=median(answer.seconds for answer in answers),
                processor_seconds=median(answer.processor_seconds for answer in answers),
                first_token=known_median([answer.first_token for answer in answers]),
                tokens=len(tokenizer.encode(" " + first.text)) if first.text else 0,
                steps=first.steps,
            )
        )
    return lines


def figures_of(turns: Sequence[Turn], lines: Sequence[Line]) -> Figures:
    """Pool one implementation's lines."""
    seconds = sum(line.seconds for line in lines)
    steps = [line.steps for line in lines if line.steps is not None]
    return Figures(
        implementation=turns[0].name,
        wer=sum((line.errors for line in lines), Errors()).rate,
        seconds=seconds,
        processor_seconds=sum(line.processor_seconds for line in lines),
        real_time_factor=seconds / max(1e-9, sum(line.duration for line in lines)),
        first_token=known_median([line.first_token for line in lines]),
        ms_per_token=1000 * seconds / max(1, sum(line.tokens for line in lines)),
        steps=sum(steps) if len(steps) == len(lines) else None,
        memory=known_median([turn.answers[-1].memory for turn in turns]),
        cold=known_median([turn.cold for turn in turns]),
        cached=median(turn.start for turn in turns),
    )


def with_ratios(found: Sequence[Figures]) -> list[Figures]:
    """Set every implementation beside our own greedy decoding, where that is among them."""
    base = next((each for each in found if each.implementation == BASELINE), None)
    if base is None:
        return list(found)
    return [_beside(each, base) for each in found]


def _beside(figures: Figures, base: Figures) -> Figures:
    memory = None
    if figures.memory and base.memory:
        memory = figures.memory / base.memory
    return replace(figures, time_ratio=figures.seconds / base.seconds, memory_ratio=memory)


def known_median(values: Sequence[float | None]) -> float | None:
    """Return the median of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


Cell = Callable[[Figures], str]


def _number(name: str, pattern: str, factor: float = 1) -> Cell:
    def cell(figures: Figures) -> str:
        value = getattr(figures, name)
        return "" if value is None else format(factor * value, pattern)

    return cell


COLUMNS: dict[str, Cell] = {
    "implementation": lambda figures: figures.implementation,
    "WER %": _number("wer", ".2f", 100),
    "seconds": _number("seconds", ".2f"),
    "CPU s": _number("processor_seconds", ".2f"),
    "× greedy": _number("time_ratio", ".2f"),
    "RTF": _number("real_time_factor", ".3f"),
    "first token ms": _number("first_token", ".0f", 1000),
    "ms/token": _number("ms_per_token", ".1f"),
    "steps": _number("steps", "d"),
    "peak MB": _number("memory", ".0f", 1e-6),
    "cold s": _number("cold", ".2f"),
    "cached s": _number("cached", ".2f"),
}
"""What tables show, by the columns' heads."""
