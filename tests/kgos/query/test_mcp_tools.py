"""What a character knows, told to an assistant by the official client over standard input and output: nothing
that is hidden.
"""

import asyncio
import sys

import pytest
from support.command_line import run_here

from kgot_lab.domains import npc

mcp = pytest.importorskip("mcp")
from mcp.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402


@pytest.fixture
def town(tmp_path):
    """Ilse knows Odo, who guards the crypt; of the crypt she knows nothing."""
    ilse, odo = (
        npc.Entity("npc", "Ilse"),
        npc.Entity("npc", "Odo", {"secret_knowledge": "the crypt", "occupation": "sexton"}),
    )
    crypt = npc.Entity("location", "Crypt")
    ties = [
        npc.Relationship(ilse.id, odo.id, "KNOWS"),
        npc.Relationship(odo.id, crypt.id, "GUARDS", {"secret": True}),
    ]
    with npc.open_world(tmp_path / "town.db") as world:
        world.add([ilse, odo, crypt, npc.Entity("npc", "Odo", {"occupation": "cook"})], ties)
    return tmp_path / "town.db"


def asked_as(name, file, *calls):
    async def ask():
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "kgot_lab", "mcp", str(file), "--npc", name]
        )
        async with Client(stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool("memory_query_entities", call) for call in calls]

    return asyncio.run(ask())


def test_an_assistant_learns_what_a_character_knows_and_nothing_else(town):
    (tool,), (all_of_it, near, hidden, absent) = asked_as(
        "Ilse", town, {}, {"near": "Odo", "type": "npc"}, {"name": "crypt"}, {"name": "nowhere"}
    )
    assert tool.annotations.read_only_hint and set(tool.input_schema["properties"]) == {
        "name",
        "type",
        "near",
    }
    text = all_of_it.content[0].text
    assert "Ilse KNOWS Odo" in text and '"sexton"' in text and text.startswith("<<<")
    assert "rypt" not in text and "secret" not in text and "Odo" in near.content[0].text
    assert hidden.is_error and hidden.content[0].text == absent.content[0].text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--npc", "Nobody"], "nobody is called 'Nobody'; there are Ilse, Odo, Odo"),
        (["--npc", "Odo"], "2 are called 'Odo': give the id of one"),
        (["--npc", "Ilse", "--write", "new.json"], "leave --write out"),
    ],
)
def test_a_name_that_means_nobody_or_several_is_said_at_once(town, arguments, said):
    done = run_here("mcp", str(town), *arguments)
    assert done.code == 1 and said in done.err


def test_asking_makes_no_world(tmp_path):
    done = run_here("mcp", str(tmp_path / "none.db"), "--npc", "Ilse")
    assert done.code == 1 and "there is no world at" in done.err and not (tmp_path / "none.db").exists()
