"""What an adaptation gained and lost: terms that are heard, and errors of all that is said."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from beamless.data_gen.corpora import Utterance
from beamless.data_gen.glossary import holds
from beamless.data_gen.targets import errors_of
from beamless.data_gen.word_errors import Errors
from beamless.inference.atomic import replaced_atomically, write_text_atomically
from beamless.inference.bundle import Bundle
from beamless.inference.methods import DEFAULT_METHOD, open_method
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT
from beamless.inference.progress import console, screen, track
from beamless.training.csv_rows import write_csv
from beamless.training.one_window import decoded_windows

REPORT = "adapt.json"
SHOWN = 10  # terms that are named on the screen
DRAWN = 40  # and in the picture


@dataclass(frozen=True)
class Recall:
    """How often each term was said and heard, and the word errors of all that was said."""

    said: Counter[str]
    heard: Counter[str]
    errors: Errors


@dataclass(frozen=True)
class Term:
    """A line of ``terms.csv``: how often a term was said, and heard."""

    term: str
    said: int
    heard_before: int
    heard_after: int


def recall(bundle: Bundle, utterances: Sequence[Utterance], title: str) -> Recall:
    """Decode utterances by a bundle's default method; count the terms in what was heard."""
    tokenizer = bundle.tokenizer
    decode = open_method(bundle, DEFAULT_METHOD, "en")
    said, heard, errors = Counter[str](), Counter[str](), Errors()
    watched = track(utterances, title)
    for utterance, found in decoded_windows(bundle, decode, watched, DEFAULT_AUDIO_CONTEXT):
        if found is None:
            continue
        errors += errors_of(found.tokens, utterance.text, tokenizer, "en")
        term = utterance.extra.get("term")
        if term:
            said[str(term)] += 1
            heard[str(term)] += holds(tokenizer.decode(found.tokens), str(term))
    return Recall(said, heard, errors)


def draw_terms(terms: Sequence[Term], path: Path) -> None:
    """Write a PNG of how often each term is heard before and after, those heard least on top."""
    from matplotlib.figure import Figure

    shown = sorted(terms, key=lambda t: (t.heard_after / t.said, t.heard_before / t.said))[:DRAWN]
    figure = Figure(figsize=(6, 1 + 0.25 * len(shown)), layout="constrained")
    axes = figure.subplots()
    places = range(len(shown))
    shares = [[100 * n / t.said for n in (t.heard_before, t.heard_after)] for t in shown]
    axes.hlines(places, *zip(*shares, strict=True), color="0.7")
    axes.plot([b for b, _ in shares], places, "o", color="0", mfc="none", label="before")
    axes.plot([a for _, a in shares], places, "s", color="0", markersize=4, label="after")
    names = [f"{t.term} ({t.said})" for t in shown]
    axes.set_yticks(places, names, fontsize=8, parse_math=False)
    axes.set(xlim=(-5, 105), xlabel="heard of the times that it was said, %")
    axes.invert_yaxis()
    axes.legend(fontsize=8)
    left_out = len(terms) - len(shown)
    if left_out:
        axes.set_title(f"the {DRAWN} terms heard least, {left_out} others left out", fontsize=8)
    with replaced_atomically(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")


def report(
    before: Bundle,
    after: Bundle,
    corpora: dict[str, list[Utterance]],
    other_speakers: bool,
    out: Path,
) -> None:
    """Measure both bundles; show and write what the terms gained and the rest lost."""
    table = Table("", "terms heard, before", "after", "WER before", "after", title_justify="left")
    content: dict[str, Any] = {}
    told: list[Term] = []
    for name, utterances in corpora.items():
        old = recall(before, utterances, f"{name}, before")
        new = recall(after, utterances, f"{name}, after")
        told += [Term(term, n, old.heard[term], new.heard[term]) for term, n in old.said.items()]
        totals = [(one.heard.total(), one.said.total()) for one in (old, new)]
        terms = [f"{heard} of {said}" if said else "" for heard, said in totals]
        table.add_row(name, *terms, f"{old.errors.rate:.2%}", f"{new.errors.rate:.2%}")
        content[name] = {
            "utterances": len(utterances),
            "said": old.said.total(),
            "heard": {"before": old.heard.total(), "after": new.heard.total()},
            "wer": {"before": old.errors.rate, "after": new.errors.rate},
        }
    screen().print(table)
    if not other_speakers:
        console().print("there is one speaker only: it says the sentences that judge, too")
    write_csv(out / "terms.csv", Term, told)
    if told:
        draw_terms(told, out / "terms.png")
    write_text_atomically(out / REPORT, json.dumps(content, indent=2) + "\n")
    missed = [f"{t.term} ({t.heard_after} of {t.said})" for t in told if t.heard_after < t.said]
    if missed:
        more = f" and {len(missed) - SHOWN} more" if len(missed) > SHOWN else ""
        console().print(f"not always heard: {', '.join(missed[:SHOWN])}{more}", markup=False)
    console().print(
        f"wrote {out / 'bundle'}; its confidence is raw: 'beamless calibrate' makes it hold"
    )
    heard, said = content["terms"]["heard"], content["terms"]["said"]
    if heard["after"] <= heard["before"] < said:
        console().print(
            f"no more terms are heard than before: {heard['before']} of {said}, "
            f"now {heard['after']}; without training, 'beamless transcribe --hotwords' may help"
        )
