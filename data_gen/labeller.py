"""Turning the hidden states of a decode into a trace."""

from collections.abc import Mapping, Sequence

import numpy as np

from beamless.data_gen.corpora import Utterance
from beamless.data_gen.targets import describe_steps, errors_of
from beamless.data_gen.traces import Policy, TargetKind, Trace
from beamless.data_gen.word_errors import Errors
from beamless.inference.bundle import Bundle
from beamless.inference.logits import Suppression
from beamless.models.whisper import load_checkpoint


class Labeller:
    """What a bundle's model would have seen and said at a hidden state."""

    def __init__(self, bundle: Bundle, top_k: int, language: str) -> None:
        manifest = bundle.manifest
        self._tokenizer, self._top_k, self._language = bundle.tokenizer, top_k, language
        self._rule = Suppression.of(manifest.suppress_tokens, manifest.begin_suppress_tokens)
        arrays = load_checkpoint(manifest.model["name"]).arrays
        self._embedding = arrays["model.decoder.embed_tokens.weight"].astype(np.float64)

    def describe(self, hidden: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of a trace that follow from its hidden states [T, d]."""
        rule = self._rule
        seen = describe_steps(hidden, self._embedding, rule.always, rule.begin, self._top_k)
        return {"hidden": hidden.astype(np.float16), **seen}

    def errors(self, tokens: Sequence[int], utterance: Utterance) -> Errors:
        """Count the word errors of decoded tokens against the utterance's text."""
        return errors_of(tokens, utterance.text, self._tokenizer, self._language)

    def trace(
        self,
        utterance: Utterance,
        target: TargetKind,
        tokens: Sequence[int],
        labels: Sequence[int],
        seen: Mapping[str, np.ndarray],
        greedy_errors: int,
        policy: Policy = "teacher_forced",
        acceptable: Sequence[Sequence[int]] = (),
        budget: int | None = None,
        decoded: Sequence[int] = (),
    ) -> Trace:
        """Make a trace.

        Args:
            utterance: what was decoded.
            target: which kind of target.
            tokens: the text that the steps stand on; its word errors are noted.
            labels: what the target says next at each step [T].
            seen: what ``describe`` returned for these steps.
            greedy_errors: word errors of the free greedy decode.
            policy: how the steps were visited.
            acceptable: tokens as good as the labels, for each step.
            budget: tokens that the window can hold, if there is a bound.
            decoded: what the decoder said at each step [T], where it was not the labels.
        """
        errors = self.errors(tokens, utterance)
        return Trace(
            id=utterance.id,
            speaker=utterance.speaker,
            source=utterance.source,
            text=utterance.text,
            target=target,
            policy=policy,
            errors=errors.total,
            words=errors.words,
            greedy_errors=greedy_errors,
            hidden=seen["hidden"],
            top_ids=seen["top_ids"],
            top_logprobs=seen["top_logprobs"],
            log_sum_exp=seen["log_sum_exp"],
            target_ids=np.array(labels, np.int32),
            acceptable=acceptable,
            budget=budget or 0,
            decoded_ids=decoded,
        )
