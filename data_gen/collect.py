"""``beamless collect``: decode a corpus every way that a target needs, and keep the steps."""

from collections.abc import Sequence
from pathlib import Path

from beamless.data_gen.collector import Collector
from beamless.data_gen.corpora import read_corpus
from beamless.data_gen.subset import spread
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
from beamless.inference.beam import MAX_BEAM_SIZE
from beamless.inference.errors import BeamlessError
from beamless.inference.progress import console, progress
from beamless.models.bundle import open_bundle
from beamless.models.parity_record import require_parity


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
        language=language,
    )
    open_traces(out, recipe)
    collector = Collector(bundle, recipe)
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
