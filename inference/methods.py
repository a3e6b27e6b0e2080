"""The ways to decode a window, by name: ``greedy``, ``corrected``, ``lookahead``, ``beam5``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from beamless.inference.beam import MAX_BEAM_SIZE, Beam, beam_search
from beamless.inference.bundle import Bundle
from beamless.inference.corrected import Corrected
from beamless.inference.decoder import CrossKV, StaticDecoder
from beamless.inference.errors import BeamlessError
from beamless.inference.greedy import Chooser, Greedy, greedy
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.lookahead import LookaheadOptions, lookahead
from beamless.inference.sampling import TokenOptions

DEFAULT_METHOD = "lookahead"
METHODS = "greedy, corrected, lookahead, greedy-lookahead, and beam or beam1 to beam10"
PLAIN = TokenOptions()
SEED = 0  # of each window: the same window gives the same text


class Decode(Protocol):
    """A method that is ready for windows of one language."""

    def __call__(self, cross_kv: CrossKV, budget: int | None = None) -> Hypothesis:
        """Decode a window; ``budget`` bounds its tokens of text."""
        ...


class Method(Protocol):
    """A way to decode windows with one bundle."""

    @property
    def decoder(self) -> StaticDecoder:
        """The static decoder that it drives."""
        ...

    def decode(
        self,
        cross_kv: CrossKV,
        prompt: Sequence[int],
        options: TokenOptions = PLAIN,
        align: bool = False,
    ) -> list[Hypothesis]:
        """Decode a window; the best hypothesis comes first. ``align`` records the alignment."""
        ...

    def first_outputs(self, cross_kv: CrossKV, token: int) -> Mapping[str, np.ndarray]:
        """Return the step graph's outputs after one token, the first of a window."""
        ...


class ChooserMethod:
    """Token by token with a chooser, looking ahead where ``ahead`` says so."""

    def __init__(self, chooser: Chooser, end: int, ahead: LookaheadOptions | None = None) -> None:
        self.chooser, self.decoder = chooser, chooser.decoder
        self._end, self._ahead = end, ahead

    def decode(
        self,
        cross_kv: CrossKV,
        prompt: Sequence[int],
        options: TokenOptions = PLAIN,
        align: bool = False,
    ) -> list[Hypothesis]:
        """Decode a window; there is one hypothesis. Drawn tokens are not looked ahead of."""
        chooser = self.chooser
        chooser.options, chooser.rng = options, np.random.default_rng(SEED)
        self.decoder.record_alignments(align)
        if self._ahead and options.temperature == 0:
            found = lookahead(chooser, cross_kv, prompt, self._end, self._ahead)
        else:
            found = greedy(chooser, cross_kv, prompt, self._end)
        alignment = None
        if self.decoder.alignments is not None:
            first = len(prompt) - 1
            alignment = self.decoder.alignments[first : first + len(found.logprobs), 0].copy()
        return [replace(found, alignment=alignment, temperature=options.temperature)]

    def first_outputs(self, cross_kv: CrossKV, token: int) -> Mapping[str, np.ndarray]:
        """Return the step graph's outputs after one token, the first of a window."""
        self.decoder.start(cross_kv)
        self.chooser.next(token, "prompt")
        return self.decoder.outputs


class BeamMethod:
    """Beam search; where tokens are to be drawn, greedily instead."""

    def __init__(self, bundle: Bundle, beam_size: int) -> None:
        self._bundle, self._end = bundle, bundle.tokenizer.end
        self._beam = Beam(bundle, beam_size)
        self._drawing: ChooserMethod | None = None
        self.decoder = self._beam.decoder

    def decode(
        self,
        cross_kv: CrossKV,
        prompt: Sequence[int],
        options: TokenOptions = PLAIN,
        align: bool = False,
    ) -> list[Hypothesis]:
        """Decode a window and return the N-best list."""
        if options.temperature > 0:
            self._drawing = self._drawing or ChooserMethod(Greedy(self._bundle), self._end)
            return self._drawing.decode(cross_kv, prompt, options, align)
        self._beam.options = options
        self.decoder.record_alignments(align)
        return beam_search(self._beam, cross_kv, prompt, self._end)

    def first_outputs(self, cross_kv: CrossKV, token: int) -> Mapping[str, np.ndarray]:
        """Return the step graph's outputs after one token, the first of a window."""
        self.decoder.start(cross_kv)
        return self.decoder.step([token] * self.decoder.batch).outputs


def method_of(bundle: Bundle, name: str) -> Method:
    """Compile what a method needs.

    Args:
        bundle: the model.
        name: ``greedy``; ``corrected``; ``lookahead``, on top of the corrector where there is
            one; ``greedy-lookahead``, without it; or ``beam`` and its size, ``beam5`` if alone.

    Raises:
        BeamlessError: there is no such method, or the bundle has no corrector.
    """
    end = bundle.tokenizer.end
    if name == "greedy":
        return ChooserMethod(Greedy(bundle), end)
    if name == "corrected":
        return ChooserMethod(Corrected(bundle), end)
    if name in ("lookahead", "greedy-lookahead"):
        plain_one = name == "greedy-lookahead" or not bundle.has_corrector
        chooser = Greedy(bundle) if plain_one else Corrected(bundle)
        return ChooserMethod(chooser, end, LookaheadOptions())
    return BeamMethod(bundle, beam_size_of(name))


def require_method(name: str) -> None:
    """Refuse a name that is no method's, before anything is loaded for it.

    Raises:
        BeamlessError: there is no such method.
    """
    if name not in ("greedy", "corrected", "lookahead", "greedy-lookahead"):
        beam_size_of(name)


def beam_size_of(name: str) -> int:
    """Return the beam size that a method's name stands for, as in ``beam5``.

    Raises:
        BeamlessError: it is no beam's name, or the size is out of range.
    """
    size = re.fullmatch(r"beam(\d{0,3})", name, re.ASCII)
    if size is None or not 1 <= int(size[1] or 5) <= MAX_BEAM_SIZE:
        raise BeamlessError(f"there is no method {name!r}; methods are {METHODS}")
    return int(size[1] or 5)


def open_method(bundle: Bundle, name: str, language: str) -> Decode:
    """Return the function that decodes a window with a method, always in the same language.

    Raises:
        BeamlessError: as ``method_of``.
    """
    method = method_of(bundle, name)
    prompt = bundle.tokenizer.prompt(language)
    corrected = bundle.corrects(language)

    def decode(cross_kv: CrossKV, budget: int | None = None) -> Hypothesis:
        return method.decode(cross_kv, prompt, TokenOptions(budget=budget, corrected=corrected))[0]

    return decode
