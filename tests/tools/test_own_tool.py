"""The tool that docs/tools.md shows is one."""

import re
import tomllib
from pathlib import Path

import pytest
from support.loop_script import FEW, of, scripted, votes

from kgot_lab.errors import ToolFailed
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import ToolReturned
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.tools.offered import ENTRY_POINTS

PAGE = (Path(__file__).parents[2] / "docs/tools.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.S)[1]


@pytest.fixture
def tides():
    made: dict = {}
    exec(block("python"), made)
    return made["tides"](None)


def test_the_tool_of_the_page_is_called_by_the_loop(tides):
    chosen = {"calls": [{"tool": "tides", "arguments": {"port": "Oslo"}}]}
    read, answer = {"statement": "result = facts()"}, {"answer": "x"}
    told = {"forced": read, "reread": read, "guess": answer, "parse": answer, "choose": answer}
    script = scripted(vote=votes("I"), tools=chosen, write={"statements": []}, **told)
    limits = FEW.but(steps=1, votes=1, forced_reads=1, rereads=0)
    events = list(think("When is high tide in Oslo?", script, InMemory(), [tides], limits))
    assert of(ToolReturned, events)[0].text == "In Oslo the tide is high at noon."
    with pytest.raises(ToolFailed, match="no tide is known of Rome"):
        tides(port="Rome")


def test_the_entry_point_of_the_page_is_in_the_group_that_is_read():
    assert list(tomllib.loads(block("toml"))["project"]["entry-points"]) == [ENTRY_POINTS]
