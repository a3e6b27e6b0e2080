"""The process in which one implementation is measured; ``process.py`` starts it and talks to it.

Its argument says what to make; after that each line of standard input is a file to transcribe, and
each line of standard output an answer. Whatever the implementation prints goes to standard error.
"""

import json
import os
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from beamless.inference.errors import BeamlessError
from beamless.training.bench.implementation import Heard, Implementation, Setup, load


def main() -> int:
    """Make the implementation, then answer until there is no more to do."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    asked = json.loads(sys.argv[1])
    try:
        loaded, _ = load(asked["name"])
        setup = setup_of(asked["setup"])
        if asked["prepare"]:
            getattr(loaded, "prepare", lambda setup: None)(setup)
            answer(answers, ready=True)
            return 0
        made = loaded(setup)
        answer(answers, ready=True)
        serve(made, answers)
    except BeamlessError as error:
        answer(answers, error=str(error))
        return 2
    except Exception as error:  # whatever another's code raises, the bench goes on without it
        reason = (str(error).strip().splitlines() or [""])[-1][:200]
        answer(answers, error=f"{type(error).__name__}: {reason}")
        raise
    return 0


def setup_of(given: dict[str, Any]) -> Setup:
    """Make the setup out of what JSON holds of it."""
    kinds = {field.name: field.type for field in fields(Setup)}
    values: dict[str, Any] = {n: Path(v) if kinds[n] is Path else v for n, v in given.items()}
    return Setup(**values)


def serve(made: Implementation, answers: TextIO) -> None:
    """Transcribe the files that standard input names."""
    for line in sys.stdin:
        began, worked = time.perf_counter(), time.process_time()
        heard = made.transcribe(Path(json.loads(line)))
        seconds, worked = time.perf_counter() - began, time.process_time() - worked
        if isinstance(heard, str):
            heard = Heard(heard)
        answer(
            answers,
            text=" ".join(heard.text.split()),
            seconds=seconds,
            processor_seconds=worked,
            first_token=heard.first_token,
            steps=heard.steps,
            memory=peak_memory(),
        )


def answer(answers: TextIO, **content: object) -> None:
    """Write one answer."""
    answers.write(json.dumps(content, ensure_ascii=False) + "\n")
    answers.flush()


def peak_memory() -> int | None:
    """Return the most memory in bytes that this process has held; None where nobody tells.

    What ``getrusage`` says is no use: on Linux it starts from the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text(encoding="utf-8").splitlines()
        peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
        return 1024 * peaks[0] if peaks else None
    try:
        import psutil
    except ImportError:
        return None
    peak = getattr(psutil.Process().memory_info(), "peak_wset", None)  # Windows has it
    return None if peak is None else int(peak)


if __name__ == "__main__":
    sys.exit(main())
