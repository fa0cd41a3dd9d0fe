"""Neighbours and paths: breadth first, each once, and no walk counted out."""

from __future__ import annotations

import random
from itertools import pairwise, permutations

import networkx as nx
import pytest

from kgot_lab.domains.npc.models import Entity, Provenance, Relationship, RelationshipFilter
from kgot_lab.errors import BadInput


def named(*names):
    return {name: Entity("npc", name) for name in names}


def met(there, *pairs, type="KNOWS"):
    return [Relationship(there[one].id, there[other].id, type) for one, other in pairs]


@pytest.fixture
def ring(world):
    """a to b to c to d to a, and a to c by another type."""
    there = named(*"abcd")
    world.add(there.values(), [*met(there, "ab", "bc", "cd", "da"), *met(there, "ac", type="OWNS")])
    return there


def reached(world, start, *args, **how):
    return [
        (neighbour.entity.name, neighbour.depth) for neighbour in world.neighbours(start.id, *args, **how)
    ]


def test_a_circle_is_walked_once_however_many_steps_are_allowed(world, ring):
    everyone = [("b", 1), ("c", 1), ("d", 2)]
    assert (
        reached(world, ring["a"], 8)
        == reached(world, ring["a"], 9)
        == reached(world, ring["a"], 10**9)
        == everyone
    )
    assert reached(world, ring["a"], 10**9, types=("KNOWS",)) == [("b", 1), ("c", 2), ("d", 3)]
    with pytest.raises(BadInput, match="there is no entity"):
        world.neighbours(Entity("npc", "nobody").id, 10**9)


def test_walks_are_as_networkx_finds_them(world):
    chance = random.Random(3)
    there = named(*map(str, range(30)))
    pairs = [(str(chance.randrange(30)), str(chance.randrange(30))) for _ in range(45)]
    world.add(there.values(), met(there, *pairs))
    graph = nx.DiGraph(pairs)
    graph.add_nodes_from(there)
    for start in map(str, range(6)):
        for direction, view in (("out", graph), ("in", graph.reverse()), ("both", graph.to_undirected())):
            far = nx.single_source_shortest_path_length(view, start, cutoff=3)
            assert dict(reached(world, there[start], 3, direction=direction)) == {
                name: depth for name, depth in far.items() if depth
            }
            for end in map(str, range(20, 30)):
                path = [
                    each.name
                    for each in world.find_path(there[start].id, there[end].id, 3, direction=direction)
                ]
                assert len(path) == (far[end] + 1 if end in far else 0)
                assert all(view.has_edge(*step) for step in pairwise(path))


def test_among_forty_who_all_know_each_other_no_walk_is_counted_out(world):
    """Walks of twelve steps among them are more than 10 to the 18th."""
    there = named(*(f"{number:02}" for number in range(40)), "end", "apart")
    world.add(there.values(), [*met(there, *permutations(sorted(there)[:40], 2)), *met(there, ("39", "end"))])
    found = reached(world, there["00"], 12)
    assert len(found) == 40 and found[-1] == ("end", 2)
    assert [each.name for each in world.find_path(there["00"].id, there["end"].id, 12)] == ["00", "39", "end"]
    assert world.find_path(there["00"].id, there["apart"].id, 12) == ()
    seen = world.sight(there["00"].id)
    assert len(seen.neighbours(there["00"].id, 12, direction="both")) == 39


@pytest.mark.parametrize("depth", [0, -1, 1.5, True, None])
def test_a_depth_is_a_whole_number_from_one(world, ring, depth):
    for ask in (
        lambda: world.neighbours(ring["a"].id, depth),
        lambda: world.sight(ring["a"].id).neighbours(ring["a"].id, depth),
    ):
        with pytest.raises(BadInput, match=r"depth.* a whole number"):
            ask()
    with pytest.raises(BadInput, match="max_depth"):
        world.find_path(ring["a"].id, ring["b"].id, depth)
    with pytest.raises(BadInput, match="unknown direction"):
        world.neighbours(ring["a"].id, direction="up")


def test_the_index_on_confidence_is_used_by_questions_of_it(postgres_url):
    from support.npc_places import at_postgres

    there = named("a", "b")
    with at_postgres(postgres_url, "index") as world:
        world.add(
            there.values(),
            [Relationship(there["a"].id, there["b"].id, "KNOWS", {}, Provenance(confidence=0.9))],
        )
        assert world.get_relationships(there["a"].id, RelationshipFilter(min_confidence=0.9)) != ()
        asked = "EXPLAIN SELECT FROM relationships r WHERE (r.provenance->>'confidence')::float8 < 0.5"
        with world.storage.reading():
            world.storage.rows("SET LOCAL enable_seqscan = off")
            assert "idx_rel_provenance_confidence" in str(world.storage.rows(asked))
