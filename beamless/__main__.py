"""``python -m beamless``: from the first import on, Ctrl-C and bad input end in one line."""

import sys

STOPPED = "beamless: stopped; run the same command again to go on\n"
INTERRUPTED = 130  # 128 and SIGINT's number, as shells have it


def main() -> int:
    """Run the command line; bad input ends with one line and code 2, Ctrl-C with 130.

    All imports are in here, since they take long enough for somebody to think better of it.
    """
    try:
        from beamless.command_line import answer

        return answer(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write(STOPPED)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
