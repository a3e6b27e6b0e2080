"""``beamless check``: the parity gate. A bundle decodes as transformers does, or it is not used."""

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from rich.console import Console
from rich.table import Table

from beamless.data_gen.corpora import corpus_name, read_corpus
from beamless.data_gen.sample import Recording, sample_recordings
from beamless.inference.audio import SAMPLE_RATE, WINDOW_SECONDS, load_audio
from beamless.inference.bundle import Bundle
from beamless.inference.devices import NPU_ON_CPU, has_plugin, require_device
from beamless.inference.errors import BeamlessError
from beamless.inference.features import log_mel
from beamless.inference.languages import named_language
from beamless.models.bundle import open_bundle
from beamless.models.int8 import rounded_checkpoint
from beamless.models.parity_record import write_parity
from beamless.models.precision import Profile
from beamless.models.whisper import Checkpoint, load_checkpoint
from beamless.training.metrics import score
from beamless.training.parity_compare import (
    BEAM_SIZE,
    beam_texts,
    compare_side,
    decode_reference,
    on_its_own,
    with_default_precision,
)

LOGIT_BOUND = 1e-2
ROUNDED_LOGIT_BOUND = 0.1
"""Where float16 rounds the weights; measured off that grid: 0.04 (tiny.en), 0.07 (base)."""

INT8_LOGIT_BOUND = 0.5
"""Where weights are int8: the NPU plugin's way rounds what they are multiplied with as well;
measured 0.26 (tiny.en, NPU:CPU; 0.0001 on the CPU, which does not)."""

ENCODER_LOGIT_BOUND = 1.5
"""Where the encoder computes in fewer bits than 32; measured with bfloat16 on 30 recordings: 0.64
(tiny.en) and 0.74 (base), where one recording of 60 had another token, at logits 0.5 apart; on a
CPU of another make 1.05 (base, NPU:CPU, which rounds more)."""

BEAM_WER_BOUND = 0.003
LEAST_WORDS = 1000
"""With fewer words one error weighs more than a third of ``BEAM_WER_BOUND``."""

AT_STRENGTH_0 = "corrected, strength 0"
DEFAULT_PRECISION = "default precision"


def check(
    model: str,
    *,
    corpus: Path | None = None,
    limit: int = 20,
    device: str = "CPU",
    language: str = "en",
    beam: bool = True,
    precision: Profile = "exact",
) -> int:
    """Compare a bundle with transformers' Whisper of the same arrays, and put it on record.

    The gate is passed when, on every recording, greedy decoding gives the reference's tokens, on
    the device and on the NPU plugin's path over the CPU (where this OpenVINO has it), and no
    step's logits are further from the reference's than the bound: 0.01, or 0.1 where the bundle
    stores weights as float16 that do not fit in it, or 0.5 where it stores them as int8, as the
    reference has them then, too, or 1.5 where its encoder computes in fewer bits than 32. The
    figures go to parity.json beside the bundle.

    Two tokens whose logits are closer together than the bound are a near-tie: which of them is
    larger is a matter of rounding. A recording that parts there is counted and named, but does
    not fail the check; one that parts anywhere else does.

    A beam of 5 is compared by its word error rate: not more than 0.3 points above that of
    transformers' beam. It is part of the gate where the corpus holds at least 1,000 words.
    What the device's own choice of precision would do is shown, and is not part of the gate.

    Args:
        model: a bundle's folder, or a model by any of its names.
        corpus: real recordings with their texts; a few that are installed, if not given.
        limit: how many of its utterances to take.
        device: an OpenVINO device.
        language: what is spoken.
        beam: compare beams too.
        precision: of a model that is given by its name: exact, or fast as in transcribe.

    Returns:
        0 where the gate is passed, else 1.

    Raises:
        BeamlessError: the model, the corpus or the device is not to be had.
    """
    if limit < 1:
        raise BeamlessError(f"a limit of {limit} leaves nothing to compare")
    require_device(device)
    recordings = corpus_recordings(corpus, limit) if corpus else sample_recordings()
    bundle = open_bundle(model, device, precision=precision)
    language = named_language(language, bundle.tokenizer)
    checkpoint = checkpoint_of(bundle)
    figures = compare(bundle, checkpoint, recordings[:limit], language, beam)
    figures["corpus"] = corpus_name(corpus) if corpus else "installed sample"
    file = write_parity(bundle, figures)
    show(figures, bundle)
    Console(stderr=True).print(f"wrote {file}")
    return 0 if figures["passed"] else 1


def checkpoint_of(bundle: Bundle) -> Checkpoint:
    """Return the checkpoint that a bundle was made from.

    Raises:
        BeamlessError: it is not to be had, or has other weights by now.
    """
    name, expected = bundle.manifest.model["name"], bundle.manifest.model["hash"]
    checkpoint = load_checkpoint(name)
    if checkpoint.hash != expected:
        raise BeamlessError(
            f"{name} is not the model that {bundle.folder} was made from; export it again"
        )
    return checkpoint


def corpus_recordings(corpus: Path, limit: int) -> list[Recording]:
    """Return the first recordings of a corpus that fit in a window.

    Raises:
        BeamlessError: it is no corpus, or holds none.
    """
    short = [u for u in read_corpus(corpus) if u.duration <= WINDOW_SECONDS]
    recordings = [(u.id, load_audio(u.audio), u.text) for u in short[:limit]]
    if not recordings:
        raise BeamlessError(f"{corpus} holds no recording of at most {WINDOW_SECONDS:g} s")
    return recordings


def compare(
    bundle: Bundle,
    checkpoint: Checkpoint,
    recordings: Sequence[Recording],
    language: str = "en",
    beam: bool = True,
) -> dict[str, Any]:
    """Decode recordings with the reference and with every side; return ``parity.json``'s figures.

    The reference of a bundle with int8 weights has the same rounded weights: this tells whether the
    decoder is right; what rounding costs is for an evaluation to tell.

    Raises:
        BeamlessError: a graph cannot be compiled, or a logit is not finite.
    """
    prompt, bound = bundle.tokenizer.prompt(language), logit_bound(bundle, checkpoint)
    most, mels = int(WINDOW_SECONDS * SAMPLE_RATE), checkpoint.sizes.mels
    mel_windows = [(id, log_mel(samples[:most], mels)) for id, samples, _ in recordings]
    rounds = bundle.manifest.precision["weights"] == "int8"
    truth = rounded_checkpoint(checkpoint) if rounds else checkpoint
    windows = decode_reference(truth, bundle, prompt, mel_windows, beam)
    sides = [
        compare_side(name, on_its_own(side), prompt, windows, bound, name == AT_STRENGTH_0)
        for name, side in sides_of(bundle).items()
    ]
    judged = [side for side in sides if side.name != DEFAULT_PRECISION]
    passed = all(not s.different and (s.logit_difference or 0) <= bound for s in judged)
    beam_figures = None
    if beam:
        texts = beam_texts(on_its_own(bundle), prompt, windows)
        beam_figures = beams_compared([text for _, _, text in recordings], texts, language)
        passed = passed and beam_figures["passed"]
    return {
        "passed": passed,
        "model": dict(bundle.manifest.model),
        "device": bundle.device,
        "precision": dict(bundle.manifest.precision),
        "openvino": ov.get_version(),
        "machine": platform.machine(),
        "recordings": len(recordings),
        "tokens": sum(map(len, sides[0].tokens)),
        "logit_bound": bound,
        "sides": {side.name: side.figures() for side in sides},
        "beam": beam_figures,
    }


def logit_bound(bundle: Bundle, checkpoint: Checkpoint) -> float:
    """Return how far a logit may be from the reference's.

    Published Whisper weights are float16 in every format, so that storing them as such loses
    nothing. Weights that were trained on in float32 are rounded by it.
    """
    if bundle.manifest.precision["encoder"] != "f32":
        return ENCODER_LOGIT_BOUND
    if bundle.manifest.precision["weights"] == "f32":
        return LOGIT_BOUND
    if bundle.manifest.precision["weights"] == "int8":
        return INT8_LOGIT_BOUND
    arrays = checkpoint.arrays.values()
    exact = all(a.dtype == np.float16 or np.array_equal(a, a.astype(np.float16)) for a in arrays)
    return LOGIT_BOUND if exact else ROUNDED_LOGIT_BOUND


def sides_of(bundle: Bundle) -> dict[str, Bundle]:
    """Return what is compared with the reference, the bundle on its own device first."""
    sides = {bundle.device: bundle}
    if bundle.has_corrector:
        sides[AT_STRENGTH_0] = bundle
    if has_plugin("NPU"):
        sides[NPU_ON_CPU] = replace(bundle, device=NPU_ON_CPU)
    sides[DEFAULT_PRECISION] = with_default_precision(bundle)
    return sides


def beams_compared(
    references: Sequence[str], texts: Sequence[tuple[str, str]], language: str
) -> dict[str, Any]:
    """Return the figures of two beams.

    Args:
        references: what was said.
        texts: of each recording, what our beam and the reference's made of it.
        language: what is spoken.
    """
    ours, theirs = (
        score(zip(references, side, strict=True), language).errors
        for side in zip(*texts, strict=True)
    )
    part_of_gate = theirs.words >= LEAST_WORDS
    return {
        "size": BEAM_SIZE,
        "equal": sum(own == other for own, other in texts),
        "words": theirs.words,
        "wer": ours.rate,
        "reference_wer": theirs.rate,
        "part_of_gate": part_of_gate,
        "passed": not part_of_gate or ours.rate <= theirs.rate + BEAM_WER_BOUND,
    }


def show(figures: dict[str, Any], bundle: Bundle) -> None:
    """Print the figures on standard output."""
    table = Table(title=f"{figures['model']['name']} beside transformers, {bundle.folder.name}")
    for heading in ("decoder", "same tokens", "near-ties", "different", "logits"):
        table.add_column(heading, justify="left" if heading == "decoder" else "right")
    for name, side in figures["sides"].items():
        ties, different = len(side["near_ties"]), len(side["different"])
        far = side["logit_difference"]
        same = f"{side['equal']} of {figures['recordings']}"
        table.add_row(name, same, str(ties), str(different), "" if far is None else f"{far:.1e}")
    output = Console(highlight=False, soft_wrap=True)
    output.print(table)
    for name, side in figures["sides"].items():
        for kind in ("near_ties", "different"):
            if side[kind]:
                output.print(f"{name}: {kind.replace('_', '-')} in {', '.join(side[kind])}")
    if figures["beam"]:
        beam = figures["beam"]
        note = "" if beam["part_of_gate"] else f", too few words to judge by ({beam['words']})"
        both = f"WER {beam['wer']:.2%}, transformers {beam['reference_wer']:.2%}"
        same = f"same text {beam['equal']} of {figures['recordings']}"
        output.print(f"beam {beam['size']}: {both}, {same}{note}")
    output.print("passed" if figures["passed"] else "FAILED")
