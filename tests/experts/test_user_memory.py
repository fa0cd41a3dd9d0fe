"""Experts that recall what the one who asks said, of no other, and add nothing to it."""

from __future__ import annotations

from functools import cache

import pytest
from support.expert_server import COOK_ID, expert_office

from kgot_lab.experts.service import PEER_OWNER_PREFIX
from kgot_lab.llm.recorded import Scripted
from kgot_lab.memory.user_memory import open_memory

QUESTION = "How do I reduce API costs?"


@pytest.fixture
def asked(tmp_path):
    """What a model is told when somebody asks, each of whom said something before."""
    opened = cache(lambda owner: open_memory(tmp_path / "me.db", user=owner, embedder=None))
    for owner, text in (("ana", "I pay for 900 API calls a day."), ("bob", "I pay for 12 API calls a day.")):
        opened(owner).add(text)

    def ask(owner: str) -> str:
        model = Scripted(lambda prompt: "Cache it.")
        service = expert_office(model)
        service.memory_of = opened
        before = len(opened("ana").history())
        list(service.ask(COOK_ID, owner, QUESTION).events())
        assert len(opened("ana").history()) == before
        return "\n".join(message.text for message in model.asked[-1].messages)

    yield ask
    for owner in ("ana", "bob"):
        opened(owner).close()


def test_an_answer_recalls_what_its_user_said_behind_a_fence_and_of_nobody_else(asked):
    prompt = asked("ana")
    assert "900 API calls" in prompt and "12 API calls" not in prompt
    head, _, rest = prompt.partition("[Memory]\n<<<")
    assert head and rest.index("900 API calls") < rest.index("\n>>>")
    assert "12 API calls" in asked("bob")


def test_nothing_is_recalled_of_another_server(asked):
    prompt = asked(f"{PEER_OWNER_PREFIX}ana")
    assert "API calls a day" not in prompt and "[Memory]" not in prompt
