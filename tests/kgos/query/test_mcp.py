"""A graph for assistants, asked by the official client: over standard input and output, over HTTP on this
computer, and in one process.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from support.command_line import run_here
from support.every import every
from support.loopback import free_port
from support.waiting import AMPLE

from kgot_lab.domains import npc
from kgot_lab.domains.npc.layers import LogEntry, WorldLayers
from kgot_lab.kgos.editing import Editor
from kgot_lab.kgos.query.mcp_server import graph_server
from kgot_lab.kgos.query.questions import QUESTIONS
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.memory.user_memory import open_memory
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


async def is_answered(client):
    """What an assistant does first: which tools there are, a question, a wrong one, the graph itself."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"describe", "ask", "context", "cypher"}
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    described = (await client.call_tool("describe", {})).content[0].text
    assert len(described) < 8_000 and all(f"\n{name}(" in described for name in QUESTIONS)
    given = {"query": "reduce API costs", "k": "3", "follow": None}
    found = await client.call_tool("ask", {"question": "want-to", "arguments": given})
    assert not found.is_error and found.structured_content["total"] == 3
    assert found.structured_content["rows"][0]["id"] == "cost_strategy:cache_repeated_work"
    wrong = await client.call_tool("used_by", {"node": "nothing"})
    assert wrong.is_error and "unknown node" in wrong.content[0].text
    beside = await client.call_tool("ask", {"question": "want-to", "goal": "costs", "limit": "2"})
    assert not beside.is_error and len(beside.structured_content["rows"]) <= 2
    statement = "MATCH (n:technique {id: 'technique:prompt_caching'}) RETURN n.name AS name"
    read = await client.call_tool("cypher", {"query": statement})
    assert read.structured_content["rows"] == [{"name": "Prompt caching"}]
    written = await client.call_tool("cypher", {"statement": "MATCH (n) DETACH DELETE n"})
    assert written.is_error and "a read may not DETACH" in written.content[0].text
    node = json.loads((await client.read_resource("graph://node/prompt_caching")).contents[0].text)
    assert node["id"] == "technique:prompt_caching" and node["edges"]


def over_pipes(*arguments):
    command = StdioServerParameters(command=sys.executable, args=["-m", "kgot_lab", "mcp", *arguments])
    return Client(stdio_client(command))


def test_an_assistant_asks_over_standard_streams_and_its_changes_are_kept_in_their_own_file(file, tmp_path):
    async def ask():
        async with over_pipes(str(file), "--write", str(tmp_path / "new.json")) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            given = {"id": "prompt_caching", "properties": {"name": "Caching of prompts"}}
            return tools, await client.call_tool("change_node", given)

    tools, changed = asyncio.run(ask())
    assert {"ask", "add_node", "undo"} < tools and len(tools) <= 10 and not changed.is_error
    after = read_graph(tmp_path / "new.json").node("technique:prompt_caching")
    assert after.properties["name"] == "Caching of prompts" and read_graph(file) == GRAPH


@pytest.mark.extended
def test_an_assistant_asks_over_http_on_this_computer(file):
    port = free_port()

    async def ask():
        async with served(file, port), Client(f"http://127.0.0.1:{port}/mcp") as client:
            await is_answered(client)

    asyncio.run(ask())


@asynccontextmanager
async def served(file, port):
    arguments = ("-m", "kgot_lab", "mcp", str(file), "--http", str(port))
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stderr=quiet)
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
    editor = Editor(GRAPH, by="assistant")

    async def edit():
        async with Client(graph_server(GRAPH)) as client:
            await is_answered(client)
        async with Client(graph_server(GRAPH, editor=editor)) as client:
            named = {"id": "tool:x", "type": "tool", "properties": {"name": "X"}}
            calls = [("add_node", named), ("add_node", {"id": "tool:y", "type": "tool"}), ("undo", {})]
            answers = [await client.call_tool(name, given) for name, given in calls]
            await client.call_tool("add_node", named)
            count = {"cypher": "MATCH (n:tool {id: 'tool:x'}) RETURN count(n) AS n"}
            seen = [await client.call_tool("cypher", count)]
            for name, given in (("remove_node", {"node": "tool:x"}), ("remove_edge", first), ("undo", {})):
                assert not (await client.call_tool(name, given)).is_error
            half = await client.call_tool("remove", {"id": first["source"], "type": first["type"]})
            assert half.is_error and "an edge is removed by id, type and target" in half.content[0].text
            seen.append(await client.call_tool("cypher", count))
            assert [each.structured_content["rows"] for each in seen] == [[{"n": 1}], [{"n": 0}]]
            await client.call_tool("undo", {})
            await client.call_tool("undo", {})
            return answers

    edge = GRAPH.edges[0]
    first = {"source": edge.source, "type": edge.type, "target": edge.target}
    added, refused, undone = asyncio.run(edit())
    assert added.structured_content["said"] == "added node tool:x"
    assert "no edge" in added.structured_content["broken"][0]
    assert refused.is_error and "give it one" in refused.content[0].text
    assert undone.structured_content["said"] == "took back: added node tool:x" and editor.graph == GRAPH


@every(
    "tool, given, said",
    [
        (
            "want_to",
            {"goal": "costs", "lmit": 3},
            "unknown argument of want-to 'lmit'; did you mean 'limit'?",
        ),
        ("want_to", {"goal": ["a"]}, "goal of want-to: it has to be a text"),
        ("want_to", {"goal": "costs", "query": "costs"}, "want-to got goal twice"),
        ("want_to", {}, "want-to needs goal"),
        ("ask", {}, "the argument 'question' of ask: it is missing"),
        ("ask", {"question": "want"}, "unknown question 'want'"),
        ("want_to", {"goal": "costs", "limit": "three"}, "it has to be a whole number"),
        ("ask", {"question": "used-by", "nodes": "x"}, "unknown argument of used-by 'nodes'"),
        ("cypher", {"statement": "MATCH (n RETURN n"}, "Syntax error"),
        ("cypher", {"statement": " "}, "the statement is empty"),
        ("undo", {"change": 3}, "unknown argument of undo 'change'"),
    ],
)
def test_wrong_arguments_are_refused_by_name_in_plain_words(tool, given, said):
    async def ask():
        async with Client(graph_server(GRAPH, editor=Editor(GRAPH, by="assistant"))) as client:
            return await client.call_tool(tool, given)

    answer = asyncio.run(ask())
    assert answer.is_error and said in answer.content[0].text
    assert "pydantic" not in answer.content[0].text


def test_what_a_user_says_is_added_as_dated_claims_and_recalled_beside_the_graph():
    async def talk(memory):
        editor = Editor(GRAPH, by="assistant")
        async with Client(graph_server(GRAPH, editor=editor, memory=memory)) as client:
            tools = (await client.list_tools()).tools
            said = {"episode_body": "I live in Rome.", "reference_time": "2026-03-01"}
            added = await client.call_tool("add_episode", said)
            return tools, added, await client.call_tool("context", {"question": "Where do I live?"})

    with open_memory(user="ana", embedder=None) as memory:
        tools, added, recalled = asyncio.run(talk(memory))
        (fact,) = memory.facts()
    assert (fact.identity, added.is_error) == (("ana", "lives_in", "Rome"), False)
    assert "- 2026-03-01: I live in Rome. [ana/2026-03-01" in recalled.content[0].text
    assert len(tools) <= 10 and "add_episode" in {tool.name for tool in tools}
    schema = json.dumps([tool.model_dump(exclude_none=True, by_alias=True) for tool in tools])
    inputs = json.dumps([(tool.name, tool.description, tool.input_schema) for tool in tools])
    assert len(inputs) < 5_000 and len(schema) < 12_000


def test_each_line_is_answered_also_after_the_last_and_changes_are_made_in_their_order_unless_cancelled(
    file, tmp_path
):
    def called(id, name, given):
        return {
            "jsonrpc": "2.0",
            "id": id,
            "method": "tools/call",
            "params": {"name": name, "arguments": given},
        }

    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
    names = [{"id": "prompt_caching", "properties": {"name": f"Caching {number}"}} for number in range(8)]
    changes = [called(number, "change_node", given) for number, given in enumerate(names, start=1)]
    last = called(30, "change_node", {"id": "prompt_caching", "properties": {"name": "Never"}})
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 30}}
    half, listed = called(20, "want_to", {"goal": "\ud83d"}), called(21, "want_to", [1])
    prompt = {"jsonrpc": "2.0", "id": 22, "method": "prompts/get", "params": {"name": "x"}}
    lines = [*map(json.dumps, (begin, *changes, last, cancelled, half, listed, prompt)), "{nonsense"]
    command = [sys.executable, "-m", "kgot_lab", "mcp", str(file), "--write", str(tmp_path / "new.json")]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=AMPLE)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert answers.keys() == {None, *range(9), 20, 21, 22}
    assert "Traceback" not in done.stderr
    assert not any(answers[number]["result"]["isError"] for number in range(1, 9))
    after = read_graph(tmp_path / "new.json").node("technique:prompt_caching")
    assert after.properties["name"] == "Caching 7"
    for id, said in (
        (20, "half a surrogate pair"),
        (None, "no JSON-RPC message"),
        (21, "arguments: it has to be a set"),
        (22, "there is no prompt 'x'"),
    ):
        assert said in answers[id]["error"]["message"]


def test_what_nodes_say_is_behind_a_fence():
    async def ask():
        async with Client(graph_server(GRAPH)) as client:
            return await client.call_tool("context", {"query": "reduce costs"})

    text = asyncio.run(ask()).content[0].text
    assert text.startswith("<<<") and text.rstrip().split("\n")[-1].startswith(">>>")


# --- what a character knows


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """Ilse knows Odo, who guards the crypt; of the crypt she knows nothing."""
    ilse, crypt = npc.Entity("npc", "Ilse"), npc.Entity("location", "Crypt")
    odo = npc.Entity("npc", "Odo", {"secret_knowledge": "the crypt", "occupation": "sexton"})
    guards = npc.Relationship(odo.id, crypt.id, "GUARDS", {"secret": True})
    path = tmp_path_factory.mktemp("town") / "town.db"
    with npc.open_world(path) as world:
        other = npc.Entity("npc", "Odo", {"occupation": "cook"})
        world.add([ilse, odo, crypt, other], [npc.Relationship(ilse.id, odo.id, "KNOWS"), guards])
        said = [("Among the reeds.", (ilse.id,)), ("The crypt is open.", ())]
        WorldLayers(world).log.append(LogEntry("monday", text, to, odo.id) for text, to in said)
    return path


def test_an_assistant_learns_what_a_character_knows_and_nothing_else(town):
    calls = ({}, {"near": "Odo", "type": "npc"}, {"name": "crypt"}, {"name": "nowhere"})
    reads = [("log", {}), ("log", {"words": "reeds", "session": "monday"}), ("log", {"words": "crypt"})]
    reads += [("context", {"matter": "the floor"})]

    async def ask():
        async with over_pipes(str(town), "--npc", "Ilse") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            found = [await client.call_tool("memory_query_entities", call) for call in calls]
            return tools, found, [await client.call_tool(f"memory_{name}", call) for name, call in reads]

    tools, (all_of_it, near, hidden, absent), (last, found, none, context) = asyncio.run(ask())
    assert tools.keys() == {"memory_query_entities", "memory_log", "memory_context"}
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    tool = tools["memory_query_entities"]
    assert "Odo: Among the reeds. [monday]" in last.content[0].text == found.content[0].text
    assert none.is_error and "Ilse (npc)" in context.content[0].text
    assert "heard: Among the reeds." in context.content[0].text and "rypt" not in context.content[0].text
    assert set(tool.input_schema["properties"]) == {"name", "type", "near"}
    text = all_of_it.content[0].text
    assert "Ilse KNOWS Odo" in text and '"sexton"' in text and text.startswith("<<<")
    assert "rypt" not in text and "secret" not in text and "Odo" in near.content[0].text
    assert hidden.is_error and hidden.content[0].text == absent.content[0].text


@every(
    "arguments, said",
    [
        (["--npc", "Nobody"], "nobody is called 'Nobody'; there are Ilse, Odo, Odo"),
        (["--npc", "Odo"], "2 are called 'Odo': give the id of one"),
        (["--npc", "Ilse", "--write", "new.json"], "leave --write out"),
        (["--user", "ada", "--embedder", "minilm"], "leave it out with --user"),
    ],
)
def test_a_name_that_means_nobody_or_several_is_said_at_once(town, arguments, said):
    done = run_here("mcp", str(town), *arguments)
    assert done.code == 1 and said in done.err


def test_asking_makes_no_world(tmp_path):
    done = run_here("mcp", str(tmp_path / "none.db"), "--npc", "Ilse")
    assert done.code == 1 and "there is no world at" in done.err and not (tmp_path / "none.db").exists()
