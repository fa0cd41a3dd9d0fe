"""The same graphs drawn by pyvis, neo4j-viz, ipysigma and this package, for somebody who ranks them blind.

python -m benchmarks.views.beside_others FOLDER --python PYTHON     PYTHON has the other three; pictures get shuffled
names, FOLDER/key.json tells whose they are. FOLDER needs `npm i requirejs @jupyter-widgets/html-manager` and, as
ipysigma.js, that package's nbextension/index.js: ipysigma's own page loads them from the web.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from pathlib import Path

import networkx as nx

OTHERS = """
import json, sys, networkx as nx
from ipysigma import Sigma
from neo4j_viz import Node, Relationship, VisualizationGraph
from pyvis.network import Network
folder = sys.argv[1]
for name, held in json.load(open(f"{folder}/graphs.json")).items():
    graph = nx.node_link_graph(held, edges="edges")
    nodes = [Node(id=id, caption=str(id), properties={"group": data["group"]}) for id, data in graph.nodes(data=True)]
    edges = [Relationship(source=a, target=b, caption=data.get("label")) for a, b, data in graph.edges(data=True)]
    drawn = VisualizationGraph(nodes, edges)
    drawn.color_nodes(property="group")
    open(f"{folder}/{name}-neo4j.html", "w").write(drawn.render(height="700px").data)
    network = Network(height="700px", directed=graph.is_directed(), cdn_resources="in_line")
    network.from_nx(graph)
    open(f"{folder}/{name}-pyvis.html", "w").write(network.generate_html())
    sizes = dict(graph.degree)
    Sigma.write_html(graph, f"{folder}/{name}-sigma.html", fullscreen=True, node_color="group", node_size=sizes, start_layout=6)
"""
SCRIPTS = '<script src="node_modules/requirejs/require.js"></script><script src="node_modules/@jupyter-widgets/html-manager/dist/embed-amd.js">'
ARGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # WebGL without a GPU


def graphs() -> dict[str, nx.Graph]:
    """Return graphs whose nodes have a group, in directed ones a type; the edges of those have a label."""
    made = {
        "miserables": nx.les_miserables_graph(),
        "karate": nx.karate_club_graph(),
        "families": nx.florentine_families_graph(),
    }
    for name, graph in made.items():
        made[name] = nx.Graph(graph.edges)
        for number, members in enumerate(nx.community.louvain_communities(graph, seed=1)):
            nx.set_node_attributes(made[name], dict.fromkeys(members, f"community {number + 1}"), "group")
    from kgot_lab.kgos.schemas.vocabularies import cookbook

    whole, name = cookbook(), {node.id: str(node.properties["name"]) for node in cookbook().nodes}
    typed = nx.DiGraph((name[each.source], name[each.target], {"label": each.type}) for each in whole.edges)
    nx.set_node_attributes(typed, {name[node.id]: node.labels[0] for node in whole.nodes}, "group")
    near = {"embedding": ("tool:embedding_model", 2), "caching": ("technique:prompt_caching", 1)}
    return made | {
        each: nx.DiGraph(nx.ego_graph(typed, name[at], steps, undirected=True))
        for each, (at, steps) in near.items()
    }


def main() -> None:
    """Draw, take pictures, shuffle."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="python3")
    given, key = parser.parse_args(), {}
    from playwright.sync_api import sync_playwright

    from kgot_lab.diagnostics.components import find_chromium
    from kgot_lab.graph import PropertyGraph
    from kgot_lab.viz.page import export_graph

    data = {name: nx.node_link_data(graph, edges="edges") for name, graph in graphs().items()}
    (given.folder / "graphs.json").write_text(json.dumps(data), encoding="utf-8")
    subprocess.run([given.python, "-c", OTHERS, str(given.folder)], check=True)
    for name, graph in graphs().items():
        page = given.folder / f"{name}-sigma.html"
        page.write_text(
            re.sub(r"<script src=.*</script>\s*<script src=[^>]*>", SCRIPTS, page.read_text()),
            encoding="utf-8",
        )
        groups = dict(graph.nodes(data="group")) if graph.is_directed() else {}
        ours = nx.DiGraph(graph.edges(data=True)) if groups else nx.Graph(graph.edges)
        nx.set_node_attributes(ours, groups, "label")
        export_graph(PropertyGraph.from_networkx(ours), given.folder / f"{name}-ours.html")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=find_chromium(), args=ARGS) as browser,
    ):
        for name in graphs():
            for letter, path in zip(
                "abcd", random.sample(sorted(given.folder.glob(f"{name}-*.html")), 4), strict=True
            ):
                page = browser.new_page(viewport={"width": 1000, "height": 720})
                page.goto(path.resolve().as_uri())
                page.wait_for_timeout(12_000)  # layouts that move come to rest
                page.screenshot(path=given.folder / f"{name}-{letter}.png")
                page.close()
                key[f"{name}-{letter}"] = path.stem
    (given.folder / "key.json").write_text(json.dumps(key, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
