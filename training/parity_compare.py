"""One static decoder beside the reference, over one window after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from beamless.inference.beam import Beam, beam_search
from beamless.inference.bundle import Bundle
from beamless.inference.corrected import Corrected
from beamless.inference.decoder import CrossKV, StaticDecoder
from beamless.inference.encoder import Encoder
from beamless.inference.greedy import Chooser, Greedy, greedy
from beamless.inference.progress import track
from beamless.models.reference import (
    reference_decode,
    reference_encode,
    reference_logits,
    reference_model,
)
from beamless.models.whisper import Checkpoint

BEAM_SIZE = 5


@dataclass(frozen=True)
class Decoded:
    """What the reference made of one window.

    Attributes:
        id: the recording's.
        log_mel: [1, M, F].
        tokens: greedy, without prompt and end token.
        logits: [P + T, V], raw, those that follow each of the P prompt tokens and of ``tokens``.
        beam_tokens: the best of its beam, or None where no beam was asked for.
    """

    id: str
    log_mel: np.ndarray
    tokens: tuple[int, ...]
    logits: np.ndarray
    beam_tokens: tuple[int, ...] | None


def decode_reference(
    checkpoint: Checkpoint,
    bundle: Bundle,
    prompt: tuple[int, ...],
    windows: Sequence[tuple[str, np.ndarray]],
    beam: bool,
) -> list[Decoded]:
    """Decode windows, each an id and its log-mel [1, M, F], with transformers.

    Prompt, capacity and suppress lists are the bundle's.
    """
    model = reference_model(checkpoint)
    rule = (checkpoint, prompt, bundle.tokenizer.end, bundle.manifest.capacity)
    decoded = []
    for id, log_mel in track(windows, "transformers"):
        encoded = reference_encode(model, log_mel)
        tokens = reference_decode(model, encoded, *rule)
        logits = reference_logits(model, encoded, [*prompt, *tokens])
        beam_tokens = reference_decode(model, encoded, *rule, BEAM_SIZE) if beam else None
        decoded.append(Decoded(id, log_mel, tokens, logits, beam_tokens))
    return decoded


@dataclass(frozen=True)
class SideResult:
    """How far one way of decoding was from the reference.

    Attributes:
        name: what the report calls it.
        tokens: what it decoded, window by window.
        near_ties: ids of the windows that part at two logits closer than the bound.
        different: ids of the windows that part elsewhere.
        logit_difference: the largest one along the reference's tokens; None where the graph does
            not give its logits away.
    """

    name: str
    tokens: tuple[tuple[int, ...], ...]
    near_ties: tuple[str, ...]
    different: tuple[str, ...]
    logit_difference: float | None

    def figures(self) -> dict[str, Any]:
        """Return what ``parity.json`` holds of it."""
        return {
            "equal": len(self.tokens) - len(self.near_ties) - len(self.different),
            "near_ties": list(self.near_ties),
            "different": list(self.different),
            "logit_difference": self.logit_difference,
        }


def compare_side(
    name: str,
    bundle: Bundle,
    prompt: tuple[int, ...],
    windows: Sequence[Decoded],
    bound: float,
    corrected: bool = False,
) -> SideResult:
    """Decode every window greedily and compare it with the reference.

    Args:
        name: what the report calls it.
        bundle: on its device.
        prompt: the ids that open each window.
        windows: as the reference decoded them.
        bound: two logits closer together than this are a near-tie.
        corrected: decode with the corrected graph, at strength 0.
    """
    end, encoder = bundle.tokenizer.end, Encoder(bundle.compile("encoder"))
    chooser: Chooser = Corrected(bundle, strength=0.0) if corrected else Greedy(bundle)
    tokens, differences = [], []
    ties: list[str] = []
    different: list[str] = []
    for window in track(windows, name):
        cross_kv = encoder(window.log_mel)
        tokens.append(greedy(chooser, cross_kv, prompt, end).tokens)
        if tokens[-1] != window.tokens:
            near = gap(bundle, window, tokens[-1], len(prompt)) < bound
            (ties if near else different).append(window.id)
        if not corrected:
            differences.append(logit_difference(chooser.decoder, cross_kv, prompt, window))
    return SideResult(
        name, tuple(tokens), tuple(ties), tuple(different), max(differences, default=None)
    )


def gap(bundle: Bundle, window: Decoded, tokens: tuple[int, ...], prompt_length: int) -> float:
    """Return the reference's logit of its own token less that of ours, where the two part."""
    end = bundle.tokenizer.end
    theirs, ours = (*window.tokens, end), (*tokens, end)
    at = next(i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b)
    logits = window.logits[prompt_length - 1 + at]
    return float(logits[theirs[at]] - logits[ours[at]])


def logit_difference(
    decoder: StaticDecoder, cross_kv: CrossKV, prompt: tuple[int, ...], window: Decoded
) -> float:
    """Return the largest difference of any logit, over every step along the reference's tokens."""
    decoder.start(cross_kv)
    steps = zip((*prompt, *window.tokens), window.logits, strict=True)
    return max(
        float(np.abs(decoder.step([token]).logits[0] - expected).max()) for token, expected in steps
    )


def beam_texts(
    bundle: Bundle, prompt: tuple[int, ...], windows: Sequence[Decoded]
) -> list[tuple[str, str]]:
    """Return for each window the text of our beam's best hypothesis, and of the reference's."""
    encoder, beam = Encoder(bundle.compile("encoder")), Beam(bundle, BEAM_SIZE)
    texts = []
    for window in track(windows, f"beam {BEAM_SIZE}"):
        cross_kv = encoder(window.log_mel)
        ours = beam_search(beam, cross_kv, prompt, bundle.tokenizer.end)[0].tokens
        decode = bundle.tokenizer.decode
        texts.append((decode(ours), decode(window.beam_tokens or ())))
    return texts


def on_its_own(bundle: Bundle) -> Bundle:
    """Return the same bundle with nothing compiled yet, so that its memory can be given back."""
    return replace(bundle)


def with_default_precision(bundle: Bundle) -> Bundle:
    """Return a bundle that computes in what its device chooses by itself."""
    precision = {**bundle.manifest.precision, "encoder": "default", "decoder": "default"}
    manifest = replace(bundle.manifest, precision=precision)
    return replace(bundle, manifest=manifest)
