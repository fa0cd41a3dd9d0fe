"""A memory of what a user says in an event loop, and opened where there must be one."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.llm.recorded import Scripted
from kgot_lab.memory.agent import ENTITIES_HEADING, Agent, AgentConfig, EntityMemory
from kgot_lab.memory.user_memory import open_memory


def test_messages_are_added_and_recalled_while_the_event_loop_goes_on():
    async def talk(memory):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        added = await memory.aadd("I live in Rome.", at=datetime(2026, 3, 1, tzinfo=UTC))
        many = [memory.aadd(f"I like the painter number {n}.") for n in range(5)]
        many += [memory.arecall("Where do I live?", tokens=100) for _ in range(5)]
        results = await asyncio.gather(*many)
        ticking.cancel()
        return ticks, added, results

    with open_memory(user="ana") as memory:
        ticks, added, results = asyncio.run(talk(memory))
        assert ticks > 1 and [fact.object for fact in added.facts] == ["Rome"]
        assert all("Rome" in str(found) for found in results[5:])
        assert len(memory.history()) == 6


def test_errors_of_another_thread_arrive_as_themselves():
    with open_memory(user="ana", embedder=None) as memory:
        with pytest.raises(BadInput, match="list"):
            asyncio.run(memory.aadd(5))
        with pytest.raises(BadInput, match="tokens"):
            asyncio.run(memory.arecall("x", tokens=0))


def test_many_threads_recall_what_one_adds_and_erases():
    failed = []

    def recall():
        try:
            for _ in range(30):
                memory.recall("Which painter do I like?")
        except Exception as error:
            failed.append(error)

    with open_memory(user="ana") as memory:
        threads = [threading.Thread(target=recall) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(6):
            memory.add(f"I like the painter number {number}.")
            if number % 3 == 2:
                memory.erase()
        for thread in threads:
            thread.join()
    assert failed == []


def test_an_existing_memory_is_opened_and_no_file_is_made(tmp_path):
    with pytest.raises(BadInput, match="there is no memory at"):
        open_memory(tmp_path / "none.db", user="ana", new=False)
    assert not list(tmp_path.iterdir())


def test_facts_on_record_are_those_of_the_user(tmp_path):
    with (
        open_memory(tmp_path / "me.db", user="ana") as ana,
        open_memory(tmp_path / "me.db", user="bob") as bob,
    ):
        ana.add("I live in Rome.")
        assert bob.claims.recorded_facts() == () and len(ana.claims.recorded_facts()) == 2


def test_an_agent_talks_with_what_its_user_said():
    model = Scripted(lambda prompt: "Noted.")
    with open_memory(user="ana", embedder=None) as memory:
        agent = Agent(model, config=AgentConfig(knowledge_graph=memory, entity_memory=EntityMemory()))
        assert [fact.object for fact in agent.run("I work at Acme.").learnt] == ["Acme"]
        assert agent.run("I left Acme.").learnt == ()
        context = agent.run("Where do I work?").context
        assert "I work at Acme. (until " in context and "Where do I work" not in context
        assert (
            ENTITIES_HEADING not in context.replace(ENTITIES_HEADING, "", 1)
            and "works_at Acme" not in context
        )
        prompt = model.asked[-1].messages[0].text
        assert "<<<" in prompt and prompt.index("<<<") < prompt.index("I work at Acme") < prompt.index(">>>")
        assert len(memory.history()) == 3
