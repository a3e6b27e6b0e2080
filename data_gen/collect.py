"""``beamless collect``: decode a corpus every way that a target needs, and keep the steps."""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.engines import Engine, make_shards, shared_threads
from beamless.data_gen.shards import Job, Made, Shard
from beamless.data_gen.subset import spread
from beamless.data_gen.teachers import called, is_written
from beamless.data_gen.traces import (
    SHARDS,
    TARGET_KINDS,
    TargetKind,
    TraceRecipe,
    open_traces,
    pending_shards,
    shard_path,
    taught,
)
from beamless.inference.beam import MAX_BEAM_SIZE
from beamless.inference.counts import require_between, require_positive
from beamless.inference.errors import BeamlessError
from beamless.inference.languages import named_language
from beamless.inference.lock import locked
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT, AudioContext
from beamless.inference.progress import console, progress
from beamless.models.bundle import open_bundle
from beamless.models.parity_record import require_parity

MOST_LENGTH_PENALTY = 10.0


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
    audio_context: AudioContext = DEFAULT_AUDIO_CONTEXT,
    device: str = "CPU",
    limit: int | None = None,
    shard_size: int = 50,
    workers: int = 1,
    threads: int | None = None,
    engine: Engine = "local",
    address: str | None = None,
) -> None:
    """Decode a corpus and record what greedy decoding saw along each target.

    Shards that are there already are kept, so that a stopped run goes on, and a target, a teacher
    or utterances added later cost only themselves. At the end standard error says where the time
    went.

    Args:
        corpus: a corpus folder.
        out: the traces' folder, new or of the same recipe.
        model: a bundle's folder, or a model's name.
        targets: any of beam, best, reference, teacher; list, the beam's whole list, is for mwer.
        teacher: a larger model, whose beam is the target teacher and joins the list for best; or
            a .jsonl file of the id and the text of utterances that another program transcribed.
        language: what is spoken.
        beam_size: of the beam, 2 to 10.
        length_penalty: of the beam's ranking.
        top_k: candidates kept a step.
        audio_context: short or full, as the corrector will be used; the teacher's is full.
        device: an OpenVINO device.
        limit: only so many utterances, spread over the corpus by a hash of their ids.
        shard_size: utterances in a shard; a killed worker loses at most one shard.
        workers: how many decode at once; the shards are the same.
        threads: CPU threads of each worker; the cores shared evenly, by default.
        engine: local for processes here, ray for Ray's on a cluster that shares these folders.
        address: the Ray cluster's; one on this machine alone by default.
    """
    require_positive(workers=workers, threads=threads, shard_size=shard_size, top_k=top_k)
    require_between(0, MOST_LENGTH_PENALTY, length_penalty=length_penalty)
    _check(targets, teacher, beam_size)
    utterances = {u.id: u for u in spread(read_corpus(corpus), limit)}
    bundle = open_bundle(model, device)
    require_parity(bundle)
    language = named_language(language, bundle.tokenizer)
    prompt = bundle.tokenizer.prompt(language)
    recipe = TraceRecipe(
        model=bundle.manifest.model["name"],
        model_hash=bundle.manifest.model["hash"],
        teacher=called(teacher) if teacher else "",
        prompt=prompt,
        beam_size=beam_size,
        length_penalty=length_penalty,
        top_k=top_k,
        language=language,
        audio_context=audio_context,
    )
    with locked(out):
        recipe = taught(out, recipe, targets)
        open_traces(out, recipe)
        work: dict[tuple[int, tuple[str, ...]], list[TargetKind]] = {}
        for target in targets:
            plan = pending_shards(out, "teacher_forced", target, list(utterances), shard_size)
            for index, planned in plan.items():
                work.setdefault((index, tuple(planned)), []).append(target)
        shards = [
            Shard(index, tuple(utterances[i] for i in ids), tuple(wanted))
            for (index, ids), wanted in work.items()
        ]
        threads = threads or shared_threads(workers)
        texts = str(Path(teacher).resolve()) if teacher and is_written(teacher) else ""
        job = Job(str(bundle.folder), device, threads, recipe, out.resolve(), texts)
        begun = any((out / "teacher_forced").glob(f"*/{SHARDS}"))
        made: list[Made] = []
        began = time.perf_counter()
        with progress("utterances", sum(len(shard.utterances) for shard in shards)) as advance:
            for shard, result in make_shards(job, shards, workers, engine, address):
                advance(len(shard.utterances))
                made.append(result)
        refused = sum((result.refused for result in made), Counter[str]())
        for reason, number in sorted(refused.items()):
            console().print(f"left out {number}: {reason}")
        if made and not begun and not any(result.rows for result in made):
            _discard(out, shards)
            raise BeamlessError(
                f"none of the {len(utterances)} utterances of {corpus} gave a trace"
            )
        if not shards:
            console().print(f"{out} holds all of them already", markup=False)
        if made:
            count = sum(len(shard.utterances) for shard in shards)
            console().print(costs(made, count, time.perf_counter() - began), soft_wrap=True)


def _discard(out: Path, shards: Sequence[Shard]) -> None:
    """Take away shards without a trace, so that the same command is no success the next time."""
    for shard in shards:
        for target in shard.targets:
            shard_path(out, "teacher_forced", target, shard.index).unlink(missing_ok=True)


def costs(made: Sequence[Made], utterances: int, seconds: float) -> str:
    """Return one line: how much was decoded, how fast, and what the workers' time went to."""
    spent: defaultdict[str, float] = defaultdict(float)
    for result in made:
        for what, part in result.spent.items():
            spent[what] += part
    total = sum(spent.values()) or 1.0
    shares = ", ".join(
        f"{what} {part / total:.0%}" for what, part in sorted(spent.items(), key=lambda s: -s[1])
    )
    hours = sum(result.heard for result in made) / 3600
    pace = (
        f"{utterances / seconds * 3600:.0f} utterances and {hours / seconds * 3600:.1f} h an hour"
    )
    return f"{utterances} utterances, {hours:.2f} h of audio in {seconds:.0f} s ({pace}): {shares}"


def _check(targets: Sequence[str], teacher: str | None, beam_size: int) -> None:
    for target in targets:
        if target not in TARGET_KINDS:
            raise BeamlessError(f"target {target!r} is none of {', '.join(TARGET_KINDS)}")
    if "teacher" in targets and not teacher:
        raise BeamlessError("the target 'teacher' needs --teacher, a larger model or a .jsonl file")
    if teacher and not {"teacher", "best", "list"} & {*targets}:
        raise BeamlessError(f"a teacher has no part in the targets {', '.join(targets)}")
    if not 2 <= beam_size <= MAX_BEAM_SIZE:
        raise BeamlessError(f"a beam size of {beam_size} is not within 2 and {MAX_BEAM_SIZE}")
