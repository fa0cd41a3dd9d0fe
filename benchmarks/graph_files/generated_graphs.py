"""Random graphs, and the writers of other programs that put them in files; generate_files.py is the command."""

import csv
import json
import random
import re
import sqlite3
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import pandas as pd
import pyoxigraph as ox
import scipy.io

import kgot_lab as lab
from benchmarks.graph_files.read_files import RESULTS
from kgot_lab.errors import LabError
from kgot_lab.graph.exchange import from_networkx
from kgot_lab.stores.files import WRITERS

NAMES = {
    "words": "Ada Bob Works Zürich Łódź O'Brien İzmir 北京 القاهرة मुंबई Анна Ωmega naïve_7 a.b-c".split(),
    "numbers": [str(number) for number in range(14)],
    "phrases": "Ada Lovelace;Bob, of York;the <b> & co;x = 1;Ünï cödé;1815-12-10;Q42;7 of 9;a/b;a:b;tab?;Σ 1;null;true".split(";"),
}  # fmt: skip
ODD = [True, None, 3, -0.5, 1e300, 2**70, float("nan"), float("inf"), "", "7", "true", "naïve ✓ \"q\" 'a'; b,c\td", [1, "a"], {"k": 1},
       pd.Timestamp("2020-02-03"), complex(1, 2), b"\x00\xff", (1, 2), {"s"}]  # fmt: skip
Graph = Any
Ends = tuple[str, str]
Write = Callable[[Any, Path], None]


def random_graph(chance: random.Random) -> Graph:
    """Return a random graph of NetworkX with names as nodes."""
    kind = chance.choice([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
    names = chance.choice(list(NAMES.values()))
    graph = kind()
    graph.add_nodes_from(chance.sample(names, chance.randint(1, len(names))))
    nodes = list(graph)
    for _ in range(chance.randint(1, 20)):
        fields = {"relation": chance.choice(["knows", "in"]), "weight": chance.choice([1, 2.5, 1e-05])}
        graph.add_edge(chance.choice(nodes), chance.choice(nodes), **fields)
    return graph


def with_odd_values(graph: Graph, chance: random.Random) -> Graph:
    """Return a graph with values of odd types at some of its nodes and edges."""
    graph = graph.copy()
    for values in [*dict(graph.nodes(data=True)).values(), *(each[-1] for each in graph.edges(data=True))]:
        if chance.random() < 0.3:
            values[chance.choice(["note", "at", "größe"])] = chance.choice(ODD)
    return graph


def rows_of(graph: Graph) -> list[tuple[str, str, str]]:
    """Return sources, relations and targets."""
    return [(source, values["relation"], target) for source, target, values in graph.edges(data=True)]


def numbered(graph: Graph) -> Graph:
    """Return the graph with numbers for nodes, and names as an attribute."""
    return nx.convert_node_labels_to_integers(graph, label_attribute="name")


def by_networkx(
    write: Callable[..., Any], change: Callable[[Graph], Graph] = lambda graph: graph, **options: Any
) -> Write:
    """Return a writer that calls one of NetworkX."""
    return lambda graph, path: write(change(graph), path, **options)


def by_json(convert: Callable[[Graph], Any], lines: bool = False) -> Write:
    """Return a writer of JSON, or of JSON lines."""

    def write(graph: Graph, path: Path) -> None:
        value = convert(graph)
        path.write_text("\n".join(map(json.dumps, value)) if lines else json.dumps(value, ensure_ascii=False))

    return write


def by_igraph(write: Callable[[Any, str], None]) -> Write:
    """Return a writer that calls one of igraph."""

    def call(graph: Graph, path: Path) -> None:
        made = igraph.Graph.from_networkx(graph)
        made.vs["name"] = [str(name) for name in graph]
        write(made, str(path))

    return call


def by_pandas(write: Callable[[pd.DataFrame, Path], Any]) -> Write:
    """Return a writer of the table of edges."""
    return lambda graph, path: write(nx.to_pandas_edgelist(graph), path)


def by_pyoxigraph(form: Any) -> Write:
    """Return a writer of triples, whose nodes are IRIs with labels."""

    def write(graph: Graph, path: Path) -> None:
        iris = {name: ox.NamedNode(f"http://e.org/{number}") for number, name in enumerate(graph)}
        relations = (ox.NamedNode(f"http://e.org/p/r{number}") for number in count())
        triples = [ox.Triple(iris[s], next(relations), iris[t]) for s, _, t in rows_of(graph)]
        label = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
        triples += [ox.Triple(iri, label, ox.Literal(name)) for name, iri in iris.items()]
        path.write_bytes(ox.serialize(triples, format=form))

    return write


def table(path: Path, head: list[str], rows: Iterator[Any] | list[Any], **options: Any) -> None:
    """Write a table of separated values."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, **options).writerows([head, *rows] if head else rows)


def gephi(graph: Graph, path: Path) -> None:
    """Write Gephi's two tables into a folder."""
    path.mkdir()
    ids = {name: number for number, name in enumerate(graph)}
    way = "Directed" if graph.is_directed() else "Undirected"
    table(path / "nodes.csv", ["Id", "Label"], [(id, name) for name, id in ids.items()])
    rows = [(ids[s], ids[t], way, n, r) for n, (s, r, t) in enumerate(rows_of(graph))]
    table(path / "edges.csv", ["Source", "Target", "Type", "Id", "Label"], rows)


def neo4j_admin(graph: Graph, path: Path) -> None:
    """Write the two tables of neo4j-admin into a folder."""
    path.mkdir()
    ids = {name: number for number, name in enumerate(graph)}
    table(path / "nodes.csv", ["id:ID(N)", "name", ":LABEL"], [(id, name, "A;B") for name, id in ids.items()])
    rows = [(ids[s], ids[t], r) for s, r, t in rows_of(graph)]
    table(path / "edges.csv", [":START_ID(N)", ":END_ID(N)", ":TYPE"], rows)


def sqlite(
    graph: Graph, path: Path, nodes: str = "nodes (id, name)", edges: str = "edges (source, target, type)"
) -> None:
    """Write two tables of SQLite."""
    connection, ids = sqlite3.connect(path), {name: number for number, name in enumerate(graph)}
    connection.execute(f"CREATE TABLE {nodes}")
    connection.execute(f"CREATE TABLE {edges}")
    owner, target = nodes.split()[0], edges.split()[0]
    connection.executemany(f"INSERT INTO {owner} VALUES (?, ?)", [(id, name) for name, id in ids.items()])
    rows = [(ids[s], ids[t], r) for s, r, t in rows_of(graph)]
    connection.executemany(f"INSERT INTO {target} VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()


def links(graph: Graph, source: str = "source", kind: str = "type", target: str = "target") -> list[Any]:
    """Return edges as objects."""
    return [{source: s, kind: r, target: t} for s, r, t in rows_of(graph)]


def apoc(graph: Graph) -> list[Any]:
    """Return APOC's lines."""
    node = {"type": "node", "labels": ["T"]}
    nodes = {name: {**node, "id": str(n), "properties": {"name": name}} for n, name in enumerate(graph)}
    edges = [{"label": r, "start": nodes[s], "end": nodes[t]} for s, r, t in rows_of(graph)]
    return [
        *nodes.values(),
        *({"type": "relationship", "id": str(n), **each} for n, each in enumerate(edges)),
    ]


FORMS: dict[str, Write] = {
    "networkx.graphml": by_networkx(nx.write_graphml), "networkx.gexf": by_networkx(nx.write_gexf),
    "networkx.gml": by_networkx(nx.write_gml, numbered, stringizer=str), "networkx.net": by_networkx(nx.write_pajek),
    "networkx.edgelist": by_networkx(nx.write_edgelist), "networkx.edgelist.csv": by_networkx(nx.write_edgelist, delimiter=","),
    "networkx.pairs.txt": by_networkx(nx.write_edgelist, data=False), "networkx.weighted.txt": by_networkx(nx.write_weighted_edgelist),
    "networkx.adjlist": by_networkx(nx.write_adjlist), "networkx.multiline.adjlist": by_networkx(nx.write_multiline_adjlist),
    "networkx.g6": by_networkx(nx.write_graph6, lambda graph: nx.Graph(numbered(graph))),
    "node_link.json": by_json(lambda graph: nx.node_link_data(graph, edges="edges")),
    "links.json": by_json(lambda graph: nx.node_link_data(graph, edges="links")),
    "adjacency.json": by_json(nx.adjacency_data), "cytoscape.json": by_json(nx.cytoscape_data),
    "d3.json": by_json(lambda graph: {"nodes": [{"id": name, "group": 1} for name in graph], "links": links(graph)}),
    "vis.json": by_json(lambda graph: {"nodes": [{"id": name, "label": name} for name in graph], "edges": links(graph, "from", "label", "to")}),
    "graphology.json": by_json(lambda graph: {"options": {"type": "mixed"}, "nodes": [{"key": name} for name in graph],
                                              "edges": [{"key": f"e{n}", **each} for n, each in enumerate(links(graph))]}),
    "jgf.json": by_json(lambda graph: {"graph": {"nodes": {name: {"label": name} for name in graph}, "edges": links(graph, kind="relation")}}),
    "langchain.json": by_json(lambda graph: [{"nodes": [{"id": name, "type": kind} for name in graph], "relationships": edges}
                                             for kind, edges in (("A", links(graph)), ("B", []))]),
    "apoc.jsonl": by_json(apoc, lines=True), "triples.jsonl": by_json(lambda graph: links(graph, "subject", "predicate", "object"), lines=True),
    "pandas.csv": by_pandas(lambda frame, path: frame.to_csv(path, index=False)),
    "pandas.index.csv": by_pandas(lambda frame, path: frame.to_csv(path)),
    "pandas.tsv": by_pandas(lambda frame, path: frame.to_csv(path, sep="\t", index=False)),
    "pandas.semicolons.csv": by_pandas(lambda frame, path: frame.to_csv(path, sep=";", index=False, encoding="utf-16")),
    "pandas.no_header.csv": by_pandas(lambda frame, path: frame[["source", "relation", "target"]].to_csv(path, index=False, header=False)),
    "pandas.json": by_pandas(lambda frame, path: frame.to_json(path, orient="records")),
    "pandas.csv.gz": by_pandas(lambda frame, path: frame.to_csv(path, index=False)),
    "persons.csv": lambda graph, path: table(path, ["person", "friend"], [(s, t) for s, _, t in rows_of(graph)]),
    "scipy.mtx": lambda graph, path: scipy.io.mmwrite(path, nx.to_scipy_sparse_array(graph, weight=None).tocoo(),
                                                     symmetry="general" if graph.is_directed() else "symmetric"),
    "igraph.graphml": by_igraph(igraph.Graph.write_graphml), "igraph.gml": by_igraph(igraph.Graph.write_gml),
    "igraph.net": by_igraph(igraph.Graph.write_pajek),
    "igraph.ncol.txt": by_igraph(lambda graph, path: graph.write_ncol(path, weights=None)),
    "igraph.edges.txt": by_igraph(igraph.Graph.write_edgelist), "igraph.lgl": by_igraph(igraph.Graph.write_lgl),
    "igraph.dot": by_igraph(igraph.Graph.write_dot),
    "gephi": gephi, "neo4j_admin": neo4j_admin, "profile.db": sqlite,
    "calls.db": lambda graph, path: sqlite(graph, path, "functions (id, full_name)", "calls (caller, callee, type)"),
    "keys.db": lambda graph, path: sqlite(graph, path, "person (id INTEGER PRIMARY KEY, name)",
                                          "friends (one REFERENCES person, other REFERENCES person, type)"),
    **{f"oxigraph.{form.file_extension}": by_pyoxigraph(form) for form in
       (ox.RdfFormat.TURTLE, ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS, ox.RdfFormat.TRIG, ox.RdfFormat.RDF_XML, ox.RdfFormat.JSON_LD)},
    **{f"kgot_lab.{form}": lambda graph, path, write=write: write(from_networkx(graph), path) for form, write in WRITERS.items()},
}  # fmt: skip
ANY_ENDS = (
    "scipy.mtx",
    "igraph.edges.txt",
    "igraph.net",
    "networkx.g6",
    "neo4j_admin",
)  # numbers in place of names


def ends_of(pairs: Iterator[Ends], ordered: bool) -> Counter[Ends]:
    """Return the ends of edges, in order if they have a direction."""
    return Counter(pair if ordered else tuple(sorted(pair)) for pair in pairs)  # type: ignore[misc]


def written(form: str, graph: Graph, path: Path) -> tuple[Graph, int]:
    """Write a graph, and return what a reader should find: a matrix and graph6 join parallel edges."""
    FORMS[form](graph, path)
    if form == "networkx.g6":
        graph = nx.Graph(graph)
    if form == "scipy.mtx":
        graph = nx.DiGraph(graph) if graph.is_directed() else nx.Graph(graph)
    return graph, graph.number_of_edges()


def verdict(form: str, graph: Graph, path: Path) -> tuple[str, str]:
    """Return what the reader makes of a file, and why if that is not all edges."""
    said: list[str] = []
    try:
        read = lab.read_graph(path, say=said.append)
    except LabError as error:
        return "refused", re.sub(r"'[^']*'|\d+", "…", str(error).replace(str(path), "").splitlines()[0])[:90]
    told = re.search(r"left out: .*?([\d,]+) edges?\b|([\d,]+) rows? not read", "; ".join(said))
    edges = len(read.edges) + (int((told[1] or told[2]).replace(",", "")) if told else 0)
    if edges != graph.number_of_edges():
        return "edges lost", f"{graph.number_of_edges()} edges, {edges} read; {said}"[:300]
    sought = ends_of(((str(s), str(t)) for s, t in graph.edges()), graph.is_directed())
    seen = ends_of(((edge.source, edge.target) for edge in read.edges), graph.is_directed())
    if form not in ANY_ENDS and not told and sought != seen:
        return (
            "other ends",
            f"{sorted((sought - seen).elements())[:2]} read as {sorted((seen - sought).elements())[:2]}; {said}"[
                :300
            ],
        )
    return "all edges", ""


def write_and_read(files: int, seed: int, keep: Path | None) -> None:
    """Write and read the files, and print the table by form."""
    chance = random.Random(seed)
    counts, reasons = defaultdict[str, Counter[str]](Counter), Counter[tuple[str, str]]()
    warnings.simplefilter("ignore")
    for number, form in enumerate(islice(cycle(FORMS), files)):
        plain = random_graph(chance)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{number}.{form}"
            try:
                graph, _ = written(form, with_odd_values(plain, chance), path)
            except Exception:  # a value that this writer cannot write, in many ways
                path = Path(folder) / f"{number}.plain.{form}"
                try:
                    graph, _ = written(form, plain, path)
                except Exception as error:
                    counts[form]["not written"] += 1
                    reasons[form, f"not written: {type(error).__name__}"] += 1
                    continue
            result, why = verdict(form, graph, path)
            counts[form][result] += 1
            if why:
                reasons[form, f"{result}: {why}"] += 1
            if result not in ("all edges", "refused") and keep:
                keep.mkdir(exist_ok=True, parents=True)
                path.rename(keep / path.name)
    kinds = ["all edges", "refused", "edges lost", "other ends", "not written"]
    counts["all"] = sum(counts.values(), Counter[str]())
    lines = [f"| form | files | {' | '.join(kinds)} |", f"|{'---|' * (len(kinds) + 2)}"]
    lines += [
        f"| {form} | {each.total()} | {' | '.join(str(each[kind]) for kind in kinds)} |"
        for form, each in counts.items()
    ]
    lines += [
        "",
        "Reasons:",
        "",
        *(f"- {form}, {times}: {why}" for (form, why), times in sorted(reasons.items())),
        "",
    ]
    text = "\n".join(lines)
    head = f"# Generated graph files\n\n`python -m benchmarks.graph_files.generate_files --files {files} --seed {seed}`\n\n"
    (RESULTS / "generated.md").write_text(head + text, "utf-8")
    print(text)
