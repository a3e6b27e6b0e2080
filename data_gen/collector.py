"""Decoding one utterance every way that its targets need."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from beamless.data_gen.corpora import Utterance
from beamless.data_gen.labeller import Labeller
from beamless.data_gen.targets import best_of, reference_tokens
from beamless.data_gen.teachers import Teacher, load_teacher
from beamless.data_gen.traces import TargetKind, Trace, TraceRecipe
from beamless.inference.audio import SAMPLE_RATE, WINDOW_SECONDS, load_audio
from beamless.inference.beam import Beam, beam_search
from beamless.inference.budget import budget_for
from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV
from beamless.inference.forced import teacher_forcing
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.window_encoder import WindowEncoder


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
        spent: seconds by what they went to: audio, encoder, beam, forced, greedy, teacher, labels.
        heard: seconds of audio that were decoded.
    """

    def __init__(self, bundle: Bundle, recipe: TraceRecipe, teacher: str = "") -> None:
        """Compile the decoders.

        Args:
            bundle: the student.
            recipe: what decides the numbers.
            teacher: where its texts are, if it is a file of texts; it is loaded when needed.
        """
        self._recipe, self._tokenizer = recipe, bundle.tokenizer
        self.width = bundle.manifest.sizes["width"]
        self._encoder = WindowEncoder(bundle)
        self._greedy = Greedy(bundle)
        self._room = self._greedy.decoder.capacity - len(recipe.prompt)
        self._beam = Beam(bundle, recipe.beam_size)
        self._device, self._teacher_file = bundle.device, teacher
        self._labeller = Labeller(bundle, recipe.top_k, recipe.language)
        self.refused: Counter[str] = Counter()
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.heard = 0.0

    @cached_property
    def _teacher(self) -> Teacher:
        return load_teacher(self._teacher_file, self._device, self._recipe)

    @contextmanager
    def _spending(self, on: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.spent[on] += time.perf_counter() - began

    def traces(self, utterance: Utterance, targets: Sequence[TargetKind]) -> list[Trace]:
        """Decode one utterance and return its trace along each target."""
        with self._spending("audio"):
            samples = load_audio(utterance.audio)
        if len(samples) > WINDOW_SECONDS * SAMPLE_RATE:
            self.refused["longer than 30 s"] += 1
            return []
        reference = reference_tokens(utterance.text, self._tokenizer)
        if len(reference) >= self._room:
            self.refused[f"text longer than the decoder's {self._room} tokens"] += 1
            return []
        self.heard += len(samples) / SAMPLE_RATE
        with self._spending("encoder"):
            cross_kv = self._encoder(samples, self._recipe.audio_context)
        found = self._targets(utterance, targets, cross_kv, samples)
        seen = [self._described(target, cross_kv) for _, target in found]
        if not found:
            return []
        free = self._free_greedy([target for _, target in found], seen, cross_kv)
        budget = budget_for(samples, self._recipe.language, None)
        with self._spending("labels"):
            greedy_errors = self._labeller.errors(free, utterance).total
            return [
                self._labeller.trace(
                    utterance,
                    kind,
                    target.tokens,
                    target.tokens,
                    described,
                    greedy_errors,
                    budget=budget,
                )
                for (kind, target), described in zip(found, seen, strict=True)
            ]

    def _free_greedy(
        self,
        found: Sequence[Target],
        seen: Sequence[Mapping[str, np.ndarray]],
        cross_kv: CrossKV,
    ) -> tuple[int, ...]:
        """Return greedy's own tokens; a target that is greedy's choice at every step tells them."""
        for target, described in zip(found, seen, strict=True):
            if np.array_equal(described["top_ids"][:, 0], target.tokens):
                return target.tokens
        with self._spending("greedy"):
            return greedy(self._greedy, cross_kv, self._recipe.prompt, self._tokenizer.end).tokens

    def _described(self, target: Target, cross_kv: CrossKV) -> dict[str, np.ndarray]:
        hidden = target.hidden
        if hidden is None:
            decoder, prompt = self._greedy.decoder, self._recipe.prompt
            with self._spending("forced"):
                hidden = teacher_forcing(decoder, cross_kv, prompt, target.tokens)
        with self._spending("labels"):
            return self._labeller.describe(hidden)

    def _targets(
        self,
        utterance: Utterance,
        kinds: Sequence[TargetKind],
        cross_kv: CrossKV,
        samples: np.ndarray,
    ) -> list[tuple[TargetKind, Target]]:
        """Return the targets of each kind in turn, where there are any; ``list`` gives several."""
        tokenizer, recipe = self._tokenizer, self._recipe
        found: dict[TargetKind, list[Target]] = {}
        taught = self._taught(utterance, kinds, samples)
        penalty = recipe.length_penalty
        if {"beam", "best", "list"} & {*kinds}:
            with self._spending("beam"):
                nbest = beam_search(
                    self._beam, cross_kv, recipe.prompt, tokenizer.end, penalty, record=True
                )
            if "beam" in kinds:
                found["beam"] = [self._of(nbest[0])]
            if "list" in kinds:
                found["list"] = [self._of(hypothesis) for hypothesis in nbest]
            if "best" in kinds:
                pool = [*nbest, *taught] if recipe.best_teacher else nbest
                with self._spending("labels"):
                    best = best_of(pool, utterance.text, tokenizer, recipe.language, penalty)
                found["best"] = [self._of(best) if best else Target((tokenizer.end,), None)]
        if "teacher" in kinds and taught:
            found["teacher"] = [self._of(taught[0])]
        if "reference" in kinds:
            tokens = reference_tokens(utterance.text, tokenizer)
            found["reference"] = [Target((*tokens, tokenizer.end), None)]
        return [(kind, target) for kind in kinds for target in found.get(kind, [])]

    def _taught(
        self, utterance: Utterance, kinds: Sequence[TargetKind], samples: np.ndarray
    ) -> list[Hypothesis]:
        """Return what the teacher wrote if it is asked for; nothing where its text has no room."""
        if "teacher" not in kinds and not ("best" in kinds and self._recipe.best_teacher):
            return []
        with self._spending("teacher"):
            written = self._teacher.hypotheses(utterance, samples, self._tokenizer)
        if not written:
            self.refused["no text by the teacher"] += 1
        elif len(written[0].tokens) >= self._room:
            self.refused[f"teacher's text longer than the decoder's {self._room} tokens"] += 1
            return []
        return [hypothesis for hypothesis in written if len(hypothesis.tokens) < self._room]

    def _of(self, hypothesis: Hypothesis) -> Target:
        if hypothesis.finish_reason == "length":  # a loop; its states stop before an end token
            return Target((*hypothesis.tokens, self._tokenizer.end), None)
        return Target((*hypothesis.tokens, self._tokenizer.end), hypothesis.hidden)
