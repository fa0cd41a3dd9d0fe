"""A graph that is written to in Cypher with ArcadeDB, in the sandbox."""

from __future__ import annotations

from kgot_lab.stores.cypher import CYPHER
from kgot_lab.stores.kept import Kept


class CypherEmbedded(Kept):
    """A store whose statements are Cypher; `kgot_lab.sandbox.cypher_mapping` says how a node has its id and its values."""

    dialect = CYPHER
    language = "cypher"
