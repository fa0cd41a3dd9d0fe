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
    devices: bool = False  # whether the engine needs /proc, /dev and a folder for its files, which live in memory

    def folders(self) -> list[Path]:
        """The folders that hold the packages; raises NotInstalled."""
        specs = {name: importlib.util.find_spec(name) for name in self.packages}
        engine = self.packages[0]
        if specs[engine] is None:
            raise NotInstalled(self.extra, engine)
        found = (Path(spec.origin).parent.parent for spec in specs.values() if spec is not None and spec.origin is not None)
        return list(dict.fromkeys(found))


PYTHON_WORKER = Language("python", "python_worker", ("networkx", "numpy"), "result = [42]")
SPARQL_WORKER = Language("sparql", "sparql_worker", ("pyoxigraph",), "ASK {}", "stores")
CYPHER_WORKER = Language("cypher", "cypher_worker", ("arcadedb_embedded", "jpype"), "RETURN 42 AS n", "stores", devices=True)
LANGUAGES = {language.name: language for language in (PYTHON_WORKER, SPARQL_WORKER, CYPHER_WORKER)}
