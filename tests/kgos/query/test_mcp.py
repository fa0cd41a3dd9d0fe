"""A graph for assistants, asked by the official client: over standard input and output, over HTTP on this
computer, and in one process.
"""

import asyncio
import json
import socket
import sys
from contextlib import asynccontextmanager

import pytest
from support.waiting import AMPLE

from kgot_lab.kgos.editing import Editor
from kgot_lab.kgos.query.mcp_server import graph_server
from kgot_lab.kgos.query.questions import QUESTIONS
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.stores.files import read_graph, write_graph

mcp = pytest.importorskip("mcp")
from mcp.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

GRAPH = cookbook()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cookbook.json"
    write_graph(GRAPH, path)
    return path


async def looked_at(client):
    """What an assistant does first: which tools there are, a question, a wrong one, the graph itself."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    found = await client.call_tool("want_to", {"goal": "reduce API costs", "limit": 3})
    wrong = await client.call_tool("used_by", {"node": "nothing"})
    node = await client.read_resource("graph://node/prompt_caching")
    return tools, found, wrong, json.loads(node.contents[0].text)


def is_answered(tools, found, wrong, node):
    assert {name.replace("-", "_") for name in QUESTIONS} <= set(tools) and not {"add_node", "undo"} & set(
        tools
    )
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert not found.is_error and found.structured_content["total"] == 3
    assert found.structured_content["rows"][0]["id"] == "cost_strategy:cache_repeated_work"
    assert wrong.is_error and "unknown node" in wrong.content[0].text
    assert node["id"] == "technique:prompt_caching" and node["edges"]


def test_an_assistant_asks_over_standard_input_and_output(file):
    async def ask():
        server = StdioServerParameters(command=sys.executable, args=["-m", "kgot_lab", "mcp", str(file)])
        async with Client(stdio_client(server)) as client:
            return await looked_at(client)

    is_answered(*asyncio.run(ask()))


def test_an_assistant_asks_over_http_on_this_computer(file):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def ask():
        async with served(file, port), Client(f"http://127.0.0.1:{port}/mcp") as client:
            return await looked_at(client)

    is_answered(*asyncio.run(ask()))


@asynccontextmanager
async def served(file, port):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kgot_lab",
        "mcp",
        str(file),
        "--http",
        str(port),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        for _ in range(int(AMPLE / 0.1)):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                assert process.returncode is None
                await asyncio.sleep(0.1)
        yield
    finally:
        process.terminate()
        await process.wait()


def test_changes_are_offered_only_where_they_are_allowed_and_are_checked():
    async def edit():
        editor = Editor(GRAPH, by="assistant")
        async with Client(graph_server(GRAPH, editor=editor)) as client:
            added = await client.call_tool(
                "add_node", {"id": "tool:x", "type": "tool", "properties": {"name": "X"}}
            )
            refused = await client.call_tool("add_node", {"id": "tool:y", "type": "tool"})
            found = await client.call_tool("find", {"words": "X", "limit": 500})
            undone = await client.call_tool("undo", {})
        return added, refused, found, undone, editor

    added, refused, found, undone, editor = asyncio.run(edit())
    assert (
        added.structured_content["said"] == "added node tool:x"
        and "no edge" in added.structured_content["broken"][0]
    )
    assert refused.is_error and "give it one" in refused.content[0].text
    assert undone.structured_content["said"] == "took back: added node tool:x" and editor.graph == GRAPH
    assert not found.is_error


def test_what_an_assistant_changes_is_kept_in_a_file_of_its_own(file, tmp_path):
    async def edit():
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "kgot_lab", "mcp", str(file), "--write", str(tmp_path / "new.json")],
        )
        async with Client(stdio_client(server)) as client:
            return await client.call_tool(
                "change_node", {"id": "prompt_caching", "properties": {"name": "Caching of prompts"}}
            )

    assert not asyncio.run(edit()).is_error
    assert (
        read_graph(tmp_path / "new.json").node("technique:prompt_caching").properties["name"]
        == "Caching of prompts"
    )
    assert read_graph(file) == GRAPH


def test_what_nodes_say_is_behind_a_fence():
    async def ask():
        async with Client(graph_server(GRAPH)) as client:
            return await client.call_tool("context", {"query": "reduce costs"})

    text = asyncio.run(ask()).content[0].text
    assert text.startswith("<<<") and text.rstrip().split("\n")[-1].startswith(">>>")
