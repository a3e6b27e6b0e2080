"""Whisper's tokenizer: prompts as ids, ids as text. Text is decoded once, never tokenised again."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as Backend

from beamless.inference.errors import BeamlessError

MULTILINGUAL_VOCABULARY = 51865  # English-only models have one token less


class Tokenizer:
    """The ids of one Whisper's special tokens, and text to ids and back.

    Attributes:
        start, end: ``<|startoftranscript|>`` and ``<|endoftext|>``.
        previous: ``<|startofprev|>``, which opens the text before this window.
        no_speech: the token whose probability after ``start`` tells silence.
        timestamp_begin: the id of time 0.00; each further id is 0.02 s later.
        languages: code → id; empty for an English-only model.
    """

    def __init__(self, tokenizer_json: str, vocabulary: int) -> None:
        self._backend = Backend.from_str(tokenizer_json)
        self._backend.encode_special_tokens = True  # "<|endoftext|>" in a text is plain text
        self.multilingual = vocabulary >= MULTILINGUAL_VOCABULARY
        self.start = self._id("<|startoftranscript|>")
        self.end = self._id("<|endoftext|>")
        self.transcribe = self._id("<|transcribe|>")
        self.translate = self._id("<|translate|>")
        self.previous = self._id("<|startofprev|>")
        self.no_timestamps = self._id("<|notimestamps|>")
        self.no_speech = self._first_id("<|nospeech|>", "<|nocaptions|>")
        self.timestamp_begin = self.no_timestamps + 1
        self.languages: dict[str, int] = {}
        if self.multilingual:
            for identifier in range(self.start + 1, self.translate):
                code = (self._backend.id_to_token(identifier) or "").strip("<|>")
                self.languages[code] = identifier

    @classmethod
    def from_file(cls, path: Path, vocabulary: int) -> "Tokenizer":
        """Read ``tokenizer.json``."""
        return cls(path.read_text(encoding="utf-8"), vocabulary)

    def _id(self, token: str) -> int:
        return self._first_id(token)

    def _first_id(self, *tokens: str) -> int:
        for token in tokens:
            identifier = self._backend.token_to_id(token)
            if identifier is not None:
                return int(identifier)
        raise BeamlessError(f"tokenizer.json has no {tokens[0]}; it is not a Whisper's")

    def prompt(
        self,
        language: str = "en",
        task: str = "transcribe",
        timestamps: bool = False,
        previous: Sequence[int] = (),
    ) -> tuple[int, ...]:
        """Return the ids that open a window.

        Args:
            language: a code such as ``en``; English-only models take no other.
            task: ``transcribe`` or ``translate``.
            timestamps: let the model emit times.
            previous: ids of the text before this window; they go before ``start``.

        Raises:
            BeamlessError: the model has no such language or task.
        """
        if task not in ("transcribe", "translate"):
            raise BeamlessError(f"there is no task {task!r}; known are: transcribe translate")
        head = (self.previous, *previous) if previous else ()
        ids = [self.start]
        if self.multilingual:
            if language not in self.languages:
                known = " ".join(self.languages)
                raise BeamlessError(f"there is no language {language!r}; known are: {known}")
            ids.append(self.languages[language])
            ids.append(self.translate if task == "translate" else self.transcribe)
        elif language != "en" or task == "translate":
            raise BeamlessError(
                "an English-only model transcribes English; take a multilingual one"
            )
        if not timestamps:
            ids.append(self.no_timestamps)
        return (*head, *ids)

    def encode(self, text: str) -> list[int]:
        """Turn text into ids, without any special token."""
        ids = self._backend.encode(text, add_special_tokens=False).ids
        return [identifier for identifier in ids if identifier < self.end]

    def decode(self, tokens: Sequence[int]) -> str:
        """Turn ids into text; special tokens and times are left out."""
        return str(self._backend.decode([t for t in tokens if t < self.end]))
