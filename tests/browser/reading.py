"""How well a drawn graph reads, live and still: measured in the browser at 1280 x 800, on the graphs that the
notebooks show.

Four numbers of each: names that lie on another name or on a node that is not theirs; edges without words, at
rest and after one move of the pointer; edges drawn through a node that is none of their ends; the share of
the canvas that the drawing spans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.domains import npc
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.loop.events import Wrote
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.stores.files import read_graph
from kgot_lab.types import Edge, Node
from kgot_lab.viz import show_graph
from kgot_lab.viz.graph.view import GraphView
from kgot_lab.viz.live import page_script, placeholder, style
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.worlds import visible_graph
from notebooks import town

if TYPE_CHECKING:  # without Playwright this file is still read
    from playwright.sync_api import Page

READ = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
WINDOW = {"width": 1280, "height": 800}


@dataclass(frozen=True)
class Reading:
    """What was counted of one drawing: each list names what is wrong."""

    nodes: int
    names: int
    edges: int
    overlapping: tuple[str, ...]  # nodes whose names do
    cut: tuple[str, ...]  # nodes whose names leave the canvas
    through: tuple[str, ...]  # edges
    wordless: int  # edges, at rest
    mute: int  # edges, at rest and when one points at them
    used: float  # of the canvas, from 0 to 1

    @property
    def overlap(self) -> float:
        """The share of names that overlap something."""
        return len(self.overlapping) / max(self.names, 1)


def put(page: Page, view: GraphView, *, before: str = "", drawn: bool = True) -> None:
    """A live view on a page that is light or dark as the reader has it, in a place of a style; and wait until
    it is drawn.
    """
    script, _ = page_script()
    page.goto("about:blank")  # a script cannot declare its names twice in one page
    inside = element("div", placeholder({**view.live.data, "stands_for": ""}), style=before)
    both = element("meta", name="color-scheme", content="light dark")
    body = element("body", element("style", Markup(style())), inside, script)
    page.set_content(f"<!DOCTYPE html>{element('html', element('head', both), body, lang='en')}")
    if drawn:
        page.wait_for_function("() => document.querySelector('.kl')?.dataset.nodes")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def read_live(page: Page, view: GraphView) -> Reading:
    """Draw a view on an empty page and count, and point at each edge that has no words at rest."""
    put(page, view)
    found = page.evaluate(f"() => ({READ}).live(document.querySelector('.kl'))")
    return _reading(found, sum(not _said(page, edge) for edge in found["silent"]))


def read_opened(page: Page, view: GraphView, community: str) -> Reading:
    """Open a community as a click would, draw what there is then, and count."""
    view.live._handle_message({"open": community})
    put(page, view)
    return _reading(page.evaluate(f"() => ({READ}).live(document.querySelector('.kl'))"), 0)


def read_still(page: Page, view: GraphView) -> Reading:
    """Put the still picture on an empty page and count; in a notebook it is an image, so nobody can point at
    a part of it.
    """
    page.set_content(
        f"<!DOCTYPE html>{element('html', element('body', Markup(view.picture.svg)), lang='en')}"
    )
    found = page.evaluate(f"() => ({READ}).still(document.querySelector('svg'))")
    return _reading(found, found["wordless"])


def _said(page: Page, edge: Mapping[str, Any]) -> bool:
    """Whether pointing at an edge, somewhere along it, shows what it says."""
    canvas = page.locator(".kl-canvas").bounding_box()
    assert canvas
    for point in edge["at"]:
        page.mouse.move(canvas["x"] + point["x"], canvas["y"] + point["y"])
        hover = page.locator(".kl-hover")
        if hover.is_visible() and edge["type"] in (hover.text_content() or ""):
            return True
    return False


def _reading(found: Mapping[str, Any], mute: int) -> Reading:
    listed = {name: tuple(found[name]) for name in ("overlapping", "cut", "through")}
    return Reading(
        **listed, **{name: found[name] for name in ("nodes", "names", "edges", "wordless", "used")}, mute=mute
    )


# --- the graphs ---


def _run(name: str) -> Callable[[], GraphView]:
    return lambda: show_graph(graph_after(load_run(bundled_path(f"traces/{name}.jsonl")).events))


def _last_write() -> GraphView:
    events = load_run(bundled_path("traces/hotpotqa_demo.jsonl")).events
    return show_graph(
        graph_after(events), highlight=[event for event in events if isinstance(event, Wrote)][-1].diff
    )


def _engine() -> PropertyGraph:
    people = [
        Node("ada", ("Person",), {"name": "Ada Lovelace", "born": 1815}),
        Node("charles", ("Person",), {"name": "Charles Babbage"}),
    ]
    things = [
        Node("engine", ("Machine",), {"name": "Analytical Engine"}),
        Node("turin", ("City",), {"name": "Turin"}),
    ]
    told = [
        Edge("charles", "designed", "engine"),
        Edge("charles", "lectured in", "turin"),
        Edge("ada", "wrote notes on", "engine"),
    ]
    return PropertyGraph.of([*people, *things], told)


def _hubs() -> PropertyGraph:
    notes = [Node(name, ("Note",), {"name": name}) for name in ("tides", "moon", "apple", "orbit")]
    told = [
        ("tides", "caused by", "gravity"),
        ("moon", "held by", "gravity"),
        ("gravity", "explains", "orbit"),
        ("apple", "obeys", "gravity"),
    ]
    return PropertyGraph.of([*notes, Node("gravity", ("Bare hub",))], [Edge(*each) for each in told])


def _karate() -> GraphView:
    import networkx

    return show_graph(networkx.karate_club_graph(), height=360)


def phrases() -> PropertyGraph:
    """The phrases of some passages of MuSiQue: more nodes than are drawn by themselves."""
    from kgot_lab.benchmark.recall.datasets import load_dataset

    return PropertyGraph.from_triples(
        triple for some in load_dataset("musique").dev.triples.values() for triple in some
    )


def around(graph: PropertyGraph, id: str) -> PropertyGraph:
    """A node with its neighbours and the edges between them."""
    near = graph.neighbours(id, "both")
    return graph.subgraph(dict.fromkeys([id, *(end for edge in near for end in (edge.source, edge.target))]))


def _town(who: str) -> GraphView:
    written = town.written_town()
    world = town.settled(written)
    return show_graph(visible_graph(world.visible_subgraph(written.ids[who])), height=440)


def _tiny_world() -> GraphView:
    ilse, odo = npc.Entity("npc", "Ilse"), npc.Entity("npc", "Odo")
    shrine, crypt = npc.Entity("location", "Shrine"), npc.Entity("location", "Crypt")
    world = npc.open_world()
    ties = [(ilse, "KNOWS", odo), (odo, "LOCATED_AT", shrine), (odo, "GUARDS", crypt)]
    world.add(
        [ilse, odo, shrine, crypt], [npc.Relationship(one.id, other.id, type) for one, type, other in ties]
    )
    return show_graph(visible_graph(world.visible_subgraph(odo.id)))


def _cookbook(id: str) -> Callable[[], GraphView]:
    return lambda: show_graph(around(cookbook(), id))


def _snapshot(name: str) -> Callable[[], GraphView]:
    return lambda: show_graph(read_graph(bundled_path(f"kgot-snapshots/{name}.json")))


RUNS = ("hotpotqa_demo", "hotpotqa_two_hops", "hotpotqa_two_hops_fork_oregon", "same_question_fused")
RUNS += ("winter_storm", "winter_storm_fork_volcano")
GRAPHS: dict[str, Callable[[], GraphView]] = {
    **{name: _run(name) for name in RUNS},
    "hotpotqa_demo, last write": _last_write,
    "Ada's engine": lambda: show_graph(_engine(), height=300),
    "Ada's engine, a path": lambda: show_graph(
        _engine(), highlight=["ada", "engine", "charles", "turin"], height=300
    ),
    "gravity": lambda: show_graph(_hubs(), height=300),
    "karate club": _karate,
    "Antarctica": lambda: show_graph(around(phrases(), "Antarctica")),
    "cookbook: prompt caching": _cookbook("technique:prompt_caching"),
    "cookbook: embedding model": _cookbook("tool:embedding_model"),
    "town: Ilse": lambda: _town("ilse"),
    "town: Odo": lambda: _town("odo"),
    "world of four": _tiny_world,
    **{f"snapshot {name}": _snapshot(name) for name in ("data_0", "data_1", "data_3", "data_4")},
}
