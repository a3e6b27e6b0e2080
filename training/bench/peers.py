"""Other speech recognisers on the same weights, each as its users run it.

All decode at temperature 0, without falling back and without the text before as context, so that
each window is decoded once. Recordings that fit in a window are decoded without times where there
is a choice, longer ones with them, as none of the others finds its way through them without.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from beamless.inference.audio import SAMPLE_RATE, WINDOW_SECONDS, load_audio
from beamless.inference.errors import BeamlessError
from beamless.inference.features import log_mel
from beamless.inference.tokenizer import Tokenizer
from beamless.models.ctranslate2 import is_ctranslate2
from beamless.models.genai import write_genai_folder
from beamless.models.ggml import write_ggml
from beamless.models.reference import reference_decode, reference_encode, reference_model
from beamless.models.sources import locate
from beamless.models.whisper import load_checkpoint
from beamless.training.bench.implementation import Heard, Setup
from beamless.training.bench.own import model_name

BEAM_SIZE = 5


def beam_size_of(variant: str) -> int:
    """Return a variant's beam size; 1 is greedy."""
    return BEAM_SIZE if variant.endswith(f"beam{BEAM_SIZE}") else 1


class FasterWhisper:
    """faster-whisper, over CTranslate2; ``int8`` rounds the weights, ``float32`` does not."""

    variants = ("float32-greedy", "float32-beam5", "int8-greedy", "int8-beam5")
    needs = "faster_whisper"

    def __init__(self, setup: Setup) -> None:
        from faster_whisper import WhisperModel

        folder = locate(model_name(setup))
        if not is_ctranslate2(folder):
            raise BeamlessError(
                f"faster-whisper loads CTranslate2 folders, and {folder} is none; "
                "turn it into one with ct2-transformers-converter, and give that"
            )
        kind, _, _ = setup.variant.partition("-")
        model = WhisperModel(
            str(folder), "cpu", compute_type=kind, cpu_threads=setup.threads, local_files_only=True
        )
        self._transcribe = partial(
            model.transcribe,
            language=setup.language,
            beam_size=beam_size_of(setup.variant),
            temperature=0.0,
            condition_on_previous_text=False,
        )

    def transcribe(self, path: Path) -> str:
        """Transcribe; its segments come lazily."""
        samples = load_audio(path)
        short = len(samples) <= WINDOW_SECONDS * SAMPLE_RATE
        segments, _ = self._transcribe(samples, without_timestamps=short)
        return "".join(segment.text for segment in segments)


class GenAI:
    """OpenVINO GenAI's pipeline on the CPU, in float32."""

    variants = ("greedy", "beam5")
    needs = "openvino_genai"

    @staticmethod
    def prepare(setup: Setup) -> None:
        """Write the model in GenAI's layout."""
        if not (setup.made / "genai").exists():
            write_genai_folder(load_checkpoint(model_name(setup)), setup.made / "genai")

    def __init__(self, setup: Setup) -> None:
        from openvino_genai import WhisperPipeline

        properties: Mapping[str, Any] = {
            "INFERENCE_PRECISION_HINT": "f32",
            "KV_CACHE_PRECISION": "f32",
            "INFERENCE_NUM_THREADS": setup.threads,
            "CACHE_DIR": str(setup.graphs),
        }
        self._pipeline = WhisperPipeline(setup.made / "genai", "CPU", **properties)
        self._options = self._pipeline.get_generation_config()
        self._options.num_beams = beam_size_of(setup.variant)
        if self._options.is_multilingual:
            self._options.language, self._options.task = f"<|{setup.language}|>", "transcribe"

    def transcribe(self, path: Path) -> Heard:
        """Transcribe; its own figures tell when the first token was there."""
        samples = load_audio(path)
        self._options.return_timestamps = len(samples) > WINDOW_SECONDS * SAMPLE_RATE
        result = self._pipeline.generate(samples.tolist(), self._options)
        first = result.perf_metrics.get_ttft().mean / 1000
        return Heard(" ".join(result.texts), first)


class WhisperCpp:
    """whisper.cpp through pywhispercpp; weights in float16, as in the files its users have."""

    variants = ("greedy", "beam5")
    needs = "pywhispercpp"

    @staticmethod
    def prepare(setup: Setup) -> None:
        """Write the model's file."""
        path = setup.made / "ggml.bin"
        if not path.exists():
            write_ggml(load_checkpoint(model_name(setup)), path)

    def __init__(self, setup: Setup) -> None:
        from pywhispercpp.model import Model

        size = beam_size_of(setup.variant)
        search: Mapping[str, Any] = {"greedy": {"best_of": 1}}
        if size > 1:
            search = {"beam_search": {"beam_size": size, "patience": -1.0}}
        self._model = Model(
            str(setup.made / "ggml.bin"),
            params_sampling_strategy=int(size > 1),
            n_threads=setup.threads,
            language=setup.language,
            temperature_inc=0.0,
            print_progress=False,
            **search,
        )

    def transcribe(self, path: Path) -> str:
        """Transcribe."""
        samples = load_audio(path)
        short = len(samples) <= WINDOW_SECONDS * SAMPLE_RATE
        segments = self._model.transcribe(samples, no_timestamps=short)
        return " ".join(segment.text for segment in segments)


class Transformers:
    """transformers' generic ``generate`` in float32, window by window of thirty seconds."""

    variants = ("greedy", "beam5")
    needs = "transformers"

    def __init__(self, setup: Setup) -> None:
        import torch

        torch.set_num_threads(setup.threads)
        self._checkpoint = load_checkpoint(model_name(setup))
        sizes = self._checkpoint.sizes
        self._model = reference_model(self._checkpoint)
        self._tokenizer = Tokenizer(self._checkpoint.tokenizer_json, sizes.vocabulary)
        self._prompt = self._tokenizer.prompt(setup.language)
        self._beam_size = beam_size_of(setup.variant)

    def transcribe(self, path: Path) -> str:
        """Transcribe."""
        samples, texts = load_audio(path), []
        size, sizes = round(WINDOW_SECONDS * SAMPLE_RATE), self._checkpoint.sizes
        for start in range(0, len(samples), size):
            window = log_mel(samples[start : start + size], sizes.mels)
            tokens = reference_decode(
                self._model,
                reference_encode(self._model, window),
                self._checkpoint,
                self._prompt,
                self._tokenizer.end,
                sizes.text_positions // 2,
                self._beam_size,
            )
            texts.append(self._tokenizer.decode(tokens))
        return "".join(texts)
