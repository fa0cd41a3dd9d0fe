"""Hot context: what is ready at the limit is given, and what is missing is said."""

from __future__ import annotations

import threading

import pytest
from support.npc_places import planted_embedder

from kgot_lab.domains.npc.layers.memory import ASSEMBLY_THREAD_NAME, WorldLayers, hot_context
from kgot_lab.domains.npc.layers.models import Chunk, LogEntry
from kgot_lab.domains.npc.models import Entity, Relationship
from kgot_lab.errors import BadInput

GRIM, ELARA, SPY, FORGE = (
    Entity(type, name)
    for type, name in zip(("npc", "npc", "npc", "location"), ("Grim", "Elara", "Spy", "Forge"), strict=True)
)
PATIENT = 600.0  # seconds


class Held:
    """The embedder of planted worlds, which at a question says that it was reached and goes on when it is
    let.
    """

    def __init__(self):
        self.real = planted_embedder()
        self.name, self.digest, self.dimension = self.real.name, self.real.digest, self.real.dimension
        self.reached, self.let = threading.Event(), threading.Event()

    def embed(self, texts):
        if texts == ["gold?"]:
            self.reached.set()
            self.let.wait(60)
        return self.real.embed(texts)


@pytest.fixture
def held(world):
    embedder = Held()
    ties = [
        (GRIM, ELARA, "KNOWS"),
        (GRIM, FORGE, "LOCATED_AT"),
        (ELARA, FORGE, "LOCATED_AT"),
        (SPY, FORGE, "LOCATED_AT"),
    ]
    world.add([GRIM, ELARA, SPY, FORGE], [Relationship(one.id, other.id, type) for one, other, type in ties])
    layers = WorldLayers(world, embedder)
    layers.log.append(
        [
            LogEntry("s1", "before", None),
            LogEntry("s2", "hush", ()),
            LogEntry("s2", "the forge is hot", (GRIM.id,), ELARA.id),
        ]
    )
    layers.chunks.add([Chunk(FORGE.id, "gold in the forge", None)])
    yield layers, embedder
    embedder.let.set()


def test_it_holds_who_one_is_the_scene_and_what_is_known_of_the_matter(held):
    layers, embedder = held
    embedder.let.set()
    context = hot_context(layers.memory(GRIM.id), "gold?", session_id="s2", limit=PATIENT)
    assert context.missing == () and context.identity == layers.world.identity_snapshot(GRIM.id)
    assert context.scene.places == (FORGE,)
    assert context.scene.present == (ELARA, SPY), "it perceives the spy, whom it does not know of"
    assert [each.text for each in context.scene.heard] == ["the forge is hot"]
    assert [passage.text for passage in context.passages] == ["gold in the forge"]
    assert [
        each.text for each in hot_context(layers.memory(GRIM.id), "gold?", limit=PATIENT).scene.heard
    ] == ["before", "the forge is hot"]


def test_its_text_has_a_line_for_each_thing(held):
    layers, embedder = held
    embedder.let.set()
    context = hot_context(layers.memory(GRIM.id), "gold?", session_id="s2", limit=PATIENT)
    assert set(context.text.split("\n")) == {
        "Grim (npc)", "KNOWS Elara (npc)", "LOCATED_AT Forge (location)", "here: Forge (location)", "here: Elara (npc)",
        "here: Spy (npc)",
        "heard: the forge is hot", "Forge: gold in the forge",
    }  # fmt: skip


def test_at_the_limit_what_is_ready_is_given_and_what_is_missing_is_said(held):
    layers, embedder = held
    limits = []
    context = hot_context(
        layers.memory(GRIM.id),
        "gold?",
        wait=lambda done, limit: limits.append(limit) or embedder.reached.wait(60),
    )
    assert limits == [0.15] and context.missing == ("passages",)
    assert context.identity.entity == GRIM and context.scene.places == (FORGE,)
    embedder.let.set()
    again = hot_context(layers.memory(GRIM.id), "gold?", limit=PATIENT)
    assert again.missing == () and context.passages is None, "what comes after the limit is dropped"


def test_parts_after_the_limit_are_not_begun(held):
    layers, embedder = held
    with layers.world.storage.changing():  # nothing can be read meanwhile
        context = hot_context(layers.memory(GRIM.id), "gold?", wait=lambda done, limit: None)
        assert context.missing == ("identity", "scene", "passages")
    assembling = [thread for thread in threading.enumerate() if thread.name == ASSEMBLY_THREAD_NAME]
    for thread in assembling:
        thread.join(60)
    assert not embedder.reached.is_set()


def test_how_long_it_took_is_told_by_the_clock_it_is_given(held):
    layers, embedder = held
    embedder.let.set()
    ticks = iter([1.0, 1.06])
    context = hot_context(layers.memory(GRIM.id), "gold?", limit=PATIENT, clock=lambda: next(ticks))
    assert context.seconds == pytest.approx(0.06)


def test_an_error_of_a_part_is_raised(held):
    layers, _ = held
    memory = layers.memory(GRIM.id)
    layers.world.delete_entity(GRIM.id)
    with pytest.raises(BadInput, match=f"^there is no entity {GRIM.id}"):
        hot_context(memory, "gold?", limit=PATIENT)
    with pytest.raises(BadInput, match="limit must be a number, more than 0"):
        hot_context(memory, "gold?", limit=0)
