"""``beamless synth``: texts and a voice to a corpus."""

import sys
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import soxr

from beamless.data_gen.casting import Cast, Part, Role, cast_from_recipe
from beamless.data_gen.corpus_writer import (
    MAX_TOKENS,
    RATE,
    CorpusWriter,
    least_tokens,
    refuse_nothing,
    summary_of,
)
from beamless.data_gen.importers.intake import Intake
from beamless.data_gen.importers.recording import Recording
from beamless.data_gen.importers.source import renamed
from beamless.data_gen.spoken import clean, spoken_form
from beamless.data_gen.text_lines import TextLine, digest_of, read_text_lines
from beamless.data_gen.voices import Samples, chosen_speaker, load_voice
from beamless.inference.counts import require_positive

SOURCE = "synth"


def synth(
    texts: Path,
    out: Path,
    *,
    voice: str = "joe",
    speaker: str | None = None,
    speed: float = 1.0,
    recipe: Path | None = None,
    limit: int | None = None,
) -> None:
    """Say every line of a text file and store the audio as a corpus.

    A run that was stopped goes on where it was when the same command is given again. What cannot
    be said is refused with a reason and counted; nothing is cut.

    Args:
        texts: a text file with one utterance a line, or a .jsonl file that beamless texts wrote.
        out: the folder of the new corpus.
        voice: joe, a Piper voice file (.onnx with its .onnx.json beside it), kokoro:VOICES,
            openai:ADDRESS or coqui:MODEL.
        speaker: one of the voice's speakers; its first one by default.
        speed: 1 is the voice's own pace, 2 twice as fast.
        recipe: a YAML file of several voices with their shares, speakers and speeds, in place of
            the three options above.
        limit: use the first so many lines only.

    Raises:
        BeamlessError: the texts, the voice or the folder are not what they must be, or no line
            could be said.
    """
    require_positive(limit=limit)
    lines = read_text_lines(texts)[:limit]
    if recipe is None:
        loaded = load_voice(voice)
        cast = Cast((Role(loaded, 1.0, (chosen_speaker(loaded, speaker),), (speed, speed)),))
    else:
        cast = cast_from_recipe(recipe)
    origin = {"texts": digest_of(texts), "name": texts.stem, "limit": limit}
    counts = make_corpus(lines, out, cast, origin)
    sys.stdout.write(summary_of(out, counts) + "\n")


def make_corpus(
    lines: Sequence[TextLine], out: Path, cast: Cast, recipe: Mapping[str, Any]
) -> dict[str, Any]:
    """Say the lines and return the corpus's counts; ``recipe`` says where the lines are from.

    Raises:
        BeamlessError: the folder holds something else, a voice fails, or no line could be said.
    """
    with CorpusWriter(out, {"stage": "synth", **recipe, **cast.recipe()}) as writer:
        done = writer.done_ids
        waiting = [line for line in lines if line.id not in done]
        intake = Intake({"": writer}, None, None, SOURCE, "")
        intake.run((to_be_said(line, cast) for line in waiting), "saying", len(waiting))
        refuse_nothing([writer], f"none of the {len(lines)} lines could be said")
        return writer.finish([line.id for line in lines])


def to_be_said(line: TextLine, cast: Cast) -> Recording:
    """Return a line as a recording that is said when its samples are asked for.

    What no voice can say, or no Whisper can write, has its reason as the recording's fault.
    """
    part = cast.part_for(line.id)
    voice, written = part.voice, clean(line.text)
    said = spoken_form(line.spoken or line.text, voice.language)
    fault = said.reason
    if not fault and least_tokens(written) > MAX_TOKENS:
        fault = f"text of more than {MAX_TOKENS} tokens"
    extra = {"spoken": said.spoken, "speed": part.speed}
    return Recording(
        line.id,
        cache(partial(_samples, part, said.spoken)),
        written,
        speaker=f"{voice.name}/{part.speaker}",
        source=SOURCE,
        license=voice.license,
        voice=voice.name,
        fault=fault,
        extra={**extra, **renamed(line.extra, "text", extra)},
    )


def _samples(part: Part, spoken: str) -> Samples:
    """Say a text; float32 ``[n]`` at 16 kHz."""
    samples = part.voice.say(spoken, part.speaker, part.speed)
    return soxr.resample(samples, part.voice.rate, RATE) if len(samples) else samples
