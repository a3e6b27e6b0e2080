"""What token-by-token methods choose along a target's own prefix: mended, harmed and covered steps.

A decode's word errors mix what a method knows with what follows from its mistakes. Along a known
text each step stands by itself: does greedy miss the target's next token, does the method then find
it, and does it lose one that greedy has?
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from beamless.inference.decoder import CrossKV
from beamless.inference.greedy import Choice, Chooser, open_window
from beamless.inference.hypothesis import Hypothesis
from beamless.inference.methods import ChooserMethod, Method
from beamless.inference.options import AudioContext
from beamless.inference.sampling import LIKELIEST, TokenOptions
from beamless.training.contenders import Contender

RANKS = (2, 4, LIKELIEST)


@dataclass(frozen=True)
class StepCounts:
    """One utterance's steps along a target.

    Attributes:
        missed: greedy's best token is not the target's.
        mended: of these, the method's is.
        right: greedy's best token is the target's.
        harmed: of these, the method's is not.
        within: for each of ``RANKS``, the missed steps whose target is among so many of greedy's
            likeliest.
    """

    missed: int = 0
    mended: int = 0
    right: int = 0
    harmed: int = 0
    within: tuple[int, ...] = (0,) * len(RANKS)


def forced_counts(
    contenders: Collection[Contender],
    methods: Mapping[Contender, Method],
    windows: Mapping[AudioContext, CrossKV],
    prompt: Sequence[int],
    targets: Mapping[AudioContext, Sequence[int]],
) -> dict[Contender, StepCounts]:
    """Count the steps of one utterance for each contender that chooses token by token.

    Args:
        contenders: all that are compared; only beside plain greedy under the same audio context
            can steps be counted.
        methods: as ``contenders.open_contenders`` opened them.
        windows: the utterance, encoded.
        prompt: the ids that open it.
        targets: the text's tokens [T], its end token last, by the audio context that they stem
            from.

    Returns:
        The counts, by the contender's decoding.
    """
    found: dict[Contender, StepCounts] = {}
    for context, target in targets.items():
        own = [c.decoding for c in contenders if c.audio_context == context and c.token_by_token]
        base = next((c for c in own if c.plain_greedy), None)
        if base is None:
            continue
        greedy: list[Choice] = []
        for one in dict.fromkeys([base, *own]):
            method = methods[one]
            assert isinstance(method, ChooserMethod)
            method.chooser.options = TokenOptions(others=LIKELIEST, corrected=one.options.corrected)
            choices = forced_choices(method.chooser, windows[context], prompt, target)
            greedy = greedy or choices
            found[one] = count_steps(choices, greedy, target)
    return found


def forced_choices(
    chooser: Chooser, cross_kv: CrossKV, prompt: Sequence[int], target: Sequence[int]
) -> list[Choice]:
    """Return what a chooser would take at each step of a text [T] that is fed to it.

    Raises:
        BeamlessError: the prompt leaves no room for text.
    """
    first, _ = open_window(chooser, cross_kv, prompt)
    return [first, *(chooser.next(token, "text") for token in target[:-1])]


def count_steps(
    choices: Sequence[Choice], greedy: Sequence[Choice], target: Sequence[int]
) -> StepCounts:
    """Compare a method's choices [T] with greedy's [T] and with the target's tokens [T]."""
    steps = list(zip(choices, greedy, target, strict=True))
    missed = [(own, base, token) for own, base, token in steps if base.token != token]
    harmed = sum(own.token != token for own, base, token in steps if base.token == token)
    ranks = [_rank(base, token) for _, base, token in missed]
    return StepCounts(
        missed=len(missed),
        mended=sum(own.token == token for own, _, token in missed),
        right=len(steps) - len(missed),
        harmed=harmed,
        within=tuple(sum(rank < most for rank in ranks) for most in RANKS),
    )


def _rank(choice: Choice, token: int) -> int:
    """Return a token's place among a step's likeliest, or their number where it is none."""
    likely = [each for each, _ in choice.others]
    return likely.index(token) if token in likely else LIKELIEST


def target_of(ranked: Sequence[Hypothesis], errors: Sequence[int], end: int) -> list[int] | None:
    """Return the tokens [T] of the list's hypothesis with the fewest errors, its end token last.

    None where it did not end by itself. Of two alike it is the one that the beam ranks higher.
    """
    best = ranked[min(range(len(ranked)), key=lambda rank: errors[rank])]
    return [*best.tokens, end] if best.finish_reason == "stop" else None
