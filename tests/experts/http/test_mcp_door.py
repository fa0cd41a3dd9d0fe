"""The door for assistants, asked by the official client, over HTTP and over standard input and output."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from support.expert_server import (
    COOK_ID,
    FailingModel,
    HeldModel,
    ServedExperts,
    bearer,
    expert_office,
    served,
)
from support.openai_server import openai_server, says_on
from support.waiting import AMPLE, until

import kgot_lab
from kgot_lab.errors import LLMError
from kgot_lab.experts.http.auth import GuardLimits, GuardRules
from kgot_lab.experts.learning.ledger import GraphProposal, NodeToAdd, ProposalSource, open_proposals
from kgot_lab.experts.learning.reviewing import GraphReview
from kgot_lab.kgos.schemas.vocabularies import cookbook

TOOLS = {"list_experts", "ask_expert", "search_expert", "why"}


@pytest.fixture(scope="module")
def server() -> Iterator[ServedExperts]:
    with served(expert_office(), GuardRules(tokens=True)) as running:
        yield running


@asynccontextmanager
async def session_with(url: str, token: str = "") -> AsyncIterator[ClientSession]:
    async with (
        httpx.AsyncClient(headers=bearer(token) if token else {}, timeout=AMPLE, trust_env=False) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as (reads, writes, *_),
        ClientSession(reads, writes) as session,
    ):
        await session.initialize()
        yield session


def within(url: str, act: Callable[[ClientSession], Awaitable[Any]], token: str = "") -> Any:
    """What `act` gives with a session."""

    async def run() -> Any:
        async with session_with(url, token) as session:
            return await act(session)

    return asyncio.run(run())


async def called(session: ClientSession, tool: str, **arguments: str) -> Any:
    """The structured content of a tool's answer; the text of its error as a ValueError."""
    answer = await session.call_tool(tool, arguments)
    if answer.is_error:
        raise ValueError(answer.content[0].text)
    content = answer.structured_content
    return content["result"] if set(content) == {"result"} else content


async def everything(session: ClientSession, expert: str) -> None:
    tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert set(tools) == TOOLS
    assert tools["why"].annotations.read_only_hint
    assert not tools["ask_expert"].annotations.read_only_hint
    assert expert in {each["id"] for each in await called(session, "list_experts")}
    found = await called(session, "search_expert", expert=expert, query="prompt caching")
    assert found.startswith("<<<") and "Prompt caching" in found


async def a_talk(session: ClientSession, expert: str) -> dict[str, Any]:
    first = await called(session, "ask_expert", expert=expert, question="How do I use prompt caching?")
    second = await called(
        session, "ask_expert", expert=expert, question="And then?", conversation=first["conversation"]
    )
    assert second["conversation"] == first["conversation"] and second["message"] != first["message"]
    return first


def test_an_assistant_asks_searches_and_hears_why(server):
    async def act(session: ClientSession) -> None:
        await everything(session, COOK_ID)
        first = await a_talk(session, COOK_ID)
        assert first["answer"] == "You asked: How do I use prompt caching?"
        assert "cookbook:technique:prompt_caching" in first["sources"]
        why = await called(
            session, "why", expert=COOK_ID, conversation=first["conversation"], message=first["message"]
        )
        assert why["trace"]["steps"] and [f"cookbook:{id}" for id in why["kg_nodes_used"]] == first["sources"]
        last = await called(session, "why", expert=COOK_ID, conversation=first["conversation"])
        assert last["answers"] != why["answers"]

    within(server.url, act, server.token("ada"))


def test_two_tenants_never_meet(server):
    async def begin(session: ClientSession) -> dict[str, Any]:
        return await called(session, "ask_expert", expert=COOK_ID, question="The canary word is zanzibar.")

    async def pry(session: ClientSession) -> None:
        words = []
        for conversation in (theirs["conversation"], "conv_none"):
            for tool, more in (
                ("why", {}),
                ("why", {"message": theirs["message"]}),
                ("ask_expert", {"question": "What is the word?"}),
            ):
                with pytest.raises(ValueError) as refused:
                    await called(session, tool, expert=COOK_ID, conversation=conversation, **more)
                words.append(str(refused.value))
        assert len(words) == 6 and words[:3] == words[3:] and "zanzibar" not in "".join(words)
        mine = await called(session, "ask_expert", expert=COOK_ID, question="What is the canary word?")
        why = await called(session, "why", expert=COOK_ID, conversation=mine["conversation"])
        assert "zanzibar" not in str(mine) + str(why) and why["trace"]["memories"] == 0

    theirs = within(server.url, begin, server.token("ada"))
    within(server.url, pry, server.token("bob"))


def test_tenants_that_ask_at_once_are_not_taken_for_each_other(server):
    async def talk(tenant: str) -> list[str]:
        async with session_with(server.url, server.token(tenant)) as session:
            answers = [
                await called(session, "ask_expert", expert=COOK_ID, question=f"{tenant} asks {number}")
                for number in range(4)
            ]
            return [answer["conversation"] for answer in answers]

    async def both() -> list[list[str]]:
        return await asyncio.gather(talk("carol"), talk("dave"))

    for tenant, ids in zip(("carol", "dave"), asyncio.run(both()), strict=True):
        kept, total = server.service.conversations(COOK_ID, tenant)
        assert total == 4
        assert {each.id for each in kept} == set(ids)
        assert all(each.preview.startswith(tenant) for each in kept)


def test_what_goes_wrong_is_told_as_an_error_of_the_tool_with_nothing_of_the_inside():
    nasty = FailingModel(LLMError("/home/ada/model sk-key123 refused"), "It begins ")
    with served(expert_office(nasty)) as server:

        async def act(session: ClientSession) -> None:
            for tool, arguments, word in (
                ("ask_expert", {"expert": COOK_ID, "question": "x"}, "no answer"),
                ("ask_expert", {"expert": "nobody", "question": "x"}, "no such expert"),
                ("ask_expert", {"expert": COOK_ID, "question": " "}, "blank"),
                (
                    "ask_expert",
                    {"expert": COOK_ID, "question": "x", "conversation": "none"},
                    "no such conversation",
                ),
                ("search_expert", {"expert": COOK_ID, "query": " "}, "blank"),
                ("search_expert", {"expert": "nobody", "query": "x"}, "no such expert"),
                ("why", {"expert": COOK_ID, "conversation": "none"}, "no such conversation"),
            ):
                with pytest.raises(ValueError, match=word) as refused:
                    await called(session, tool, **arguments)
                assert "/home" not in str(refused.value) and "sk-key" not in str(refused.value)

        within(server.url, act)
        assert server.chats == 0


def test_an_odd_letter_is_an_error_that_tells_nothing_of_the_inside():
    accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    with served(expert_office()) as server:
        for arguments in (
            {"expert": "\ud800", "question": "x"},
            {"expert": COOK_ID, "question": "x", "conversation": "\ud800"},
        ):
            params = {"name": "ask_expert", "arguments": arguments}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = server.client.post("/mcp", content=json.dumps(call), headers=accept)
            assert answer.status_code in (200, 400) and "rror" in answer.text
            assert not [word for word in ("codec", "utf-8", "UnicodeEncodeError") if word in answer.text]


def test_chats_of_assistants_take_places_too_and_others_are_answered_meanwhile():
    model = HeldModel()
    with served(expert_office(model), GuardRules(limits=GuardLimits(streams=1))) as server:

        async def act(session: ClientSession) -> None:
            waiting = asyncio.create_task(called(session, "ask_expert", expert=COOK_ID, question="x"))
            while not model.begun:
                await asyncio.sleep(0.01)
            with pytest.raises(ValueError, match="too many chats"):
                await called(session, "ask_expert", expert=COOK_ID, question="y")
            assert (await called(session, "list_experts"))[0]["id"] == COOK_ID
            model.finish()
            assert (await waiting)["answer"].strip() == "w0"

        within(server.url, act)
        until(lambda: server.chats == 0, "the place is free")


@pytest.mark.extended
def test_an_assistant_on_standard_input_and_output_asks_the_same(tmp_path):
    graphs = tmp_path / "graphs"
    graphs.mkdir()
    ledger = open_proposals(tmp_path / "experts.proposals.db")
    weaving = GraphProposal(
        "cookbook", (NodeToAdd("technique:prompt_weaving", "technique", "Prompt weaving"),)
    )
    kept = ledger.propose(weaving, ProposalSource("msg", "conv", "ada", "Prompt weaving is a technique"))
    GraphReview(ledger, "cookbook", cookbook, "Grace").accept(kept)
    ledger.close()
    store = str(tmp_path / "experts.db")
    command = ["-m", "kgot_lab", "serve", str(graphs), "--store", store, "--stdio", "--model"]

    async def act(model: str) -> None:
        environment = {"PYTHONPATH": str(Path(kgot_lab.__file__).parents[1])}
        parameters = StdioServerParameters(command=sys.executable, args=[*command, model], env=environment)
        async with stdio_client(parameters) as (reads, writes), ClientSession(reads, writes) as session:
            await session.initialize()
            await everything(session, "expert_cookbook")
            with pytest.raises(ValueError, match="no such conversation"):
                await called(session, "why", expert="expert_cookbook", conversation="none")
            told = await called(
                session, "ask_expert", expert="expert_cookbook", question="How do I use prompt caching?"
            )
            assert told["answer"] == "Use it." and told["sources"]
            assert "prompt_weaving" in str(
                await called(session, "search_expert", expert="expert_cookbook", query="Prompt weaving")
            )
            why = await called(session, "why", expert="expert_cookbook", conversation=told["conversation"])
            assert why["model"] and why["trace"]["nodes"]

    with openai_server(says_on("Use ", "it.")) as model:
        asyncio.run(act(f"{model.url}#m"))
