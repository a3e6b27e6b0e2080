"""The ways to decode a window, by name: ``greedy``, ``corrected``, ``lookahead``, ``beam5``."""

import re
from collections.abc import Callable, Sequence

from beamless.inference.beam import MAX_BEAM_SIZE, Beam, beam_search
from beamless.inference.bundle import Bundle
from beamless.inference.corrected import Corrected
from beamless.inference.decoder import CrossKV
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.lookahead import LookaheadOptions, lookahead

Decode = Callable[[CrossKV], Hypothesis]
METHODS = "greedy, corrected, lookahead, greedy-lookahead, and beam or beam1 to beam10"


def open_method(bundle: Bundle, name: str, prompt: Sequence[int]) -> Decode:
    """Compile what a method needs and return the function that decodes a window with it.

    Args:
        bundle: the model.
        name: ``greedy``; ``corrected``; ``lookahead``, on top of the corrector where there is
            one; ``greedy-lookahead``, without it; or ``beam`` and its size, ``beam5`` if alone.
        prompt: the ids that open every window.

    Raises:
        BeamlessError: there is no such method, or the bundle has no corrector.
    """
    end = bundle.tokenizer.end
    if name == "greedy":
        plain = Greedy(bundle)
        return lambda cross_kv: greedy(plain, cross_kv, prompt, end)
    if name == "corrected":
        corrected = Corrected(bundle)
        return lambda cross_kv: greedy(corrected, cross_kv, prompt, end)
    if name in ("lookahead", "greedy-lookahead"):
        plain_one = name == "greedy-lookahead" or not bundle.has_corrector
        chooser = Greedy(bundle) if plain_one else Corrected(bundle)
        options = LookaheadOptions()
        return lambda cross_kv: lookahead(chooser, cross_kv, prompt, end, options)
    size = re.fullmatch(r"beam(\d*)", name)
    if size is None or not 1 <= int(size[1] or 5) <= MAX_BEAM_SIZE:
        raise BeamlessError(f"there is no method {name!r}; methods are {METHODS}")
    beam = Beam(bundle, int(size[1] or 5))
    return lambda cross_kv: beam_search(beam, cross_kv, prompt, end)[0]


def default_method(bundle: Bundle) -> str:
    """Return ``corrected`` where the bundle has a corrector, else ``greedy``."""
    return "corrected" if bundle.has_corrector else "greedy"
