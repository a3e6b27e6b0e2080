"""What an evaluation compares, by name: a method, and what is changed about it.

``beam5``, as ``beamless transcribe --method`` knows it; ``beam5-oracle``, the hypothesis of the
beam's list with the fewest word errors, which shows how much room there is; ``greedy+eos0.3``, the
end token ahead by so many nats; ``greedy+repeat1.15``, with this repetition penalty;
``greedy+free``, without the bound on tokens a second; each of them under another audio context with
``:short`` or ``:full`` behind it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from beamless.inference.decoder import CrossKV
from beamless.inference.errors import BeamlessError
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.methods import Method
from beamless.inference.options import AudioContext
from beamless.inference.sampling import TokenOptions

ORACLE = "-oracle"
Decoding = tuple[str, TokenOptions, AudioContext, bool]
"""A method, how tokens are chosen, the audio context, and whether a budget bounds it."""

_NAME = re.compile(
    r"(?P<method>[a-z]+(?:-lookahead)?\d*)(?P<oracle>-oracle)?"
    r"(?:\+eos(?P<eos>\d+(?:\.\d+)?))?(?:\+repeat(?P<repeat>\d+(?:\.\d+)?))?"
    r"(?P<free>\+free)?(?::(?P<context>short|full))?"
)


@dataclass(frozen=True)
class Contender:
    """One way to decode.

    Attributes:
        name: as it was asked for.
        method: as ``inference.methods`` names it.
        options: how tokens are chosen.
        audio_context: how much the encoder sees.
        bounded: stop a window that takes more tokens than can be said in its time.
        oracle: take the hypothesis with the fewest errors instead of the best one.
    """

    name: str
    method: str
    options: TokenOptions
    audio_context: AudioContext
    oracle: bool
    bounded: bool = True

    @property
    def decoding(self) -> Decoding:
        """What is decoded, whichever hypothesis is then chosen."""
        return self.method, self.options, self.audio_context, self.bounded


def contender(name: str, audio_context: AudioContext) -> Contender:
    """Read a name; ``audio_context`` is for those that name none.

    Raises:
        BeamlessError: it cannot be read, or an oracle is asked of a method without a list.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        known = "a method and its changes: beam5 with +eos0.3, +repeat1.1, +free, -oracle or :full"
        raise BeamlessError(f"{name!r} cannot be evaluated; a name is {known}")
    method = "beam5" if found["method"] == "beam" else found["method"]
    if found["oracle"] and not method.startswith("beam"):
        raise BeamlessError(f"{name}: only a beam has a list for an oracle to choose from")
    options = TokenOptions(
        eos_boost=float(found["eos"] or 0), repetition_penalty=float(found["repeat"] or 1)
    )
    context = cast(AudioContext, found["context"] or audio_context)
    return Contender(name, method, options, context, bool(found["oracle"]), not found["free"])


def decode(
    contender: Contender,
    method: Method,
    cross_kv: CrossKV,
    prompt: Sequence[int],
    budget: int | None,
) -> list[Hypothesis]:
    """Decode a window and return the list of hypotheses, the best one first.

    ``budget`` is what the window's time allows, as ``inference.budget`` counts it.
    """
    options = replace(contender.options, budget=budget if contender.bounded else None)
    return method.decode(cross_kv, prompt, options)
