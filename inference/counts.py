"""Numbers that must be above zero, finite or in a range, said in one line where they are not."""

import math

from beamless.inference.errors import BeamlessError


def require_positive(**numbers: float | None) -> None:
    """Refuse numbers of zero or less, and infinity; None is fine.

    Raises:
        BeamlessError: the first of them, by its option's name.
    """
    for name, number in numbers.items():
        if number is not None and not (number > 0 and math.isfinite(number)):
            raise BeamlessError(f"--{name.replace('_', '-')} must be above 0, not {number}")


def require_finite(**numbers: float | None) -> None:
    """Refuse what is no number, and infinity; None is fine.

    Raises:
        BeamlessError: the first of them, by its option's name.
    """
    for name, number in numbers.items():
        if number is not None and not math.isfinite(number):
            raise BeamlessError(f"--{name.replace('_', '-')} must be a number, not {number}")


def require_between(low: float, high: float, **numbers: float) -> None:
    """Refuse numbers outside a range, whose ends belong to it, and what is no number.

    Raises:
        BeamlessError: the first of them, by its option's name.
    """
    for name, number in numbers.items():
        if not low <= number <= high:
            raise BeamlessError(
                f"--{name.replace('_', '-')} must be from {low:.12g} to {high:.12g}, not {number}"
            )
