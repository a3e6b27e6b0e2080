"""From rows to figures: pooled errors, the gap, and files with fixed columns."""

import csv
import json
import math
from dataclasses import replace

import pytest

from beamless.inference.errors import BeamlessError
from beamless.training.contenders import contender
from beamless.training.evaluate import CORRECTED, _open_out
from beamless.training.kept_rows import read_rows
from beamless.training.report import (
    COLUMNS,
    STEP_COLUMNS,
    Row,
    Run,
    cells,
    report,
    reports,
    step_cells,
)
from beamless.training.report_files import write_report
from beamless.training.report_page import markdown
from beamless.training.report_picture import errors_by_place, looks_of

RUN = Run("tiny.en", "hash", ("toy",), "CPU", "en", ("greedy", "corrected", "beam5"), None, True)
ROW = Row(
    corpus="toy",
    id="a",
    speaker="s",
    duration=3.0,
    method="greedy",
    reference="one two three four",
    hypothesis="one too three",
    substitutions=1,
    insertions=0,
    deletions=1,
    words=4,
    steps=7,
    encoder_seconds=0.2,
    decoder_seconds=0.07,
    finish_reason="stop",
    avg_logprob=-0.3,
    no_speech_prob=0.01,
    tokens=5,
)


def rows() -> list[Row]:
    """Ten utterances: greedy makes two errors in each, the corrector one, the beam none."""
    made = []
    for number in range(10):
        one = replace(ROW, id=f"u{number}", speaker=f"s{number % 4}")
        made += [
            one,
            replace(one, method="corrected", deletions=0),
            replace(one, method="beam5", substitutions=0, deletions=0),
        ]
    return made


def test_a_contender_may_name_its_audio_context():
    names = ("beam5", "beam5:full", "lookahead:short")
    found = [contender(name, "short") for name in names]
    assert [one.audio_context for one in found] == ["short", "full", "short"]
    assert [one.method for one in found] == ["beam5", "beam5", "lookahead"]


def test_a_contender_may_change_how_tokens_are_chosen():
    both = contender("greedy+eos0.3+repeat1.15", "full")
    assert (both.method, both.audio_context) == ("greedy", "full")
    assert (both.options.eos_boost, both.options.repetition_penalty) == (0.3, 1.15)
    assert contender("greedy", "full").options.plain


def test_a_contender_may_look_ahead_elsewhere_and_further():
    one = contender("lookahead+margin0.4+depth6+budget32:full", "short")
    assert (one.ahead.margin, one.ahead.depth, one.ahead.budget) == (0.4, 6, 32)
    assert contender("lookahead", "short").ahead is None
    assert contender("greedy-lookahead+margin1", "short").ahead.margin == 1


def test_a_contender_may_be_a_baseline():
    assert contender("greedy+second1.5", "short").second == 1.5
    near = contender("knn16+mix0.5+temperature20", "short").neighbours
    assert (near.count, near.mix, near.temperature) == (16, 0.5, 20)


def test_contenders_that_decode_alike_are_decoded_once():
    list_of = [contender(name, "short").decoding for name in ("beam5", "beam5-oracle")]
    assert list_of[0] == list_of[1]
    others = [contender(f"lookahead+margin{m}", "short").decoding for m in ("0.4", "0.6")]
    assert others[0] != others[1]


def test_an_oracle_needs_a_list():
    assert contender("beam5-oracle", "short").oracle
    with pytest.raises(BeamlessError, match="only a beam has a list"):
        contender("greedy-oracle", "short")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lookahead+depth1+depth2", "each change is named once"),
        ("greedy+repeat0", "a repetition penalty below 1 would reward repeats"),
    ],
)
def test_a_change_that_cannot_be_meant_is_refused(name, said):
    with pytest.raises(BeamlessError, match=said):
        contender(name, "short")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "beam5:half",
        "greedy+eos",
        "greedy+loud1",
        "beam 5",
        "beam5+margin0.4",
        "lookahead+depth1.5",
        "lookahead+depth0",
        "corrected+second1",
        "knn4+second1",
        "greedy+free1",
        "greedy+eos1..2",
        "greedy+eos٥",
        "knn0",
        "knn4+mix2",
        "knn4+temperature0",
    ],
)
def test_a_name_that_means_nothing_is_refused(name):
    with pytest.raises(BeamlessError, match="cannot be evaluated"):
        contender(name, "short")


def test_errors_are_pooled_over_words():
    short = replace(ROW, id="b", words=1, substitutions=1, deletions=0)
    figures = report([ROW, short], replace(RUN, methods=("greedy",)))["methods"]["greedy"]
    assert figures["wer"] == pytest.approx(3 / 5)
    assert figures["seconds"] == pytest.approx(0.54)
    assert figures["ms_per_step"] == pytest.approx(10)
    assert figures["ms_per_token"] == pytest.approx(14)


def test_words_where_nobody_spoke_are_insertions():
    noise = replace(ROW, id="n", reference="", substitutions=0, deletions=0, insertions=3, words=0)
    figures = report([ROW, noise], replace(RUN, methods=("greedy",)))["methods"]["greedy"]
    assert figures["insertions"] == 3
    assert figures["wer"] == pytest.approx(5 / 4)


def test_half_the_gap_is_half_the_gap():
    gap = report(rows(), RUN)["gap_closed"]
    assert gap["value"] == pytest.approx(0.5)
    assert gap["low"] == gap["high"] == pytest.approx(0.5)


def test_a_text_that_fills_the_capacity_is_counted():
    full = replace(ROW, finish_reason="length")
    figures = report([full], replace(RUN, methods=("greedy",)))["methods"]["greedy"]
    assert figures["capacity_hits"] == 1


def test_a_text_that_the_budget_cut_is_shown():
    cut = replace(ROW, finish_reason="budget")
    found = reports([ROW, cut], replace(RUN, methods=("greedy",)))
    line = dict(zip(COLUMNS, cells(found.whole["methods"]["greedy"]), strict=True))
    assert (line["cut by budget"], line["to capacity"]) == ("1", "0")


def test_files_hold_every_row_under_fixed_columns(tmp_path):
    write_report(rows(), RUN, reports(rows(), RUN), tmp_path)
    with (tmp_path / "utterances.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert len(read) == 30
    assert list(read[0]) == [name for name in vars(ROW) if name != "judged"]
    content = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert content["utterances"] == 10


COUNTS = {"missed_steps": 4, "right_steps": 16, "mended_steps": 3, "harmed_steps": 1}
COUNTS |= {"within_2": 2, "within_4": 3, "within_8": 4}


def test_steps_are_pooled_into_rates_of_mending_and_harming():
    stepped = [replace(ROW, id=str(n), **COUNTS) for n in range(3)]
    found = report(stepped, replace(RUN, methods=("greedy",)))["methods"]["greedy"]["target_steps"]
    assert (found["missed"], found["right"]) == (12, 48)
    assert (found["fix_rate"], found["harm_rate"]) == (3 / 4, 1 / 16)
    assert found["coverage"] == {2: 0.5, 4: 0.75, 8: 1.0}


def test_a_method_without_counted_steps_has_no_rates():
    content = report(rows(), RUN)
    assert content["methods"]["beam5"]["target_steps"] is None
    assert step_cells(content["methods"]["beam5"]) == [""] * 6


def test_confidence_is_judged_raw_and_calibrated():
    sure, right = [0.95, 0.55, 0.0], [0.95, 0.55, 1.0]
    judged = replace(ROW, judged=[sure, right])
    found = report([judged], replace(RUN, methods=("greedy",)))["methods"]["greedy"]["confidence"]
    assert found["words"] == 2
    assert found["wrong"] == 0.5
    assert found["raw"]["calibration_error"] == pytest.approx(0.45)
    assert found["calibrated"]["calibration_error"] == pytest.approx(0.05)


def test_confidence_that_nobody_calibrated_is_told_as_raw_alone():
    judged = replace(ROW, judged=[[0.9, 0.9, 1.0], [0.4, 0.4, 0.0]])
    figures = report([judged], replace(RUN, methods=("greedy",)))["methods"]["greedy"]
    assert figures["confidence"]["calibrated"] is None
    line = dict(zip(STEP_COLUMNS, step_cells(figures), strict=True))
    assert line["calibrated"] == ""
    assert (line["wrong words: recall"], line["precision"]) == ("100%", "100%")


def test_words_that_are_all_right_leave_no_ranking_and_valid_json(tmp_path):
    run = replace(RUN, methods=("greedy",))
    judged = [replace(ROW, judged=[[0.9, 0.9, 1.0]])]
    write_report(judged, run, reports(judged, run), tmp_path)
    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert json.loads(text)["methods"]["greedy"]["confidence"]["raw"]["ranking"] is None


def test_a_page_tells_what_greedys_likeliest_tokens_cover():
    stepped = [replace(ROW, **COUNTS)]
    run = replace(RUN, methods=("greedy",))
    page = markdown(stepped, run, reports(stepped, run))
    assert "50% of them in 2, 75% of them in 4, 100% of them in 8" in page
    assert "| greedy | 3 of 4 (75%) | 1 of 16 (6.25%) |" in page


def test_two_corpora_are_reported_together_and_each(tmp_path):
    both = [*rows(), *(replace(row, corpus="other") for row in rows())]
    run = replace(RUN, corpora=("toy", "other"))
    write_report(both, run, reports(both, run), tmp_path)
    content = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert content["utterances"] == 20
    assert content["by_corpus"]["other"]["utterances"] == 10


def test_a_stopped_run_keeps_its_whole_lines(tmp_path):
    kept = _open_out(tmp_path / "out", RUN)
    line = json.dumps([vars(ROW)])
    kept.write_text(line + "\n" + line[: len(line) // 2], encoding="utf-8")
    assert read_rows(_open_out(tmp_path / "out", RUN), ["greedy"]) == [ROW]
    assert kept.read_text(encoding="utf-8") == line + "\n"


@pytest.mark.parametrize(
    "spoilt",
    [
        {"judged": "abc"},
        {"judged": [[0.5, 0.5]]},
        {"judged": [[None, 0.5, 1]]},
        {"judged": [[math.nan, 0.5, 1]]},
        {"judged": [[7, 0.5, 1]]},
        {"missed_steps": "3"},
        {"substitutions": "3"},
        {"duration": True},
        {"unknown": 1},
        {"method": "beam3"},
    ],
)
def test_a_kept_row_that_cannot_be_is_damaged(tmp_path, spoilt):
    kept = tmp_path / "rows.partial.jsonl"
    kept.write_text(json.dumps([{**vars(ROW), **spoilt}]) + "\n", encoding="utf-8")
    with pytest.raises(BeamlessError, match="is damaged, or another Beamless wrote it; remove"):
        read_rows(kept, ["greedy"])


def test_kept_rows_that_tell_less_than_todays_are_not_mixed_with_these(tmp_path):
    kept = tmp_path / "rows.partial.jsonl"
    before = {name: value for name, value in vars(ROW).items() if name != "missed_steps"}
    kept.write_text(json.dumps([before]) + "\n", encoding="utf-8")
    with pytest.raises(BeamlessError, match="another Beamless wrote it"):
        read_rows(kept, ["greedy"])


def test_kept_rows_of_some_methods_alone_are_damaged(tmp_path):
    kept = tmp_path / "rows.partial.jsonl"
    kept.write_text(json.dumps([vars(ROW)]) + "\n", encoding="utf-8")
    with pytest.raises(BeamlessError, match="is damaged"):
        read_rows(kept, ["greedy", "beam5"])


def test_what_there_was_none_of_has_no_rate():
    right = replace(ROW, right_steps=5, judged=[[0.9, 0.8, 1.0]])
    figures = report([right], replace(RUN, methods=("greedy",)))["methods"]["greedy"]
    assert figures["target_steps"]["fix_rate"] is None
    assert figures["target_steps"]["coverage"] is None
    assert figures["confidence"]["calibrated"]["recall_at_half"] is None
    assert step_cells(figures) == ["0 of 0", "0 of 5 (0.00%)", "0.100", "0.200", "", ""]


def test_a_report_on_noise_alone_draws_no_rate(tmp_path):
    noise = [replace(ROW, reference="", words=0, substitutions=0, deletions=0, insertions=3)]
    run = replace(RUN, methods=("greedy",))
    write_report(noise, run, reports(noise, run), tmp_path)
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert content["methods"]["greedy"]["wer"] is None


def test_another_run_in_the_same_folder_is_refused(tmp_path):
    _open_out(tmp_path / "out", RUN)
    with pytest.raises(BeamlessError, match="no run like this one"):
        _open_out(tmp_path / "out", replace(RUN, device="GPU"))


def test_a_page_shows_what_was_mended_and_what_was_harmed():
    harmed = replace(ROW, id="h", method="corrected", substitutions=4, hypothesis="all of it wrong")
    beam = replace(ROW, id="h", method="beam5")
    found = [*rows(), replace(ROW, id="h"), harmed, beam]
    page = markdown(found, RUN, reports(found, RUN))
    assert "## What corrected mends most" in page
    assert "all of it wrong" in page.partition("## What corrected harms most")[2]


def test_better_and_worse_are_counted_in_utterances():
    figures = report(rows(), RUN)["methods"]["corrected"]
    assert (figures["improved"], figures["harmed"], figures["unchanged"]) == (10, 0, 0)


def test_an_error_is_found_in_its_fifth_of_the_sentence():
    row = replace(ROW, reference="we all go home now", hypothesis="we all go home then")
    assert errors_by_place([row]).tolist() == [0, 0, 0, 0, 1]


def test_noise_has_no_place_in_a_sentence():
    assert not errors_by_place([replace(ROW, reference="", hypothesis="Thank you.")]).any()


def test_noise_has_no_rate_of_errors_in_words():
    noise = replace(ROW, reference="", substitutions=0, deletions=0, insertions=3, words=0)
    run = replace(RUN, methods=("greedy",))
    page = markdown([noise], run, reports([noise], run))
    assert "| no words | 0 | 3 | 0 |" in page


def test_no_two_methods_look_alike_in_the_pictures():
    looks = looks_of(CORRECTED)
    assert len({tuple(sorted(look.items())) for look in looks.values()}) == len(CORRECTED)
