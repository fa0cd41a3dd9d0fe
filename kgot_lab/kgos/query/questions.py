"""The named questions to a graph, with their arguments and help texts, in the groups of the old toolkit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, require
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods import overview, selection
from kgot_lab.kgos.methods.centrality import PACKAGE_LABEL, Metric, critical_components
from kgot_lab.kgos.methods.compose_for import compose_for
from kgot_lab.kgos.methods.dimensions import dimension_filter, dimension_profile
from kgot_lab.kgos.methods.formatting import MethodResult, NodesFound, TableFound
from kgot_lab.kgos.methods.goals import can_it, want_to
from kgot_lab.kgos.methods.impact_analysis import FollowMode, ImpactDirection, impact_analysis
from kgot_lab.kgos.methods.index import graph_index, resolve_node
from kgot_lab.kgos.methods.overview import pattern_to_code
from kgot_lab.kgos.methods.ranking import keyword_match, similar_to
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.search.multi_graph import MultiGraph
from kgot_lab.kgos.methods.traversal import explore_smart, trace_path
from kgot_lab.kgos.schemas.dimensions import DIMENSIONS
from kgot_lab.kgos.schemas.extracted_dimensions import NOT_EXTRACTABLE, extract_dimensions
from kgot_lab.retrieval.fusion import WEIGHT_PRESETS
from kgot_lab.retrieval.neighbours import neighbour_steps

MIN_COSINE = 0.3  # of a query without a known word; one of made-up words gets less with all-MiniLM
AskGraph = Callable[..., MethodResult]
_Node = Annotated[str, "a node, by its id, its name or the end of its id"]
_Other = Annotated[str, "the node beside it"]
_Limit = Annotated[int, "how many nodes at most"]
_Count = Annotated[int, "how many nodes"]
_Depth = Annotated[int, "how many edges away"]
_Metric = Annotated[Metric, "by which measure"]
_Types = Annotated[list[str] | None, "only nodes of this type; repeat for more"]
_EdgeTypes = Annotated[list[str] | None, "only edges of this type; repeat for more"]


class Parameter(NamedTuple):
    """An argument of a question. `default` is inspect.Parameter.empty if it is required."""

    name: str
    type: Any
    help: str
    default: Any


@dataclass(frozen=True)
class GraphQuestion:
    """A question with its name, its group, and the function of a graph and arguments that answers it."""

    name: str
    group: str
    ask: AskGraph

    @property
    def help(self) -> str:
        """What it asks, in a sentence."""
        return (inspect.getdoc(self.ask) or "").split("\n\n")[0].replace("\n", " ")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its arguments but the graph and the embedder, in their order."""
        hints = get_type_hints(self.ask, include_extras=True)
        found = []
        for name, parameter in list(inspect.signature(self.ask).parameters.items())[1:]:
            if name == "embedder":
                continue
            annotated = get_origin(hints[name]) is Annotated
            type, help_text = get_args(hints[name])[:2] if annotated else (hints[name], "")
            found.append(Parameter(name, type, help_text, parameter.default))
        return tuple(found)

    @property
    def takes_embedder(self) -> bool:
        """Whether `ask` takes the keyword `embedder`, to answer by meaning too."""
        return "embedder" in inspect.signature(self.ask).parameters


_QUESTIONS: dict[str, GraphQuestion] = {}
_GROUPS_OF_EDGES = ("exploration", "analysis")


def _question(group: str) -> Callable[[AskGraph], AskGraph]:
    def note(ask: AskGraph) -> AskGraph:
        @wraps(ask)
        def answer(*given: Any, **named: Any) -> MethodResult:
            try:
                graph = inspect.signature(ask).bind(*given, **named).arguments["graph"]
            except TypeError as error:
                takes = ", ".join(inspect.signature(ask).parameters)
                raise BadInput(f"the question {name!r} takes {takes}: {error}") from None
            require(graph, (PropertyGraph, MultiGraph), "a question is asked of a PropertyGraph")
            return _with_calls_note(graph, ask(*given, **named), of_edges=group in _GROUPS_OF_EDGES)

        name = ask.__name__.strip("_").replace("_", "-")
        _QUESTIONS[name] = GraphQuestion(name, group, answer)
        return ask

    return note


def _with_calls_note(graph: PropertyGraph | MultiGraph, result: MethodResult, of_edges: bool) -> MethodResult:
    """Return an answer that tells how many calls of code are known, as others may hide what was looked for."""
    note = graph_index(graph.graph if isinstance(graph, MultiGraph) else graph).calls_note
    if not note or note in result.why:
        return result
    if of_edges and not result.rows():
        note += "; an unresolved call may hide one"
    return replace(result, why=(*result.why, note))  # type: ignore[type-var]


# --- discovery ---


@_question("discovery")
def _find(
    graph: PropertyGraph,
    words: Annotated[str, "words, any of which a text of the node holds"],
    limit: _Limit = 20,
) -> MethodResult:
    """The nodes whose texts contain some words exactly."""
    return keyword_match(graph, words, limit)


@_question("discovery")
def _search(
    graph: PropertyGraph | MultiGraph,
    query: Annotated[str, "what is looked for, in plain words"],
    limit: _Limit = 10,
    weights: Annotated[
        str, f"a preset of the weights of meaning, words, edges and intent: {', '.join(WEIGHT_PRESETS)}"
    ] = "default",
    *,
    embedder: Embedder | None = None,
) -> MethodResult:
    """The nodes that answer a query, by words, meaning, edges and intent, with further methods that the query calls for."""
    config = RetrievalConfig(limit=limit, weights=weights, min_cosine=MIN_COSINE)
    return intent_search(graph, query, config=config, embedder=embedder)


@_question("discovery")
def _emerge(graph: PropertyGraph, limit: Annotated[int, "how many clusters at most"] = 20) -> MethodResult:
    """The clusters that emerge from the edges, with the words that distinguish each."""
    return overview.find_clusters(graph, most=limit)


@_question("discovery")
def _discover(graph: PropertyGraph, each: Annotated[int, "how many nodes of each type"] = 3) -> MethodResult:
    """Where to start in an unknown graph: the nodes of each type with most incoming edges."""
    return overview.starting_points(graph, each=each)


@_question("discovery")
def _stats(graph: PropertyGraph) -> MethodResult:
    """How many nodes and edges of each type, how many connected components, and the node of highest degree."""
    return overview.overview(graph)


@_question("discovery")
def _schema(graph: PropertyGraph) -> MethodResult:
    """Which types of nodes each type of edge links, and how often."""
    return overview.observed_schema(graph)


# one argument for each filter of the toolkit's --list
@_question("discovery")
def _list(
    graph: PropertyGraph,
    type: _Types = None,
    edge_type: Annotated[list[str] | None, "only nodes with an edge of this type"] = None,
    min_edges: Annotated[int, "only nodes with so many edges or more"] = 0,
    max_edges: Annotated[int | None, "only nodes with so many edges or fewer"] = None,
    property: Annotated[list[str] | None, "only nodes with this value: NAME=VALUE"] = None,
    has_property: Annotated[list[str] | None, "only nodes that have this property"] = None,
    dimension: Annotated[
        list[str] | None,
        "only nodes within these bounds of a dimension: NAME=LOW..HIGH, NAME>=LOW or NAME<=HIGH",
    ] = None,
    limit: Annotated[int | None, "how many nodes at most"] = None,
) -> MethodResult:
    """The nodes that pass all filters."""
    pairs = dict(_parse_pair(each, "--property NAME=VALUE") for each in property or ())
    within = dict(_parse_bounds(each) for each in dimension or ())
    return selection.select_nodes(
        graph,
        types=type or (),
        edge_types=edge_type or (),
        min_edges=min_edges,
        max_edges=max_edges,
        properties=pairs,
        has_property=has_property or (),
        dimensions=within or None,
        limit=limit,
    )


@_question("discovery")
def _random(
    graph: PropertyGraph, number: _Count = 5, type: _Types = None, seed: Annotated[int, "another draw"] = 0
) -> MethodResult:
    """Some nodes, drawn at random."""
    return selection.select_nodes(graph, types=type or (), sample=number, seed=seed)


# --- intent ---


@_question("intent")
def _want_to(
    graph: PropertyGraph,
    goal: Annotated[str, "what is to be reached"],
    limit: _Limit = 10,
    follow: Annotated[list[str] | None, "follow this type of edge instead"] = None,
) -> MethodResult:
    """What helps to reach a goal, and what that requires."""
    return want_to(graph, goal, limit, boost_types=follow)


@_question("intent")
def _can_it(
    graph: PropertyGraph,
    capability: Annotated[str, "what is asked for"],
    *,
    embedder: Embedder | None = None,
) -> MethodResult:
    """Whether something can be done: yes, yes with limitations, no or unknown, with workarounds."""
    return can_it(graph, capability, embedder=embedder)


@_question("intent")
def _why_not(
    graph: PropertyGraph,
    capability: Annotated[str, "what does not work"],
    *,
    embedder: Embedder | None = None,
) -> MethodResult:
    """What prevents something: its limitations, the blocking ones first, and their workarounds."""
    found = can_it(graph, capability, embedder=embedder)
    rows = sorted(found.limitations, key=lambda limitation: (not limitation.blocking, limitation.id))
    why = (f"can it {capability!r}: {found.status}", *found.why)
    title = f"in the way of {capability!r}: {len(rows)}"
    return TableFound(title, found.COLUMNS, tuple(rows), why, tuple(found.ids))


@_question("intent")
def _how_does(graph: PropertyGraph, node: _Node, depth: _Depth = 2) -> MethodResult:
    """How something works: what it is linked to, important nodes first, level by level."""
    return explore_smart(graph, resolve_node(graph, node), depth=depth)


@_question("intent")
def _compose_for(
    graph: PropertyGraph,
    goal: Annotated[str, "what is to be done, in parts"],
    limit: Annotated[int, "how many steps at most"] = 5,
) -> MethodResult:
    """A plan for a goal: steps that fit together, what they require, what conflicts, and other ways."""
    return compose_for(graph, goal, max_tools=limit)


@_question("intent")
def _alternatives(graph: PropertyGraph, node: _Node, limit: _Limit = 10) -> MethodResult:
    """What can replace a node, because an edge says so or because it does the same."""
    return selection.find_alternatives(graph, resolve_node(graph, node), limit=limit)


@_question("intent")
def _optimize_for(
    graph: PropertyGraph,
    goal: Annotated[str, "what is to become better, such as cost or latency"],
    limit: _Limit = 10,
) -> MethodResult:
    """What makes something better: what optimizes, reduces or enables it."""
    types = [each for each in ("optimizes", "reduces", "enables") if each in graph.types()]
    return want_to(graph, goal, limit, boost_types=types or None)


# --- exploration ---


@_question("exploration")
def _trace(
    graph: PropertyGraph,
    node: _Node,
    other: Annotated[str, "the node where the path ends"],
    max_depth: Annotated[int, "how many edges at most"] = 5,
    edge_type: _EdgeTypes = None,
    directed: Annotated[bool, "only along the arrows"] = False,
) -> MethodResult:
    """The shortest path between two nodes; not through packages that both use, which says nothing about the two."""
    ends = resolve_node(graph, node), resolve_node(graph, other)
    labels = zip(graph.ids, graph.node_labels, strict=True)
    inside = [id for id, node_labels in labels if PACKAGE_LABEL not in node_labels or id in ends]
    within = graph if len(inside) == len(graph) else graph.subgraph(inside)
    return trace_path(within, *ends, max_depth=max_depth, types=edge_type, directed=directed)


@_question("exploration")
def _related(
    graph: PropertyGraph,
    node: _Node,
    edge_type: _EdgeTypes = None,
    limit: Annotated[int | None, "how many edges at most"] = None,
) -> MethodResult:
    """The edges of a node, and where each occurs in a text or in code."""
    row = resolve_node(graph, node)
    return selection.list_related_nodes(graph, row, edge_types=edge_type or (), limit=limit)


@_question("exploration")
def _dependencies(graph: PropertyGraph, node: _Node, max_depth: _Depth = 3) -> MethodResult:
    """What a node depends on, level by level."""
    return _impact(graph, node, "backward", max_depth)


@_question("exploration")
def _used_by(graph: PropertyGraph, node: _Node, max_depth: _Depth = 3) -> MethodResult:
    """What depends on a node, level by level."""
    return _impact(graph, node, "forward", max_depth)


@_question("exploration")
def _explore(graph: PropertyGraph, node: _Node, depth: _Depth = 2) -> MethodResult:
    """What is around a node, important nodes first, hubs marked."""
    return explore_smart(graph, resolve_node(graph, node), depth=depth)


# --- analysis ---


@_question("analysis")
def _impact(
    graph: PropertyGraph,
    node: _Node,
    direction: Annotated[ImpactDirection, "what the change reaches, what reaches it, or both"] = "forward",
    max_depth: _Depth = 3,
    follow: Annotated[
        FollowMode, "along arrows, or by what types of edges say depends on what"
    ] = "dependants",
    risk_threshold: Annotated[float, "only nodes of at least this risk, from 0 to 1"] = 0.0,
) -> MethodResult:
    """What a change of a node affects, with risks and the riskiest chain."""
    id = resolve_node(graph, node)
    found = impact_analysis(graph, id, direction=direction, max_depth=max_depth, follow=follow)
    if risk_threshold <= 0:
        return found
    rows = tuple(node for node in found.nodes if node.risk >= risk_threshold)
    title = f"{found.title}; {len(rows)} of risk {risk_threshold:g} or more"
    return TableFound(title, found.COLUMNS, rows, found.why, (id, *(row.id for row in rows)))


@_question("analysis")
def _critical(
    graph: PropertyGraph, metric: _Metric = "priority", top_k: _Count = 10, type: _Types = None
) -> MethodResult:
    """The nodes that most depends on: what to test and review first."""
    return critical_components(graph, metric=metric, top_k=top_k, types=type or ())


@_question("analysis")
def _bottleneck(graph: PropertyGraph, top_k: _Count = 10, type: _Types = None) -> MethodResult:
    """The nodes whose removal would disconnect most others."""
    return _critical(graph, "bottleneck", top_k, type)


@_question("analysis")
def _risk(graph: PropertyGraph, top_k: _Count = 10, type: _Types = None) -> MethodResult:
    """The nodes whose change most others depend on directly."""
    return _critical(graph, "dependants", top_k, type)


@_question("analysis")
def _coverage(graph: PropertyGraph) -> MethodResult:
    """For each type, the share that is described, documented, tested and follows a pattern."""
    return overview.measure_coverage(graph)


@_question("analysis")
def _gaps(graph: PropertyGraph, limit: Annotated[int, "how many nodes of each kind"] = 20) -> MethodResult:
    """What the graph lacks: descriptions, edges, workarounds, code of a pattern, callers."""
    return overview.find_gaps(graph, most=limit)


@_question("analysis")
def _pattern_code(
    graph: PropertyGraph,
    pattern: Annotated[str, "only this pattern, by id or name"] = "",
    source_file: Annotated[str, "only code in this file or folder"] = "",
) -> MethodResult:
    """Which code follows which pattern, with file and line."""
    return pattern_to_code(graph, pattern, source_file=source_file)


# --- ranking ---


@_question("ranking")
def _recommend(graph: PropertyGraph, node: _Node, limit: _Limit = 10) -> MethodResult:
    """What fits a node and is not linked to it yet: what its neighbours are linked to, rare neighbours weighing more.

    The score is the sum over common neighbours of 1 / log2(1 + their neighbours) (after Adamic & Adar 2003).
    """
    index = graph_index(graph)
    id = resolve_node(graph, node)
    row, near = graph.row(id), index.neighbours
    own = np.sort(near.indices[near.indptr[row] : near.indptr[row + 1]])
    steps, owners = neighbour_steps(near, own)
    others = near.indices[steps]
    rarity = 1 / np.log2(1 + index.degrees[own[owners]])
    scores = np.bincount(others, rarity, minlength=len(graph)).astype(np.float64)
    scores[own] = scores[row] = 0.0
    best = index.rows_by_score(scores)[:limit].tolist()
    through = ([index.names[own[at]] for at in owners[others == each][:3]] for each in best)
    hits = index.hits(best, scores[best].tolist(), (f"through {', '.join(names)}" for names in through))
    why = "what common neighbours are joined with, rare ones weighing more"
    return NodesFound(f"recommended beside {id}", hits, (why,))


@_question("ranking")
def _similar_to(graph: PropertyGraph, node: _Node, limit: _Limit = 10) -> MethodResult:
    """The nodes most like one, by neighbours, type and name."""
    return similar_to(graph, resolve_node(graph, node), limit)


@_question("ranking")
def _rank(
    graph: PropertyGraph, metric: _Metric = "pagerank", top_k: _Count = 10, type: _Types = None
) -> MethodResult:
    """The nodes in the order of a measure."""
    return _critical(graph, metric, top_k, type)


_QUESTIONS["explore-smart"] = replace(_QUESTIONS["explore"], name="explore-smart", group="ranking")


# --- dimensions ---


@_question("dimensions")
def _score_dimensions(graph: PropertyGraph, node: _Node) -> MethodResult:
    """The values that a node has on the 56 dimensions, with what low and high mean."""
    index = graph_index(graph)
    id = resolve_node(graph, node)
    node_properties = graph.node_properties[graph.row(id)]
    rows = tuple(
        (dimension.name, dimension.category, value, dimension.low, dimension.high)
        for dimension in DIMENSIONS
        if isinstance(value := node_properties.get(dimension.name), int | float)
        and not isinstance(value, bool)
    )
    why = () if rows else ("it has none; auto-dimensions computes those that texts and edges tell",)
    title = f"dimensions of {index.names[graph.row(id)]}: {len(rows)}"
    return TableFound(title, ("dimension", "category", "value", "low", "high"), rows, why, (id,))


@_question("dimensions")
def _dimension_profile(graph: PropertyGraph, node: _Node, other: _Other) -> MethodResult:
    """Two nodes side by side on all dimensions that one of them has."""
    return dimension_profile(graph, resolve_node(graph, node), resolve_node(graph, other))


@_question("dimensions")
def _compare_dimensions(graph: PropertyGraph, node: _Node, other: _Other) -> MethodResult:
    """The dimensions on which two nodes differ most."""
    found = dimension_profile(graph, resolve_node(graph, node), resolve_node(graph, other))
    both = (row for row in found.rows() if row[4] is not None)
    rows = sorted(both, key=lambda row: (-abs(float(str(row[4]))), str(row[0])))
    return TableFound(found.title, found.COLUMNS, tuple(rows), found.why, tuple(found.ids))


@_question("dimensions")
def _dimension_range(
    graph: PropertyGraph,
    bounds: Annotated[list[str], "NAME=LOW..HIGH, NAME>=LOW or NAME<=HIGH; several are all asked for"],
    limit: _Limit = 20,
) -> MethodResult:
    """The nodes whose values lie within bounds."""
    return dimension_filter(graph, dict(map(_parse_bounds, bounds)), limit=limit)


@_question("dimensions")
def _auto_dimensions(graph: PropertyGraph, node: Annotated[str, "only of this node"] = "") -> MethodResult:
    """Dimensions computed from texts and edges: of one node, or how many nodes have each."""
    found = extract_dimensions(graph)
    silent = f"not extractable: {', '.join(NOT_EXTRACTABLE)}"
    if node:
        id = resolve_node(graph, node)
        rows: tuple[tuple[Any, ...], ...] = tuple(found.of(id).items())
        title = f"computed dimensions of {id}: {len(rows)}"
        return TableFound(title, ("dimension", "value"), rows, (silent,), (id,))
    known = {name: values[~np.isnan(values)] for name, values in found.values.items()}
    rows = tuple((name, len(each), round(float(each.mean()), 3)) for name, each in known.items() if len(each))
    return TableFound(f"computed dimensions: {len(rows)}", ("dimension", "nodes", "mean"), rows, (silent,))


QUESTIONS: Mapping[str, GraphQuestion] = _QUESTIONS


def _parse_pair(text: str, form: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise BadInput(f"{form} is asked for, not {text!r}")
    return name.strip(), value.strip()


def _parse_bounds(text: str) -> tuple[str, dict[str, float]]:
    """Parse the bounds of a dimension as they are typed."""
    for sign, of in ((">=", "min"), ("<=", "max")):
        name, found, value = text.partition(sign)
        if found:
            return name.strip(), {of: _parse_number(value, text)}
    name, value = _parse_pair(text, "NAME=LOW..HIGH, NAME>=LOW or NAME<=HIGH")
    low, between, high = value.partition("..")
    if not between:
        return name, {"exact": _parse_number(value, text)}
    bounds = {of: _parse_number(each, text) for of, each in (("min", low), ("max", high)) if each.strip()}
    if not bounds:
        raise BadInput(f"{text!r} has no bound: write NAME=LOW..HIGH")
    return name, bounds


def _parse_number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{text.strip()!r} in {whole!r} is no number") from None
