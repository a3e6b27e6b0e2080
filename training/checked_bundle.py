"""A trained corrector to a bundle that has passed the parity gate; what is done is kept."""

from pathlib import Path

from beamless.inference.errors import BeamlessError
from beamless.inference.progress import console
from beamless.models.bundle import open_bundle, write_bundle
from beamless.models.corrector import load_corrector
from beamless.models.parity_record import read_parity
from beamless.models.precision import PROFILES, Profile
from beamless.models.whisper import load_checkpoint
from beamless.training.parity import check

GATE_CLIPS = 4  # of each bundle: the model itself was checked on more


def require_model(name: str) -> None:
    """Refuse a bundle's folder as the model of a training: it has no weights to export again.

    Raises:
        BeamlessError: it is one.
    """
    if (Path(name).expanduser() / "bundle.json").is_file():
        raise BeamlessError(f"{name} is a bundle; name the model that it was made from")


def checked_bundle(model: str, corrector: Path, bundle: Path, precision: Profile = "exact") -> None:
    """Export a model with a corrector and check the bundle, unless that is done.

    Args:
        model: the Whisper.
        corrector: the corrector's folder.
        bundle: the bundle's folder, new or one that was begun here.
        precision: what it computes in.
    """
    if not (bundle / "bundle.json").is_file():
        write_bundle(
            load_checkpoint(model), bundle, load_corrector(corrector), precision=PROFILES[precision]
        )
        console().print(f"wrote {bundle}")
    if not (read_parity(open_bundle(str(bundle))) or {}).get("passed"):
        check(str(bundle), limit=GATE_CLIPS, beam=False)
