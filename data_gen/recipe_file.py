"""YAML recipes, read with one-line errors."""

from pathlib import Path
from typing import Any

import yaml

from beamless.inference.errors import BeamlessError


def load_yaml(path: Path) -> Any:  # noqa: ANN401
    """Read a YAML file, whatever it holds.

    Raises:
        BeamlessError: the file is not UTF-8 or YAML.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BeamlessError(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
    except (LookupError, AttributeError):  # as for !!bool x
        reason = "a value is not what its tag says"
    raise BeamlessError(f"{path} is not YAML ({reason})")


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that is one mapping.

    Raises:
        BeamlessError: the file is missing, is not UTF-8 or YAML, or is something else; or an alias
            in it stands for what it is in.
    """
    path = Path(path)
    if not path.is_file():
        raise BeamlessError(f"there is no recipe {path}")
    loaded = load_yaml(path)
    if not isinstance(loaded, dict) or not all(isinstance(key, str) for key in loaded):
        raise BeamlessError(f"{path} must hold 'name: value' entries")
    if _holds_itself(loaded, frozenset(), set()):
        raise BeamlessError(f"{path}: an alias (*) stands inside what it names; write that out")
    return loaded


def _holds_itself(node: object, around: frozenset[int], sound: set[int]) -> bool:
    """Tell whether a node stands inside itself; each is gone into once, however often it is named.

    ``around`` are the ids of the nodes that this one is in, ``sound`` those that are done with.
    """
    if id(node) in around:
        return True
    if not isinstance(node, dict | list) or id(node) in sound:
        return False
    inside = node.values() if isinstance(node, dict) else node
    found = any(_holds_itself(each, around | {id(node)}, sound) for each in inside)
    sound.add(id(node))
    return found
