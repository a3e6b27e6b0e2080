"""Who says what: voices, speakers and speeds in stated shares, drawn for each line by its id.

A recipe in YAML looks like this::

    seed: 1
    voices:
      - voice: joe
        share: 1
        speeds: [0.9, 1.15]
      - voice: kokoro:voices.npz
        share: 3
        mixtures: 40
        speakers: [af_heart, am_adam]

``share`` is a part of the lines, in proportion to the others; ``speakers`` are all of the voice
where none are named; ``speeds`` is a range. Other entries are settings of the voice.
"""

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any

from beamless.data_gen.recipe_file import read_yaml
from beamless.data_gen.voices import Voice, chosen_speaker, load_voice
from beamless.inference.errors import BeamlessError

SLOWEST, FASTEST = 0.25, 4.0
LARGEST_SHARE = 1e9


@dataclass(frozen=True)
class Role:
    """A loaded voice with those of its speakers and that range of speeds that are wanted."""

    voice: Voice
    share: float = 1.0
    speakers: tuple[str, ...] = ()
    speeds: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        """Check share, speakers and speeds."""
        if not 0 < self.share <= LARGEST_SHARE:
            raise BeamlessError(
                f"voice {self.voice.name} has a share of {self.share}; give one above 0, "
                f"at most {LARGEST_SHARE:.0f}"
            )
        low, high = self.speeds
        if not SLOWEST <= low <= high <= FASTEST:
            raise BeamlessError(
                f"speeds {low} to {high} are out of range; give some from {SLOWEST} to {FASTEST}"
            )
        for speaker in self.speakers:
            chosen_speaker(self.voice, speaker)


@dataclass(frozen=True)
class Part:
    """What one line is said with."""

    voice: Voice
    speaker: str
    speed: float


@dataclass(frozen=True)
class Cast:
    """Roles, and the seed by which lines are handed to them."""

    roles: tuple[Role, ...]
    seed: int = 0

    def part_for(self, id: str) -> Part:
        """Draw voice, speaker and speed for a line; the same id always gets the same ones."""
        borders = list(accumulate(role.share for role in self.roles))
        role = self.roles[bisect(borders, self._draw(id, "voice") * borders[-1])]
        speakers = role.speakers or role.voice.speakers
        speaker = speakers[int(self._draw(id, "speaker") * len(speakers))]
        low, high = role.speeds
        return Part(role.voice, speaker, round(low + self._draw(id, "speed") * (high - low), 3))

    def _draw(self, id: str, what: str) -> float:
        """A number in 0..1, the latter left out, by a hash."""
        digest = blake2b(f"{self.seed}\n{what}\n{id}".encode(), digest_size=6).digest()
        return int.from_bytes(digest, "big") / 2**48

    def recipe(self) -> dict[str, Any]:
        """What decides the audio, as JSON values."""
        roles = [
            {
                "voice": role.voice.name,
                "share": role.share,
                "speakers": list(role.speakers or role.voice.speakers),
                "speeds": list(role.speeds),
            }
            for role in self.roles
        ]
        return {"seed": self.seed, "voices": roles}


def cast_from_recipe(path: Path) -> Cast:
    """Load the voices that a YAML recipe names.

    Raises:
        BeamlessError: the recipe is wrong, or a voice in it cannot be had.
    """
    return cast_from(read_yaml(path), path)


def cast_from(recipe: Mapping[str, Any], path: Path) -> Cast:
    """Load the voices that a recipe's content names; errors call it ``path``.

    Raises:
        BeamlessError: the recipe is wrong, or a voice in it cannot be had.
    """
    unknown = sorted(set(recipe) - {"seed", "voices"})
    if unknown:
        raise BeamlessError(f"{path}: unknown entry {unknown[0]!r}; known are seed and voices")
    voices, seed = recipe.get("voices"), recipe.get("seed", 0)
    if not isinstance(voices, list) or not voices:
        raise BeamlessError(f"{path}: 'voices' must be a list of at least one voice")
    if not isinstance(seed, int):
        raise BeamlessError(f"{path}: the seed must be a whole number")
    return Cast(tuple(_role(entry, path) for entry in voices), seed)


def _role(entry: object, path: Path) -> Role:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("voice"), str):
        raise BeamlessError(f"{path}: each of the voices needs an entry 'voice', as in voice: joe")
    settings = dict(entry)
    name = settings.pop("voice")
    share = _share(settings.pop("share", 1.0), name, path)
    speeds = _speeds(settings.pop("speeds", (1.0, 1.0)), name, path)
    kind = name.partition(":")[0]
    # A speech server does not say what speakers it has: they are a setting there.
    speakers = settings.get("speakers", ()) if kind == "openai" else settings.pop("speakers", ())
    if isinstance(speakers, str) or not isinstance(speakers, Sequence):
        raise BeamlessError(f"{path}: the speakers of {name} must be a list")
    return Role(load_voice(name, settings), share, tuple(map(str, speakers)), speeds)


def _share(value: object, name: str, path: Path) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        raise BeamlessError(f"{path}: the share of {name} is too large a number") from None
    raise BeamlessError(f"{path}: the share of {name} must be a number")


def _speeds(value: object, name: str, path: Path) -> tuple[float, float]:
    pair: Any = value
    try:
        low, high = pair
        return float(low), float(high)
    except (TypeError, ValueError, OverflowError):
        raise BeamlessError(f"{path}: the speeds of {name} must be [slowest, fastest]") from None
