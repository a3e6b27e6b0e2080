"""What the model is shown before a window: hotwords, and the end of the text before."""

import warnings
from collections.abc import Sequence

from beamless.inference.tokenizer import Tokenizer

LARGEST_SHARE = 3
"""A third of the capacity at most: Whisper's half would leave dense speech too little room."""


def room_for_previous(capacity: int) -> int:
    """Return how many tokens may stand before a window's start token."""
    return capacity // LARGEST_SHARE - 1


def previous_tokens(hotwords: Sequence[int], text: Sequence[int], room: int) -> tuple[int, ...]:
    """Return hotwords and the end of the text before, in at most ``room`` tokens.

    What does not fit is cut off on the left: of the text first, then of the hotwords.
    """
    kept = tuple(hotwords)[-room:] if room > 0 else ()
    left = room - len(kept)
    return (*kept, *(tuple(text)[-left:] if left > 0 else ()))


def prompt_tokens(tokenizer: Tokenizer, text: str, name: str, room: int) -> list[int]:
    """Turn a user's prompt into tokens; a warning tells where it is longer than there is room."""
    plain = text.strip()
    tokens = tokenizer.encode(" " + plain) if plain else []
    if len(tokens) > room:
        warnings.warn(
            f"the {name} of {len(tokens)} tokens is longer than the {room} that fit; "
            "its beginning is left out",
            stacklevel=2,
        )
    return tokens
