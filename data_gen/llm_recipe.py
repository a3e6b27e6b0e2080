"""The recipe for texts that a language model writes.

In YAML it looks like this::

    endpoint: http://127.0.0.1:8080/v1
    model: any-name
    count: 2000
    budget: 400000
    prompts:
      - topic: cooking with friends
        register: casual
        words: [4, 25]
        disfluencies: [fillers, restarts, corrections]
        share: 2
"""

from argparse import ArgumentError
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from beamless.data_gen.recipe_file import read_yaml
from beamless.inference.errors import BeamlessError

DISFLUENCIES = {
    "fillers": "fillers such as um, uh, well or you know",
    "restarts": "restarts, where the speaker breaks off and begins again",
    "corrections": "corrections, as in: on Monday, no, sorry, on Tuesday",
}


@dataclass(frozen=True)
class Prompt:
    """What some of the texts are to be about; ``words`` is the shortest and longest wanted."""

    topic: str
    register: str = "everyday"
    words: tuple[int, int] = (4, 30)
    disfluencies: tuple[Literal["fillers", "restarts", "corrections"], ...] = ()
    share: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0 < self.words[0] <= self.words[1]:
            raise BeamlessError(f"words {list(self.words)} must be [fewest, most]")
        if self.share <= 0:
            raise BeamlessError(f"a share of {self.share} is not possible; give more than 0")

    def request(self, number: int) -> str:
        """Words of the request for ``number`` texts."""
        low, high = self.words
        text = (
            f"Write {number} different things that a person might say aloud. Topic: {self.topic}. "
            f"Register: {self.register}. Each is one utterance of {low} to {high} words. "
        )
        if self.disfluencies:
            kinds = "; ".join(DISFLUENCIES[kind] for kind in self.disfluencies)
            text += f"Write them as really spoken, with {kinds}. "
        return text + "Answer with a JSON array of strings and nothing else."


@dataclass(frozen=True)
class LlmRecipe:
    """Which model writes how many texts about what.

    ``budget`` is in tokens, both ways; ``batch`` is how many texts one request asks for.
    ``retries``, ``wait`` and ``timeout`` in seconds are those of ``Endpoint``.
    """

    endpoint: str
    model: str
    count: int
    prompts: tuple[Prompt, ...]
    budget: int = 1_000_000
    batch: int = 20
    temperature: float = 1.0
    seed: int = 0
    language: str = "en"
    key_name: str = "OPENAI_API_KEY"
    timeout: float = 300.0
    retries: int = 4
    wait: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.prompts:
            raise BeamlessError("'prompts' must be a list of at least one prompt")
        for name in ("count", "batch", "budget"):
            if getattr(self, name) < 1:
                raise BeamlessError(f"{name} must be 1 or more, not {getattr(self, name)}")


def read_llm_recipe(path: Path) -> LlmRecipe:
    """Read a recipe.

    Raises:
        BeamlessError: an entry is missing, unknown or of another kind.
    """
    from jsonargparse import ArgumentParser

    stored = read_yaml(path)
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(LlmRecipe)
    try:
        made = parser.instantiate_classes(parser.parse_object(stored))
        return LlmRecipe(**vars(made))
    except (ArgumentError, BeamlessError, TypeError, KeyError) as error:
        raise BeamlessError(f"{path}: {' '.join(str(error).split())}") from None
