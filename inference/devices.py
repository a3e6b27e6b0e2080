"""Devices are OpenVINO's strings; here is all that the code knows of them.

``CPU``, ``GPU``, ``NPU`` and ``AUTO`` are OpenVINO's own. ``NPU:CPU`` is the NPU plugin's way of
cutting up a graph (NPUW), run on the CPU: what an NPU would be given, on a machine without one.
"""

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import openvino as ov

from beamless.inference.errors import BeamlessError
from beamless.inference.progress import console

NPU_ON_CPU = "NPU:CPU"
PRECISIONS = ("f32", "f16", "bf16", "default")
SLOW_SECONDS = 5.0  # from when on a person wonders what takes so long
_NPUW = {"NPU_USE_NPUW": "YES", "NPUW_DEVICES": "CPU", "NPUW_ONLINE_PIPELINE": "NONE"}


def compile_model(
    model: ov.Model,
    device: str,
    precision: str,
    cache: Path | None = None,
    threads: int | None = None,
) -> ov.CompiledModel:
    """Compile a graph for a device.

    Args:
        model: a graph.
        device: an OpenVINO device, or ``NPU:CPU``.
        precision: the precision to compute in: ``f32``, ``f16``, ``bf16``, or ``default`` for
            what the device chooses by itself.
        cache: a folder for compiled graphs, from which the next start is faster; where it cannot
            be used a warning says so. Each precision has its own folder in there: OpenVINO 2026.4
            finds a graph again whatever precision it was compiled for, and the attention of one
            compiled for float32 reads wrong memory when it is run in bfloat16.
        threads: how many the CPU may use; all by default.

    Raises:
        BeamlessError: the device is absent, or cannot compile the graph.
    """
    core = ov.Core()
    properties: dict[str, str] = {}
    if device == NPU_ON_CPU:
        properties |= _NPUW
    else:
        properties["PERFORMANCE_HINT"] = "LATENCY"
        require_device(device)
    if precision != "default":
        properties["INFERENCE_PRECISION_HINT"] = precision
    if threads is not None and device == "CPU":
        properties["INFERENCE_NUM_THREADS"] = str(threads)
    if cache is not None and device != NPU_ON_CPU:
        properties["CACHE_DIR"] = str(cache / precision)
    target = "NPU" if device == NPU_ON_CPU else device
    with told_if_slow(model.friendly_name, device, cache if "CACHE_DIR" in properties else None):
        return _compiled(core, model, target, device, properties)


def _compiled(
    core: ov.Core, model: ov.Model, target: str, device: str, properties: dict[str, str]
) -> ov.CompiledModel:
    """Compile, without the cache where that fails."""
    try:
        try:
            return core.compile_model(model, target, properties)
        except RuntimeError:
            cache = properties.pop("CACHE_DIR", None)
            if cache is None:
                raise
            compiled = core.compile_model(model, target, properties)
            warnings.warn(f"{cache} cannot hold compiled graphs; starts stay slow", stacklevel=3)
            return compiled
    except RuntimeError as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[-1][:200]
        raise BeamlessError(
            f"device {device} cannot compile {model.friendly_name} ({reason})"
        ) from None


@contextmanager
def told_if_slow(graph: str, device: str, cache: Path | None) -> Iterator[None]:
    """Say so where the block, which compiles a graph, takes long: minutes on a new NPU."""
    kept = f" and is kept in {cache} for the next start" if cache else ""
    note = f"compiling {graph} for {device}; a first time takes up to some minutes{kept}"
    waiting = Timer(SLOW_SECONDS, console().print, [note], {"markup": False, "soft_wrap": True})
    waiting.daemon = True
    began = time.perf_counter()
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()
    took = time.perf_counter() - began
    if took > SLOW_SECONDS:
        console().print(f"{graph} was ready for {device} after {took:.0f} s", markup=False)


def takes_any_size(device: str) -> bool:
    """Tell whether a graph may leave sizes open there until a window comes.

    An NPU's may not. The CPU runs such a graph as fast as one of fixed sizes (measured), and keeps
    its weights once instead of once for each size.
    """
    return device == "CPU"


def encodes_beside(device: str, threads: int | None) -> bool:
    """Tell whether the next window is to be encoded while one is decoded.

    On a CPU of two cores either is busy with both of them, and the two get in each other's way:
    together they take 4 % longer than one behind the other (measured).
    """
    return device != "CPU" or (threads or os.cpu_count() or 1) > 2


def was_cached(compiled: ov.CompiledModel) -> bool:
    """Tell whether a graph was taken from the cache; where nobody knows it was not."""
    try:
        return bool(compiled.get_property("LOADED_FROM_CACHE"))
    except RuntimeError:
        return False


def has_plugin(family: str) -> bool:
    """Tell whether this OpenVINO has a device family's plugin, with or without such a device."""
    return bool(ov.Core().get_versions(family))


def require_device(device: str) -> None:
    """Refuse a device that is not here, before anything is computed for it.

    Raises:
        BeamlessError: the device is absent.
    """
    if device == NPU_ON_CPU:
        return
    family = device.split(":", maxsplit=1)[0].split(".", maxsplit=1)[0]
    present = {name.split(".")[0] for name in ov.Core().available_devices}
    if family not in present | {"AUTO", "HETERO", "MULTI"}:
        here = ", ".join(sorted(present))
        raise BeamlessError(f"there is no device {device!r} here; present are {here}")
