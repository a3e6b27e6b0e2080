"""What a server must bear: clients at once for minutes, each answer as if it had come alone.

``python -m beamless.inference.server.soak BUNDLE FOLDER --minutes 10`` starts a server of its own
on a free port and prints throughput by the processor's time, which a busy machine does not
change, against that of an offline decode of the same files.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jsonargparse import auto_cli

from beamless.inference.audio import audio_duration
from beamless.inference.errors import BeamlessError
from beamless.inference.transcribe import Transcriber

EARLY = 50  # requests after which memory is compared with that at the end


@dataclass
class Tally:
    """What the clients saw."""

    answers: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    memory: dict[int, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


def soak(
    bundle: Path,
    recordings: Path,
    *,
    clients: int = 4,
    minutes: float = 10.0,
    requests: int = 1_000_000,
) -> None:
    """Load a server with clients, and print what it bore.

    Args:
        bundle: a bundle's folder.
        recordings: a folder of some, of mixed lengths; all clients send them in turn.
        clients: how many send at once.
        minutes: how long.
        requests: how many at most.

    Raises:
        BeamlessError: an answer was an error, or another recording's.
    """
    files = sorted(file for file in recordings.iterdir() if file.is_file())
    lengths = {file: audio_duration(file) for file in files}
    transcriber = Transcriber(bundle)
    transcriber.warm_up()
    began = time.process_time()
    expected = {file: transcriber.transcribe(file).text for file in files}
    offline = (time.process_time() - began) / sum(lengths.values())
    tally, deadline = Tally(), time.monotonic() + minutes * 60
    with started(bundle) as url:
        for file in files:  # what is compiled is compiled before the clock starts
            ask(url, file)
        before = figure(url, "process_cpu_seconds_total")

        def client(number: int) -> None:
            order = itertools.islice(itertools.cycle(files), number, None)
            for file in order:
                if time.monotonic() > deadline or tally.answers >= requests or tally.faults:
                    return
                heard = ask(url, file)
                note(tally, url, file, heard == expected[file], lengths[file])

        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(client, range(clients)))
        spent = figure(url, "process_cpu_seconds_total") - before
        tally.memory[tally.answers] = figure(url, "process_resident_memory_bytes")
        waits = {n: mean(url, n) for n in ("queue_wait_seconds", "time_to_first_token_seconds")}
    if tally.faults:
        raise BeamlessError(tally.faults[0])
    report(tally, offline, spent, waits)


def report(tally: Tally, offline: float, spent: float, waits: dict[str, float]) -> None:
    """Print the figures."""
    served = spent / tally.seconds
    lines = [
        f"{tally.answers} answers, {tally.seconds:.0f} s of sound, each its own text",
        f"processor's time for a second of sound: offline {offline:.3f} s, served {served:.3f} s: "
        f"throughput {offline / served:.2f} of offline",
        *(f"mean {name}: {value:.2f}" for name, value in waits.items()),
        *(f"memory after {n} requests: {size / 1e6:.0f} MB" for n, size in tally.memory.items()),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def note(tally: Tally, url: str, file: Path, right: bool, seconds: float) -> None:
    """Count an answer, and the server's memory now and then."""
    with tally.lock:
        tally.answers += 1
        tally.seconds += seconds
        if not right:
            tally.faults.append(f"{file} got another text than alone")
        if tally.answers == EARLY:
            tally.memory[tally.answers] = figure(url, "process_resident_memory_bytes")


@contextmanager
def started(bundle: Path) -> Iterator[str]:
    """Run a server on a free port; yield its address.

    Raises:
        BeamlessError: it does not start.
    """
    command = [sys.executable, "-m", "beamless", "serve", "--models", f"soaked={bundle}"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
    server = subprocess.Popen(
        [*command, "--port", "0"], stderr=subprocess.PIPE, env=environment, encoding="utf-8"
    )
    assert server.stderr is not None
    try:
        for line in server.stderr:
            if found := re.search(r"listening at (\S+)", line):
                threading.Thread(target=server.stderr.read, daemon=True).start()
                yield found[1]
                return
        raise BeamlessError("the server does not start")
    finally:
        server.terminate()
        server.wait(60)


def ask(url: str, file: Path) -> str:
    """Return what the server hears in a recording."""
    request = urllib.request.Request(f"{url}/stt/soaked", file.read_bytes(), method="POST")
    with urllib.request.urlopen(request, timeout=600) as answer:
        return str(json.load(answer)["text"])


def figure(url: str, name: str) -> float:
    """Return one of the server's figures, summed over its labels."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M)))


def mean(url: str, name: str) -> float:
    """Return the mean of one of the server's histograms."""
    return figure(url, f"beamless_{name}_sum") / figure(url, f"beamless_{name}_count")


if __name__ == "__main__":
    auto_cli(soak, as_positional=True)
