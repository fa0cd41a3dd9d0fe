"""Where the small data and recorded runs that come with the package are."""

from pathlib import Path

from kgot_lab.errors import BadInput, UnknownName, require, shortly

_INSTALLED = Path(__file__).parent / "data"
_CHECKOUT = Path(__file__).parent.parent / "data"


def bundled(name: str) -> Path:
    """The path of a bundled data folder or file, in a wheel as in a checkout; raises UnknownName, BadInput for one outside."""
    require(name, str, "bundled data are named by a text")
    root = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    path = root / name
    if ".." in path.parts or not path.is_relative_to(root):
        raise BadInput(f"bundled data lie inside the folder {root.name}, and {shortly(name)} does not")
    if not path.exists():
        known = [item.name for item in root.iterdir()] if root.is_dir() else []
        raise UnknownName("bundled data", name, known)
    return path
