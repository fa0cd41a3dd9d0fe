"""Describe a graph: counts, types, clusters, starting points, gaps and coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import UnknownName, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.centrality import PACKAGE_LABEL, pagerank, undirected_graph
from kgot_lab.kgos.methods.formatting import TableFound
from kgot_lab.kgos.methods.index import GraphIndex, graph_index
from kgot_lab.kgos.schemas.rules import edge_rows_of_types
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import content_words

PATTERN_LABELS = ("pattern", "design_pattern", "architectural_pattern", "anti_pattern")
_MAX_EXAMPLES = 5  # names or words of a cluster


@check_arguments
def overview(graph: PropertyGraph) -> TableFound:
    """Count nodes and edges by type and connected components, and find the node with most neighbours."""
    index = graph_index(graph)
    rows: list[tuple[str, object]] = [("nodes", len(graph)), ("edges", len(graph.edge_keys))]
    rows += [(f"nodes of type {name}", number) for name, number in graph.labels().items()]
    rows += [(f"edges of type {name}", number) for name, number in graph.types().items()]
    parts = list(nx.connected_components(undirected_graph(graph)))
    rows.append(("connected components", len(parts)))
    rows.append(("nodes of the largest component", max(map(len, parts), default=0)))
    rows.append(("isolated nodes", int((index.degrees == 0).sum())))
    busiest = int(index.degrees.argmax()) if len(graph) else -1
    if busiest >= 0:
        rows.append(("highest degree", f"{graph.ids[busiest]} ({int(index.degrees[busiest])})"))
    title = f"{format_count(len(graph), 'node')}, {format_count(len(graph.edge_keys), 'edge')}"
    return TableFound(title, ("measure", "value"), tuple(rows))


@check_arguments
def observed_schema(graph: PropertyGraph) -> TableFound:
    """Count the edges by edge type and the types of both ends: the schema that the graph has in fact."""
    kinds = graph_index(graph).label_texts
    columns = (each.tolist() for each in (graph.type_codes, graph.sources, graph.targets))
    ends = zip(*columns, strict=True)
    counts = Counter((graph.type_names[code], kinds[source], kinds[target]) for code, source, target in ends)
    rows = tuple((*each, counts[each]) for each in sorted(counts, key=lambda count: (-counts[count], count)))
    title = f"{format_count(len(graph.types()), 'type')} of edges"
    return TableFound(title, ("edge type", "from", "to", "edges"), rows)


@check_arguments
def starting_points(graph: PropertyGraph, *, each: int = 3) -> TableFound:
    """List the nodes with the largest PageRank of each type, to begin with in an unknown graph.

    Packages that are not among the files of a folder are left out if there are other types.
    """
    require_count(each, 1, "each")
    index, rank = graph_index(graph), pagerank(graph)
    rows = []
    for label, numbers in index.rows_by_label.items():
        if label == PACKAGE_LABEL and len(index.rows_by_label) > 1:
            continue
        best = sorted(numbers.tolist(), key=lambda row: (-rank[row], graph.ids[row]))[:each]
        for row in best:
            score, description = round(float(rank[row]), 6), _node_description(graph, row)
            rows.append((graph.ids[row], index.names[row], label, score, description))
    rows.sort(key=lambda row: (-row[3], row[0]))
    columns = ("id", "name", "type", "pagerank", "description")
    return TableFound("where to begin", columns, tuple(rows), (), tuple(row[0] for row in rows))


@check_arguments
def find_clusters(graph: PropertyGraph, *, most: int = 20) -> TableFound:
    """Find communities (Louvain, Blondel et al. 2008), the largest first, with their typical words."""
    require_count(most, 1, "most")
    index, rank = graph_index(graph), pagerank(graph)
    found = nx.community.louvain_communities(undirected_graph(graph), seed=0)
    groups = sorted((sorted(g) for g in found if len(g) > 1), key=lambda g: (-len(g), graph.ids[g[0]]))
    name_words = [set(content_words(name.replace("_", " "))) for name in index.names]
    total_counts = Counter(word for words in name_words for word in words)
    rows, about = [], []
    for group in groups[:most]:
        group_counts = Counter(word for row in group for word in name_words[row])
        shares = {word: count**2 / total_counts[word] for word, count in group_counts.items()}
        words = sorted(shares, key=lambda word: (-shares[word], word))[:_MAX_EXAMPLES]
        first = sorted(group, key=lambda row: (-rank[row], graph.ids[row]))[:_MAX_EXAMPLES]
        rows.append((len(group), ", ".join(words), [graph.ids[row] for row in first]))
        about += [graph.ids[row] for row in first]
    why = (f"{format_count(len(groups), 'cluster')} of two nodes or more",)
    columns = ("nodes", "words", "first")
    return TableFound(f"clusters: {len(rows)}", columns, tuple(rows), why, tuple(dict.fromkeys(about)))


@check_arguments
def find_gaps(graph: PropertyGraph, *, most: int = 20) -> TableFound:
    """List what a graph lacks.

    The gaps are nodes without an edge or a description, limitations without a workaround, patterns without
    code, and code that nothing is known to call. The first `most` of each kind are listed, those with most
    neighbours first; `why` gives the totals.
    """
    require_count(most, 1, "most")
    index = graph_index(graph)
    limiting, followed, called = (
        set(graph.targets[edge_rows_of_types(graph, type)].tolist())
        for type in ("has_limitation", "pattern_instance_of", "calls")
    )
    helped = set(graph.sources[edge_rows_of_types(graph, "has_workaround")].tolist())
    limits = index.targets_by_row("has_limitation")
    relieved = helped.union(*(limits.get(row, ()) for row in helped))
    patterns = rows_with_labels(index, PATTERN_LABELS[:3])
    code = rows_with_labels(index, ("function", "method"))
    found = {
        "no edge": {row for row in range(len(graph)) if index.degrees[row] == 0},
        "no description": {row for row in range(len(graph)) if not _node_description(graph, row)},
        "a limitation without a workaround": limiting - relieved,
        "a pattern that nothing follows": patterns - followed,
        "nothing is known to call it": code - called if called else set(),
    }
    rows, why = [], []
    for kind, numbers in found.items():
        if numbers:
            why.append(f"{kind}: {format_count(len(numbers), 'node')} of {len(graph):,}")
        for row in sorted(numbers, key=lambda row: (-index.degrees[row], graph.ids[row]))[:most]:
            rows.append((*index.identity(row), kind))
    about = tuple(dict.fromkeys(row[0] for row in rows))
    return TableFound(f"gaps: {len(rows)}", ("id", "name", "type", "gap"), tuple(rows), tuple(why), about)


@check_arguments
def measure_coverage(graph: PropertyGraph) -> TableFound:
    """Measure by type the share of nodes that are described, documented, tested and built after a pattern."""
    index = graph_index(graph)
    documented, tested, patterned = set[int](), set[int](), set[int]()
    for row, code in enumerate(graph.type_codes.tolist()):
        type, source, target = graph.type_names[code], int(graph.sources[row]), int(graph.targets[row])
        if type == "documents":
            documented.add(target)
        elif type == "pattern_instance_of":
            patterned.add(source)
        elif type in ("calls", "imports") and _is_test(graph, source) and not _is_test(graph, target):
            tested.add(target)
    rows: list[tuple[Any, ...]] = []
    for label, numbers in index.rows_by_label.items():
        type_rows = set(numbers.tolist())
        described = sum(bool(_node_description(graph, row)) for row in type_rows)
        shares = (described, *(len(type_rows & some) for some in (documented, tested, patterned)))
        rows.append((label, len(type_rows), *(round(share / len(type_rows), 3) for share in shares)))
    rows.sort(key=lambda row: (-row[1], row[0]))
    why = "a test is code in a file or folder whose name says so; what it runs through other code is not counted"
    columns = ("type", "nodes", "described", "documented", "tested", "after a pattern")
    return TableFound("coverage by type", columns, tuple(rows), (why,))


def rows_with_labels(index: GraphIndex, labels: Iterable[str]) -> set[int]:
    """Return the rows of the nodes with one of some labels."""
    return {row for label in labels for row in index.rows_by_label.get(label, np.empty(0, int)).tolist()}


def _is_test(graph: PropertyGraph, row: int) -> bool:
    file = str(graph.node_properties[row].get("file", ""))
    return any(part.startswith("test") for part in file.split("/")) or file.endswith(
        ("_test.py", ".test.js", ".test.ts", ".spec.js", ".spec.ts")
    )


def _node_description(graph: PropertyGraph, row: int) -> str:
    properties = graph.node_properties[row]
    return str(properties.get("description") or properties.get("text") or properties.get("content") or "")


# Map patterns to the code that follows them (KG-OS, the pattern mapper).

_INSTANCE_TYPE = "pattern_instance_of"


@check_arguments
def pattern_to_code(graph: PropertyGraph, pattern: str = "", *, source_file: str = "") -> TableFound:
    """List the code that follows each pattern, or one pattern, with its file, line and evidence.

    With `source_file`, only code in files whose path ends so, or in a folder of this name, is listed. Raises
    UnknownName for an unknown pattern.
    """
    index = graph_index(graph)
    patterns = sorted(rows_with_labels(index, PATTERN_LABELS), key=lambda row: graph.ids[row])
    if pattern:
        wanted = pattern.casefold()
        named = [r for r in patterns if wanted in (graph.ids[r].casefold(), index.names[r].casefold())]
        if not named:
            raise UnknownName("pattern", pattern, [graph.ids[row] for row in patterns])
        patterns = named
    rows, followed = [], set()
    for row in patterns:
        for edge in (e for e in graph.neighbours(graph.ids[row], "in") if e.type == _INSTANCE_TYPE):
            at = graph.row(edge.source)
            code_properties = graph.node_properties[at]
            file = str(code_properties.get("file", ""))
            if not (file.endswith(source_file) or file.startswith(source_file.rstrip("/") + "/")):
                continue
            followed.add(row)
            location = f"{file}:{code_properties.get('line', '')}".strip(":")
            shows = str(edge.properties.get("why", ""))
            kind = index.label_texts[at]
            rows.append((graph.ids[row], index.names[row], edge.source, kind, location, shows))
    rows.sort(key=lambda row: (row[0], row[4], row[2]))
    why = [f"{len(followed)} of {format_count(len(patterns), 'pattern')} are followed in the code"]
    if missing := [graph.ids[row] for row in patterns if row not in followed]:
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        why.append(f"nothing follows {', '.join(missing[:10])}{more}")
    if not patterns:
        why = ["the graph holds no pattern"]
    about = tuple(dict.fromkeys(each for row in rows for each in (row[0], row[2])))
    columns = ("pattern", "name", "code", "type", "place", "why")
    title = f"code after patterns: {format_count(len(rows), 'place')}"
    return TableFound(title, columns, tuple(rows), tuple(why), about)
