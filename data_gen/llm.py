"""Texts written by a language model behind any endpoint with OpenAI's chat interface.

What came back is kept in a journal beside the output, so that a stopped run goes on where it was.
"""

import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from beamless.data_gen.endpoint import Endpoint
from beamless.data_gen.llm_recipe import LlmRecipe
from beamless.data_gen.sieve import Sieve
from beamless.inference.errors import BeamlessError

FRUITLESS = 5
"""Requests in a row without one new text, after which the model is taken to repeat itself."""

OUTSIDE = "outside the wanted length"
LETTERS_PER_TOKEN = 4
"""Rough count of tokens, where a server does not tell them."""


@dataclass(frozen=True)
class Batch:
    """What one request brought: its number, its prompt's, the texts and the tokens spent."""

    request: int
    prompt: int
    texts: tuple[str, ...]
    tokens: int


class Journal:
    """The answers so far, one line each, so that nothing paid for is lost."""

    def __init__(self, path: Path, recipe: LlmRecipe) -> None:
        """Open the journal of this recipe.

        Raises:
            BeamlessError: the file belongs to another recipe.
        """
        self._path = path
        self._head = {"recipe": sha256(repr(recipe).encode()).hexdigest()}
        self.batches: list[Batch] = []
        lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
        if not lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(json.dumps(self._head).encode() + b"\n")
            return
        if json.loads(lines[0]) != self._head:
            raise BeamlessError(f"{path} belongs to another recipe; finish that one or delete it")
        stored = [json.loads(line) for line in lines[1:]]
        self.batches = [Batch(**{**row, "texts": tuple(row["texts"])}) for row in stored]
        # A kill may have left half a line.
        path.write_bytes(b"\n".join(lines) + b"\n")

    def add(self, batch: Batch) -> None:
        """Write an answer down at once."""
        with self._path.open("ab") as file:
            file.write(json.dumps(vars(batch), ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.batches.append(batch)

    def delete(self) -> None:
        """Remove the journal, once the texts are stored elsewhere."""
        self._path.unlink(missing_ok=True)


def written_texts(recipe: LlmRecipe, journal: Journal, sieve: Sieve) -> Iterator[dict[str, Any]]:
    """Yield texts until there are enough, the budget is spent, or the model repeats itself.

    The answers in the journal come first. A text is ``{"text", "spoken", "kind", "source",
    "topic", "register", "disfluencies", "request"}``.

    Raises:
        BeamlessError: the endpoint is dead, refuses, or answers with something else.
    """
    taken = spent = fruitless = 0
    stored = list(journal.batches)
    for number in count():
        if taken >= recipe.count or spent >= recipe.budget or fruitless >= FRUITLESS:
            return
        if number < len(stored):
            batch = stored[number]
        else:
            batch = ask(recipe, number, min(recipe.batch, recipe.count - taken + 2))
            journal.add(batch)
        spent += batch.tokens
        before = taken
        for row in _rows(recipe, batch, sieve):
            if taken < recipe.count:
                taken += 1
                yield row
        fruitless = fruitless + 1 if taken == before else 0


def _rows(recipe: LlmRecipe, batch: Batch, sieve: Sieve) -> Iterator[dict[str, Any]]:
    prompt = recipe.prompts[batch.prompt]
    for text in batch.texts:
        if text.strip() and not prompt.words[0] <= len(text.split()) <= prompt.words[1]:
            sieve.refused[OUTSIDE] += 1
            continue
        row = sieve.take(
            {
                "text": text,
                "kind": "llm",
                "source": f"llm/{recipe.model}",
                "topic": prompt.topic,
                "register": prompt.register,
                "disfluencies": list(prompt.disfluencies),
                "request": batch.request,
            }
        )
        if row:
            yield row


def ask(recipe: LlmRecipe, number: int, texts: int) -> Batch:
    """Send request ``number`` for some texts; an answer that is no list is asked for again.

    Raises:
        BeamlessError: no usable answer after every retry.
    """
    draw = random.Random(f"{recipe.seed}-{number}")
    shares = [prompt.share for prompt in recipe.prompts]
    index = draw.choices(range(len(shares)), shares)[0]
    endpoint = Endpoint(
        recipe.endpoint, recipe.key_name, recipe.timeout, recipe.retries, recipe.wait
    )
    tokens, reason = 0, ""
    for attempt in range(recipe.retries + 1):
        body = {
            "model": recipe.model,
            "messages": [{"role": "user", "content": recipe.prompts[index].request(texts)}],
            "temperature": recipe.temperature,
            "seed": recipe.seed + 1000 * number + attempt,
        }
        answer = endpoint.post("chat/completions", body)
        try:
            said, used = _content(answer)
            tokens += used
            return Batch(number, index, tuple(_list_of_texts(said)), tokens)
        except ValueError as error:
            reason = str(error)
    raise BeamlessError(
        f"{recipe.endpoint} gave no list of texts in {recipe.retries + 1} tries ({reason})"
    )


def _content(answer: bytes) -> tuple[str, int]:
    """Return what the model said, and the tokens spent on it; ValueError if it is not there."""
    try:
        found = json.loads(answer)
        said = found["choices"][0]["message"]["content"]
        used = (found.get("usage") or {}).get("total_tokens")
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError("the answer is not that of a chat interface") from None
    if not isinstance(said, str):
        raise ValueError("the answer holds no text")
    return said, used if isinstance(used, int) else len(answer) // LETTERS_PER_TOKEN


def _list_of_texts(said: str) -> Sequence[str]:
    """Find the JSON array in what a model said, whatever it put around it."""
    start, end = said.find("["), said.rfind("]")
    try:
        found = json.loads(said[start : end + 1])
    except ValueError:
        raise ValueError("the model's answer holds no JSON array") from None
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ValueError("the model's array holds other things than texts")
    return found
