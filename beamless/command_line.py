"""The command line: one table from command to function; its signature is its options."""

import inspect
import os
import re
import sys
from argparse import ArgumentError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

import docstring_parser
from jsonargparse import ActionYesNo, ArgumentParser

from beamless import __version__
from beamless.data_gen.recipe_file import load_yaml
from beamless.help_format import PlainHelp
from beamless.inference.errors import BeamlessError

LARGEST = 10**30  # whole number that an option may have
OF_TRAIN = ("torch", "transformers", "lightning", "datasets", "pyarrow", "jiwer", "matplotlib")
"""Modules that the extra ``train`` installs."""

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("beamless.training.demo:demo", "the whole way once, on what is installed"),
    "transcribe": ("beamless.transcribe:transcribe", "recordings to text"),
    "listen": ("beamless.listen:listen", "speech to text while it is spoken"),
    "serve": ("beamless.serve:serve", "an OpenAI-compatible server, and a page to try it"),
    "check": ("beamless.training.parity:check", "the parity gate: static = reference decoder"),
    "texts": ("beamless.data_gen.texts:texts", "sentences to be spoken, from many sources"),
    "synth": ("beamless.data_gen.synth:synth", "texts and a voice to a corpus"),
    "nospeech": (
        "beamless.data_gen.no_speech:no_speech",
        "sounds without words, to count what is made up on them",
    ),
    "import": ("beamless.data_gen.importers:import_corpus", "other layouts to a corpus"),
    "mix": ("beamless.data_gen.mix:mix", "voices and recordings, augmented, to one corpus"),
    "corpus": ("beamless.data_gen.corpus_check:corpus", "check or report on a corpus"),
    "collect": ("beamless.data_gen.collect:collect", "a corpus to traces"),
    "rollout": ("beamless.data_gen.rollout:rollout", "free decoding to on-policy traces"),
    "traces": ("beamless.data_gen.trace_info:traces", "what a folder of traces holds"),
    "train": ("beamless.training.fit:train", "traces to a corrector"),
    "average": ("beamless.training.average:average", "trainings of several seeds to one corrector"),
    "rounds": ("beamless.training.rounds:rounds", "corpora to a corrected bundle, by a recipe"),
    "ablate": ("beamless.training.ablations:ablate", "trainings side by side, by a recipe"),
    "corrector": (
        "beamless.models.corrector_info:corrector",
        "what a corrector is and costs a step",
    ),
    "adapt": ("beamless.training.adapt:adapt", "names and terms to a corrector that knows them"),
    "export": ("beamless.models.export:export", "a model and a corrector to a bundle"),
    "calibrate": (
        "beamless.training.calibrate:calibrate",
        "confidence that means something, into a bundle",
    ),
    "evaluate": ("beamless.training.evaluate:evaluate", "greedy, corrected and beam in one run"),
    "steps": (
        "beamless.training.heldout:heldout",
        "what correctors and baselines mend and harm",
    ),
    "curve": ("beamless.training.curve:curve", "look-ahead's errors against its steps"),
    "bench": ("beamless.training.bench.run:bench", "ours and others' Whisper side by side"),
}


def load_command(name: str) -> Callable[..., Any]:
    """Import the function behind a command; nothing else of the project is imported."""
    module, function = COMMANDS[name][0].split(":")
    loaded: Callable[..., Any] = getattr(import_module(module), function)
    return loaded


def build_parser(function: Callable[..., Any], prog: str) -> ArgumentParser:
    """Make a command's parser from its signature; required parameters are positional.

    One that is required and by keyword only is an option that must be given. A parameter typed
    ``list[...]`` takes several values, as in ``--targets beam best``; one typed ``bool`` is a
    switch; each field of one typed as a dataclass is an option.
    """
    documentation = docstring_parser.parse(inspect.getdoc(function) or "")
    texts = {param.arg_name: param.description for param in documentation.params}
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters
    must = required_options(function)
    own = [n for n in parameters if item_type(hints[n]) or hints[n] is bool or n in must]
    grouped = [n for n in parameters if is_dataclass(hints[n])]
    parser = ArgumentParser(
        prog=prog,
        description=documentation.short_description,
        exit_on_error=False,
        allow_abbrev=False,
        formatter_class=PlainHelp,
    )
    parser.add_argument("--config", action="config", help="a YAML file with any of these options")
    leading = own[:1] if own and next(iter(parameters)) == own[0] else []
    for name in leading:
        add_own(parser, parameters[name], hints[name], texts.get(name))
    parser.add_function_arguments(function, as_positional=True, skip={*own, *grouped})
    for name in own[len(leading) :]:
        add_own(parser, parameters[name], hints[name], texts.get(name))
    for name in grouped:
        add_fields(parser, hints[name])
    return parser


def add_fields(parser: ArgumentParser, group: type) -> None:
    """Add an option for each field of a dataclass; its docstring says what they are."""
    documentation = docstring_parser.parse(inspect.getdoc(group) or "")
    texts = {param.arg_name: param.description for param in documentation.params}
    hints = get_type_hints(group)
    for each in fields(group):
        hint, flag, text = hints[each.name], "--" + each.name, texts.get(each.name)
        if hint in (bool, bool | None):
            parser.add_argument(flag, action=ActionYesNo, default=each.default, help=text)
        elif get_origin(hint) is tuple:
            default, kind = list(getattr(group, each.name)), get_args(hint)[0]
            parser.add_argument(flag, type=kind, nargs="+", default=default, help=text)
        else:
            parser.add_argument(flag, type=hint, default=each.default, help=text)


def regroup(function: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    """Put the values of a dataclass's fields together, as the function takes them.

    Raises:
        BeamlessError: a value is none that the dataclass takes.
    """
    for name, hint in get_type_hints(function).items():
        if is_dataclass(hint):
            inside = {each.name: values.pop(each.name) for each in fields(hint)}
            values[name] = cast(type, hint)(**inside)
    return values


def require_values(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Refuse null, which a YAML file may hold, where an option must have a value.

    Raises:
        BeamlessError: the first of them.
    """
    hints = all_hints(function)
    for name, value in values.items():
        if value is None and type(None) not in get_args(hints[name]):
            raise BeamlessError(f"{name} has no value in the file given as --config")


def all_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a command's options, those in its dataclasses among them."""
    hints = get_type_hints(function)
    for hint in list(hints.values()):
        hints |= get_type_hints(hint) if is_dataclass(hint) else {}
    return hints


def require_moderate(values: Mapping[str, Any]) -> None:
    """Refuse whole numbers that are too large to be calculated with as fractions.

    Raises:
        BeamlessError: the first of them.
    """
    for name, value in values.items():
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int) and abs(number) > LARGEST:
                raise BeamlessError(f"--{name.replace('_', '-')} must be at most {LARGEST:.0e}")


def check_config(function: Callable[..., Any], parser: ArgumentParser, given: list[str]) -> None:
    """Refuse a file given as ``--config`` where the parser would not say what is wrong with it.

    Raises:
        BeamlessError: it is no file or no YAML, has one value where an option takes several, or
            has again what the command line has.
    """
    config = "--config"
    words = [w for a in given for w in (a.split("=", 1) if a.startswith(f"{config}=") else [a])]
    for option, place in pairwise(words):
        if option != config or not Path(place).exists():
            continue
        if not Path(place).is_file():
            raise BeamlessError(f"the --config {place} is no file")
        content = load_yaml(Path(place))
        names = set(content) if isinstance(content, dict) else set()
        for name in sorted(names & several(function)):
            if not isinstance(content[name], list | dict | None):
                raise BeamlessError(
                    f"{name} takes a list in the file given as --config, as in "
                    f"'{name}: [{content[name]}]'"
                )
        alone = [word for word in words if word not in (config, place)]
        positional = required(function) - required_options(function)
        if (twice := sorted(names & positional)) and is_whole(parser, alone):
            raise BeamlessError(
                f"{twice[0]} stands in the file given as --config and on the command line; give "
                "it in one place"
            )


def several(function: Callable[..., Any]) -> set[str]:
    """Return the names of a command's options that take several values."""
    hints = all_hints(function).items()
    return {name for name, hint in hints if item_type(hint) or get_origin(hint) is tuple}


def required(function: Callable[..., Any]) -> set[str]:
    """Return the names of a command's parameters that have no default."""
    parameters = inspect.signature(function).parameters
    return {name for name, each in parameters.items() if each.default is inspect.Parameter.empty}


def required_options(function: Callable[..., Any]) -> set[str]:
    """Return the names of those that are options all the same, since they are by keyword only."""
    parameters = inspect.signature(function).parameters
    by_name = inspect.Parameter.KEYWORD_ONLY
    return {name for name in required(function) if parameters[name].kind == by_name}


def is_whole(parser: ArgumentParser, given: list[str]) -> bool:
    """Tell whether a command line has all that is required without a file of options."""
    try:
        parser.parse_args([with_underscores(argument) for argument in given])
    except (ArgumentError, OverflowError):
        return False
    return True


def item_type(hint: Any) -> Any:  # noqa: ANN401 - types are values here
    """Return X of ``list[X]`` or ``list[X] | None``; None of anything else."""
    for kind in (hint, *get_args(hint)):
        if get_origin(kind) is list:
            return get_args(kind)[0]
    return None


def add_own(
    parser: ArgumentParser,
    parameter: inspect.Parameter,
    hint: Any,  # noqa: ANN401
    text: str | None,
) -> None:
    """Add a parameter that takes several values, is a switch, or is an option to be given."""
    if item_type(hint) is None and hint is not bool:
        parser.add_argument("--" + parameter.name, type=hint, required=True, help=text)
        return
    if hint is bool:
        flag, default = "--" + parameter.name, parameter.default
        parser.add_argument(flag, action=ActionYesNo, default=default, help=text)
        return
    kind = item_type(hint)
    if parameter.default is inspect.Parameter.empty:
        parser.add_argument(parameter.name, type=kind, nargs="+", help=text)
    else:
        flag, default = "--" + parameter.name, parameter.default
        parser.add_argument(flag, type=kind, nargs="+", default=default, help=text)


def with_underscores(argument: str) -> str:
    """Let options be written ``--beam-size`` as well as ``--beam_size``."""
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return "--" + name[2:].replace("-", "_") + equals + value


def reason_of(error: ArgumentError, given: list[str], options: set[str]) -> str:
    """Return what was wrong with an option, without the types of Python that the parser names.

    Args:
        error: the parser's.
        given: the command line.
        options: the names of options that must be given.
    """
    reason = " ".join(str(error).split())
    if reason.startswith("the following arguments are required: "):
        told, _, names = reason.partition(": ")
        return f"{told}: " + ", ".join(f"--{n}" if n in options else n for n in names.split(", "))
    if reason.startswith("Unexpected config"):
        return "the file given as --config holds no options, one a line such as 'epochs: 4'"
    if found := re.match(r"Value not boolean: (.*?)\.?$", reason):
        return f"a switch is true or false, not {found[1]!r}"
    found = re.match(r'Parser key "(\w+)".*(?:Got|Given) value: (.*)', reason)
    if not found:
        return reason
    name, value = found.groups()
    option = "--" + name.replace("_", "-")
    known = re.search(r"Literal\[(.*?)\]", reason)
    wanted = f"; it is one of {known[1]}" if known else ""
    spelled = {argument.partition("=")[0].replace("_", "-") for argument in given}
    called = option if option in spelled else name
    return f"{called} cannot be {value!r}{wanted}"


def usage() -> str:
    """Return the list of commands."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(["usage: beamless COMMAND [options]", "", *lines, ""])


def parsed(
    function: Callable[..., Any], parser: ArgumentParser, command: str, given: list[str]
) -> dict[str, Any]:
    """Read a command's options, those of a file given as ``--config`` among them.

    Raises:
        BeamlessError: there is no such option, or a value is none that it takes.
    """
    try:
        options = parser.parse_args([with_underscores(argument) for argument in given])
    except ArgumentError as error:
        reason = reason_of(error, given, required_options(function))
        raise BeamlessError(f"{reason}; see 'beamless {command} --help'") from None
    except OverflowError:
        raise BeamlessError(f"a number is too large; options take at most {LARGEST:.0e}") from None
    except RecursionError:
        raise BeamlessError("the file given as --config is nested without end") from None
    except RuntimeError:  # what the parser makes of a table where a list belongs
        raise BeamlessError("the file given as --config has a table where values belong") from None
    values: dict[str, Any] = parser.instantiate(options).as_dict()
    values.pop("config", None)
    return values


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code.

    Raises:
        BeamlessError: the command or its options are wrong, or the command says so.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(usage())
        return 0
    command, rest = arguments[0], arguments[1:]
    if command == "--version":
        sys.stdout.write(f"beamless {__version__}\n")
        return 0
    if command not in COMMANDS:
        raise BeamlessError(f"there is no command {command!r}; 'beamless --help' lists them")
    for argument in rest:
        if not argument.isascii() and any("\ud800" <= sign <= "\udfff" for sign in argument):
            raise BeamlessError(f"the name {argument} is not UTF-8; rename it")
    with told_what_to_install(command):
        function = load_command(command)
    parser = build_parser(function, f"beamless {command}")
    check_config(function, parser, rest)
    values = parsed(function, parser, command, rest)
    require_values(function, values)
    require_moderate(values)
    try:
        with told_what_to_install(command):
            return int(function(**regroup(function, values)) or 0)
    except BrokenPipeError:
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise BeamlessError(f"{place}{error.strerror or error}; choose another place") from error


@contextmanager
def told_what_to_install(command: str) -> Iterator[None]:
    """Name the extra where a module of ``train``, which most stages need, is not installed.

    Raises:
        BeamlessError: one is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in OF_TRAIN:
            raise
        raise BeamlessError(f'{command} needs {name}; run: pip install "beamless[train]"') from None


def answer(arguments: list[str]) -> int:
    """Run one command line and return its exit code; bad input is one line on standard error.

    What cannot be shown as UTF-8, as the bytes of some file names cannot, is shown escaped. Where
    nobody reads standard output any more, as behind ``| head``, the command ends without a word.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = run(arguments)
        sys.stdout.flush()
        return code
    except BeamlessError as error:
        sys.stderr.write(f"beamless: {' '.join(str(error).splitlines())}\n")
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 1
