"""``beamless adapt``: a list of names and terms to a corrector that has heard them.

Voices say sentences around the terms, and general ones without them. The model's traces of the
former, as they were said and in rooms and noise, with the text itself as the target, and of the
latter, with the best of the beam's list, train the corrector further. What the terms gain is
measured on sentences and, where there is more than one, on speakers that the training did not have,
without rooms and noise; what the rest loses, on corpora given with ``--dev``.
"""

import json
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import cast

from beamless.data_gen import augment
from beamless.data_gen.augment import load_recipe
from beamless.data_gen.augmented_copy import augmented_copy
from beamless.data_gen.casting import Cast, Role, cast_from_recipe
from beamless.data_gen.collect import collect
from beamless.data_gen.corpora import Utterance, named, read_corpus
from beamless.data_gen.glossary import general_sentences, read_terms, sentences_around
from beamless.data_gen.subset import spread
from beamless.data_gen.synth import make_corpus
from beamless.data_gen.text_lines import digest_of, read_text_lines
from beamless.data_gen.traces import Policy, TargetKind
from beamless.data_gen.voices import load_voice
from beamless.inference.atomic import begin, require_own, require_same
from beamless.inference.audio import WINDOW_SECONDS
from beamless.inference.counts import require_between, require_positive
from beamless.inference.errors import BeamlessError
from beamless.models.bundle import open_bundle
from beamless.models.corrector import CANDIDATES, Corrector, Family, save_corrector
from beamless.models.parity_record import require_parity
from beamless.models.precision import Profile
from beamless.models.pretrained import pretrained
from beamless.training.adapt_report import REPORT, report
from beamless.training.checked_bundle import checked_bundle, require_model
from beamless.training.fit import train
from beamless.training.fitting import Fitting
from beamless.training.steps import read_training_steps

ROOMS = Path(augment.__file__).with_name("adapt.yaml")
SPEEDS = (0.85, 1.15)
TARGETS: list[TargetKind] = ["reference", "best"]
POLICIES: list[Policy] = ["teacher_forced", "on_policy"]
MOST_GENERAL = 100_000  # sentences
ONE_ASIDE_OF = 5  # speakers; at least one, if there are two


def adapt(
    model: str,
    out: Path,
    *,
    words: Path,
    sentences: Path | None = None,
    voices: Path | None = None,
    traces: list[Path] = [],  # noqa: B006
    dev: list[Path] = [],  # noqa: B006
    dev_limit: int | None = 50,
    per_word: int = 8,
    general: int = 120,
    epochs: int = 12,
    learning_rate: float = 3e-4,
    seed: int = 0,
    precision: Profile = "fast",
) -> None:
    """Teach a corrector names and terms, and report what that gains and what it costs.

    It goes on from the corrector that comes with Beamless for this model, if there is one. A run
    that was stopped goes on where it was.

    Args:
        model: the Whisper to adapt, past 'beamless check'.
        out: a folder for all that is made; the bundle is in it when it is done.
        words: a text file, a name or a term a line, written as they are to be read.
        sentences: a text file of the user's own sentences with them, to learn from too.
        voices: a YAML recipe of voices, as for synth; the Piper voice joe otherwise.
        traces: general traces of the same model to mix in besides, so that nothing else is lost.
        dev: corpora to measure what else has changed.
        dev_limit: only so many utterances of each.
        per_word: sentences of each term to learn from.
        general: sentences without the terms that the voices say, so that nothing else is lost; 0
            for none.
        epochs: times through all traces.
        learning_rate: of AdamW, at the start.
        seed: of sentences, weights and order.
        precision: what all is decoded in, and the bundle is: fast as in production, or exact.
    """
    require_positive(per_word=per_word, dev_limit=dev_limit)
    require_between(0, MOST_GENERAL, general=general)
    require_model(model)
    require_own(out, "adapt")
    if (out / REPORT).exists():
        raise BeamlessError(f"{out} holds a finished adaptation; name another folder")
    terms = read_terms(words)
    own = [line.text for line in read_text_lines(sentences)] if sentences else []
    others = {name: _dev_set(folder, dev_limit) for name, folder in named(dev).items()}
    rooms = load_recipe(ROOMS)
    before = open_bundle(model, precision=precision)
    corrector = pretrained(before.manifest.model["hash"])
    fitting = replace(like(corrector), epochs=epochs, learning_rate=learning_rate, seed=seed)
    if traces:
        _, traced_model, model_hash = read_training_steps(traces, TARGETS, POLICIES)
        if model_hash != before.manifest.model["hash"]:
            raise BeamlessError(f"the traces are of another model than {model}: of {traced_model}")
    require_parity(before)
    speakers = cast_from_recipe(voices) if voices else _one_voice()
    known, aside = set_aside(speakers)
    learnt, judged = sentences_around(terms, own, per_word, seed)
    begin(out, "adapt")
    asked = {
        "model": before.manifest.model,
        "words": digest_of(words),
        "sentences": digest_of(sentences) if sentences else None,
        "voices": digest_of(voices) if voices else None,
        "traces": [folder.name for folder in traces],
        "per_word": per_word,
        "general": general,
        "precision": precision,
        "fitting": asdict(fitting),
    }
    text = json.dumps(asked, indent=2, ensure_ascii=False) + "\n"
    otherwise = f"{out} was begun with other settings; name another folder"
    require_same(out / "asked.json", text, otherwise)
    origin = {"words": digest_of(words), "per_word": per_word, "seed": seed}
    make_corpus(learnt, out / "learnt", known, origin)
    make_corpus(judged, out / "judged", aside or known, origin)
    augmented_copy(out / "learnt", out / "again", rooms)
    targets: dict[str, TargetKind] = {"learnt": "reference", "again": "reference"}
    if unrelated := general_sentences(terms, general, seed) if general else []:
        make_corpus(unrelated, out / "general", known, {**origin, "general": general})
        targets["general"] = "best"
    for name, target in targets.items():
        where = out / "traces" / name
        collect(out / name, where, targets=[target], model=str(before.folder))
    if corrector is not None:
        save_corrector(corrector, out / "start")
    if not (out / "corrector" / "corrector.json").is_file():
        train(
            [*(out / "traces" / name for name in targets), *traces],
            out / "corrector",
            model=model,
            targets=TARGETS,
            policies=POLICIES,
            start=out / "start" if corrector is not None else None,
            fitting=fitting,
        )
    bundle = out / "bundle"
    checked_bundle(model, out / "corrector", bundle, precision)
    corpora = {"terms": read_corpus(out / "judged"), **others}
    report(before, open_bundle(str(bundle)), corpora, aside is not None, out)


def _one_voice() -> Cast:
    voice = load_voice("joe")
    return Cast((Role(voice, 1.0, voice.speakers[:1], SPEEDS),))


def _dev_set(corpus: Path, limit: int | None) -> list[Utterance]:
    """Return some utterances of a corpus that fit in a window.

    Raises:
        BeamlessError: there is none.
    """
    found = [u for u in spread(read_corpus(corpus), limit) if u.duration <= WINDOW_SECONDS]
    if not found:
        raise BeamlessError(f"{corpus} has no utterance of at most {WINDOW_SECONDS:g} s")
    return found


def set_aside(cast: Cast) -> tuple[Cast, Cast | None]:
    """Split a cast's speakers into those to learn from and those to be judged by.

    Every fifth is set aside, by a hash of the name, and at least one; None where there is only one.
    """
    everyone = [(role, s) for role in cast.roles for s in role.speakers or role.voice.speakers]
    if len(everyone) < 2:
        return cast, None

    def rank(member: tuple[Role, str]) -> bytes:
        name = f"{member[0].voice.name}/{member[1]}"
        return blake2b(name.encode(), digest_size=6).digest()

    ordered = sorted(everyone, key=rank)
    judges = {(role.voice.name, s) for role, s in ordered[: max(1, len(everyone) // ONE_ASIDE_OF)]}

    def part(judging: bool) -> Cast:
        roles = []
        for role in cast.roles:
            names = role.speakers or role.voice.speakers
            kept = tuple(s for s in names if ((role.voice.name, s) in judges) == judging)
            if kept:
                roles.append(replace(role, speakers=kept))
        return Cast(tuple(roles), cast.seed)

    return part(judging=False), part(judging=True)


def like(corrector: Corrector | None) -> Fitting:
    """Return how to train a corrector of the same family and sizes, or the usual one."""
    if corrector is None:
        return Fitting()
    config = corrector.config
    return Fitting(
        family=cast(Family, config.family),
        history=config.history,
        units=config.units,
        candidates=config.candidates or CANDIDATES,
        gate=config.gate,
        ledger=config.ledger,
        last_token=config.last_token,
    )
