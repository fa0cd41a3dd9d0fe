"""Where nodes go: within the picture, apart from each other, near their neighbours, and always at the place
where they were.
"""

import numpy as np
import pytest
from support.every import every
from viz.test_collapse import EVIL, MIDDLE, of_columns, opened, planted

from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.collapse import close_community, collapse_graph, reveal_nodes
from kgot_lab.viz.graph.layout import quasirandom_points
from kgot_lab.viz.graph.places import (
    free_grid_positions,
    node_positions,
    pack_discs,
    view_positions,
)

BLOCKS = of_columns(600, planted(600, 2_000, 6, 0.95)[0])
TREE = of_columns(120, [(row // 3, row) for row in range(1, 120)])
ODD = {
    "nothing": PropertyGraph.of(),
    "one": PropertyGraph.of([Node("alone")]),
    "two": PropertyGraph.of([Node("Ada"), Node("Byron")], [Edge("Byron", "father of", "Ada")]),
    "a loop and parallel edges": PropertyGraph.of(
        [Node("a"), Node("b")], [Edge("a", "x", "a"), Edge("a", "x", "b"), Edge("b", "y", "a")]
    ),
    "hostile": PropertyGraph.of([Node(EVIL, (EVIL,)), Node("a")], [Edge(EVIL, EVIL, "a")]),
    "isolated": of_columns(400, []),
    "star": of_columns(400, [(0, row) for row in range(1, 400)]),
    "complete": of_columns(310, np.argwhere(np.triu(np.ones((310, 310)), 1))),
    "two parts": of_columns(700, [(row, row + 1) for row in range(699) if row != 349]),
    "tree": TREE,
}


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def array_of(placed, ids):
    return np.array([placed[id] for id in ids])


# --- all sizes ---


@every("name", ODD)
def test_every_node_has_a_place_of_its_own_in_the_unit_square(name):
    placed = node_positions(ODD[name])
    points = array_of(placed, ODD[name].ids).reshape(-1, 2)
    assert tuple(placed) == ODD[name].ids and (points >= 0).all() and (points <= 1).all()
    assert len(np.unique(points.round(4), axis=0)) == len(points)


def test_communities_lie_apart():
    points, block = array_of(node_positions(BLOCKS), BLOCKS.ids), np.arange(600) % 6
    middles = np.array([np.median(points[block == number], axis=0) for number in range(6)])
    nearest = np.linalg.norm(points[:, None] - middles, axis=2).argmin(axis=1)
    assert (nearest == block).mean() > 0.9


def test_a_large_loose_community_is_laid_out_by_its_own_communities():
    graph = of_columns(
        2600, [(row // 3, row) for row in range(1, 600)] + [(row, row + 1) for row in range(600, 2599)]
    )
    view = opened(collapse_graph(graph, most=2000), collapse_graph(graph).community_of("n5"))
    points = {id: np.array(place) for id, place in view_positions(view).items()}
    shown = [graph.ids[row] for row in view.shown.tolist()]
    near = np.mean([np.linalg.norm(points[edge.source] - points[edge.target]) for edge in view.edges])
    assert len(view.edges) > 20 and near < 0.4 * distances(array_of(points, shown)).mean()


# --- places given ---


@pytest.mark.parametrize("graph", [TREE, BLOCKS], ids=["tree", "blocks"])
def test_a_node_stays_where_it_was_to_the_last_digit(graph):
    before = node_positions(graph)
    grown = PropertyGraph.of(
        [*graph.nodes, Node("new"), Node("stranger")], [*graph.edges, Edge("new", "is", "n7")]
    )
    after = node_positions(grown, positions=before)
    assert {id: after[id] for id in graph.ids} == before and set(after) == {*graph.ids, "new", "stranger"}
    assert np.hypot(*np.subtract(after["new"], after["n7"])) < 0.1


def test_a_place_outside_the_square_is_kept_and_one_that_is_no_number_is_not():
    given = {"n1": (1.5, -0.25), "n2": (float("nan"), 0.5), "n3": (float("inf"), 0.5)}
    for graph in (TREE, BLOCKS):
        placed = node_positions(graph, positions=given)
        assert placed["n1"] == (1.5, -0.25) and np.isfinite(array_of(placed, graph.ids)).all()


def test_many_new_nodes_find_free_places_near_their_neighbours():
    half = BLOCKS.subgraph(BLOCKS.ids[:300])
    placed = node_positions(BLOCKS, positions=node_positions(half))
    points = array_of(placed, BLOCKS.ids)
    apart = distances(points) + np.eye(600)
    assert apart.min(axis=1)[300:].min() > 0.005
    new = np.maximum(BLOCKS.sources, BLOCKS.targets) >= 300
    assert (
        np.linalg.norm(points[BLOCKS.sources[new]] - points[BLOCKS.targets[new]], axis=1).mean()
        < 0.8 * distances(points).mean()
    )


# --- views ---


@pytest.mark.extended
def test_a_community_keeps_its_place_whatever_is_opened_closed_or_looked_for():
    view = collapse_graph(MIDDLE)
    first = view_positions(view)
    assert set(first) >= {community.id for community in view.communities}
    known = dict(first)
    nodes = reveal_nodes(view, ["n5", "n77"]), reveal_nodes(view, ["n5"])
    for step in (opened(view, "community 2"), nodes[0], opened(nodes[1], "community 1")):
        placed = view_positions(step)
        assert all(known.get(id, place) == place for id, place in placed.items())
        assert {node.id for node in step.nodes} <= set(placed)
        known |= placed
    assert view_positions(close_community(opened(view, "community 3"), "community 3")) == first


def test_the_members_of_a_community_leave_room_for_the_node_that_stands_for_the_others():
    view = opened(collapse_graph(of_columns(9_000, planted(9_000, 30_000, 4, 0.9)[0])), "community 1")
    placed = view_positions(view)
    middle = np.array(placed["community 1"])
    away = np.linalg.norm(
        (array_of(placed, [view.graph.ids[row] for row in view.shown]) - middle) * (1.5, 1), axis=1
    )
    # the first are spread over all of the disc
    assert away.min() > 0.04 and (away > away.max() / 2).mean() > 0.6


# --- geometry ---


@every("sizes", [[1], [5, 5], [1000, 1, 1, 1], [3] * 40, list(range(1, 40)), [50, 0, 50]], ids=str)
@every("aspect", [0.5, 1.5, 3])
def test_discs_lie_apart_and_inside(sizes, aspect):
    middles, radii = pack_discs(np.array(sizes, dtype=float), np.zeros((0, 2), dtype=np.intp), aspect=aspect)
    apart = distances(middles) + 9 * np.eye(len(sizes))
    assert (apart >= radii[:, None] + radii).all() and (radii > 0.01).all()
    assert (middles - radii[:, None] >= -1e-9).all()
    assert (middles + radii[:, None] <= (aspect + 1e-9, 1 + 1e-9)).all()


def test_points_fill_the_disc_evenly_and_leave_its_middle_free():
    points = quasirandom_points(800, 0.3)
    radius = np.hypot(*points.T)
    assert radius.min() >= 0.3 and radius.max() <= 1 and quasirandom_points(0).shape == (0, 2)
    quadrants = np.bincount((points[:, 0] > 0) * 2 + (points[:, 1] > 0))
    assert quadrants.min() > 180 and np.sort(distances(points), axis=1)[:, 1].min() > 0.01


def test_free_places_are_near_and_each_is_taken_once_until_all_are():
    wanted = np.tile((0.25, 0.75), (30, 1))
    found = free_grid_positions(wanted, np.zeros((0, 2)))
    assert len(np.unique(found, axis=0)) == 30 and np.linalg.norm(found - wanted, axis=1).max() < 0.4
    assert np.linalg.norm(free_grid_positions(wanted[:1], found) - found, axis=1).min() > 0.03
    assert free_grid_positions(np.full((12_000, 2), 0.5), np.zeros((0, 2))).shape == (12_000, 2)


def test_the_forces_are_those_of_the_formula():
    """Fruchterman and Reingold 1991, a node at a time: k squared over the distance apart, the distance
    squared over k along an edge.
    """
    from kgot_lab.viz.graph.layout import _forces

    points = np.random.default_rng(2).random((12, 2))
    pairs = np.array([(0, 1), (1, 2), (5, 9), (0, 1)])
    ideal = 0.2
    expected = np.zeros((12, 2))
    for one in range(12):
        for other in range(12):
            apart = points[one] - points[other]
            if one != other and np.hypot(*apart) < 6 * ideal:
                expected[one] += apart * ideal**2 / np.hypot(*apart) ** 2
    for one, other in pairs:
        apart = points[other] - points[one]
        expected[one] += apart * np.hypot(*apart) / ideal
        expected[other] -= apart * np.hypot(*apart) / ideal
    assert _forces(points, pairs, ideal) == pytest.approx(expected, abs=1e-4)


def test_a_new_part_without_links_to_the_old_ones_is_placed_too():
    chain = [(row, row + 1) for row in range(200)] + [(row, row + 1) for row in range(201, 399)]
    placed = node_positions(
        of_columns(420, chain), positions={f"n{row}": (row / 200, 0.2) for row in range(201)}
    )
    assert len({(round(x, 6), round(y, 6)) for x, y in placed.values()}) == 420
