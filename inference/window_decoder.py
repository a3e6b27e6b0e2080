"""One window of at most thirty seconds to its hypotheses: encoder, language, prompt, fallback."""

import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from beamless.inference.bundle import Bundle
from beamless.inference.decoder import CrossKV, StaticDecoder
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.methods import method_of
from beamless.inference.options import AudioContext, DecodingOptions
from beamless.inference.repeats import cycles
from beamless.inference.sampling import TokenOptions
from beamless.inference.window_encoder import WindowEncoder


@dataclass(frozen=True)
class Decoded:
    """What a window gave.

    Attributes:
        hypotheses: best first.
        repeats: the text repeats itself.
        silent: the model heard no speech.
        forgot: it was decoded again without the text before, which it had repeated or filled the
            capacity with.
    """

    hypotheses: tuple[Hypothesis, ...]
    repeats: bool
    silent: bool
    forgot: bool = False

    @property
    def best(self) -> Hypothesis:
        """The first of the hypotheses."""
        return self.hypotheses[0]


class WindowDecoder:
    """A bundle's encoder and one of its methods."""

    def __init__(self, bundle: Bundle, method: str) -> None:
        self.tokenizer, self.confidence_in = bundle.tokenizer, bundle.confidence_in
        self._bundle, self._encoder = bundle, WindowEncoder(bundle)
        with ThreadPoolExecutor(1, "encoder") as beside:
            ready = beside.submit(self._encoder.prepare_first)
            self._method = method_of(bundle, method)
            ready.result()
        self.capacity = self._method.decoder.capacity

    @property
    def static_decoder(self) -> StaticDecoder:
        """The static decoder that the method drives."""
        return self._method.decoder

    @property
    def encodes_beside(self) -> bool:
        """Whether ``encode`` is to be called for the next window while one is decoded."""
        return self._bundle.encodes_beside

    def encode(self, samples: np.ndarray, audio_context: AudioContext) -> CrossKV:
        """Encode at most 30 s of samples, float32 [n] at 16 kHz."""
        return self._encoder(samples, audio_context)

    def languages(self, cross_kv: CrossKV) -> dict[str, float]:
        """Return how likely a window is in each language; only the likely ones may be there."""
        outputs = self._method.first_outputs(cross_kv, self.tokenizer.start)
        return language_probabilities(outputs, self.tokenizer.languages)

    def decode(
        self,
        cross_kv: CrossKV,
        language: str,
        previous: Sequence[int],
        options: DecodingOptions,
        budget: int | None = None,
    ) -> Decoded:
        """Decode a window, again at each temperature as long as it fails a threshold.

        Args:
            cross_kv: the window, encoded.
            language: a code that the model knows.
            previous: ids to show the model before the window.
            options: what the user asked for.
            budget: tokens of text at which it is stopped as a runaway loop.

        Returns:
            The first that fails none, else the one that is best by its mean log-probability, of
            those that do not repeat if there are any.

        Raises:
            BeamlessError: the model cannot do the language or the task.
        """
        tried: list[Decoded] = []
        for temperature in options.temperatures:
            rule = (options, temperature, budget)
            found = self._once(cross_kv, language, previous, *rule)
            if previous and (found.repeats or found.best.finish_reason == "length"):
                previous = ()
                found = self._once(cross_kv, language, previous, *rule, forgot=True)
            tried.append(found)
            poor = found.best.avg_logprob < options.logprob_threshold
            if found.silent or not (found.repeats or poor):
                return found
        return max(tried, key=lambda found: (not found.repeats, found.best.avg_logprob))

    def _once(
        self,
        cross_kv: CrossKV,
        language: str,
        previous: Sequence[int],
        options: DecodingOptions,
        temperature: float,
        budget: int | None,
        forgot: bool = False,
    ) -> Decoded:
        timestamps = bool(options.timestamps)
        prompt = self.tokenizer.prompt(language, options.task, timestamps, previous)
        choice = token_options(self._bundle, language, options, budget, temperature)
        found = self._method.decode(cross_kv, prompt, choice, options.word_times)
        best = found[0]
        ratio = compression_ratio(self.tokenizer.decode(best.tokens))
        looping = bool(previous) and cycles([t for t in best.tokens if t < self.tokenizer.end])
        looping = looping or best.finish_reason == "budget"
        unsure = best.avg_logprob < options.logprob_threshold
        return Decoded(
            hypotheses=tuple(found),
            repeats=ratio > options.compression_ratio_threshold or looping,
            silent=unsure and best.no_speech_prob > options.no_speech_threshold,
            forgot=forgot,
        )


def token_options(
    bundle: Bundle,
    language: str,
    asked: DecodingOptions,
    budget: int | None,
    temperature: float = 0.0,
) -> TokenOptions:
    """Return how a window's tokens are chosen, by what the user asked for."""
    return TokenOptions(
        bool(asked.timestamps),
        asked.eos_boost,
        asked.repetition_penalty,
        temperature,
        budget,
        others=asked.word_alternatives and asked.word_alternatives + 1,
        corrected=bundle.corrects(language, asked.task),
    )


def compression_ratio(text: str) -> float:
    """Return by how much zlib makes a text smaller: over 2.4 for one that repeats itself."""
    content = text.encode("utf-8", "replace")
    return len(content) / len(zlib.compress(content))


def language_probabilities(
    outputs: Mapping[str, np.ndarray], languages: Mapping[str, int]
) -> dict[str, float]:
    """Read the languages' probabilities out of the step that was fed the start token.

    The fused graph gives its likeliest tokens only: the languages among these share the whole.
    """
    if "logits" in outputs:
        row = outputs["logits"][0, -1]
        scores = {code: float(row[token]) for code, token in languages.items()}
    else:
        codes = {token: code for code, token in languages.items()}
        top = zip(outputs["top_tokens"], outputs["top_logprobs"], strict=True)
        scores = {codes[int(t)]: float(score) for t, score in top if int(t) in codes}
    highest = max(scores.values(), default=0.0)
    weights = {code: float(np.exp(score - highest)) for code, score in scores.items()}
    total = sum(weights.values())
    return {code: weight / total for code, weight in weights.items()}
