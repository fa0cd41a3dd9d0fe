"""The index of vectors on PostgreSQL: it finds most of the nearest texts, is really looked into, and is never
in the way.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.npc_places import at_postgres, planted_embedder

from benchmarks.npc.made import Directions, made_world
from benchmarks.npc.vector_index import create_index, search_by_index
from kgot_lab.domains.npc.layers.memory import WorldLayers
from kgot_lab.domains.npc.layers.models import Chunk
from kgot_lab.domains.npc.models import Entity

QUESTIONS = [f"question {number}" for number in range(20)]


@pytest.fixture(scope="module")
def many(postgres_url: str) -> Iterator[WorldLayers]:
    """Two thousand texts, with an index."""
    with at_postgres(postgres_url, "many texts") as world:
        layers = WorldLayers(world, Directions(64))
        made_world(layers, 20, 40, 2_000)
        create_index(layers.chunks)
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute('ANALYZE "many texts".chunks')
        yield layers


def recall(layers, effort):
    """The part of the ten nearest that a search with an effort finds."""
    found = [{each.chunk.id for each in search_by_index(layers.chunks, each, effort)} for each in QUESTIONS]
    exact = [{each.chunk.id for each in layers.chunks.search(each)} for each in QUESTIONS]
    return sum(len(one & other) for one, other in zip(found, exact, strict=True)) / (10 * len(QUESTIONS))


def test_with_more_effort_more_of_the_nearest_are_found(many):
    least, most = recall(many, 10), recall(many, 400)
    assert 0.2 < least < most and most > 0.98, "were every text looked at, little effort would find them all"


def test_what_is_found_is_told_as_a_search_without_an_index_does(many):
    for question in QUESTIONS:
        exact = {each.chunk.id: each for each in many.chunks.search(question, 100)}
        found = search_by_index(many.chunks, question, 400)
        assert [each.similarity for each in found] == sorted(
            (each.similarity for each in found), reverse=True
        )
        assert len(found) == 10 and all(each == exact[each.chunk.id] for each in found)


def test_a_text_that_comes_later_is_in_the_index_and_one_that_is_deleted_is_not(many):
    (entity, *_) = many.world.find_entities()
    late = Chunk(entity.id, "question 3", None)
    many.chunks.add([late])
    (nearest, *_) = search_by_index(many.chunks, "question 3", 100)
    assert nearest.chunk == late and nearest.similarity == 1
    many.chunks.delete(late.id)
    assert late not in [each.chunk for each in search_by_index(many.chunks, "question 3", 100)]


def test_an_index_is_created_once_and_without_one_every_text_is_compared(postgres_url):
    with at_postgres(postgres_url, "unindexed") as world:
        world.add_entity(entity := Entity("npc", "Grimjaw"))
        layers = WorldLayers(world, planted_embedder())
        layers.chunks.add([Chunk(entity.id, "gold", None), Chunk(entity.id, "debt", None)])
        for _ in range(3):
            assert [each.chunk.text for each in search_by_index(layers.chunks, "gold", 10)] == [
                "gold",
                "debt",
            ]
            create_index(layers.chunks)


def test_an_index_of_one_embedder_takes_the_vectors_of_the_next(postgres_url):
    with at_postgres(postgres_url, "changed") as world:
        world.add_entity(entity := Entity("npc", "Grimjaw"))
        for dimension in (24, 16):
            layers = WorldLayers(world, Directions(dimension))
            create_index(layers.chunks)
            layers.chunks.add([chunk := Chunk(entity.id, "gold", None)])
            assert [each.chunk for each in search_by_index(layers.chunks, "gold", 10)] == [chunk]
            layers.chunks.delete(chunk.id)
