"""The Python of docs/extending.md, run as it stands there."""

import re
import tomllib
from pathlib import Path

import pytest

from kgot_lab.loop.events import Decided, Started, ToolReturned
from kgot_lab.loop.replay.replay import verify
from kgot_lab.tools.offered import ENTRY_POINTS

PAGE = (Path(__file__).parents[2] / "docs/extending.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def names() -> dict:
    made: dict = {}
    for block in blocks("python"):
        exec(block, made)
    return made


def test_the_tool_the_model_and_the_mode_of_the_page_answer(names):
    run = names["run"]
    assert run.answer == "no agreement"
    returned = [event for event in run.events if isinstance(event, ToolReturned)]
    assert returned[0].text == '{"port":"Oslo","high":"noon"}' and not returned[0].failed


def test_the_prompt_and_the_approval_of_the_page_are_used(names):
    run = names["lab"].ask(
        "When is high tide in Oslo?", model=names["house_model"], preset=names["limits"], tools=[names["high_tide"]],
        prompts=names["own"], approve=names["approve"],
    )  # fmt: skip
    assert isinstance(run.events[0], Started) and run.events[0].custom["prompts"] == names["own"]
    decided = [event for event in run.events if isinstance(event, Decided)]
    assert {event.decision for event in decided} == {"approved"} and verify(run.events) is None


def test_the_entry_point_of_the_page_is_in_the_group_that_is_read():
    assert list(tomllib.loads(blocks("toml")[0])["project"]["entry-points"]) == [ENTRY_POINTS]
