"""``beamless synth``: texts and a voice to a corpus."""

import sys
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from beamless.data_gen.casting import Cast, Part, Role, cast_from_recipe
from beamless.data_gen.corpora import CorpusWriter
from beamless.data_gen.corpus_writer import least_tokens
from beamless.data_gen.spoken import clean, spoken_form
from beamless.data_gen.text_lines import TextLine, digest_of, read_text_lines
from beamless.data_gen.voices import chosen_speaker, load_voice
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import track


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
    lines = read_text_lines(texts)[:limit]
    if recipe is None:
        loaded = load_voice(voice)
        cast = Cast((Role(loaded, 1.0, (chosen_speaker(loaded, speaker),), (speed, speed)),))
    else:
        cast = cast_from_recipe(recipe)
    origin = {"texts": digest_of(texts), "name": texts.stem, "limit": limit}
    counts = make_corpus(lines, out, cast, origin)
    sys.stdout.write(summary(out, counts) + "\n")
    if not counts["utterances"]:
        raise BeamlessError(f"none of the {len(lines)} lines of {texts} could be said")


def make_corpus(
    lines: Sequence[TextLine], out: Path, cast: Cast, recipe: Mapping[str, Any]
) -> dict[str, Any]:
    """Say the lines and return the corpus's counts; ``recipe`` says where the lines are from.

    Raises:
        BeamlessError: the folder holds something else, or a voice fails.
    """
    with CorpusWriter(out, {"stage": "synth", **recipe, **cast.recipe()}) as writer:
        done = writer.done_ids
        waiting = [line for line in lines if line.id not in done]
        for line in track(waiting, "saying", total=len(waiting)):
            say_line(writer, line, cast.part_for(line.id))
        return writer.finish([line.id for line in lines])


def say_line(writer: CorpusWriter, line: TextLine, part: Part) -> None:
    """Store one utterance, or refuse it with a reason."""
    voice = part.voice
    written = clean(line.text)
    said = spoken_form(line.spoken or line.text, voice.language)
    if said.reason:
        writer.refuse(line.id, said.reason)
        return
    if least_tokens(written) > writer.max_tokens:
        writer.refuse(line.id, f"text of more than {writer.max_tokens} tokens")
        return
    extra: dict[str, Any] = {"spoken": said.spoken, "speed": part.speed, **renamed(line.extra)}
    writer.add(
        line.id,
        voice.say(said.spoken, part.speaker, part.speed),
        voice.rate,
        written,
        speaker=f"{voice.name}/{part.speaker}",
        source="synth",
        license=voice.license,
        voice=voice.name,
        **extra,
    )


def renamed(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Keep a text's provenance, under other names where the corpus has a field of that name."""
    taken = {*signature(CorpusWriter.add).parameters, "file_name", "duration", "spoken", "speed"}
    return {f"text_{name}" if name in taken else name: value for name, value in extra.items()}


def summary(out: Path, counts: Mapping[str, Any]) -> str:
    """Return one line: what was made, and what was refused and why."""
    refused = counts["refused"]
    text = f"{out}: {counts['utterances']} utterances, {counts['hours']:.2f} h"
    if refused:
        reasons = ", ".join(f"{number} {reason}" for reason, number in refused.items())
        text += f"; refused {sum(refused.values())}: {reasons}"
    return text
