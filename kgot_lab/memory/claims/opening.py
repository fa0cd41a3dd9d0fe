"""Opening what keeps claims, by what a command or a cell names it: a file."""

from __future__ import annotations

from pathlib import Path

from kgot_lab.errors import BadInput, require
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.sqlite import SQLiteClaims


def open_claims(where: str | Path, *, new: bool = True) -> Claims:
    """The claims in a file, which is made if there is none and it may be `new`.

    Raises BadInput for an address, a folder, a file of another kind, and where none is there; StoreDamaged and StoreUnavailable.
    """
    require(where, (str, Path), "a memory is the path of a file")
    path = Path(where)
    if not str(where).strip() or "://" in str(where):
        raise BadInput(f"a memory is a file of claims, not {str(where)!r}: name a file, such as memory.db")
    if path.is_dir():
        raise BadInput(f"{path} is a folder: name a file for the memory in it, such as {path / 'memory.db'}")
    if not new and not path.exists():
        raise BadInput(f"there is no memory at {path}: kgot-lab ask QUESTION --memory {path} begins one")
    return Claims(SQLiteClaims(path))
