"""Teachers: who else writes down what was said, in the student's tokens."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from beamless.data_gen.corpora import Utterance, json_object, numbered_lines
from beamless.data_gen.targets import reference_tokens
from beamless.data_gen.text_lines import digest_of
from beamless.data_gen.traces import TraceRecipe
from beamless.inference.beam import Beam, beam_search
from beamless.inference.errors import BeamlessError
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.tokenizer import Tokenizer
from beamless.inference.window_encoder import WindowEncoder
from beamless.models.bundle import open_bundle


class Teacher(Protocol):
    """Whoever hears an utterance and writes it down."""

    def hypotheses(
        self, utterance: Utterance, samples: np.ndarray, student: Tokenizer
    ) -> list[Hypothesis]:
        """Return what was said, the likeliest text first, in the student's tokens.

        ``samples`` are float32 [n] at 16 kHz. The hypotheses have no hidden states.
        """
        ...


class LargerWhisper:
    """A larger Whisper, whose beam writes texts."""

    def __init__(self, device: str, recipe: TraceRecipe) -> None:
        bundle = open_bundle(recipe.teacher, device)
        self._tokenizer, self._recipe = bundle.tokenizer, recipe
        self._prompt = bundle.tokenizer.prompt(recipe.language)
        self._encoder = WindowEncoder(bundle)
        self._beam = Beam(bundle, recipe.beam_size)

    def hypotheses(
        self, utterance: Utterance, samples: np.ndarray, student: Tokenizer
    ) -> list[Hypothesis]:
        """Return the teacher's N-best list."""
        cross_kv = self._encoder(samples, "full")
        end, penalty = self._tokenizer.end, self._recipe.length_penalty
        nbest = beam_search(self._beam, cross_kv, self._prompt, end, penalty)
        return [
            replace(h, tokens=reference_tokens(self._tokenizer.decode(h.tokens), student))
            for h in nbest
        ]


class WrittenTexts:
    """Texts that another implementation wrote: a JSONL file of ``id`` and ``text``."""

    def __init__(self, file: Path) -> None:
        self._texts = read_texts(file)

    def hypotheses(
        self, utterance: Utterance, samples: np.ndarray, student: Tokenizer
    ) -> list[Hypothesis]:
        """Return the text of this utterance, or nothing where the file has none.

        Nobody knows how likely it is: where another text has as few word errors, that one is best.
        """
        if utterance.id not in self._texts:
            return []
        tokens = reference_tokens(self._texts[utterance.id], student)
        return [Hypothesis(tokens, (-math.inf,), "stop", 0.0, 0)]


@cache
def read_texts(file: Path) -> dict[str, str]:
    """Read a JSONL file of ``id`` and ``text``; other fields are passed over.

    Raises:
        BeamlessError: the file is missing or empty, or a line is not what it must be.
    """
    if not file.is_file():
        raise BeamlessError(f"there is no file {file} of a teacher's texts")
    texts: dict[str, str] = {}
    for number, line in numbered_lines(file):
        where = f"{file}, line {number}"
        row = json_object(line, where)
        identifier, text = row.get("id"), row.get("text")
        if not isinstance(identifier, str) or not isinstance(text, str):
            raise BeamlessError(f"{where}: 'id' and 'text' must be strings")
        if identifier in texts:
            raise BeamlessError(f"{where}: the id {identifier!r} stands there twice")
        texts[identifier] = text
    if not texts:
        raise BeamlessError(f"{file} holds no texts")
    return texts


def is_written(teacher: str) -> bool:
    """Tell whether a teacher is a file of texts, not a model."""
    return teacher.endswith(".jsonl")


def called(teacher: str) -> str:
    """Return what a recipe calls a teacher: a model by its name, a file by its name and hash.

    Raises:
        BeamlessError: it is a file of texts that cannot be read.
    """
    if not is_written(teacher):
        return teacher
    read_texts(Path(teacher))
    return f"{Path(teacher).name} {digest_of(Path(teacher))[:16]}"


def load_teacher(teacher: str, device: str, recipe: TraceRecipe) -> Teacher:
    """Load a teacher: a file of texts, or the model that the recipe names.

    Raises:
        BeamlessError: the file or the model is not to be had.
    """
    return WrittenTexts(Path(teacher)) if is_written(teacher) else LargerWhisper(device, recipe)
