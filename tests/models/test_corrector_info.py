"""What a corrector costs: its own graph beside one that does nothing."""

import numpy as np
import openvino as ov
import pytest

from beamless.inference.errors import BeamlessError
from beamless.models.corrector import FAMILIES, config_of, save_corrector, untrained
from beamless.models.corrector_info import corrector, corrector_alone, microseconds


@pytest.mark.parametrize("family", FAMILIES)
def test_a_corrector_stands_alone(tiny, family):
    sizes = tiny.sizes
    made = untrained(
        config_of(family, tiny.hash, sizes.width, sizes.vocabulary, units=8, gate=True)
    )
    compiled = ov.Core().compile_model(corrector_alone(tiny, made), "CPU")
    idle = ov.Core().compile_model(corrector_alone(tiny, made, idle=True), "CPU")
    assert len(compiled.inputs) == len(idle.inputs) + 1  # the gate's
    given = [np.ones(tuple(p.shape), p.element_type.to_dtype()) for p in compiled.inputs]
    added, doubt = compiled(given).values()
    assert added.size == {"shift": sizes.width, "rerank": 8, "dense": sizes.vocabulary}[family]
    assert not added.any()
    assert doubt[0] == pytest.approx(7 / 8, abs=1e-3)  # eight tokens are equally likely
    assert all(time > 0 for time in microseconds([compiled, idle], runs=2))


def test_the_table_tells_a_correctors_size_and_price(tiny, tmp_path, capsys):
    folder = tmp_path / "small"
    save_corrector(
        untrained(config_of("shift", tiny.hash, 384, 51864, units=16, ledger=True)), folder
    )
    corrector("info", [folder], model="tiny.en", runs=2)
    shown = capsys.readouterr().out
    parameters = 2 * 768 + 16 * 769 + 16 + 384 * 16 + 384
    assert "small" in shown and "ledger" in shown
    assert f"{parameters:,}" in shown
    assert "corrector µs" in shown


def test_a_corrector_of_another_model_has_no_price_here(tiny, tmp_path):
    save_corrector(untrained(config_of("shift", "0" * 64, 384, 51864, units=4)), tmp_path / "other")
    with pytest.raises(BeamlessError, match="was trained on another model"):
        corrector("info", [tmp_path / "other"], model="tiny.en")
