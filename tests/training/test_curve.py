"""The curve of look-ahead: which points there are, and what they are said to cost."""

import pytest

from beamless.inference.errors import BeamlessError
from beamless.training.curve import curve, draw_curve, points_of


def figures(wer: float, steps: int) -> dict[str, float]:
    return {"wer": wer, "steps": steps, "seconds": steps / 100}


METHODS = {
    "greedy": figures(0.2, 100),
    "corrected": figures(0.18, 99),
    "lookahead+margin0.4": figures(0.17, 120),
    "lookahead+margin2": figures(0.16, 150),
    "lookahead+doubt0.3": figures(0.165, 130),
    "lookahead+margin2+budget8": figures(0.175, 110),
    "beam5": figures(0.16, 101),
}


def test_a_beams_step_counts_as_often_as_the_beam_is_wide():
    rows = {point.method: point.rows for point in points_of(METHODS)}
    assert rows["beam5"] == 505
    assert rows["lookahead+margin2"] == 150


def test_a_setting_belongs_to_the_curve_of_what_was_changed():
    found = [(point.curve, point.setting) for point in points_of(METHODS)]
    assert found == [
        ("greedy", None),
        ("corrected", None),
        ("margin", 0.4),
        ("margin", 2.0),
        ("doubt", 0.3),
        ("budget", 8.0),
        ("beam", 5.0),
    ]


def test_the_curve_is_drawn(tmp_path):
    draw_curve(points_of(METHODS), "tiny.en", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_margin_of_nothing_is_refused_before_any_work(tmp_path):
    with pytest.raises(BeamlessError, match="--margin"):
        curve("no-such-model", tmp_path / "out", [tmp_path], margins=[0.0])
