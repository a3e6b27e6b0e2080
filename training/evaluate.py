"""``beamless evaluate``: every method on the same utterances, in one run, on one device."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path

from beamless.data_gen.corpora import corpus_name, named, read_corpus
from beamless.data_gen.subset import spread
from beamless.inference.atomic import is_taken, write_text_atomically
from beamless.inference.bundle import Bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.languages import named_language
from beamless.inference.lock import locked
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT, AudioContext
from beamless.inference.progress import console, progress
from beamless.models.bundle import open_bundle
from beamless.models.parity_record import called, read_parity, require_parity
from beamless.models.precision import Profile
from beamless.training.contenders import contender, open_contenders
from beamless.training.decoded_rows import decode_all
from beamless.training.kept_rows import read_rows
from beamless.training.report import Run, print_report, reports
from beamless.training.report_files import write_report

BASELINES = ("greedy", "greedy+eos0.3", "greedy+repeat1.15")
BEAMS = ("beam2", "beam5", "beam5-oracle")
CORRECTED = (*BASELINES, "corrected", "greedy-lookahead", "lookahead", *BEAMS)
UNCORRECTED = (*BASELINES, "lookahead", *BEAMS)
"""What is compared where nothing is named: with a corrector, and without one."""


def evaluate(
    bundle: str,
    corpora: list[Path],
    *,
    methods: list[str] | None = None,
    limit: int | None = None,
    language: str = "en",
    audio_context: AudioContext = DEFAULT_AUDIO_CONTEXT,
    device: str = "CPU",
    datastore: list[Path] = [],  # noqa: B006
    precision: Profile = "exact",
    out: Path | None = None,
) -> None:
    """Decode corpora with each method and report word errors, decoder steps and time.

    Args:
        bundle: a bundle's folder, or a model's name.
        corpora: corpus folders; their results are pooled, and shown one by one too.
        methods: as transcribe knows them; by default greedy, with an end boost and with a
            repetition penalty; corrected (where the bundle has a corrector), look-ahead without it
            and on it; beam2, beam5 and beam5-oracle, which takes the best of the beam's list.
            +eos0.3 or +repeat1.15 behind a name boosts the end token or penalises repetition;
            lookahead+margin0.4+depth6+budget32 looks at other places, and as far as it says;
            greedy+second1.5 takes the second-best token where the entropy is above 1.5 nats, and
            knn8+mix0.1+temperature10000 asks the datastore; :short or :full behind all sets the
            audio context.
        limit: only so many utterances of each corpus, spread by a hash of their ids.
        language: what is spoken.
        audio_context: short or full, for methods that name none.
        device: an OpenVINO device.
        datastore: traces in which knn looks up states like the one at hand.
        precision: of a model that is given by its name: exact, or fast as in transcribe.
        out: a folder for report.json, report.md, report.png and utterances.csv; a stopped run goes
            on from there.
    """
    evaluate_bundle(
        open_bundle(bundle, device, precision=precision),
        corpora,
        methods=methods,
        limit=limit,
        language=language,
        audio_context=audio_context,
        datastore=datastore,
        out=out,
    )


def evaluate_bundle(
    opened: Bundle,
    corpora: Sequence[Path],
    *,
    methods: Sequence[str] | None,
    limit: int | None,
    language: str,
    audio_context: AudioContext,
    datastore: Sequence[Path],
    out: Path | None,
    windows: Path | None = None,
) -> None:
    """Do what ``evaluate`` does, with a bundle that is open already.

    ``windows`` is a folder that keeps what the encoder makes of each window, for further
    evaluations of the same model; times then say nothing about it.
    """
    passed = _passed_gate(opened)
    language = named_language(language, opened.tokenizer)
    names = methods or (CORRECTED if opened.has_corrector else UNCORRECTED)
    names = [*dict.fromkeys("beam5" if name == "beam" else name for name in names)]
    contenders = [contender(name, audio_context) for name in names]
    if not opened.corrects(language):
        contenders = [replace(c, options=replace(c.options, corrected=False)) for c in contenders]
        if opened.has_corrector:
            console().print(f"the corrector has not learned {language}: all decode without it")
    if heard := _fitted_on(opened, corpora, language):
        console().print(f"confidence was fitted on {heard}: how good it is there says nothing")
    work = {name: spread(read_corpus(folder), limit) for name, folder in named(corpora).items()}
    run = Run(
        model=opened.manifest.model["name"],
        bundle_hash=opened.hash,
        corpora=tuple(work),
        device=opened.device,
        language=language,
        methods=tuple(names),
        limit=limit,
        parity=passed,
        audio_context=audio_context,
        datastore=tuple(folder.name for folder in datastore),
    )
    opened_as = open_contenders(opened, contenders, datastore)
    with locked(out) if out else nullcontext():
        kept = _open_out(out, run) if out else None
        rows = read_rows(kept, names) if kept else []
        done = {(row.corpus, row.id) for row in rows}
        left = [(c, u) for c, us in work.items() for u in us if (c, u.id) not in done]
        with progress("utterances", len(left)) as advance:
            for new in decode_all(opened, contenders, opened_as, language, left, windows):
                rows += new
                if kept:
                    with kept.open("a", encoding="utf-8", newline="\n") as file:
                        line = json.dumps([asdict(row) for row in new], ensure_ascii=False)
                        file.write(line + "\n")
                advance()
        if not rows:
            raise BeamlessError("no utterance could be decoded; all are longer than 30 s")
        found = reports(rows, run)
        print_report(found)
        if out and kept:
            write_report(rows, run, found, out)
            kept.unlink()


def _passed_gate(bundle: Bundle) -> bool:
    """Tell whether a bundle has passed the parity gate; one that failed it is not reported on.

    Raises:
        BeamlessError: it failed.
    """
    record = read_parity(bundle)
    if record is None:
        console().print(
            f"{bundle.folder} was never checked against the reference; "
            f"'beamless check {called(bundle)}' does it"
        )
        return False
    require_parity(bundle)
    return True


def _fitted_on(bundle: Bundle, corpora: Sequence[Path], language: str) -> str:
    """Name the corpora that the bundle's confidence was fitted on."""
    if bundle.confidence_in(language) is None:
        return ""
    known = (bundle.manifest.confidence or {}).get("corpora", ())
    return ", ".join(name for name in map(corpus_name, corpora) if name in known)


def _open_out(out: Path, run: Run) -> Path:
    """Return the file that keeps the rows of a run that is not finished yet."""
    recipe, kept = out / "run.json", out / "rows.partial.jsonl"
    text = json.dumps(asdict(run), indent=2, ensure_ascii=False) + "\n"
    if (out / "report.json").exists():
        raise BeamlessError(f"{out} holds a finished report; name another folder")
    if is_taken(out):
        if not recipe.is_file() or recipe.read_bytes() != text.encode():
            raise BeamlessError(f"{out} exists and holds no run like this one; name another folder")
    else:
        write_text_atomically(recipe, text)
    return kept
