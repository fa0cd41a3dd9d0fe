"""Try each piece for real, and say how to get what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgot_lab.errors import LabError


@dataclass(frozen=True)
class Finding:
    """One piece: whether it works, and what it said or what to do."""

    piece: str
    works: bool
    said: str
    needed: bool  # without it the workbench cannot do its main work

    def __str__(self) -> str:
        return f"{'ok     ' if self.works else 'missing' if not self.needed else 'MISSING'}  {self.piece:18} {self.said}"


def examine() -> Iterator[Finding]:
    """Probe the pieces one after the other; each is started, not only looked for."""
    for piece, probe, needed in PIECES:
        try:
            yield Finding(piece, True, probe(), needed)
        except LabError as error:
            yield Finding(piece, False, str(error), needed)


def _sandbox() -> str:
    from kgot_lab.sandbox import probe

    return probe()


def _store() -> str:
    from kgot_lab.stores import InMemory

    with InMemory() as store:
        store.write('add("Ada Lovelace", "born in", "London")')
        rows = store.read('result = facts("Ada Lovelace")')
    return f"a fact was written and read back: {rows[0]['subject']} {rows[0]['relation']} {rows[0]['object']}"


def _local() -> str:
    from kgot_lab.llm.probes import probe_local

    return probe_local()


def _embeddings() -> str:
    from kgot_lab.retrieval.vectors import minilm

    vector = minilm().embed(["a graph of thoughts"])
    return f"all-MiniLM on onnxruntime, {vector.shape[1]} dimensions"


def _documents() -> str:
    from kgot_lab.errors import NotInstalled

    try:
        import markitdown
    except ImportError:
        raise NotInstalled("documents", "markitdown, to read PDF, HTML and Word files") from None
    return f"markitdown {getattr(markitdown, '__version__', '')} reads PDF, HTML and Word files"


def _data() -> str:
    from kgot_lab.evaluation.datasets import hotpotqa

    data = hotpotqa()
    return f"{len(data.questions)} questions and {len(data.documents)} passages are bundled"


def _notebooks() -> str:
    from importlib.metadata import PackageNotFoundError, version

    from kgot_lab.errors import NotInstalled

    try:
        return f"JupyterLab {version('jupyterlab')}"
    except PackageNotFoundError:
        raise NotInstalled("notebooks", "JupyterLab") from None


PIECES: tuple[tuple[str, Callable[[], str], bool], ...] = (
    ("bundled data", _data, True),
    ("sandbox", _sandbox, True),
    ("in-memory store", _store, True),
    ("local model", _local, False),
    ("embeddings", _embeddings, False),
    ("documents", _documents, False),
    ("notebooks", _notebooks, False),
)
