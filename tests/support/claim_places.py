"""Where claims last in tests: a file, or a schema of the embedded PostgreSQL; and which files there hold a
word.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from kgot_lab.memory.claims.claims import Claims, open_claims


@dataclass(frozen=True)
class InFile:
    """A file of claims."""

    path: Path

    def opened(self, **how: Any) -> Claims:
        return open_claims(self.path, **how)

    def files_with(self, word: str) -> list[str]:
        """The files beside the claims that hold a word."""
        return holding(self.path.parent, word)


@dataclass(frozen=True)
class InPostgres:
    """A schema of claims on a server whose files can be looked into."""

    conninfo: str
    namespace: str

    @property
    def url(self) -> str:
        parts = conninfo_to_dict(self.conninfo)
        return f"postgresql:///{parts.pop('dbname')}?{urlencode(parts)}"

    @property
    def arguments(self) -> list[str]:
        return [self.url, self.namespace]

    @property
    def data(self) -> Path:
        """The folder of the server."""
        return Path(str(conninfo_to_dict(self.conninfo)["host"]))

    def opened(self, **how: Any) -> Claims:
        return open_claims(self.url, namespace=self.namespace, **how)

    def asked(self, *statements: str) -> list[Any]:
        """What the server says to the last of some statements."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            cursors = [connection.execute(statement) for statement in statements]
            return cursors[-1].fetchall() if cursors[-1].description else []

    def files_with(self, word: str) -> list[str]:
        """The files of tables, indexes and catalogues that hold a word, after the server wrote out what it
        had in memory.
        """
        tables = self.asked(
            f"SELECT format('ANALYZE %I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = '{self.namespace}'"
        )
        self.asked(*(statement for (statement,) in tables), "CHECKPOINT")
        return holding(self.data / "base", word)


ClaimPlace = InFile | InPostgres


def holding(folder: Path, word: str) -> list[str]:
    """The files below a folder that hold a word."""
    return sorted(
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and word.encode() in file.read_bytes()
    )
