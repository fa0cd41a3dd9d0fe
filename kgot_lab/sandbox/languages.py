"""The languages that a worker can run statements in, and what each needs to be shown inside the sandbox."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import NotInstalled


@dataclass(frozen=True)
class Language:
    """A worker program and what it imports."""

    name: str
    module: str  # in inside/; its main() serves requests
    packages: tuple[str, ...]  # the first is the engine, the others are used where they are installed
    probe: str  # a read that always gives a row
    extra: str = ""  # what brings the engine
    devices: bool = (
        False  # whether the engine needs /proc, /dev and a folder for its files, which live in memory
    )
    beside: tuple[str, ...] = ()  # files and folders next to the packages that belong to them, as patterns

    def shown(self) -> list[Path]:
        """The packages' own files and folders, and nothing that merely stands beside them; raises
        NotInstalled.
        """
        places = [place for name in self.packages if (place := _place(name)) is not None]
        if not places or _place(self.packages[0]) is None:
            raise NotInstalled(self.extra, self.packages[0])
        beside = [
            path
            for folder in _folders(places)
            for pattern in self.beside
            for path in sorted(folder.glob(pattern))
        ]
        return [*places, *beside]

    def folders(self) -> list[Path]:
        """The folders that the packages are imported from; raises NotInstalled."""
        return _folders(self.shown())


def _place(name: str) -> Path | None:
    """Where a package stands: its folder, or its file where it is only one; None where it is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations is not None else origin


def _folders(places: list[Path]) -> list[Path]:
    return list(dict.fromkeys(place.parent for place in places))


PYTHON_WORKER = Language(
    "python", "python_worker", ("networkx", "numpy"), "result = [42]", beside=("numpy.libs",)
)
SPARQL_WORKER = Language("sparql", "sparql_worker", ("pyoxigraph",), "ASK {}", "stores")
CYPHER_WORKER = Language(
    "cypher", "cypher_worker", ("arcadedb_embedded", "jpype"), "RETURN 42 AS n", "stores", devices=True, beside=("_jpype*", "org.jpype.jar")
)  # fmt: skip
LANGUAGES = {language.name: language for language in (PYTHON_WORKER, SPARQL_WORKER, CYPHER_WORKER)}
