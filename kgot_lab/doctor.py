"""Try each piece for real, and say how to get what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


Piece = tuple[str, Callable[[], str], bool]  # its name, what tries it, and whether it is needed


def examine(pieces: Sequence[Piece] | None = None) -> Iterator[Finding]:
    """Probe the pieces, by default all, one after the other; each is started, not only looked for."""
    for piece, probe, needed in PIECES if pieces is None else pieces:
        try:
            yield Finding(piece, True, probe(), needed)
        except LabError as error:
            yield Finding(piece, False, str(error), needed)
        except Exception as error:  # an installation can be broken in any way, and the other pieces are still of interest
            yield Finding(piece, False, f"it is there and does not start, so install it again: {type(error).__name__}: {error}", needed)


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
    from kgot_lab.evaluation.questions import hotpotqa

    data = hotpotqa()
    return f"{len(data.questions)} questions and {len(data.documents)} passages are bundled"


def _notebooks() -> str:
    from importlib.metadata import PackageNotFoundError, version

    from kgot_lab.errors import NotInstalled

    try:
        return f"JupyterLab {version('jupyterlab')}"
    except PackageNotFoundError:
        raise NotInstalled("notebooks", "JupyterLab") from None


PIECES: tuple[Piece, ...] = (
    ("bundled data", _data, True),
    ("sandbox", _sandbox, True),
    ("in-memory store", _store, True),
    ("local model", _local, False),
    ("embeddings", _embeddings, False),
    ("documents", _documents, False),
    ("notebooks", _notebooks, False),
)
