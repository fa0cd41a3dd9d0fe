"""The configuration of a graph search: weights, edges, filters, and goal mappings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kgot_lab.arguments import CheckedRecord, bounded, check_fields
from kgot_lab.errors import BadInput, require_known
from kgot_lab.kgos.methods.dimensions import Filters, validate_filters
from kgot_lab.retrieval.fusion import Weights, normalised_weights
from kgot_lab.text.words import name_tokens, stem

RetrievalMethod = Literal["hybrid", "intent"]
_RETRIEVERS_BY_METHOD: Mapping[str, tuple[str, ...]] = {
    "hybrid": ("embedding", "text", "graph"),
    "intent": ("intent",),
}


@dataclass(frozen=True)
class GoalMapping:
    """The effect of a word in a goal: edge types to follow, and dimensions whose mean is added to the intent
    retriever.
    """

    boost_types: tuple[str, ...]
    dimension_boosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.boost_types and not self.dimension_boosts:
            problem = "a goal mapping names an edge type or a dimension"
            raise BadInput(f"{problem}; an empty one would change nothing")


@dataclass(frozen=True)
class RetrievalConfig(CheckedRecord):
    """The configuration of `intent_search`. Raises BadInput and UnknownName for invalid values.

    `weights` is the name of a preset or Weights, which are divided by their sum. `methods`: "hybrid" enables
    the dense, text and graph retrievers, "intent" that of intent. The neighbours of the first `expanded`
    nodes within `expand_depth` edges are returned, 0 for none. Without `boost_types` the graph retriever
    follows all edges, or those of a goal mapping whose word is in the query. Filters select nodes before they
    are scored. If no word of the query is found, what is found by meaning counts from a cosine of `min_cosine` of
    the best node on.
    """

    weights: str | Weights = "default"
    methods: tuple[RetrievalMethod, ...] = ("hybrid", "intent")
    limit: int = bounded(10, 1)
    expand_depth: int = 1
    expanded: int = 3
    boost_types: tuple[str, ...] | None = None
    dimension_filters: Filters = field(default_factory=dict)
    goal_mappings: Mapping[str, GoalMapping] = field(default_factory=dict)
    intent_threshold: float = 0.3
    min_cosine: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.methods:
            known = " and ".join(_RETRIEVERS_BY_METHOD)
            raise BadInput(f"methods are a list of {known}, not {self.methods!r}")
        require_known("method of retrieval", _RETRIEVERS_BY_METHOD, *self.methods)
        normalised_weights(self.weights, *self.retrievers)
        if self.dimension_filters:
            validate_filters(self.dimension_filters)

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers that the methods enable."""
        return tuple(retriever for method in self.methods for retriever in _RETRIEVERS_BY_METHOD[method])

    def goal_mapping_for(self, query: str) -> tuple[str, GoalMapping] | None:
        """Return the first goal mapping whose word is in a query in any inflection, or None."""
        query_stems = {stem(word) for word in name_tokens(query)}
        for word, mapping in self.goal_mappings.items():
            if {stem(token) for token in name_tokens(word)} <= query_stems:
                return word, mapping
        return None
