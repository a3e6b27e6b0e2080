"""``beamless export``: a model, with or without a corrector, to a bundle."""

import numpy as np
import pytest

from beamless.inference.bundle import load_bundle
from beamless.inference.errors import BeamlessError
from beamless.models.corrector import Corrector, CorrectorConfig, save_corrector, untrained
from beamless.models.export import export


@pytest.fixture
def corrector(tiny, tmp_path):
    start = untrained(CorrectorConfig("shift", tiny.hash, tiny.sizes.width, units=16))
    arrays = {**start.arrays, "down.bias": np.full(tiny.sizes.width, 0.5, np.float32)}
    folder = tmp_path / "corrector"
    save_corrector(Corrector(start.config, arrays), folder)
    return folder


def test_a_model_alone_becomes_a_bundle_without_a_corrector(tmp_path, capfd):
    export("tiny.en", tmp_path / "bundle", capacity=32, encoder_precision="bf16")
    bundle = load_bundle(tmp_path / "bundle")
    assert not bundle.has_corrector
    assert bundle.manifest.capacity == 32
    assert bundle.manifest.precision == {"encoder": "bf16", "decoder": "f32", "weights": "f16"}
    output = capfd.readouterr()
    assert output.out == ""
    assert "wrote" in output.err
    assert "MB" in output.err


def test_a_corrector_goes_into_the_bundle_with_where_it_came_from(tmp_path, corrector, tiny):
    export("tiny.en", tmp_path / "bundle", corrector=corrector, capacity=32)
    about = load_bundle(tmp_path / "bundle").manifest.corrector
    assert about["family"] == "shift"
    assert about["parameters"] == 4 * 768 // 2 + 16 * 768 + 16 + 384 * 16 + 384
    assert len(about["hash"]) == 64


@pytest.mark.parametrize("option", [{"capacity": 7}, {"capacity": 449}])
def test_a_capacity_out_of_range_writes_nothing(tmp_path, option):
    with pytest.raises(BeamlessError, match="is not within 8 and the model's 448"):
        export("tiny.en", tmp_path / "bundle", **option)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_not_touched(tmp_path):
    (tmp_path / "bundle").mkdir()
    with pytest.raises(BeamlessError, match="exists; name another folder"):
        export("tiny.en", tmp_path / "bundle")
    assert list((tmp_path / "bundle").iterdir()) == []


def test_a_corrector_of_another_model_is_refused(tmp_path, corrector):
    with pytest.raises(BeamlessError, match="was trained on another model"):
        export("base", tmp_path / "bundle", corrector=corrector)
    assert not (tmp_path / "bundle").exists()


def test_a_folder_that_is_no_corrector_is_refused(tmp_path):
    with pytest.raises(BeamlessError, match=r"is not a corrector: it holds no corrector\.json"):
        export("tiny.en", tmp_path / "bundle", corrector=tmp_path)
