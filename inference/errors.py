"""The one error a user may cause: its message says what was wrong and what to do."""


class BeamlessError(Exception):
    """Bad input, said in one line. The command line prints it and exits with code 2."""
