"""``beamless demo``: every stage once, small, on what is installed, and what came of it."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from beamless.data_gen.collect import collect
from beamless.data_gen.grammar import load_grammar
from beamless.data_gen.sample import reading_file, sample_recordings
from beamless.data_gen.synth import synth
from beamless.data_gen.targets import errors_of
from beamless.inference.atomic import is_taken, write_text_atomically
from beamless.inference.bundle import Bundle, load_bundle
from beamless.inference.errors import BeamlessError
from beamless.inference.methods import open_method
from beamless.inference.options import DEFAULT_AUDIO_CONTEXT
from beamless.inference.progress import screen
from beamless.inference.timing import timed
from beamless.inference.window_encoder import WindowEncoder
from beamless.models.bundle import open_bundle
from beamless.models.export import export
from beamless.models.parity_record import read_parity
from beamless.training.differences import marked
from beamless.training.fit import train
from beamless.training.fitting import Fitting
from beamless.training.parity import check

METHODS = ("greedy", "corrected", "beam5")
CLOSING = """\
What this shows: the whole way works on this machine, and a corrector costs next to nothing a \
step. What it cannot show: a corrector that helps. This one learned for a minute from {sentences} \
sentences of one synthetic voice; most of them greedy decoding gets right already, so there is \
little to learn from, and whatever differs above is as likely luck as skill. Correctors that close \
the gap need hours of varied speech: collect and train on your own recordings."""


def demo(out: Path = Path("beamless-demo"), *, sentences: int = 60, model: str = "tiny.en") -> None:
    """Go the whole way once: texts, audio, traces, corrector, bundle, transcripts.

    Everything comes from installed packages. A demo that was stopped goes on where it was.

    Args:
        out: a folder for all that is made.
        sentences: how many the voice says.
        model: the Whisper to correct.
    """
    said = out / "recipe.json"
    recipe = json.dumps({"sentences": sentences, "model": model}) + "\n"
    if is_taken(out) and (not said.is_file() or said.read_text(encoding="utf-8") != recipe):
        raise BeamlessError(f"{out} exists and holds no demo like this one; name another folder")
    write_text_atomically(said, recipe)
    output = screen()
    bundle = open_bundle(model)
    stage(output, f"1. Texts: {sentences} everyday sentences", lambda: _write_texts(out, sentences))
    if not (out / "corpus" / "_COMPLETE").is_file():
        stage(output, "2. Audio: a Piper voice says them", lambda: _synthesise(out))
    if not (read_parity(bundle) or {}).get("passed"):
        stage(
            output,
            "3. Gate: the static decoder must equal the reference, token for token",
            lambda: check(model, limit=4, beam=False),
        )
    stage(
        output,
        "4. Traces: what greedy saw along the beam's best hypothesis",
        lambda: collect(out / "corpus", out / "traces", model=model, targets=["best"]),
    )
    if not (out / "corrector" / "corrector.json").is_file():
        stage(
            output,
            "5. Corrector: a small network learns from them",
            lambda: train(
                [out / "traces"], out / "corrector", model=model, fitting=Fitting(epochs=3)
            ),
        )
    if not (out / "bundle" / "bundle.json").is_file():
        stage(
            output,
            "6. Bundle: step and corrector fused into one static graph",
            lambda: export(model, out / "bundle", corrector=out / "corrector"),
        )
    output.rule("7. Transcripts: greedy, corrected and beam 5 side by side")
    compare(load_bundle(out / "bundle"), output)
    output.print(CLOSING.format(sentences=sentences))
    output.print(f"Go on with: beamless transcribe FILE --model {out / 'bundle'}", soft_wrap=True)


def stage(output: Console, title: str, work: Callable[[], object]) -> None:
    """Say what is done, do it, and say how long it took."""
    output.rule(title)
    began = time.perf_counter()
    work()
    output.print(f"[dim]{time.perf_counter() - began:.0f} s[/dim]")


def _write_texts(out: Path, sentences: int) -> None:
    lines = [line["text"] for line in load_grammar().sentences(sentences, seed=0)]
    write_text_atomically(out / "texts.txt", "\n".join(lines) + "\n")


def _synthesise(out: Path) -> None:
    synth(out / "texts.txt", out / "corpus")


def compare(bundle: Bundle, output: Console) -> None:
    """Decode the sample recordings with each method; print texts, errors, steps and times."""
    recordings = sample_recordings()
    kind = "read by a person" if reading_file() else "said by a voice (no recording is installed)"
    output.print(f"{len(recordings)} lines of A Tale of Two Cities, {kind}; errors are marked.")
    tokenizer = bundle.tokenizer
    encoder = WindowEncoder(bundle)
    decoders = {name: open_method(bundle, name, "en") for name in METHODS}
    totals = {name: [0.0, 0.0, 0.0, 0.0] for name in METHODS}  # errors, words, steps, seconds
    for name, samples, reference in recordings:
        cross_kv = encoder(samples, DEFAULT_AUDIO_CONTEXT)
        output.print(f"\n[bold]{name}[/bold]  {reference}")
        for method, decode in decoders.items():
            hypothesis, seconds = timed(decode, cross_kv)
            errors = errors_of(hypothesis.tokens, reference, tokenizer, "en")
            figures = (errors.total, errors.words, hypothesis.steps, seconds)
            totals[method] = [a + b for a, b in zip(totals[method], figures, strict=True)]
            text = tokenizer.decode(hypothesis.tokens).strip()
            output.print(f"{method:>10} ", marked(reference, text), soft_wrap=True)
    table = Table("method", "WER", "errors", "steps", "ms a token")
    for method, (wrong, words, steps, time_spent) in totals.items():
        rate, price = f"{wrong / words:.1%}", f"{1000 * time_spent / steps:.1f}"
        table.add_row(method, rate, f"{wrong:.0f}", f"{steps:.0f}", price)
    output.print(table)
