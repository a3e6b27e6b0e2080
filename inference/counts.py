"""Numbers that must be above zero, said in one line where they are not."""

from beamless.inference.errors import BeamlessError


def require_positive(**numbers: float | None) -> None:
    """Refuse numbers of zero or less; None is fine.

    Raises:
        BeamlessError: the first of them, by its option's name.
    """
    for name, number in numbers.items():
        if number is not None and not number > 0:
            raise BeamlessError(f"--{name.replace('_', '-')} must be above 0, not {number}")
