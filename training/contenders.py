"""What an evaluation compares, by name: a method, and what is changed about it.

``beam5``, as ``beamless transcribe --method`` knows it; ``beam5-oracle``, the hypothesis of the
beam's list with the fewest word errors, which shows how much room there is. Changes stand behind:

* ``+eos0.3``: the end token is so many nats ahead; ``+repeat1.15``: with this repetition penalty;
* ``+free``: without the bound on tokens a second;
* ``lookahead+margin0.4+depth6+budget32``: when and how far look-ahead looks, in tokens and steps;
  on a corrector that has a gate, ``+doubt0.2`` in place of the margin;
* ``greedy+second1.5``: the second-best token where the entropy is above so many nats;
* ``knn8+mix0.1+temperature9000``: the eight nearest states of a datastore have their say.

``:short`` or ``:full`` at the end sets the audio context.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Greedy
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.lookahead import LookaheadOptions
from beamless.inference.methods import ChooserMethod, Method, method_of
from beamless.inference.options import AudioContext
from beamless.inference.sampling import TokenOptions, require_weights
from beamless.training.baselines import (
    ByRule,
    Neighbours,
    read_datastore,
    second_where_unsure,
    with_neighbours,
)

_NAME = re.compile(
    r"(?P<method>[a-z]+(?:-lookahead)?\d*)(?P<oracle>-oracle)?"
    r"(?P<changes>(?:\+[a-z]+(?:\d+(?:\.\d+)?)?)*)(?::(?P<context>short|full))?",
    re.ASCII,
)
_CHANGE = re.compile(r"\+([a-z]+)((?:\d+(?:\.\d+)?)?)", re.ASCII)
_AHEAD = {"margin": float, "doubt": float, "depth": int, "budget": int}
_NEAR = {"mix": float, "temperature": float}
_TOKENS = {"eos": "eos_boost", "repeat": "repetition_penalty"}


@dataclass(frozen=True)
class Contender:
    """One way to decode.

    Attributes:
        name: as it was asked for.
        method: as ``inference.methods`` names it, or knn.
        options: how tokens are chosen.
        audio_context: how much the encoder sees.
        oracle: take the hypothesis with the fewest errors instead of the best one.
        bounded: stop a window that takes more tokens than can be said in its time.
        ahead: when and how far look-ahead looks, if not as usual.
        second: entropy in nats above which the second-best token is taken.
        neighbours: how a datastore is asked.
    """

    name: str
    method: str
    options: TokenOptions
    audio_context: AudioContext
    oracle: bool
    bounded: bool = True
    ahead: LookaheadOptions | None = None
    second: float | None = None
    neighbours: Neighbours | None = None

    @property
    def decoding(self) -> "Contender":
        """What is decoded, whichever hypothesis is then chosen."""
        return replace(self, name="", oracle=False)

    @property
    def token_by_token(self) -> bool:
        """Whether each step is chosen by itself, so that it can be judged by itself."""
        return self.method in ("greedy", "corrected", "knn") and self.options.plain

    @property
    def plain_greedy(self) -> bool:
        """Whether it is greedy with nothing changed about how it chooses."""
        return self.method == "greedy" and self.options.plain and self.second is None


def contender(name: str, audio_context: AudioContext) -> Contender:
    """Read a name; ``audio_context`` is for those that name none.

    Raises:
        BeamlessError: it cannot be read, or a change is asked of a method that does not know it.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise _unknown(name)
    method = "beam5" if found["method"] == "beam" else found["method"]
    if found["oracle"] and not method.startswith("beam"):
        raise BeamlessError(f"{name}: only a beam has a list for an oracle to choose from")
    context = cast(AudioContext, found["context"] or audio_context)
    changes = _CHANGE.findall(found["changes"])
    given = dict(changes)
    if len(given) < len(changes):
        raise BeamlessError(f"{name}: each change is named once")
    one = Contender(name, method, TokenOptions(), context, bool(found["oracle"]))
    near = re.fullmatch(r"knn(\d+)", method)
    try:
        if near:
            own = {what: kind(given.pop(what)) for what, kind in _NEAR.items() if what in given}
            one = replace(one, method="knn", neighbours=Neighbours(int(near[1]), **own))
        elif method.endswith("lookahead"):
            one = replace(one, ahead=_ahead(given))
        elif method == "greedy" and "second" in given:
            one = replace(one, second=float(given.pop("second")))
        if one.second is None and not near:
            one = replace(one, options=_options(given))
        if given.get("free") == "":
            del given["free"]
            one = replace(one, bounded=False)
    except ValueError:
        raise _unknown(name) from None
    if given:
        raise _unknown(name)
    return one


def _ahead(given: dict[str, str]) -> LookaheadOptions | None:
    own: dict[str, Any] = {
        what: kind(given.pop(what)) for what, kind in _AHEAD.items() if what in given
    }
    return LookaheadOptions(**own) if own else None


def _options(given: dict[str, str]) -> TokenOptions:
    own = {field: float(given.pop(what)) for what, field in _TOKENS.items() if what in given}
    options = TokenOptions(**own)  # type: ignore[arg-type]
    require_weights(options.eos_boost, options.repetition_penalty)
    return options


def _unknown(name: str) -> BeamlessError:
    return BeamlessError(
        f"{name!r} cannot be evaluated; a name is a method and its changes: beam5 with +eos0.3, "
        "+repeat1.1, +free, -oracle or :full, lookahead+margin0.4, greedy+second1.5, knn8+mix0.3"
    )


def open_contenders(
    bundle: Bundle, contenders: Sequence[Contender], datastore: Sequence[Path] = ()
) -> Mapping[Contender, Method]:
    """Compile what contenders need, each graph once; the keys are their decodings.

    Raises:
        BeamlessError: a method is unknown, the bundle has no corrector for it, or the datastore
            that knn needs is missing or of another model.
    """
    compiled = {name: method_of(bundle, name) for name in {_compiled_as(c) for c in contenders}}
    store = None
    opened: dict[Contender, Method] = {}
    for one in {c.decoding for c in contenders}:
        method = compiled[_compiled_as(one)]
        chooser = method.chooser if isinstance(method, ChooserMethod) else None
        end = bundle.tokenizer.end
        if one.ahead and chooser:
            method = ChooserMethod(chooser, end, one.ahead)
        elif one.second is not None and isinstance(chooser, Greedy):
            method = ChooserMethod(ByRule(chooser, bundle, second_where_unsure(one.second)), end)
        elif one.neighbours and isinstance(chooser, Greedy):
            store = store or read_datastore(datastore, bundle.manifest.model["hash"])
            rule = with_neighbours(store, one.neighbours)
            method = ChooserMethod(ByRule(chooser, bundle, rule), end)
        opened[one] = method
    return opened


def _compiled_as(one: Contender) -> str:
    return "greedy" if one.method == "knn" else one.method


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
