"""What other packages offer by entry points: tools, stores and retrievers.

A package names a class or a function in the group of its kind in its pyproject.toml. Nothing is loaded before it is
needed, and what fails names the package it comes from.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kgot_lab import errors
from kgot_lab.errors import BadInput, LabError, OutOfMemory, error_message, require_parts
from kgot_lab.text.cleaning import printable_line


def packaged(group: str, taken: Collection[str] = ()) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, with a warning for a name that is taken."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        if entry.name in taken or entry.value != found.setdefault(entry.name, entry).value:
            others = f"another of the {group.rpartition('.')[2]} has the name {entry.name!r}"
            warnings.warn(f"{_origin(entry)} is left out: {others}", stacklevel=3)
    return found


@contextmanager
def errors_of(entry: EntryPoint) -> Iterator[None]:
    """Convert an error of another package into a BadInput that names the package.

    Raises OutOfMemory, and errors of this package, as they are.
    """
    try:
        yield
    except LabError:
        raise
    except (Exception, SystemExit) as error:  # any error of another package
        if errors.is_out_of_memory(error):
            raise OutOfMemory(f"{entry.name} of another package") from error
        told = masked = error_message(error)
        for key in errors.keys_in(os.environ):
            masked = masked.replace(key, "…")
        masked = errors.mask_secrets(masked)
        why = f"{type(error).__name__}: {printable_line(masked[:200])}"
        raise BadInput(f"{_origin(entry)} failed ({why})") from (error if masked == told else None)


def create(entry: EntryPoint, parts: Iterable[str], *arguments: Any, **options: Any) -> Any:
    """Load what another package offers, call it, and check that the result has these attributes."""
    with errors_of(entry):
        made = entry.load()(*arguments, **options)
        require_parts(made, parts, f"{_origin(entry)} makes what has {', '.join(parts)}")
    return made


def _origin(entry: EntryPoint) -> str:
    package = f" of the package {entry.dist.name}" if entry.dist else ""
    return f"the entry point {entry.value}{package}"
