"""Every way to ask what one of those in a world knows by its layers, and whatever tells more than it should."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from kgot_lab.domains.npc.layers.memory import (
    NpcMemory,
    SessionEntries,
    WorldLayers,
    hot_context,
)
from kgot_lab.domains.npc.layers.models import ContextRanking
from kgot_lab.domains.npc.layers.tools import memory_tools
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.visibility import query_entities
from kgot_lab.errors import LabError
from support.npc_oracle import may_hear, may_see
from support.npc_planted import WORDS, PlantedWorld, canaries

ALL = ContextRanking(hops=None, limit=1000)
_PATIENT = 600.0  # seconds


def ways(
    memory: NpcMemory, planted: PlantedWorld, words: list[str]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Questions by every public method, with words and ids that may be hidden: what is asked, and what asks
    it.
    """
    ids, sessions = sorted(planted.entities), sorted({entry.session for entry in planted.entries})
    tool = query_entities(memory.sight, most=1000)
    _, log, context = memory_tools(memory)
    asked: dict[str, list[Callable[[], Any]]] = {
        "query_with_context": [
            *(lambda words=words: memory.query_with_context(words) for words in (" ".join(WORDS), *words)),
            *(lambda id=id: memory.query_with_context(" ".join(WORDS), [id], ranking=ALL) for id in ids),
            lambda: memory.query_with_context(
                " ".join(WORDS), ids, ranking=ContextRanking(hops=9, limit=1000, weight=0)
            ),
        ],
        "search": [
            lambda words=words: memory.log.search(words, 1000) for words in ("canary", *WORDS, *words)
        ],
        "last": [
            lambda: memory.log.last(1000),
            *(lambda session=each: memory.log.last(session_id=session) for each in sessions),
        ],
        "memory_tools": [
            *(lambda session=each: log(session=session) for each in ("", *sessions)),
            *(lambda words=words: log(words=words) for words in ("canary gold debt", *words)),
            lambda: context(matter=" ".join(WORDS)),
        ],
        "hot_context": [
            lambda words=words: hot_context(memory, words, limit=_PATIENT)
            for words in (" ".join(WORDS), *words[:1])
        ],
        "query_entities": [
            tool,
            *(lambda name=word: tool(name=name) for word in words),
            *(lambda name=word: tool(near=name) for word in words),
            *(lambda name=planted.entities[id].name: tool(near=name) for id in ids),
            lambda: tool(id=ids[0]),
            *(lambda id=id: query_entities(memory.sight)(type=id) for id in ids[:2]),
        ],
    }
    public = {
        name
        for kind in (NpcMemory, SessionEntries)
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if name[0] != "_"
    }
    assert public | {"hot_context", "query_entities", "memory_tools"} == set(asked), (
        "every public method is asked"
    )
    for method, times in asked.items():
        for ask in times:
            yield method, ask


def remembered_too_much(
    layers: WorldLayers, planted: PlantedWorld, npc: str, policy: VisibilityPolicy = DEFAULT_POLICY
) -> tuple[list[str], int]:
    """What an NPC is told of the layers that it may not know, errors too, and what it should be told and is
    not; of how many questions.
    """
    heard, known = may_hear(planted, npc)
    memory, wrong, questions = layers.memory(npc, policy=policy), [], 0
    words = may_see(planted, npc)[2] | heard | known
    there = canaries(*planted.entities.values(), *planted.edges, *planted.entries, *planted.chunks)
    hidden = sorted(there - words - set(planted.entities))
    for method, ask in ways(memory, planted, hidden[:: len(hidden) // 3 + 1]):
        questions += 1
        try:
            said = repr(ask())
        except LabError as error:
            said = f"{error} {error.__cause__} {error.__context__}"
        wrong += [f"{method} tells {word}" for word in sorted(canaries(said) - words)]
    told = (
        canaries(memory.log.search("canary", 1000), memory.log.last(1000)),
        canaries(memory.query_with_context("gold", ranking=ALL)),
    )
    for lacks, method in ((heard - told[0], "the log"), (known - told[1], "query_with_context")):
        wrong += [f"{method} lacks {word}" for word in sorted(lacks)]
    return wrong, questions
