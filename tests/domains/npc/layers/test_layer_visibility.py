"""Who may know what was said and told: planted worlds in which every hidden text is searched for, and rules
that are wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.npc_oracle import may_hear
from support.npc_places import plant_layers
from support.npc_planted import canaries, planted
from support.npc_remembering import remembered_too_much

from kgot_lab.domains.npc.layers import memory, storage
from kgot_lab.domains.npc.layers import storage as graphrag_in_python
from kgot_lab.domains.npc.layers.storage import CONTEXT

pytestmark = pytest.mark.extended

WORLDS = 10  # on each engine; benchmarks/npc/npc_visibility.py looks into a thousand
ENGINES = ["sqlite", "postgres"]


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_is_told_of_the_layers_what_it_may_not_know(engine, layered):
    hidden = 0
    for seed in range(WORLDS):
        world = planted(seed)
        plant_layers(world, layered[engine])
        for npc in world.npcs:
            assert remembered_too_much(layered[engine], world, npc)[0] == [], f"world {seed}"
            heard, known = may_hear(world, npc)
            hidden += len(canaries(*world.entries, *world.chunks) - heard - known)
    assert hidden > 20 * WORLDS, "most of what is said and told is hidden from most"


def in_sql(before: str, after: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Install another statement of GraphRAG."""

    def install(patch: pytest.MonkeyPatch) -> None:
        assert before in CONTEXT
        patch.setattr(storage, "CONTEXT", CONTEXT.replace(before, after))

    return install


def as_it_is(entry, **_):
    return entry


WRONG = {
    "the audience of texts is overlooked": (
        lambda patch: patch.setattr(graphrag_in_python.models, "may_know", lambda audience, npc_id: True),
        in_sql(storage.AUDIENCE_CONDITION, "true"),
    ),
    "everyone has heard everything": (lambda p: p.setattr(storage, "HEARD_CONDITION", storage.ALWAYS_TRUE),)
    * 2,
    "who else heard it is told": (lambda patch: patch.setattr(memory, "replace", as_it_is),) * 2,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_rule_that_is_wrong_is_caught(wrong, engine, layered, monkeypatch):
    WRONG[wrong][ENGINES.index(engine)](monkeypatch)
    for seed in range(WORLDS):
        world = planted(seed)
        plant_layers(world, layered[engine])
        if any(
            " tells " in each
            for npc in world.npcs
            for each in remembered_too_much(layered[engine], world, npc)[0]
        ):
            return
    pytest.fail(f"in {WORLDS} worlds nothing was told that may not be")
