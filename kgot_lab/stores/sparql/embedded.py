"""A graph that is written to in SPARQL with Oxigraph, in the sandbox."""

from __future__ import annotations

from kgot_lab.stores.embedded_store import EmbeddedStore
from kgot_lab.stores.sparql.dialect import SPARQL, refuse_unless_sparql
from kgot_lab.stores.sparql.triples import require_holdable
from kgot_lab.types import Diff, Rows


class SparqlEmbedded(EmbeddedStore):
    """A store whose statements are SPARQL 1.1 queries and updates; `kgot_lab.sandbox.sparql.rdf` says how a
    property graph is RDF.

    What RDF cannot hold raises BadInput, as what does not fit does.
    """

    dialect = SPARQL
    language = "sparql"

    def write(self, statement: str) -> Diff:
        """Run a statement and keep what it changed; raises QueryFailed, changing nothing."""
        refuse_unless_sparql("write", statement)
        return super().write(statement)

    def read(self, statement: str) -> Rows:
        """The rows a statement finds; raises QueryFailed."""
        refuse_unless_sparql("read", statement)
        return super().read(statement)

    def _keep(self, diff: Diff) -> None:
        require_holdable(diff)
        super()._keep(diff)
