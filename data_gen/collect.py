"""``beamless collect``: decode a corpus every way that a target needs, and keep the steps."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from beamless.data_gen.corpora import Utterance, read_corpus
from beamless.data_gen.subset import spread
from beamless.data_gen.targets import best_of, describe_steps, errors_of, reference_tokens
from beamless.data_gen.traces import (
    TARGET_KINDS,
    TargetKind,
    Trace,
    TraceRecipe,
    open_traces,
    pending_shards,
    shard_path,
    write_shard,
)
from beamless.data_gen.word_errors import Errors
from beamless.inference.audio import SAMPLE_RATE, load_audio
from beamless.inference.beam import MAX_BEAM_SIZE, Beam, beam_search
from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV
from beamless.inference.encoder import Encoder
from beamless.inference.errors import BeamlessError
from beamless.inference.features import log_mel
from beamless.inference.forced import teacher_forcing
from beamless.inference.greedy import Greedy, greedy
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.logits import Suppression
from beamless.inference.progress import console, progress
from beamless.inference.tokenizer import Tokenizer
from beamless.models.bundle import open_bundle
from beamless.models.parity_record import require_parity
from beamless.models.whisper import load_checkpoint

WINDOW_SECONDS = 30.0


def collect(
    corpus: Path,
    out: Path,
    *,
    model: str = "tiny.en",
    targets: list[TargetKind] = ["beam", "best", "reference"],  # noqa: B006
    teacher: str | None = None,
    language: str = "en",
    beam_size: int = 5,
    length_penalty: float = 1.0,
    top_k: int = 8,
    device: str = "CPU",
    limit: int | None = None,
    shard_size: int = 50,
) -> None:
    """Decode a corpus and record what greedy decoding saw along each target.

    Shards that are there already are kept, so that a stopped run goes on, and a target added
    later costs only itself.

    Args:
        corpus: a corpus folder.
        out: the traces' folder, new or of the same recipe.
        model: a bundle's folder, or a model's name.
        targets: any of beam, best, reference, teacher.
        teacher: a larger model, whose beam is the target teacher and joins the list for best.
        language: what is spoken.
        beam_size: of the beam, 2 to 10.
        length_penalty: of the beam's ranking.
        top_k: candidates kept a step.
        device: an OpenVINO device.
        limit: only so many utterances, spread over the corpus by a hash of their ids.
        shard_size: utterances in a shard; a killed run loses at most one shard.
    """
    _check(targets, teacher, beam_size)
    utterances = {u.id: u for u in spread(read_corpus(corpus), limit)}
    bundle = open_bundle(model, device)
    require_parity(bundle)
    prompt = bundle.tokenizer.prompt(language)
    recipe = TraceRecipe(
        model=bundle.manifest.model["name"],
        model_hash=bundle.manifest.model["hash"],
        teacher=teacher or "",
        prompt=prompt,
        beam_size=beam_size,
        length_penalty=length_penalty,
        top_k=top_k,
    )
    open_traces(out, recipe)
    collector = Collector(bundle, recipe, teacher, language)
    work: dict[tuple[int, tuple[str, ...]], list[TargetKind]] = {}
    for target in targets:
        plan = pending_shards(out, "teacher_forced", target, list(utterances), shard_size)
        for index, planned in plan.items():
            work.setdefault((index, tuple(planned)), []).append(target)
    with progress("utterances", sum(len(ids) for _, ids in work)) as advance:
        for (index, ids), wanted in work.items():
            traces: list[Trace] = []
            for identifier in ids:
                traces += collector.traces(utterances[identifier], wanted)
                advance()
            for target in wanted:
                rows = [trace for trace in traces if trace.target == target]
                path = shard_path(out, "teacher_forced", target, index)
                write_shard(path, rows, ids, recipe, bundle.manifest.sizes["width"])
    for reason, number in sorted(collector.refused.items()):
        console().print(f"left out {number}: {reason}")


def _check(targets: Sequence[str], teacher: str | None, beam_size: int) -> None:
    for target in targets:
        if target not in TARGET_KINDS:
            raise BeamlessError(f"target {target!r} is none of {', '.join(TARGET_KINDS)}")
    if "teacher" in targets and not teacher:
        raise BeamlessError("the target 'teacher' needs --teacher, a larger model's name")
    if not 2 <= beam_size <= MAX_BEAM_SIZE:
        raise BeamlessError(f"a beam size of {beam_size} is not within 2 and {MAX_BEAM_SIZE}")


@dataclass(frozen=True)
class Target:
    """A target's tokens, its end last, and the hidden states [T, d] where they are known."""

    tokens: tuple[int, ...]
    hidden: np.ndarray | None


class Collector:
    """The decoders of one process, and the traces that they make of an utterance.

    Attributes:
        refused: how many utterances were left out, by reason; none is ever cut.
    """

    def __init__(
        self, bundle: Bundle, recipe: TraceRecipe, teacher: str | None, language: str
    ) -> None:
        self._recipe, self._tokenizer, self._language = recipe, bundle.tokenizer, language
        self._mels = bundle.manifest.sizes["mels"]
        self._encoder = Encoder(bundle.compile("encoder"))
        self._greedy = Greedy(bundle)
        self._beam = Beam(bundle, recipe.beam_size)
        self._teacher = Teacher(teacher, bundle.device, recipe, language) if teacher else None
        manifest = bundle.manifest
        self._rule = Suppression.of(manifest.suppress_tokens, manifest.begin_suppress_tokens)
        checkpoint = load_checkpoint(manifest.model["name"])
        embedding = checkpoint.arrays["model.decoder.embed_tokens.weight"]
        self._embedding = embedding.astype(np.float32)
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
        greedy_errors = self._errors(free, utterance).total
        return [
            self._trace(utterance, kind, found[kind], seen[kind], greedy_errors) for kind in found
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
        rule = self._rule
        k = self._recipe.top_k
        described = describe_steps(hidden, self._embedding, rule.always, rule.begin, k)
        return {"hidden": hidden.astype(np.float16), **described}

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
                best = best_of(
                    pool, utterance.text, tokenizer, self._language, recipe.length_penalty
                )
                found["best"] = self._of(best)
        if "teacher" in kinds:
            found["teacher"] = self._of(taught[0])
        if "reference" in kinds:
            tokens = reference_tokens(utterance.text, tokenizer)
            found["reference"] = Target((*tokens, tokenizer.end), None)
        return {kind: found[kind] for kind in kinds}

    def _errors(self, tokens: Sequence[int], utterance: Utterance) -> Errors:
        return errors_of(tokens, utterance.text, self._tokenizer, self._language)

    def _of(self, hypothesis: Hypothesis) -> Target:
        if hypothesis.finish_reason == "length":  # a loop; its states stop before an end token
            return Target((*hypothesis.tokens, self._tokenizer.end), None)
        return Target((*hypothesis.tokens, self._tokenizer.end), hypothesis.hidden)

    def _trace(
        self,
        utterance: Utterance,
        kind: TargetKind,
        target: Target,
        seen: Mapping[str, np.ndarray],
        greedy_errors: int,
    ) -> Trace:
        errors = self._errors(target.tokens, utterance)
        return Trace(
            id=utterance.id,
            speaker=utterance.speaker,
            source=utterance.source,
            text=utterance.text,
            target=kind,
            policy="teacher_forced",
            errors=errors.total,
            words=errors.words,
            greedy_errors=greedy_errors,
            hidden=seen["hidden"],
            top_ids=seen["top_ids"],
            top_logprobs=seen["top_logprobs"],
            log_sum_exp=seen["log_sum_exp"],
            target_ids=np.array(target.tokens, np.int32),
        )


class Teacher:
    """A larger Whisper, whose beam writes texts in the student's tokens."""

    def __init__(self, name: str, device: str, recipe: TraceRecipe, language: str) -> None:
        bundle = open_bundle(name, device)
        self._tokenizer, self._recipe = bundle.tokenizer, recipe
        self._prompt = bundle.tokenizer.prompt(language)
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
