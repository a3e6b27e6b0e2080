"""What holds for every file of the project."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("beamless", "data_gen", "inference", "models", "training")
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def run(*command: str, where: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return python("-m", *command, where=where)


def python(*arguments: str, where: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=False, cwd=where, capture_output=True, encoding="utf-8")


def lay_out_as_installed(folder: Path) -> None:
    """Type checkers do not follow an editable install's mapping: give them the real layout."""
    shutil.copytree(ROOT / "beamless", folder / "beamless")
    for room in ("data_gen", "inference", "models", "training"):
        shutil.copytree(ROOT / room, folder / "beamless" / room)
    shutil.copy(ROOT / "pyproject.toml", folder)


def test_ruff_finds_nothing():
    result = run("ruff", "check", ".")
    assert result.returncode == 0, result.stdout


def test_every_file_is_formatted():
    result = run("ruff", "format", "--check", ".")
    assert result.returncode == 0, result.stdout


def test_types_hold_in_the_layout_that_is_installed(tmp_path):
    lay_out_as_installed(tmp_path)
    result = run("mypy", "-p", "beamless", where=tmp_path)
    assert result.returncode == 0, result.stdout
    assert re.search(r"in [5-9]\d|in \d{3}", result.stdout), "too few files were checked"


@pytest.mark.parametrize(
    "command", ["transcribe", "export", "--help"], ids=["transcribe", "export", "help"]
)
def test_production_never_imports_torch(command):
    program = (
        "import sys; from beamless import command_line as m, Transcriber, load\n"
        f"m.load_command({command!r}) if {command!r} in m.COMMANDS else m.run([{command!r}])\n"
        "heavy = {'torch', 'transformers', 'lightning', 'datasets', 'piper'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


def test_a_checkout_runs_from_its_own_folder_whatever_is_installed():
    done = python("-S", "-c", "import beamless.inference.errors as e; print(e.__file__)")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == ROOT / "inference"


def test_every_command_in_the_table_exists_and_documents_each_option():
    program = (
        "from beamless import command_line as m\n"
        "for name in m.COMMANDS:\n"
        "    m.build_parser(m.load_command(name), name).format_help()\n"
    )
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


def test_rooms_import_only_what_lies_before_them():
    may = {
        "inference": {"inference"},
        "models": {"inference", "models"},
        "data_gen": {"inference", "models", "data_gen"},
        "training": {"inference", "models", "data_gen", "training"},
    }
    for path in SOURCES:
        room = path.relative_to(ROOT).parts[0]
        if room in may:
            found = re.findall(
                r"^\s*(?:from|import) beamless\.(\w+)", path.read_text(encoding="utf-8"), re.M
            )
            assert set(found) <= may[room], f"{path} imports {set(found) - may[room]}"


def test_no_file_names_a_path_of_one_machine():
    for path in [*SOURCES, ROOT / "README.md", ROOT / "pyproject.toml"]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/(?:work|root|home/\w+)/|[A-Z]:\\\\Users", text), path


def test_no_module_prints_or_configures_logging():
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*print\(|logging\.basicConfig", text, re.M), path
