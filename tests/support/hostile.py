"""Hostile statements: what one is, and the kinds they come in, whatever the language."""

from __future__ import annotations

from dataclasses import dataclass

SECRET = "the-secret-of-the-host"  # what an attack should not bring home


@dataclass(frozen=True)
class HostileStatement:
    """A statement, given as a read or a write; SECRET_FILE, OUT_FILE and HOST_URL stand for places on the
    host.
    """

    kind: str
    name: str
    statement: str
    do: str = "read"


def several(kind: str, do: str = "read", **statements: str) -> list[HostileStatement]:
    """Attacks of one kind, each by its name."""
    return [
        HostileStatement(kind, name.replace("_", " "), statement, do)
        for name, statement in statements.items()
    ]


HIDDEN_WRITES = "writes hidden in a read"
CALLS = "procedures"
HOST_PLACES = "files and network"
NESTED = "nested updates"
SCHEMA_CHANGES = "schema changes"
RUNAWAY = "runaways"
TWO = "several statements"
TRICKS = "comments and unicode"
