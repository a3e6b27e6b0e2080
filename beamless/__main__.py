"""``python -m beamless``: from the first import on, Ctrl-C and bad input end in one line."""

import sys

INTERRUPTED = 130  # 128 and SIGINT's number, as shells have it
RESUMED = {
    *("demo", "synth", "import", "mix", "collect", "rollout", "train", "rounds", "ablate"),
    *("adapt", "curve"),
}
"""Commands that go on where they were stopped."""

RESUMED_WITH = {"evaluate": {"--out"}, "bench": {"--out"}, "corpus": {"report", "drop"}}
"""Commands that do so where one of these words is given."""


def main() -> int:
    """Run the command line; bad input ends with one line and code 2, Ctrl-C with 130.

    All imports are in here, since they take long enough for somebody to think better of it.
    """
    try:
        from beamless.command_line import answer

        return answer(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write(f"beamless: stopped{how_to_go_on(sys.argv[1:])}\n")
        return INTERRUPTED


def how_to_go_on(arguments: list[str]) -> str:
    """Return what is left to do after a command that was stopped; empty where there is no way."""
    command = arguments[0] if arguments else ""
    given = {argument.partition("=")[0] for argument in arguments[1:]}
    if command in RESUMED or given & RESUMED_WITH.get(command, set()):
        return "; run the same command again to go on"
    if command == "transcribe" and "--out" in given:
        return "; texts already written are whole: move them away, or name the recordings left"
    return ""


if __name__ == "__main__":
    sys.exit(main())
