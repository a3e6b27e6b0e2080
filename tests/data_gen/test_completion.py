"""Optimal completion: the next tokens that keep the edit distance to the target smallest."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from beamless.data_gen.completion import optimal_next_tokens

END = 9
texts = st.lists(st.integers(0, 2), max_size=4)


def distance(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Edit distance, by its definition."""
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return distance(a[1:], b[1:])
    return 1 + min(distance(a[1:], b), distance(a, b[1:]), distance(a[1:], b[1:]))


def test_on_the_targets_own_prefixes_it_is_teacher_forcing():
    assert optimal_next_tokens([5, 6, 7], [5, 6, 7], END) == [(5,), (6,), (7,), (END,)]


def test_behind_a_loop_the_text_should_end():
    assert optimal_next_tokens([5, 6, 5, 6, 5, 6], [5, 6], END)[-1] == (END,)


def test_behind_a_wrong_token_it_may_go_on_or_make_up_for_it():
    assert optimal_next_tokens([8], [5, 6], END)[1] == (5, 6)


@given(decoded=texts, target=texts)
def test_every_optimal_token_is_optimal_and_no_other(decoded, target):
    """Brute force: the best reachable distance with each next token, over all short endings."""
    endings = [e for n in range(5) for e in product(range(3), repeat=n)]
    prefix = tuple(decoded)
    reached = {END: distance(prefix, tuple(target))}
    for token in range(3):
        reached[token] = min(distance((*prefix, token, *e), tuple(target)) for e in endings)
    least = min(reached.values())
    best = {token for token, value in reached.items() if value == least}
    assert set(optimal_next_tokens(decoded, target, END)[-1]) == best
