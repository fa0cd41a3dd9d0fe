"""The vocabulary of each schema: which types a file of that profile is expected to have.

The document gives no vocabulary, and for three profiles the graph that was kept in them: `claude` held
curated knowledge, `standard` what was extracted from code, `unified` both merged. A file of `claude` is held
to CURATED. The tables of `standard` are so common that they tell nothing of what is in them, as those of the
other profiles, so all these may have any type; CODE is for a graph that is known to be of code. A graph with
types of its own extends its vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from kgot_lab.graph.vocabulary import ANY_TYPE, Ends, Vocabulary
from kgot_lab.kgos.schemas.vocabularies import CODE, CURATED, SAME_AS


def _merged() -> Vocabulary:
    """Both vocabularies in one, each type once; edges join nodes of any type, since those of either may meet."""
    nodes = {each.name: each for each in (*CODE.node_types, *CURATED.node_types)}
    edges = {
        each.name: replace(each, ends=(Ends(ANY_TYPE, ANY_TYPE),))
        for each in (*CODE.edge_types, *CURATED.edge_types, SAME_AS)
    }
    return Vocabulary("the unified vocabulary", tuple(nodes.values()), tuple(edges.values()))


UNIFIED = _merged()
VOCABULARIES: Mapping[str, Vocabulary] = MappingProxyType(
    {
        "unified": UNIFIED,
        "claude": CURATED,
        "hal": UNIFIED,
        "from_node": UNIFIED,
        "entities": UNIFIED,
        "standard": UNIFIED,
        "heuristic": UNIFIED,
    }
)
