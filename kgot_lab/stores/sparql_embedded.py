"""A graph that is written to in SPARQL with Oxigraph, in the sandbox."""

from __future__ import annotations

from kgot_lab.stores.kept import Kept
from kgot_lab.stores.sparql import SPARQL


class SparqlEmbedded(Kept):
    """A store whose statements are SPARQL 1.1 queries and updates; `kgot_lab.sandbox.rdf` says how a property graph is RDF."""

    dialect = SPARQL
    language = "sparql"
