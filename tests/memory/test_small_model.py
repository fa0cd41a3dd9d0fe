"""A memory of claims taught by the real local model of 1.5 billion parameters, in both ways; `make test-live`
runs it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.grounds import ground_of

from kgot_lab.errors import ModelMissing, NotInstalled
from kgot_lab.llm.local import Local
from kgot_lab.llm.recorded import Scripted
from kgot_lab.memory.agent import Agent, AgentConfig
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.knowledge import KnowledgeGraphMemory
from kgot_lab.memory.sqlite import ClaimTripleStore
from kgot_lab.memory.sqlite_tables import SQLiteClaims

SAID = (
    "Ada Lovelace was born in London in 1815.",
    "Ada Lovelace worked with Charles Babbage, who designed the Analytical Engine.",
)


@pytest.fixture(scope="module")
def llm() -> Iterator[Local]:
    try:
        local = Local(context=4096)
    except (ModelMissing, NotInstalled) as error:
        pytest.skip(f"no local model here: {error}")
    yield local
    local.close()


@pytest.mark.live
@pytest.mark.parametrize("way", ["schema", "grounded"])
def test_a_model_of_one_and_a_half_billion_parameters_teaches_what_is_said_and_twice_the_same(llm, way):
    with Claims(SQLiteClaims()) as claims:
        hashes = []
        for _ in range(2):
            memory = KnowledgeGraphMemory(ClaimTripleStore(claims), llm, extraction=way)
            agent = Agent(Scripted(lambda _: "Noted."), config=AgentConfig(knowledge_graph=memory))
            events = [event for text in SAID for event in agent.run(text).events]
            assert not [event for event in events if event.kind in ("extraction failed", "not read")], events
            hashes.append(claims.graph_hash(claims=True))
        facts = claims.facts()
        assert hashes[0] == hashes[1]
        assert {"London", "Charles Babbage"} <= {end for fact in facts for end in (fact.subject, fact.object)}
        assert way == "schema" or [f for f in facts if ground_of(f, " ".join(SAID)) == "no sentence"] == []
        assert "Charles Babbage" in memory.build_context(["ada"])
