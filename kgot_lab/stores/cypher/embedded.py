"""A graph that is written to in Cypher with ArcadeDB, in the sandbox."""

from __future__ import annotations

from kgot_lab.stores.cypher.dialect import CYPHER, refuse_unless_cypher_read, refuse_unless_cypher_write
from kgot_lab.stores.embedded_store import EmbeddedStore
from kgot_lab.types import Diff, Rows


class CypherEmbedded(EmbeddedStore):
    """A store whose statements are Cypher; `kgot_lab.sandbox.cypher.mapping` says how a node has its
    id and its values.

    A statement passes a list of allowed clauses and then the engine, which has a mode of its own for reads.
    """

    dialect = CYPHER
    language = "cypher"

    def write(self, statement: str) -> Diff:
        """Run a statement and keep what it changed; raises QueryFailed, changing nothing."""
        refuse_unless_cypher_write(statement)
        return super().write(statement)

    def read(self, statement: str) -> Rows:
        """The rows a statement finds; raises QueryFailed."""
        refuse_unless_cypher_read(statement)
        return super().read(statement)
