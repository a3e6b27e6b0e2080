"""``beamless corrector``: what a corrector is, and what it costs a step."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import openvino as ov
from openvino import opset13 as op
from rich.table import Table

from beamless.inference.bundle import DEFAULT_CAPACITY
from beamless.inference.counts import require_positive
from beamless.inference.devices import compile_model
from beamless.inference.progress import screen
from beamless.inference.tokenizer import Tokenizer
from beamless.models.bundle import check_match
from beamless.models.choice import Likeliest
from beamless.models.corrector import CANDIDATES, Corrector, load_corrector
from beamless.models.corrector_graphs import (
    doubt_of,
    down_of,
    layer_of,
    rerank_of,
    scores_of,
    seen,
    told_of,
)
from beamless.models.fuse import corrected_graph, special_of
from beamless.models.graphs import decoder_graph, graph_input, graph_output
from beamless.models.projection import round_projection
from beamless.models.whisper import Checkpoint, load_checkpoint


def corrector(
    action: Literal["info"],
    folders: list[Path],
    *,
    model: str,
    device: str = "CPU",
    threads: int | None = None,
    runs: int = 200,
) -> None:
    """Show what correctors are and what each costs a step.

    Args:
        action: what to do; info is all there is.
        folders: what train made.
        model: the Whisper that they correct.
        device: an OpenVINO device.
        threads: how many the CPU may use; all by default.
        runs: steps to time; the least of them counts, since other programs only ever add.
    """
    require_positive(runs=runs, threads=threads)
    checkpoint = load_checkpoint(model)
    loaded = [load_corrector(folder) for folder in folders]
    for each in loaded:
        check_match(checkpoint, each)
    plain = compile_model(decoder_graph(checkpoint, DEFAULT_CAPACITY), device, "f32", None, threads)
    table = Table("corrector", "family", title=f"{checkpoint.name} on {device}; f32, batch 1")
    columns = ("history", "units", "with", "parameters", "MB (f16)", "corrector µs", "step µs")
    for column in (*columns, "plain step µs"):
        table.add_column(column, justify="right")
    for folder, each in zip(folders, loaded, strict=True):
        graphs = graphs_of(checkpoint, each)
        compiled = [compile_model(graph, device, "f32", None, threads) for graph in graphs]
        alone, idle, fused, step = microseconds([*compiled, plain], runs)
        config = each.config
        table.add_row(
            folder.name,
            config.family,
            str(config.history),
            str(config.units),
            " ".join(n for n in ("gate", "ledger", "last_token") if getattr(config, n)) or "-",
            f"{each.parameters:,}",
            f"{each.parameters * 2 / 1e6:.1f}",
            f"{max(0.0, alone - idle):.0f}",
            f"{fused:.0f}",
            f"{step:.0f}",
        )
    screen().print(table)


def graphs_of(checkpoint: Checkpoint, corrector: Corrector) -> list[ov.Model]:
    """Return a corrector alone, a graph of the same inputs that does nothing, and the fused step.

    The second one's time is that of a call: what the first takes beyond it is the corrector's.
    """
    tokenizer = Tokenizer(checkpoint.tokenizer_json, checkpoint.sizes.vocabulary)
    fused = corrected_graph(checkpoint, corrector, DEFAULT_CAPACITY, *special_of(tokenizer))
    round_projection(fused)
    return [
        corrector_alone(checkpoint, corrector),
        corrector_alone(checkpoint, corrector, idle=True),
        fused,
    ]


def corrector_alone(checkpoint: Checkpoint, corrector: Corrector, idle: bool = False) -> ov.Model:
    """Build a corrector without the decoder around it; ``idle`` passes its inputs through."""
    config, width = corrector.config, checkpoint.sizes.width
    hidden = graph_input([1, 1, width], np.float32, "hidden")
    history = graph_input([config.history, width], np.float32, "history")
    ids = graph_input([1, 1], np.int32, "input_ids")
    token = graph_input([1, 1, width], np.float32, "embedded")
    inputs, spent = [hidden, history], None
    if config.last_token:
        inputs += [ids, token]
    if config.ledger:
        spent = graph_input([1], np.float32, "spent")
        inputs.append(spent)
    if config.family == "rerank":
        count = config.candidates
        shapes = {"logits": count, "log_sum_exp": 1, "first": 1, "text_position": 1}
        tokens = graph_input([count], np.int32, "tokens")
        numbers = {name: graph_input([n], np.float32, name) for name, n in shapes.items()}
        inputs += [tokens, *numbers.values()]
    if idle:
        passed = [graph_output(op.abs(node), f"same_{at}") for at, node in enumerate(inputs)]
        return ov.Model(passed, inputs, "idle")
    told = told_of(config, ids, token, checkpoint.sizes.vocabulary, spent)
    if config.family == "rerank":
        likeliest = Likeliest(tokens, numbers["logits"], numbers["log_sum_exp"])
        embedding = checkpoint.arrays["model.decoder.embed_tokens.weight"].astype(np.float32)
        embedded = op.gather(op.constant(embedding), tokens, op.constant(np.int32(0)))
        scores = scores_of(likeliest, numbers["first"], numbers["text_position"])
        state = seen(corrector, hidden, history, told)
        added, layer = rerank_of(corrector, state, embedded, scores)
    else:
        layer = layer_of(corrector, hidden, history, told)
        added = down_of(corrector, layer)
    outputs = [graph_output(added, "added")]
    if config.gate:
        logprobs = graph_input([CANDIDATES], np.float32, "logprobs")
        inputs.append(logprobs)
        outputs.append(graph_output(doubt_of(corrector, layer, logprobs), "doubt"))
    return ov.Model(outputs, inputs, "corrector")


def microseconds(models: Sequence[ov.CompiledModel], runs: int) -> list[float]:
    """Return the least time of a run of each model on zeros; they take turns."""
    requests = [model.create_infer_request() for model in models]
    for request, model in zip(requests, models, strict=True):
        for port in model.inputs:
            array = np.zeros(tuple(port.shape), port.element_type.to_dtype())
            request.set_tensor(port, ov.Tensor(array))
    least = [float("inf")] * len(models)
    for _ in range(runs):
        for at, request in enumerate(requests):
            began = time.perf_counter()
            request.infer()
            least[at] = min(least[at], (time.perf_counter() - began) * 1e6)
    return least
