"""JSON as somebody's hand may leave it: some entries others, gone, or where they do not belong."""

import math
from copy import deepcopy

from hypothesis import strategies as st

NUMBERS = (0, -1, 1, 7, 10**30, 10**400, 0.5, 1e308, math.nan, math.inf)
TEXTS = ("", "7", "f32", "a\nb", "\x00", "../up")
OTHERS = (None, True, False, [], [1, 2], ["a"], [[]], {}, {"": 0}, {"a": {}})
JUNK = st.sampled_from([*NUMBERS, *TEXTS, *OTHERS]).map(deepcopy)


def places(content, above=()):
    """Yield the path of every entry of a JSON value."""
    entries = content.items() if isinstance(content, dict) else enumerate(content)
    for name, value in entries:
        yield (*above, name)
        if isinstance(value, dict | list):
            yield from places(value, (*above, name))


@st.composite
def spoilt_json(draw, content, most=3):
    """Draw a copy of a JSON object with one to three edits."""
    copy = deepcopy(content)
    for _ in range(draw(st.integers(1, most))):
        here = sorted(places(copy), key=repr)
        if not here:
            break
        *above, name = draw(st.sampled_from(here))
        inside = copy
        for step in above:
            inside = inside[step]
        kind = draw(st.sampled_from(["other", "other", "gone", "more"]))
        if kind == "gone":
            del inside[name]
        elif kind == "more" and isinstance(inside, dict):
            inside[draw(st.sampled_from(["colour", "", "b c"]))] = draw(JUNK)
        else:
            inside[name] = draw(JUNK)
    return copy
