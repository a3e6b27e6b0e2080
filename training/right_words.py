"""Which words of a hypothesis are right, by aligning it with the reference text."""

from collections.abc import Sequence

from beamless.data_gen.word_errors import imported, normalize


def right_words(words: Sequence[str], reference: str, language: str) -> list[bool | None] | None:
    """Tell of each word whether the reference has it there; None of a word that leaves nothing.

    A word is normalised by itself and is right where all that it becomes is right. Where the
    whole text becomes something else than its words do (numbers that are spelt out, say), the
    alignment would be unfair: then there is no answer.

    Args:
        words: the hypothesis, as it was written.
        reference: what was said.
        language: its code.
    """
    pieces = [normalize(word, language).split() for word in words]
    heard = [piece for group in pieces for piece in group]
    if heard != normalize(" ".join(word.strip() for word in words), language).split():
        return None
    matched = iter(_matched(heard, normalize(reference, language).split()))
    return [all([next(matched) for _ in group]) if group else None for group in pieces]


def _matched(heard: Sequence[str], spoken: Sequence[str]) -> list[bool]:
    """Tell of each word heard whether the alignment with fewest edits pairs it with its like."""
    right = [False] * len(heard)
    if heard and spoken:
        found = imported("jiwer").process_words(" ".join(spoken), " ".join(heard))
        for chunk in found.alignments[0]:
            if chunk.type == "equal":
                for at in range(chunk.hyp_start_idx, chunk.hyp_end_idx):
                    right[at] = True
    return right
