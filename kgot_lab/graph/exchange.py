"""Lossless conversion of graphs to and from NetworkX and pandas, and conversion to igraph and pyvis."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from kgot_lab.errors import BadInput, describe_value, needs_extra, require_parts, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import encode, encoded_size, encoded_width, node_caption
from kgot_lab.graph.validation import MAX_NESTING
from kgot_lab.text.cleaning import printable_line
from kgot_lab.types import Edge, Json, Node, Triple

if TYPE_CHECKING:
    import igraph
    import networkx as nx
    import pandas as pd
    from pyvis.network import Network

NODE_FIELDS = frozenset({"label", "labels"})
EDGE_FIELDS = frozenset({"relation"})
NODE_COLUMNS = frozenset({"id", "labels"})
EDGE_COLUMNS = frozenset({"source", "type", "target", "key"})
TYPE_ATTRIBUTES = ("relation", "relationship", "label", "type")
UNTYPED = "related_to"
MAX_PYVIS_NODES = 2_000
_PYVIS_SHAPES = {0: "dot", 4: "square", 3: "triangle", 6: "hexagon", 5: "star"}  # by corners
# which pyvis fetches even so
_BOOTSTRAP = re.compile(r"<(link|script)\s[^>]*/bootstrap@[^>]*>(\s*</script>)?")


# --- NetworkX ---


def to_networkx(graph: PropertyGraph) -> nx.MultiDiGraph[str]:
    """Convert a graph to a MultiDiGraph.

    Nodes have the attribute `label` (and `labels` if there are several). The key of an edge is type or
    type#key, and its attribute `relation` is the type. A property with one of these names gets a trailing
    underscore. Raises BadInput if two edges would get the same key.
    """
    import networkx as nx

    multigraph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for node in graph.nodes:
        multigraph.add_node(node.id)
        attributes = escape_reserved(node.properties, NODE_FIELDS) | _label_attributes(node.labels)
        multigraph.nodes[node.id].update(attributes)
    for edge in graph.edges:
        key = f"{edge.type}#{edge.key}" if edge.key else edge.type
        if multigraph.has_edge(edge.source, edge.target, key):
            problem = f"two edges from {edge.source!r} to {edge.target!r} would have the NetworkX key {key!r}"
            raise BadInput(f"{problem}; rename one type or key")
        multigraph.add_edge(edge.source, edge.target, key)
        attributes = escape_reserved(edge.properties, EDGE_FIELDS) | {"relation": edge.type}
        multigraph.edges[edge.source, edge.target, key].update(attributes)
    return multigraph


def from_networkx(graph: nx.Graph[Any]) -> PropertyGraph:
    """Convert any NetworkX graph.

    Ids become text, values JSON, and undirected edges keep the direction in which they are listed. Labels come from
    `labels` and `label`. The type of an edge is the first text among relation, relationship, label and type,
    else its key if that is a text but no number, else "related_to". Raises BadInput if two ids have the same text, such as
    1 and "1".
    """
    require_parts(graph, ("nodes", "edges", "is_multigraph"), "from_networkx takes a NetworkX graph")
    ids_by_text: dict[str, Any] = {}
    for id in graph:
        if id != ids_by_text.setdefault(str(id), id):
            raise BadInput(f"the ids {id!r} and {ids_by_text[str(id)]!r} have the same text; rename one")
    nodes = list[Node]()
    for id, data in graph.nodes(data=True):
        nodes.append(Node(str(id), _read_labels(data), unescape_reserved(data, NODE_FIELDS)))
    converted = PropertyGraph.of(nodes, _edges_with_keys(_keyed_edges(graph)))
    return replace(converted, undirected=not graph.is_directed())


def _label_attributes(labels: tuple[str, ...]) -> dict[str, Json]:
    """Return the label attributes of a node.

    `label` is the first of `labels`, since most code reads only `label`.
    """
    first = {"label": labels[0]} if labels else {}
    return first | ({"labels": list(labels)} if len(labels) > 1 else {})


def _read_labels(data: Mapping[Any, Any]) -> tuple[str, ...]:
    """Read the labels of a node from its attributes.

    A `label` that is not among `labels` was set later and replaces the first.
    """
    single, several = _text_tuple(data.get("label")), _text_tuple(data.get("labels"))
    return several if set(single) <= set(several) else (*single, *several[1:])


def _text_tuple(value: Any) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    return tuple(map(str, value)) if isinstance(value, list | tuple | set | frozenset) else (str(value),)


def _keyed_edges(graph: Any) -> Iterator[tuple[Any, Any, Any, Mapping[Any, Any]]]:
    if graph.is_multigraph():
        yield from graph.edges(keys=True, data=True)
    else:
        yield from ((source, target, 0, data) for source, target, data in graph.edges(data=True))


def _edges_with_keys(edges: Iterable[tuple[Any, Any, Any, Mapping[Any, Any]]]) -> Iterator[Edge]:
    """Yield edges with keys only where needed.

    NetworkX numbers parallel edges regardless of type.
    """
    taken: set[tuple[str, str, str, str]] = set()
    for source, target, nx_key, data in edges:
        texts = {name: data.get(name) for name in TYPE_ATTRIBUTES}
        attribute = next((name for name, text in texts.items() if isinstance(text, str) and text), None)
        # a number in a file is a text
        is_type = isinstance(nx_key, str) and nx_key and not nx_key.isdecimal()
        type = data[attribute] if attribute else nx_key if is_type else UNTYPED
        others = {name: value for name, value in data.items() if name != attribute}
        properties = unescape_reserved(others, EDGE_FIELDS, drop=False)
        own = "" if isinstance(nx_key, int) or nx_key == type else str(nx_key).removeprefix(f"{type}#")
        keys = chain((own, str(nx_key)), (f"{nx_key}.{n}" for n in count(2)))
        candidates = (Edge(str(source), type, str(target), properties, key) for key in keys)
        edge = next(candidate for candidate in candidates if candidate.identity not in taken)
        taken.add(edge.identity)
        yield edge


# --- pandas ---


def to_pandas(graph: PropertyGraph) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Convert a graph to a data frame of nodes and one of edges.

    Nodes have the columns id and labels, edges have source, type, target and key. Both have a column for each
    property. A missing property is NaN: one that is NaN, which is not JSON, does not come back. A property named
    like one of these columns gets a trailing underscore.
    """
    import pandas as pd

    parts = ["source", "type", "target", "key"]
    rows = ((node.id, node.labels, escape_reserved(node.properties, NODE_COLUMNS)) for node in graph.nodes)
    nodes = [{"id": id, "labels": labels, **properties} for id, labels, properties in rows]
    ends = (dict(zip(parts, edge.identity, strict=True)) for edge in graph.edges)
    properties = (escape_reserved(edge.properties, EDGE_COLUMNS) for edge in graph.edges)
    edges = [{**own, **others} for own, others in zip(ends, properties, strict=True)]
    node_frame = pd.DataFrame(nodes, columns=_columns(nodes, ["id", "labels"]), dtype=object)
    return node_frame, pd.DataFrame(edges, columns=_columns(edges, parts), dtype=object)


def from_pandas(nodes: pd.DataFrame, edges: pd.DataFrame) -> PropertyGraph:
    """Convert a data frame of nodes (column id) and one of edges (columns source and target) to a graph.

    An id of 2.0 becomes 2, since pandas turns integers into floats. Labels may be a list or one text in
    `labels` or `label`. The type may be in `type` or `relation`, else it is "related_to". All other columns
    are properties, omitted where they are missing. Raises BadInput for a missing or duplicate column, and for
    a dangling edge.
    """
    _require_columns(nodes, {"id"}, "nodes")
    _require_columns(edges, {"source", "target"}, "edges")
    label = "labels" if "labels" in nodes else "label"
    type = "type" if "type" in edges else "relation"
    graph_nodes, graph_edges = list[Node](), list[Edge]()
    for row in _row_dicts(nodes):
        labels, properties = _text_tuple(row.pop(label, None)), unescape_reserved(row, NODE_COLUMNS)
        graph_nodes.append(Node(_cell_text(row, "id"), labels, properties))
    for row in _row_dicts(edges):
        ends = (_cell_text(row, "source"), _cell_text(row, "target"))
        source, kind, target = ends[0], _cell_text(row, type, UNTYPED), ends[1]
        others, key = {name: each for name, each in row.items() if name != type}, _cell_text(row, "key", "")
        graph_edges.append(Edge(source, kind, target, unescape_reserved(others, EDGE_COLUMNS), key))
    return PropertyGraph.of(graph_nodes, graph_edges)


def _columns(rows: list[dict[str, Json]], first: list[str]) -> list[str]:
    return list(dict.fromkeys([*first, *(name for row in rows for name in row)]))


def _require_columns(frame: pd.DataFrame, columns: set[str], what: str) -> None:
    require_parts(frame, ("columns", "to_dict"), f"the {what} are a pandas data frame")
    require_distinct_columns(frame.columns, what)
    missing = columns - set(frame.columns)
    if missing:
        problem = f"the data frame of {what} has no column {', '.join(sorted(missing))}"
        raise BadInput(f"{problem}; it has {', '.join(map(str, frame.columns))}")


def _row_dicts(frame: pd.DataFrame) -> Iterator[dict[str, Json]]:
    import pandas as pd

    for row in frame.to_dict("records"):
        yield {
            str(name): value
            for name, value in row.items()
            if value is None or not pd.api.types.is_scalar(value) or not pd.isna(value)
        }


def _cell_text(row: Mapping[str, Json], name: str, default: str | None = None) -> str:
    value = row.get(name)
    if value is None and default is None:
        raise BadInput(f"a row of the data frame has no {name}: {dict(row)}")
    return str(default) if value is None else id_text(value)


def id_text(value: object) -> str:
    """Convert an id to text, with a whole float as an integer.

    pandas makes floats of an integer column with gaps.
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def require_distinct_columns(names: Iterable[object], what: str) -> None:
    """Raise BadInput if two columns of a data frame have the same name."""
    if duplicates := [name for name, times in Counter(names).items() if times > 1]:
        problem = f"two columns of the data frame of {what} are called {short_repr(duplicates[0])}"
        raise BadInput(f"{problem}; rename or drop one")


# --- igraph and pyvis ---


def to_igraph(graph: PropertyGraph, *, directed: bool = True) -> igraph.Graph:
    """Convert a graph to an igraph graph, `directed` or not, with all edges and the attributes of `to_networkx`.

    The attribute id of a vertex is its id (a property id becomes id_), and so is name where no node has a property
    of that name. Raises NotInstalled if igraph is missing.
    """
    with needs_extra("lab", "igraph"):
        import igraph
    multigraph = to_networkx(graph)
    for _, attributes in multigraph.nodes(data=True):
        if "id" in attributes:
            attributes["id_"] = attributes.pop("id")
    converted = igraph.Graph.from_networkx(multigraph, vertex_attr_hashable="id")
    if converted.ecount():
        del converted.es["_nx_multiedge_key"]  # igraph's own note of the key
    if "name" not in converted.vs.attributes():
        converted.vs["name"] = converted.vs["id"]
    return converted if directed else converted.as_undirected(mode="each")


def to_pyvis(
    graph: PropertyGraph, *, color: str = "", size: str = "", width: str = "", directed: bool = True
) -> Network:
    """Convert a graph to a pyvis Network with the colours, sizes and texts of `show_graph`, and arrows if `directed`.

    Its page holds all its scripts and asks for nothing from outside. `color`, `size` and `width` are as for
    `encoding.encode`. Raises NotInstalled if pyvis is missing, and BadInput for more nodes than it can draw.
    """
    with needs_extra("lab", "pyvis"):
        from pyvis.network import Network
    if len(graph) > MAX_PYVIS_NODES:
        problem = f"pyvis draws each of {len(graph):,} nodes by itself, a browser at most {MAX_PYVIS_NODES:,}"
        raise BadInput(f"{problem}: take a part, graph.subgraph(ids), or lab.show(graph), which draws groups")

    class OfflineNetwork(Network):  # type: ignore[misc]
        def generate_html(self, *args: Any, **options: Any) -> str:
            self.html = _BOOTSTRAP.sub("", super().generate_html(*args, **options))
            return self.html

    network = OfflineNetwork("600px", directed=directed, cdn_resources="in_line")
    encoding, has_words = encode(graph, color=color, size=size, width=width), len(graph.types()) > 1
    degrees = np.diff(graph.out_csr.indptr) + np.diff(graph.in_csr.indptr)
    for row, node in enumerate(graph.nodes):
        look, share = encoding.look(node), encoding.sizes.get(node.id, 0.0)
        radius = encoded_size(share, 6, 24) if encoding.sizes else min(17.0, 6 + 2.1 * degrees[row] ** 0.5)
        network.add_node(
            node.id,
            printable_line(node_caption(node)),
            _PYVIS_SHAPES[look.corners],
            {"background": look.colour, "border": "#333333"},
            size=float(radius),
            title=_pyvis_title(encoding.describe(node), node.properties),
        )
    for edge in graph.edges:
        pixels = encoded_width(encoding.widths.get(edge.identity, 0.0)) if encoding.widths else 1.5
        title = _pyvis_title([f"{edge.source} --[{edge.type}]--> {edge.target}"], edge.properties)
        label = {"label": printable_line(edge.type)} if has_words else {}
        network.add_edge(edge.source, edge.target, width=pixels, title=title, color="#777777", **label)
    return network


def _pyvis_title(first: Iterable[str], properties: Mapping[str, Json]) -> str:
    lines = (*first, *(f"{name}: {value}" for name, value in properties.items()))
    # a title with "href" would be shown as HTML by pyvis, no matter who wrote it
    return "\n".join(printable_line(line)[:300] for line in lines).replace("href", "hre\u2060f")


# --- reserved names ---


def escape_reserved(properties: Mapping[str, Json], reserved: frozenset[str]) -> dict[str, Json]:
    """Append an underscore to properties whose name, without trailing underscores, is reserved."""
    return {f"{name}_" if name.rstrip("_") in reserved else name: value for name, value in properties.items()}


def unescape_reserved(
    data: Mapping[Any, Json], reserved: frozenset[str], *, drop: bool = True
) -> dict[str, Json]:
    """Undo `escape_reserved`, and make values of other libraries JSON.

    Properties with a reserved name are removed if `drop`.
    """
    pattern = re.compile(f"({'|'.join(sorted(reserved))})_+")
    items = ((str(name), value) for name, value in data.items() if not (drop and name in reserved))
    return {name[:-1] if pattern.fullmatch(name) else name: plain_value(value) for name, value in items}


def plain_value(value: Any, depth: int = 0) -> Json:
    """Return a value of another library as JSON.

    Numbers and arrays of numpy become those of Python, dates and times ISO text, and decimals numbers, or text if
    no number is exact. Anything else, and what is nested too deeply, is returned as it is.
    """
    if value is None or type(value) in (str, int, float, bool) or depth > MAX_NESTING:
        return value
    if isinstance(value, Mapping):
        return {str(name): plain_value(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each, depth + 1) for each in value]
    if isinstance(value, Decimal):
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, date | time) or hasattr(value, "tolist"):
        return value.isoformat() if hasattr(value, "isoformat") else value.tolist()
    return value


# A graph from a PropertyGraph, NetworkX graph, triples, edges, or a pandas table of edges.

COLUMNS: Mapping[str, tuple[str, ...]] = {  # the accepted column names of a table of edges, ours first
    "source": ("source", "subject", "from", "head", "start", "src", "node1", "caller", "parent"),
    "type": ("type", "relation", "relationship", "predicate", "label", "edge", "rel"),
    "target": tuple("target object to tail end dst destination node2 tgt callee child".split()),
}


def is_networkx(value: object) -> bool:
    """Return whether an object is a NetworkX graph, without importing NetworkX."""
    return _is_instance(value, "networkx", "Graph")


def is_data_frame(value: object) -> bool:
    """Return whether an object is a pandas data frame."""
    return _is_instance(value, "pandas", "DataFrame")


def _is_instance(value: object, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def from_edge_list(edges: pd.DataFrame) -> PropertyGraph:
    """Convert a data frame with a row for each edge, in columns source, target and optionally type.

    COLUMNS lists other accepted column names, in any case. All other columns are properties. Without a type
    an edge is "related_to". Raises BadInput if source or target is missing, naming the columns there are, and
    for a row without an end.
    """
    import pandas as pd

    require_distinct_columns(edges.columns, "edges")
    renamed = edges.rename(columns={column: name for name, column in _edge_columns(edges).items()})
    require_distinct_columns(renamed.columns, "edges")  # "Source" and "source"
    ends = pd.concat([renamed[end].astype(object) for end in ("source", "target")])
    return from_pandas(pd.DataFrame({"id": ends.dropna().map(id_text).drop_duplicates()}), renamed)


def _edge_columns(edges: pd.DataFrame) -> dict[str, Any]:
    """Find the column of the data frame for each of source, target and type."""
    by_name = {str(column).strip().lower(): column for column in edges.columns}
    found = {ours: next((by_name[n] for n in names if n in by_name), None) for ours, names in COLUMNS.items()}
    if found["source"] is None or found["target"] is None:
        present = ", ".join(map(str, islice(edges.columns, 8)))
        problem = "a table of edges needs a column source, a column target and perhaps a column type"
        raise BadInput(f"{problem}; this one has {present or 'none'}")
    return {ours: column for ours, column in found.items() if column is not None}


def looks_like_triple(value: object) -> bool:
    """Return whether an object is a Triple, or a tuple or list meant as one.

    from_triples says what is wrong with it.
    """
    return isinstance(value, Triple | tuple | list)


GRAPH_KINDS = "a PropertyGraph, a NetworkX graph, triples (subject, relation, object), edges, or a pandas table of edges"


def as_graph(value: object) -> PropertyGraph:
    """Convert a NetworkX graph, triples, edges or a data frame of edges to a PropertyGraph.

    A PropertyGraph is returned unchanged. Raises BadInput for anything else.
    """
    if isinstance(value, PropertyGraph):
        return value
    if is_networkx(value):
        return from_networkx(value)  # type: ignore[arg-type]
    if is_data_frame(value):
        return from_edge_list(value)  # type: ignore[arg-type]
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        items: Sequence[Any] = value if isinstance(value, Sequence) else list(value)
        if items and looks_like_triple(items[0]):
            return PropertyGraph.from_triples(items)
        if items and isinstance(items[0], Edge):
            return PropertyGraph.of((), items, dangling="add")
        if not items:
            raise BadInput(f"this {type(value).__name__} is empty: a graph is {GRAPH_KINDS}")
    raise BadInput(f"a graph is {GRAPH_KINDS}; this is {describe_value(value)}")
