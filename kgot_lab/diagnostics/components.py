"""Diagnostics of each component, with advice for what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kgot_lab.errors import LabError, NotInstalled, needs_extra, require_known
from kgot_lab.evaluation.tables import Cell, Grid

WIDGETS = ("anywidget", "ipywidgets", "jupyterlab_widgets")
# JupyterLab extension: the package that provides it
LAB_EXTENSIONS = {"anywidget": "anywidget", "@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Finding:
    """The status of a component: whether it works, and its message or advice."""

    piece: str
    works: bool
    said: str
    needed: bool  # whether the main features require it

    @property
    def state(self) -> str:
        """Whether it works, in words with a sign."""
        return "✓ works" if self.works else "✗ missing, needed" if self.needed else "○ missing, optional"

    def __str__(self) -> str:
        return f"{'ok     ' if self.works else 'missing' if not self.needed else 'MISSING'}  {self.piece:18} {self.said}"


_NO_MEMORY = "there is too little memory to start it: free some, or raise the limit (ulimit -v)"
_Component = tuple[str, Callable[[], str], bool]  # name, test, and whether it is required


def check_components(pieces: Sequence[_Component] | None = None) -> Iterator[Finding]:
    """Test the components, by default all, one after the other. Each is actually run."""
    for piece, probe, needed in COMPONENTS if pieces is None else pieces:
        try:
            yield Finding(piece, True, probe(), needed)
        except LabError as error:
            yield Finding(piece, False, str(error), needed)
        except MemoryError:
            yield Finding(piece, False, _NO_MEMORY, needed)
        except Exception as error:  # any error, since the other components must still be tested
            short = "annot allocate memory" in str(error) or "MemoryError" in str(error)
            broken = f"it is there and does not start, so install it again: {type(error).__name__}: {error}"
            yield Finding(piece, False, _NO_MEMORY if short else broken, needed)


@dataclass(frozen=True)
class Diagnosis:
    """The status of every component. A notebook shows it as a table."""

    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        return "\n".join(map(str, self.findings))

    def _repr_html_(self) -> str:
        works = sum(finding.works for finding in self.findings)
        title, columns = (
            f"{works} of {len(self.findings)} pieces work",
            ("piece", "state", "what it said, or what to do"),
        )
        rows = ((finding.piece, finding.state, finding.said) for finding in self.findings)
        return Grid(title, columns, tuple(tuple(map(Cell, row)) for row in rows), words=True, css="").html


def diagnose(*names: str) -> Diagnosis:
    """Test the named components, by default all.

    In a notebook cell the result is shown as a table. Raises UnknownName for an unknown component.
    """
    known = {piece[0]: piece for piece in COMPONENTS}
    require_known("piece", known, *names)
    return Diagnosis(tuple(check_components([known[name] for name in names or known])))


def _sandbox() -> str:
    from kgot_lab.sandbox import probe

    return probe()


def _store(kind: str = "in_memory") -> str:
    from kgot_lab.stores import open_store
    from kgot_lab.types import Triple

    with closing(open_store(kind)) as store:
        store.write(store.dialect.add([(Triple("Ada Lovelace", "born in", "London"), {})]))
        (row,) = store.read(store.dialect.about(["Ada Lovelace"], 1))
    return f"a fact was written and read back: {row['subject']} {row['relation']} {row['object']}"


def _sql_store(kind: str, path: Path | str = ":memory:") -> str:
    from kgot_lab.stores import open_store
    from kgot_lab.types import Diff, Node

    with closing(open_store(kind, path=path)) as store:
        store.apply(Diff(added_nodes=(Node("Ada Lovelace"),)))
        (row,) = store.read("SELECT id FROM nodes")
    return f"a node was written and read back: {row['id']}"


def _postgres() -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # as root, the server runs as another user
        return _sql_store("postgres", Path(folder) / "postgres")


def _local() -> str:
    from kgot_lab.llm.local import probe_local

    return probe_local()


def _embeddings() -> str:
    from kgot_lab.embedding.vectors import minilm

    vector = minilm().embed(["a graph of thoughts"])
    return f"all-MiniLM on onnxruntime, {vector.shape[1]} dimensions, weights and tokenizer as pinned"


def _documents() -> str:
    with needs_extra("lab", "markitdown, to read PDF, HTML and Word files"):
        import markitdown
    return f"markitdown {getattr(markitdown, '__version__', '')} reads PDF, HTML and Word files"


def _data() -> str:
    from kgot_lab.benchmark.questions.sets import hotpotqa

    data = hotpotqa()
    return f"{len(data.questions)} questions and {len(data.documents)} passages are bundled"


def _widgets() -> str:
    versions, missing = {}, []
    for name in WIDGETS:
        try:
            versions[name] = _version(name, name)
        except NotInstalled:
            missing.append(name)
    if missing:
        raise NotInstalled("lab", f"{_listed(missing)}, which live views are made of")
    python = server_python()
    folders = labextension_folders(python)
    lacking = [
        package
        for part, package in LAB_EXTENSIONS.items()
        if not any((folder / part / "package.json").is_file() for folder in folders)
    ]
    if lacking:
        raise LabError(_widget_problem(python, lacking, folders))
    where_found = "with their parts where JupyterLab looks"  # without the folder, which would identify a machine in a stored notebook
    return f"anywidget {versions['anywidget']} and ipywidgets {versions['ipywidgets']}, {where_found}"


def _widget_problem(python: Path, lacking: Sequence[str], folders: Sequence[Path]) -> str:
    location = f"the JupyterLab of {environment_of(python)} lacks its part of {_listed(lacking)}"
    if environment_of(python) != Path(sys.prefix).resolve():
        location += f"; it is another environment than this notebook's kernel, {sys.prefix}"
    advice = f"{python} -m pip install --force-reinstall --no-deps {' '.join(lacking)}"
    return f"live views cannot draw: {location}. Do: {advice} and start JupyterLab again. Looked in {', '.join(map(str, folders))}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def server_python() -> Path:
    """Return the Python of the notebook server that started this kernel.

    Outside a notebook, or if it is unknown, it is the current Python.
    """
    own = Path(sys.executable)
    try:
        import psutil  # type: ignore[import-untyped]
    except ImportError:
        return own
    try:  # set by jupyter_client for every kernel
        server = psutil.Process(int(os.environ.get("JPY_PARENT_PID", "")))
        found = shutil.which(server.cmdline()[0], path=server.environ().get("PATH"))
    except (ValueError, IndexError, psutil.Error):
        return own
    return Path(found) if found and Path(found).name.startswith("python") else own


def environment_of(python: Path) -> Path:
    """Return the environment of a Python program, which may itself be a link out of it."""
    folder = python.parent
    return (folder.parent if folder.name in {"bin", "Scripts"} else folder).resolve()


def labextension_folders(python: Path) -> list[Path]:
    """Return the folders where the JupyterLab of this Python looks for extensions.

    Raises NotInstalled without JupyterLab.
    """
    with needs_extra("lab", "JupyterLab"):
        from jupyter_core.paths import ENV_JUPYTER_PATH, jupyter_path
    own = {str(Path(folder) / "labextensions") for folder in ENV_JUPYTER_PATH}
    shared = [Path(folder) for folder in jupyter_path("labextensions") if folder not in own]
    return [environment_of(python) / "share" / "jupyter" / "labextensions", *shared]


def _version(name: str, what: str, extra: str = "lab") -> str:
    """Return the version of an installed package.

    Raises NotInstalled, which names the extra, if it is missing.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        raise NotInstalled(extra, what) from None


def _exports() -> str:
    version = _version("nbconvert", "nbconvert, which makes notebooks into pages")
    from nbconvert.exporters import HTMLExporter
    from nbformat.v4 import new_markdown_cell, new_notebook

    untyped: Any = HTMLExporter
    page, _ = untyped().from_notebook_node(new_notebook(cells=[new_markdown_cell("Ada Lovelace")]))  # type: ignore[no-untyped-call]
    if "Ada Lovelace" not in page:
        raise LabError(f"nbconvert {version} made an empty page: pip install --force-reinstall nbconvert")
    return f"nbconvert {version} makes notebooks into pages"


def find_chromium() -> str:
    """Return the path of a Chromium or Chrome on the PATH.

    Raises LabError if there is none.
    """
    for name in BROWSERS:
        if program := shutil.which(name):
            return program
    raise LabError("no browser on the PATH: install Chromium (apt install chromium) or Google Chrome")


def _browser() -> str:
    program = find_chromium()
    playwright = _version("playwright", "Playwright, which drives the browser tests", "test")
    version_line = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=30, check=True
    ).stdout.strip()
    return f"{version_line}, driven by Playwright {playwright} in the browser tests"


COMPONENTS: tuple[_Component, ...] = (
    ("bundled data", _data, True),
    ("sandbox", _sandbox, True),
    ("in-memory store", _store, True),
    ("Cypher store", partial(_store, "cypher_embedded"), False),
    ("SPARQL store", partial(_store, "sparql_embedded"), False),
    ("SQLite store", partial(_sql_store, "sqlite"), False),
    ("PostgreSQL store", _postgres, False),
    ("local model", _local, False),
    ("embeddings", _embeddings, False),
    ("documents", _documents, False),
    ("notebooks", lambda: f"JupyterLab {_version('jupyterlab', 'JupyterLab')}", False),
    ("widgets", _widgets, False),
    ("exports", _exports, False),
    ("browser", _browser, False),
)
