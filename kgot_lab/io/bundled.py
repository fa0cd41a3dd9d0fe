"""Where the small data and recorded runs that come with the package are, and the results of a checkout."""

from pathlib import Path

from kgot_lab.errors import BadInput, UnknownName, require, shortly

_INSTALLED = Path(__file__).parents[1] / "data"
_CHECKOUT = Path(__file__).parents[2]
_RESULTS = "benchmarks"  # a folder of the checkout, which a wheel does not carry


def bundled(name: str) -> Path:
    """The path of a bundled data folder or file, in a wheel as in a checkout; what begins with benchmarks/ is
    in a checkout only.

    Raises UnknownName, and BadInput for one outside, or of a checkout that is not there.
    """
    require(name, str, "bundled data are named by a text")
    if Path(name).parts[:1] == (_RESULTS,):
        return _measured(name)
    root = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT / "data"
    path = root / name
    if ".." in path.parts or not path.is_relative_to(root):
        raise BadInput(f"bundled data lie inside the folder {root.name}, and {shortly(name)} does not")
    if not path.exists():
        known = [item.name for item in root.iterdir()] if root.is_dir() else []
        raise UnknownName("bundled data", name, known)
    return path


def _measured(name: str) -> Path:
    path = _CHECKOUT / name
    if ".." in path.parts:
        raise BadInput(f"results lie inside the folder {_RESULTS}, and {shortly(name)} does not")
    if not (_CHECKOUT / _RESULTS).is_dir():
        raise BadInput(
            f"{name} comes with a checkout of the project and not with the installed package: clone it and pip install -e it"
        )
    if not path.exists():
        raise BadInput(f"this checkout has no {shortly(name)}; look into {_RESULTS}/results")
    return path
