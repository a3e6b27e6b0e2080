"""Long texts cut into pieces that a voice can say at once; no word is lost or cut."""

import re
from itertools import pairwise

import numpy as np

from beamless.data_gen.voices import Samples

BORDERS = (re.compile(r"(?<=[.!?…])\s+"), re.compile(r"(?<=[,;:–—])\s+"), re.compile(r"\s+"))
PAUSE_SECONDS = 0.12


def split_text(text: str, limit: int) -> list[str]:
    """Cut ``text`` into pieces of at most ``limit`` characters.

    Sentence ends come first, then commas, then spaces. A single word longer than the limit stays
    whole. The words of the pieces are the words of the text, in order.
    """
    return _split(" ".join(text.split()), limit, 0)


def _split(text: str, limit: int, level: int) -> list[str]:
    if len(text) <= limit or level == len(BORDERS):
        return [text] if text else []
    pieces: list[str] = []
    for part in BORDERS[level].split(text):
        if pieces and len(pieces[-1]) + 1 + len(part) <= limit:
            pieces[-1] += " " + part
        else:
            pieces.append(part)
    return [short for piece in pieces for short in _split(piece, limit, level + 1)]


def join_pieces(pieces: list[Samples], rate: int) -> Samples:
    """Join mono pieces ``[N]`` with a short pause between them."""
    pause = np.zeros(round(PAUSE_SECONDS * rate), np.float32)
    joined: list[Samples] = list(pieces[:1])
    for _, piece in pairwise(pieces):
        joined += [pause, piece]
    return np.concatenate(joined) if joined else np.zeros(0, np.float32)
