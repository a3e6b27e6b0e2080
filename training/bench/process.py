"""An implementation in a process of its own: started, asked and ended from here."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from beamless.inference.errors import BeamlessError
from beamless.training.bench.implementation import Setup

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Answer:
    """What came back for one file.

    Attributes:
        seconds, processor_seconds: by the clock, and of all cores together, which other programs
            on the machine disturb less.
        memory: the process's peak so far, in bytes.
    """

    text: str
    seconds: float
    processor_seconds: float
    first_token: float | None
    steps: int | None
    memory: int | None


class Process:
    """A running implementation.

    Raises:
        BeamlessError: it could not be made; the reason is its own.
    """

    def __init__(self, name: str, setup: Setup, log: Path, prepare: bool = False) -> None:
        given = {key: str(v) if isinstance(v, Path) else v for key, v in vars(setup).items()}
        asked = json.dumps({"name": name, "setup": given, "prepare": prepare})
        threads = dict.fromkeys(THREAD_VARIABLES, str(setup.threads))
        self._name, self._log = name, log
        self._began = time.perf_counter()
        with log.open("a", encoding="utf-8") as errors:
            self._running = subprocess.Popen(
                [sys.executable, "-m", "beamless.training.bench.worker", asked],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                env={**os.environ, **threads, "PYTHONUTF8": "1"},
            )
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def first_text(self, path: Path) -> float:
        """Let it transcribe a file; return the seconds since it was started.

        What loads and compiles on its first use is among them, as a user waits for it too.

        Raises:
            BeamlessError: it failed, or ended.
        """
        self.transcribe(path)
        return time.perf_counter() - self._began

    def transcribe(self, path: Path) -> Answer:
        """Let it transcribe a file.

        Raises:
            BeamlessError: it failed, or ended.
        """
        assert self._running.stdin is not None
        try:
            self._running.stdin.write(json.dumps(str(path)) + "\n")
            self._running.stdin.flush()
        except OSError:
            pass  # it has ended; what it answered says why
        return Answer(**self._answer())

    def _answer(self) -> dict[str, Any]:
        assert self._running.stdout is not None
        line = self._running.stdout.readline()
        if not line:
            code = self._running.wait()
            raise BeamlessError(f"{self._name} ended with code {code}; see {self._log}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BeamlessError(f"{self._name}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End it."""
        for pipe in (self._running.stdin, self._running.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._running.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
