"""``beamless bench``: implementations of Whisper in one run on one machine, fairly."""

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from beamless.data_gen.corpora import corpus_name
from beamless.inference.atomic import is_taken, write_text_atomically
from beamless.inference.cache import cache_folder
from beamless.inference.counts import require_positive
from beamless.inference.errors import BeamlessError
from beamless.inference.inspection_picture import require_matplotlib
from beamless.inference.languages import named_language
from beamless.inference.progress import console, progress
from beamless.inference.tokenizer import Tokenizer
from beamless.models.bundle import open_bundle
from beamless.training.bench.clips import Clip, opening, read_clips, warming
from beamless.training.bench.figures import Turn, figures_of, lines_of, with_ratios
from beamless.training.bench.implementation import Setup, chosen
from beamless.training.bench.process import Answer, Process
from beamless.training.bench.report import Run, print_figures, write_figures
from beamless.training.metrics import normalize, word_errors


def bench(
    model: str,
    corpora: list[Path],
    *,
    implementations: list[str] | None = None,
    limit: int | None = None,
    longest: float | None = None,
    join: float | None = None,
    repeats: int = 3,
    threads: int | None = None,
    language: str = "en",
    out: Path | None = None,
) -> None:
    """Measure implementations of Whisper side by side: errors, time, memory and starts.

    In each round every implementation has its turn, in an order that moves on by one: a process of
    its own is started and transcribes the first recording, or half a minute of it, which counts as
    its start; then four from the shortest to the longest window, which do not count; and then all.

    Args:
        model: a bundle's folder, or a model's name; the others take the Whisper that it is of.
        corpora: corpus folders.
        implementations: such as beamless:greedy or faster-whisper:int8-beam5, or all variants of
            one, such as genai; all that are installed by default.
        limit: only so many utterances of each corpus, spread by a hash of their ids.
        longest: only utterances of at most so many seconds.
        join: join them to recordings of about so many seconds.
        repeats: rounds; times are their medians.
        threads: that each implementation may compute with; as many as the machine has by default.
        language: what is spoken.
        out: a folder for clips.csv, bench.csv, bench.json, bench.md and bench.png; a stopped run
            goes on from there.
    """
    require_positive(repeats=repeats, threads=threads, longest=longest, join=join)
    names, left_out = chosen(implementations)
    if out:
        require_matplotlib()
    opened = open_bundle(model)
    language = named_language(language, opened.tokenizer)
    word_errors(normalize("a", language), normalize("b", language))  # is what counts here?
    with _folder(out) as folder:
        clips = read_clips(corpora, limit, longest, join, folder)
        run = Run(
            model=model,
            model_hash=opened.manifest.model["hash"],
            corpora=tuple(map(corpus_name, corpora)),
            clips=len(clips),
            seconds=sum(clip.seconds for clip in clips),
            language=language,
            threads=threads or os.cpu_count() or 1,
            repeats=repeats,
            limit=limit,
            longest=longest,
            join=join,
            processor=platform.processor() or platform.machine(),
            implementations=tuple(names),
        )
        _require_same_run(folder, run)
        turns = _take_turns(_Place(folder, run), clips, left_out)
        _report(turns, clips, opened.tokenizer, run, left_out, out)


@dataclass(frozen=True)
class _Place:
    """A run and the folder where it keeps what is done."""

    folder: Path
    run: Run

    @property
    def kept(self) -> Path:
        """Where each turn is a line as soon as it is over."""
        return self.folder / "turns.partial.jsonl"

    def setup(self, name: str) -> Setup:
        """Return what an implementation is made with."""
        entry, _, variant = name.partition(":")
        graphs = self.folder / "starts" / name.replace(":", "-")
        made = cache_folder() / "bench" / self.run.model_hash[:16] / entry
        for folder in (made, graphs):
            folder.mkdir(parents=True, exist_ok=True)
        return Setup(self.run.model, variant, self.run.language, self.run.threads, made, graphs)

    def log(self, name: str) -> Path:
        """Return the file for what an implementation prints."""
        return self.folder / f"{name.replace(':', '-')}.log"


def _take_turns(place: _Place, clips: Sequence[Clip], left_out: dict[str, str]) -> list[Turn]:
    """Let every implementation have its turn in every round; those that fail are left out."""
    names, rounds = place.run.implementations, range(place.run.repeats)
    opener = opening(clips, place.folder)
    turns = _turns_of(place.kept)
    done = {(turn.name, turn.round) for turn in turns}
    with progress("clips", len(names) * len(rounds) * len(clips)) as advance:
        advance(len(turns) * len(clips))
        for number in rounds:
            at = number % len(names)
            for name in (*names[at:], *names[:at]):
                if (name, number) in done or name in left_out:
                    continue
                try:
                    turn = _turn(place, name, number, opener, clips, advance)
                except BeamlessError as error:
                    left_out[name] = str(error)
                    console().print(f"left out: {error}", markup=False)
                    continue
                turns.append(turn)
                with place.kept.open("a", encoding="utf-8", newline="\n") as file:
                    file.write(json.dumps(asdict(turn), ensure_ascii=False) + "\n")
    return [turn for turn in turns if turn.name not in left_out]


def _turn(
    place: _Place,
    name: str,
    number: int,
    opener: Path,
    clips: Sequence[Clip],
    advance: Callable[[], None],
) -> Turn:
    setup, log, cold = place.setup(name), place.log(name), None
    if number == 0:
        Process(name, setup, log, prepare=True).close()
        shutil.rmtree(setup.graphs)
        setup.graphs.mkdir()
        with Process(name, setup, log) as first:
            cold = first.first_text(opener)
    with Process(name, setup, log) as process:
        start = process.first_text(opener)
        for clip in warming(clips):
            process.transcribe(clip.path)
        answers: list[Answer] = []
        for clip in clips:
            answers.append(process.transcribe(clip.path))
            advance()
    return Turn(name, number, cold, start, tuple(answers))


def _report(
    turns: Sequence[Turn],
    clips: Sequence[Clip],
    tokenizer: Tokenizer,
    run: Run,
    left_out: dict[str, str],
    out: Path | None,
) -> None:
    lines, found = [], []
    for name in run.implementations:
        own = [turn for turn in turns if turn.name == name]
        if own:
            its_lines = lines_of(own, clips, run.language, tokenizer)
            found.append(figures_of(own, its_lines))
            lines += its_lines
    if not found:
        raise BeamlessError(f"nothing could be measured: {next(iter(left_out.values()))}")
    found = with_ratios(found)
    print_figures(found, run, left_out)
    if out:
        write_figures(found, lines, run, left_out, out)
        (out / "turns.partial.jsonl").unlink()
        shutil.rmtree(out / "starts", ignore_errors=True)


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """Give the folder for a run; without one that is kept, a temporary one."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="beamless-bench-") as name:
            yield Path(name)
        return
    if (out / "bench.json").exists():
        raise BeamlessError(f"{out} holds a finished bench; name another folder")
    if is_taken(out) and not (out / "run.json").is_file():
        raise BeamlessError(f"{out} exists and holds no bench; name another folder")
    out.mkdir(parents=True, exist_ok=True)
    yield out


def _require_same_run(folder: Path, run: Run) -> None:
    """Note what is measured; refuse a folder in which something else was.

    Raises:
        BeamlessError: the folder holds another run.
    """
    recipe = folder / "run.json"
    text = json.dumps(asdict(run), indent=2, ensure_ascii=False) + "\n"
    if recipe.is_file() and recipe.read_text(encoding="utf-8") != text:
        raise BeamlessError(f"{folder} holds a bench of something else; name another folder")
    write_text_atomically(recipe, text)


def _turns_of(kept: Path) -> list[Turn]:
    """Read the turns of a stopped run; a last line that a kill cut short is dropped."""
    if not kept.is_file():
        return []
    whole = kept.read_text(encoding="utf-8").split("\n")[:-1]
    write_text_atomically(kept, "".join(line + "\n" for line in whole))
    turns = []
    for line in whole:
        content = json.loads(line)
        content["answers"] = tuple(Answer(**answer) for answer in content["answers"])
        turns.append(Turn(**content))
    return turns
