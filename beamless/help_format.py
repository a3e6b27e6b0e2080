"""How ``beamless COMMAND --help`` reads: what an option is for, and its default."""

from argparse import SUPPRESS, Action

from jsonargparse import DefaultHelpFormatter

_NOTHING: tuple[object, ...] = ("", [], (), SUPPRESS)


class PlainHelp(DefaultHelpFormatter):
    """jsonargparse's help without the types of Python, which the texts name in words."""

    def _get_help_string(self, action: Action) -> str:
        text = action.help or ""
        plain = action.option_strings and action.dest not in ("help", "config")
        default = action.default
        if not plain or default is None or default is False or default in _NOTHING:
            return text
        if isinstance(default, list | tuple):
            default = " ".join(map(str, default))
        return f"{text} (default: {'yes' if default is True else default})"
