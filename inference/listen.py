"""Live streams on a terminal: one as lines of text, two as columns with times."""

import queue
import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from beamless.inference.sources import Source
from beamless.inference.streaming import StreamEvent, stream
from beamless.inference.transcribe import Transcriber
from beamless.inference.writers import timestamp


@dataclass(frozen=True)
class Told:
    """An event, who said it, and how many seconds after the start it was told."""

    who: str
    event: StreamEvent
    at: float


class Listening:
    """Streams that are heard at once, each in a thread of its own.

    Args:
        sources: by who speaks there.
        transcribers: one each; they may share a bundle.
        stop: ends all sound when set.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        transcribers: Mapping[str, Transcriber],
        stop: threading.Event,
    ) -> None:
        self._stop = stop
        self._told: queue.SimpleQueue[Told | BaseException | None] = queue.SimpleQueue()
        self._began = time.perf_counter()
        self._threads = [
            threading.Thread(target=self._hear, args=(who, source, transcribers[who]), daemon=True)
            for who, source in sources.items()
        ]
        self._open = len(self._threads)
        self._first: list[float] = []
        self._utterances: dict[str, float] = {}
        for thread in self._threads:
            thread.start()

    def next(self) -> Told | None:
        """Wait for what is told next; None when all streams have ended.

        Ctrl-C ends the sound: what was said until then is still told.

        Raises:
            BeamlessError: a source failed.
        """
        while self._open:
            try:
                item = self._told.get()
            except KeyboardInterrupt:
                if self._stop.is_set():
                    raise
                self._stop.set()
                continue
            if isinstance(item, BaseException):
                self._stop.set()
                raise item
            if item is None:
                self._open -= 1
                continue
            self._measure(item)
            return item
        return None

    def latency(self) -> str:
        """Return how soon utterances had their first text."""
        if not self._first:
            return "nothing was said"
        middle, last = statistics.median(self._first), max(self._first)
        count = len(self._first)
        return f"{count} utterances; first text after {middle:.1f} s, at the latest {last:.1f} s"

    def _measure(self, told: Told) -> None:
        event = told.event
        if event.type != "transcript.text.delta" or self._utterances.get(told.who) == event.start:
            return
        self._utterances[told.who] = event.start
        self._first.append(told.at - event.start)

    def _hear(self, who: str, source: Source, transcriber: Transcriber) -> None:
        try:
            for event in stream(source.chunks, transcriber, source.rate):
                self._told.put(Told(who, event, time.perf_counter() - self._began))
            self._told.put(None)
        except BaseException as error:
            self._told.put(error)


def show_text(listening: Listening, console: Console) -> None:
    """Write one stream's text, an utterance a line, once it has ended.

    On a terminal what is being said grows below.
    """
    growing = ""
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        while (told := listening.next()) is not None:
            if told.event.type == "transcript.text.delta":
                growing += told.event.text
            elif told.event.type == "transcript.text.segment":
                growing = ""
                write_line(told.event.text, console)
            if console.is_terminal:
                live.update(Text(growing.strip()))


def write_line(text: str, console: Console) -> None:
    """Write an utterance, unbroken; nothing where it holds no words."""
    if text:
        console.print(Text(text), soft_wrap=True)
        console.file.flush()


def show_columns(listening: Listening, speakers: tuple[str, str], console: Console) -> None:
    """Write two streams side by side, each utterance with its time, once it has ended.

    On a terminal what is being said grows below.
    """
    growing = dict.fromkeys(speakers, "")
    console.print(row("time", speakers, console.width))
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        while (told := listening.next()) is not None:
            event, who = told.event, told.who
            if event.type == "transcript.text.delta":
                growing[who] += event.text
            elif event.type == "transcript.text.segment":
                growing[who] = ""
                if not event.text:
                    continue
                cells = [event.text if speaker == who else "" for speaker in speakers]
                clock = timestamp(event.start, ".")[:-2]
                live.console.print(row(clock, cells, console.width))
            if console.is_terminal:
                live.update(row("", [*growing.values()], console.width))


def row(clock: str, cells: Sequence[str], width: int) -> Table:
    """Return a line of two columns, wrapped to ``width`` characters."""
    table = Table.grid(padding=(0, 2))
    table.add_column(width=10)
    half = max(8, (width - 10 - 4) // 2)
    for _ in cells:
        table.add_column(width=half)
    table.add_row(clock, *(escape(cell.strip()) for cell in cells))
    return table
