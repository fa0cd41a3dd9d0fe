"""What users of other memories report as failing, run here: on SQLite files, with a scripted model whose
replies each test shows.

Each test names the thread that it comes from. Nothing here runs those systems or says that they still fail.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.saying import fact, said, year

from kgot_lab.errors import StoreUnavailable
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.recorded import Scripted
from kgot_lab.memory.agent import Agent, AgentConfig, EntityMemory
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.knowledge import KnowledgeGraphMemory
from kgot_lab.memory.sqlite import ClaimTripleStore, SQLiteTripleStore
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.memory.user_memory import open_memory
from kgot_lab.types import Triple

CANARY = "canary-71c0"
WORKS = fact("Ada works_at Acme")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def claims(path: Path) -> Iterator[Claims]:
    with Claims(SQLiteClaims(path)) as opened:
        yield opened


def noting(*facts):
    """What a model notes of a message, as JSON."""
    parts = ("subject", "relation", "object")
    return json.dumps([dict(zip(parts, each.split(), strict=True)) | {"confidence": 0.9} for each in facts])


def talking(claims, *replies, **config):
    """An agent with a memory of triples on claims, its extraction scripted; what it answers is "Noted."."""
    memory = KnowledgeGraphMemory(ClaimTripleStore(claims), Scripted(replies, "scripted extraction"))
    return Agent(
        Scripted(lambda _: "Noted.", "scripted answers"), config=AgentConfig(knowledge_graph=memory, **config)
    )


@pytest.fixture
def chat(path):
    """An agent with a memory of what its user says, in a file."""
    with open_memory(path, user="ana", embedder=None) as memory:
        config = AgentConfig(knowledge_graph=memory, entity_memory=EntityMemory())
        yield Agent(Scripted(lambda _: "Noted.", "scripted answers"), config=config)


# ---------------------------------------------------------------------------------------------------------


def test_what_was_deleted_stands_in_no_summary_that_survives(chat):
    """getzep/graphiti#1837: after remove_episode the deleted fact stays in the summary of an entity that
    another episode mentions.
    """
    (owned,) = chat.run(f"I work at {CANARY.title()}.").learnt
    chat.run("I live in Porto.")
    memory = chat.config.knowledge_graph
    effect = memory.forget(owned)
    assert effect.facts == (owned,)
    context = chat.run("Who am I, and where do I work?").context.casefold()
    assert "porto" in context and CANARY not in context
    assert CANARY not in repr((chat.provider.asked[-1], chat.memory.messages)).casefold()
    memory.undo(effect.change)
    assert owned in memory.facts() and CANARY not in repr(chat.memory.messages).casefold()  # copies stay gone


def test_an_erasure_reaches_the_replay_log_and_every_other_copy(chat, path):
    """Significant-Gravitas/AutoGPT#12720 (review): a tool reports an erasure while the episode log keeps the
    text, to be replayed.
    """
    (owned,) = chat.run(f"I work at {CANARY.title()}.").learnt
    chat.run("What do I do?")
    memory = chat.config.knowledge_graph
    undone = memory.undo(memory.forget(owned).change)
    memory.erase(owned)
    files = {file.name: file.read_bytes().lower() for file in path.parent.iterdir()}
    assert [name for name, content in files.items() if CANARY.encode() in content] == []
    found = repr((memory.history(), chat.memory.messages, chat.config.entity_memory.build_context()))
    assert CANARY not in found.casefold() and chat.memory.messages == ()
    # what a change was is counted, and no undo of it brings anything back
    assert memory.undo(undone.change).erased > 0
    assert memory.facts() == ()


def test_copies_go_even_where_the_file_cannot_be_emptied_yet(chat):
    """The same thread: another process reads the file while its words are erased."""
    (owned,) = chat.run(f"I work at {CANARY.title()}.").learnt

    def busy():
        raise StoreUnavailable("another process reads")

    chat.config.knowledge_graph.claims.storage.scrub = busy
    with pytest.raises(StoreUnavailable):
        chat.config.knowledge_graph.erase(owned)
    assert chat.memory.messages == () and chat.config.entity_memory.names == ()


def test_a_keeper_of_copies_that_one_adds_is_told_too(chat):
    """The same thread: a log of one's own beside the memory is told what to let go."""
    log = []

    class Log:
        def let_go(self, said, holds):
            log.append((said, holds(works)))

    memory = chat.config.knowledge_graph
    memory.register_copies(Log())
    (works,) = chat.run("I work at Acme.").learnt
    memory.undo(memory.forget(works).change)
    memory.erase(works)
    assert log == [(["I work at Acme."], False), (None, False)]


# ---------------------------------------------------------------------------------------------------------


def test_a_turn_is_at_most_one_call_of_the_extracting_model_however_large_the_memory(claims):
    """getzep/graphiti#290: more than a thousand requests for 10,000 characters; another user counts 24,000 in
    two hours.
    """
    claims.learn([said(f"Ada knows p{number}", f"old {number}") for number in range(500)])
    agent = talking(claims, *(noting(f"Ada knows q{number}") for number in range(5)))
    for number in range(5):
        agent.run(f"Ada knows q{number}. " + "And so on. " * 900)
    memory = agent.config.knowledge_graph
    assert len(agent.provider.asked) == 5 and len(memory.build_context(["ada"]).splitlines()) == 31
    # so each before took one
    assert agent.run("A sixth message, for which there is no reply.").events[0].kind == "extraction failed"


@pytest.mark.parametrize("replies", ["the same", "in another order"])
def test_the_same_dialogue_twice_gives_the_same_memory(claims, replies):
    """getzep/graphiti#767 and #963: the same episodes added again are there twice; #1872: two edges for one
    fact.
    """
    claims.declare("lives_in", "single")
    dialogue = [
        ("Ada lives in London and works at Acme.", ("Ada lives_in London", "Ada works_at Acme")),
        ("Ada knows Charles.", ("Ada knows Charles",)),
    ]
    states = []
    for telling in range(2):
        noted = [
            noting(*(facts[::-1] if telling and replies != "the same" else facts)) for _, facts in dialogue
        ]
        agent = talking(claims, *noted, clock=lambda telling=telling: year(2025 + telling))
        for text, _ in dialogue:
            agent.run(text)
        context = agent.config.knowledge_graph.build_context(["ada"])
        states.append((claims.graph_hash(claims=True), claims.log(), context))
    assert states[0] == states[1]


def test_the_same_message_in_a_later_turn_adds_no_fact_and_loses_none(claims):
    """mem0ai/mem0#1674: adding the same memory twice deletes the old one."""
    agent = talking(claims, *[noting("Ada works_at Acme")] * 3)
    for _ in range(3):
        agent.run("Ada works at Acme.")
    assert claims.facts() == (WORKS,) == tuple(claims.triples())


def test_a_new_message_never_rewrites_an_old_fact(claims):
    """mem0ai/mem0#1750: each added text updates the one memory that there is, whatever it says."""
    agent = talking(claims, noting("Kirk travels world"), noting("Kirk eats snacks"))
    agent.run("Kirk travels the world.")
    agent.run("On weekends Kirk eats snacks.")
    assert claims.facts() == (fact("Kirk eats snacks"), fact("Kirk travels world"))


def test_what_an_agent_is_reminded_of_is_not_learnt_again(claims):
    """mem0ai/mem0#4573: recalled memories are extracted and stored again; invented profiles are 5 % of the
    junk among 10,134 memories.
    """
    invented = noting("John works_at Google", "Ada lives_in Seattle")
    agent = talking(claims, noting("Ada works_at Acme"), invented, noting("Ada works_at Acme"))
    agent.run("Ada works at Acme.")
    result = agent.run("What do you know of her?")
    assert [event.kind for event in result.events] == ["refused"] and claims.facts() == (WORKS,)
    agent.run("And what else?")  # the model repeats what it was told, which the message does not say
    assert [claim.source for claim in claims.supports_of(WORKS)] == ["turn 1"]


MALFORMED = {
    "nothing": "",
    "the schema itself": '{"$defs": {"Triple": {"type": "object"}}, "properties": {"triples": {"type": "array"}}}',
    "a field missing": '{"triples": [{"subject": "Ada", "relation": "works_at"}]}',
    "cut short": '{"triples": [{"subject": "Ada", "rela',
    "an index for a name": '{"triples": [{"subject": 23, "relation": "works_at", "object": 3, "confidence": 1}]}',
    "an order to the memory": '{"operations": [{"event": "DELETE", "id": 0}]}',
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_reply_that_is_malformed_is_told_and_the_turn_answered(claims, name):
    """getzep/graphiti#868 (the schema echoed), #912 (fields missing), #968 (ids that are none);
    mem0ai/mem0#3391 (no JSON).
    """
    claims.learn(said("Ada knows Charles"))
    before = claims.graph_hash(claims=True), claims.log()
    result = talking(claims, MALFORMED[name]).run("Ada works at Acme.")
    (event,) = result.events
    assert result.text == "Noted." and event.kind in {"extraction failed", "refused"}
    assert (claims.graph_hash(claims=True), claims.log()) == before and "Ada knows Charles" in result.context


def test_facts_of_a_model_of_one_and_a_half_billion_parameters_are_learnt(claims):
    """getzep/graphiti#868: local models fail. These replies are those of qwen2.5-coder-1.5b, from the
    recorded run of the demo.

    The run showed each sentence with its title; here it stands in a message, and the replies are given by
    sentence.
    """
    lines = map(
        json.loads, Path(bundled_path("traces/hotpotqa_demo.jsonl")).read_text(encoding="utf-8").splitlines()
    )
    asked = [
        line
        for line in lines
        if line.get("event") == "Asked"
        and line["prompt"]["messages"][0]["text"].startswith("You turn a sentence")
    ]
    replies = {each["prompt"]["messages"][-1]["text"].partition("] ")[2]: each["reply"] for each in asked}
    texts = {
        sentence: reply if isinstance(reply, str) else reply["text"] for sentence, reply in replies.items()
    }
    small = Scripted(lambda prompt: texts[prompt.messages[-1].text], "replies of qwen2.5-coder-1.5b")
    knowledge_graph = KnowledgeGraphMemory(ClaimTripleStore(claims), small, extraction="grounded")
    agent = Agent(Scripted(lambda _: "Noted."), config=AgentConfig(knowledge_graph=knowledge_graph))
    for sentence in texts:
        result = agent.run(sentence)
        assert not [event for event in result.events if event.kind not in ("learnt", "refused")]
    assert len(small.asked) == len(texts) and len(claims.facts()) > 15
    assert claims.holds(Triple("Ayesha Quraishi", "born in", "Botswana"))
    expected = "- Ayesha Quraishi born in Botswana (1.00)"
    assert expected in agent.config.knowledge_graph.build_context(["ayesha"])


# ---------------------------------------------------------------------------------------------------


def test_two_memories_on_one_file_wait_for_each_other(path, monkeypatch):
    """mem0ai/mem0#7196: "database is locked" at once when two sessions use one file."""
    # SQLite serves nobody in turn: on a busy machine 30 s pass
    monkeypatch.setattr("kgot_lab.memory.sqlite_tables.BUSY_TIMEOUT", 1800.0)
    failed = []

    def chat(name):
        with Claims(SQLiteClaims(path)) as mine:
            agent = talking(mine, *(noting(f"{name} counts n{number}") for number in range(15)))
            for number in range(15):
                failed.extend(e for e in agent.run(f"{name} counts n{number}.").events if e.kind != "learnt")

    threads = [threading.Thread(target=chat, args=(name,)) for name in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Claims(SQLiteClaims(path)) as claims:
        assert failed == []
        assert len(claims.facts()) == 45
        assert [each.change for each in claims.log()] == list(range(1, 46))


def test_a_triple_memory_deletes_from_its_file_what_it_deletes(tmp_path):
    """mem0ai/mem0#3245, for the plain store of triples, which keeps no sources: a deletion leaves no row and
    no word behind.
    """
    path = tmp_path / "triples.db"
    with SQLiteTripleStore(path) as store:
        memory = KnowledgeGraphMemory(store)
        memory.update([Triple("Ada", "owns", CANARY), WORKS])
        assert store.delete(object=CANARY) == 1
        assert memory.build_context([CANARY]) == ""
        assert store.search([CANARY]) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT subject, object FROM triples").fetchall() == [("Ada", "Acme")]


def test_a_clock_that_runs_backwards_loses_no_turn(path):
    """No thread: the clock of one's computer is set back between two turns."""
    times = iter([year(2026), year(2026) - timedelta(days=400)])
    with Claims(SQLiteClaims(path), now=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as claims:
        claims.declare("lives_in", "single")
        agent = talking(
            claims, noting("Ada lives_in London"), noting("Ada lives_in Paris"), clock=lambda: next(times)
        )
        agent.run("Ada lives in London.")
        assert "Ada lives_in Paris" in agent.run("Ada lives in Paris.").context
        assert claims.facts() == (fact("Ada lives_in London"), fact("Ada lives_in Paris"))
        assert claims.current("Ada", "lives_in").facts == (fact("Ada lives_in London"),)
