"""``beamless synth``: texts and a voice to a corpus."""

import sys
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from beamless.data_gen.corpora import CorpusWriter
from beamless.data_gen.corpus_writer import least_tokens
from beamless.data_gen.spoken import spoken_form
from beamless.data_gen.text_lines import TextLine, digest_of, read_text_lines
from beamless.data_gen.voices import Voice, chosen_speaker, load_voice
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import track


def synth(
    texts: Path,
    out: Path,
    *,
    voice: str = "joe",
    speaker: str | None = None,
    speed: float = 1.0,
    limit: int | None = None,
) -> None:
    """Say every line of a text file and store the audio as a corpus.

    A run that was stopped goes on where it was when the same command is given again. What cannot
    be said is refused with a reason and counted; nothing is cut.

    Args:
        texts: a text file with one utterance a line, or a .jsonl file that beamless texts wrote.
        out: the folder of the new corpus.
        voice: joe, or a Piper voice file (.onnx with its .onnx.json beside it).
        speaker: one of the voice's speakers; its first one by default.
        speed: 1 is the voice's own pace, 2 twice as fast.
        limit: use the first so many lines only.

    Raises:
        BeamlessError: the texts, the voice or the folder are not what they must be, or no line
            could be said.
    """
    if not 0.25 <= speed <= 4:
        raise BeamlessError(f"a speed of {speed} is out of range; give one from 0.25 to 4")
    lines = read_text_lines(texts)[:limit]
    loaded = load_voice(voice)
    who = chosen_speaker(loaded, speaker)
    plan = {
        "stage": "synth",
        "texts": digest_of(texts),
        "voice": loaded.name,
        "speaker": who,
        "speed": speed,
        "limit": limit,
    }
    with CorpusWriter(out, plan) as writer:
        done = writer.done_ids
        waiting = [line for line in lines if line.id not in done]
        for line in track(waiting, "saying"):
            say_line(writer, line, loaded, who, speed)
        counts = writer.finish([line.id for line in lines])
    sys.stdout.write(summary(out, counts) + "\n")
    if not counts["utterances"]:
        raise BeamlessError(f"none of the {len(lines)} lines of {texts} could be said")


def say_line(
    writer: CorpusWriter, line: TextLine, voice: Voice, speaker: str, speed: float
) -> None:
    """Store one utterance, or refuse it with a reason."""
    forms = spoken_form(line.text, voice.language)
    if forms.reason:
        writer.refuse(line.id, forms.reason)
        return
    if least_tokens(forms.written) > writer.max_tokens:
        writer.refuse(line.id, f"text of more than {writer.max_tokens} tokens")
        return
    spoken = line.spoken or forms.spoken
    extra: dict[str, Any] = {"spoken": spoken, "speed": speed, **renamed(line.extra)}
    writer.add(
        line.id,
        voice.say(spoken, speaker, speed),
        voice.rate,
        forms.written,
        speaker=f"{voice.name}/{speaker}",
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
