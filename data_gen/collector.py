"""Decoding one utterance every way that its targets need."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from beamless.data_gen.corpora import Utterance
from beamless.data_gen.labeller import Labeller
from beamless.data_gen.targets import best_of, reference_tokens
from beamless.data_gen.traces import TargetKind, Trace, TraceRecipe
from beamless.inference.audio import SAMPLE_RATE, load_audio
from beamless.inference.beam import Beam, beam_search
from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV
from beamless.inference.encoder import Encoder
from beamless.inference.features import log_mel
from beamless.inference.forced import teacher_forcing
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.tokenizer import Tokenizer
from beamless.models.bundle import open_bundle

WINDOW_SECONDS = 30.0


@dataclass(frozen=True)
class Target:
    """A target's tokens, its end last, and the hidden states [T, d] where they are known."""

    tokens: tuple[int, ...]
    hidden: np.ndarray | None


class Collector:
    """The decoders of one process, and the traces that they make of an utterance.

    Attributes:
        width: d.
        refused: how many utterances were left out, by reason; none is ever cut.
    """

    def __init__(self, bundle: Bundle, recipe: TraceRecipe) -> None:
        self._recipe, self._tokenizer = recipe, bundle.tokenizer
        self.width = bundle.manifest.sizes["width"]
        self._mels = bundle.manifest.sizes["mels"]
        self._encoder = Encoder(bundle.compile("encoder"))
        self._greedy = Greedy(bundle)
        self._beam = Beam(bundle, recipe.beam_size)
        self._teacher = Teacher(bundle.device, recipe) if recipe.teacher else None
        self._labeller = Labeller(bundle, recipe.top_k, recipe.language)
        self.refused: Counter[str] = Counter()

    def traces(self, utterance: Utterance, targets: Sequence[TargetKind]) -> list[Trace]:
        """Decode one utterance and return its trace along each target."""
        samples = load_audio(utterance.audio)
        if len(samples) > WINDOW_SECONDS * SAMPLE_RATE:
            self.refused["longer than 30 s"] += 1
            return []
        reference = reference_tokens(utterance.text, self._tokenizer)
        room = self._greedy.decoder.capacity - len(self._recipe.prompt)
        if len(reference) >= room:
            self.refused[f"text longer than the decoder's {room} tokens"] += 1
            return []
        cross_kv = self._encoder(log_mel(samples, self._mels))
        found = self._targets(utterance, targets, cross_kv, samples)
        seen = {kind: self._described(target, cross_kv) for kind, target in found.items()}
        free = self._free_greedy(found, seen, cross_kv)
        greedy_errors = self._labeller.errors(free, utterance).total
        return [
            self._labeller.trace(
                utterance, kind, target.tokens, target.tokens, seen[kind], greedy_errors
            )
            for kind, target in found.items()
        ]

    def _free_greedy(
        self,
        found: Mapping[TargetKind, Target],
        seen: Mapping[TargetKind, Mapping[str, np.ndarray]],
        cross_kv: CrossKV,
    ) -> tuple[int, ...]:
        """Return greedy's own tokens; a target that is greedy's choice at every step tells them."""
        for kind, target in found.items():
            if np.array_equal(seen[kind]["top_ids"][:, 0], target.tokens):
                return target.tokens
        return greedy(self._greedy, cross_kv, self._recipe.prompt, self._tokenizer.end).tokens

    def _described(self, target: Target, cross_kv: CrossKV) -> dict[str, np.ndarray]:
        hidden = target.hidden
        if hidden is None:
            decoder, prompt = self._greedy.decoder, self._recipe.prompt
            hidden = teacher_forcing(decoder, cross_kv, prompt, target.tokens)
        return self._labeller.describe(hidden)

    def _targets(
        self,
        utterance: Utterance,
        kinds: Sequence[TargetKind],
        cross_kv: CrossKV,
        samples: np.ndarray,
    ) -> dict[TargetKind, Target]:
        tokenizer, recipe = self._tokenizer, self._recipe
        found: dict[TargetKind, Target] = {}
        taught = self._teacher.hypotheses(samples, tokenizer) if self._teacher else []
        if "beam" in kinds or "best" in kinds:
            nbest = beam_search(
                self._beam,
                cross_kv,
                recipe.prompt,
                tokenizer.end,
                recipe.length_penalty,
                record=True,
            )
            if "beam" in kinds:
                found["beam"] = self._of(nbest[0])
            if "best" in kinds:
                pool = [*nbest, *taught]
                penalty = recipe.length_penalty
                best = best_of(pool, utterance.text, tokenizer, recipe.language, penalty)
                found["best"] = self._of(best)
        if "teacher" in kinds:
            found["teacher"] = self._of(taught[0])
        if "reference" in kinds:
            tokens = reference_tokens(utterance.text, tokenizer)
            found["reference"] = Target((*tokens, tokenizer.end), None)
        return {kind: found[kind] for kind in kinds}

    def _of(self, hypothesis: Hypothesis) -> Target:
        if hypothesis.finish_reason == "length":  # a loop; its states stop before an end token
            return Target((*hypothesis.tokens, self._tokenizer.end), None)
        return Target((*hypothesis.tokens, self._tokenizer.end), hypothesis.hidden)


class Teacher:
    """A larger Whisper, whose beam writes texts in the student's tokens."""

    def __init__(self, device: str, recipe: TraceRecipe) -> None:
        bundle = open_bundle(recipe.teacher, device)
        self._tokenizer, self._recipe = bundle.tokenizer, recipe
        self._prompt = bundle.tokenizer.prompt(recipe.language)
        self._mels = bundle.manifest.sizes["mels"]
        self._encoder = Encoder(bundle.compile("encoder"))
        self._beam = Beam(bundle, recipe.beam_size)

    def hypotheses(self, samples: np.ndarray, student: Tokenizer) -> list[Hypothesis]:
        """Return the teacher's N-best list, its tokens those of the student, without states."""
        cross_kv = self._encoder(log_mel(samples, self._mels))
        end, penalty = self._tokenizer.end, self._recipe.length_penalty
        nbest = beam_search(self._beam, cross_kv, self._prompt, end, penalty)
        return [
            replace(h, tokens=reference_tokens(self._tokenizer.decode(h.tokens), student))
            for h in nbest
        ]
