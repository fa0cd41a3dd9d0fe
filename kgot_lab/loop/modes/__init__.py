"""The modes of the loop."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.io.entry_points import errors_of, packaged

ENTRY_POINTS = "kgot_lab.modes"


def named_mode(name: str) -> Any:
    """Return the class of a mode that a package offers by an entry point, by the name of either.

    Raises UnknownName, and BadInput if it fails to load.
    """
    offered = packaged(ENTRY_POINTS)
    for entry in offered.values():
        if name in (entry.name, entry.attr):
            with errors_of(entry):
                return entry.load()
    for entry in offered.values():
        with suppress(BadInput), errors_of(entry):
            if getattr(mode := entry.load(), "__qualname__", "") == name:
                return mode
    advice = f"A package offers its class by an entry point in {ENTRY_POINTS}"
    raise UnknownName("mode", name, offered, advice=advice)
