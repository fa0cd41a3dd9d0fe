"""No password or key of an address is printed or written down, by whatever command was given it, in good use
and in bad.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import ASK, QUESTION, asking

from kgot_lab.errors import BadInput, LabError, ToolFailed, UnknownName, mask_secrets
from kgot_lab.stores import open_store

SECRET = "sw0rdfish"
MODELS = [
    f"http://key:{SECRET}@127.0.0.1:9/v1#m",
    f"http://127.0.0.1:9/v1?api_key={SECRET}#m",
    f"htp://key:{SECRET}@127.0.0.1:9/v1#m",
]
STORES = [
    f"bolt://neo4j:{SECRET}@127.0.0.1:9", f"http://key:{SECRET}@127.0.0.1:9/query", f"http://127.0.0.1:9/query?api_key={SECRET}",
    f"postgresql://lab:{SECRET}@127.0.0.1:9/graphs", f"redis://lab:{SECRET}@127.0.0.1:9", f"bolt://neo4j:{SECRET}/x@127.0.0.1:9",
    f"bolt://neo4j:x@{SECRET}@127.0.0.1:9", f"http://127.0.0.1:9/query?x=1&access_token={SECRET}",
]  # fmt: skip
ASK = [*ASK]
BY_MODEL = [
    [*ASK, "--model"], [*ASK, "--execution-model"], [*ASK, "--vision-model"], ["extract", "my papers", "--model"],
    ["resume", "run.jsonl", "--model"], ["fork", "run.jsonl", "1", "--change", "other", "--model"],
    ["questions", "set.jsonl", "--model"], ["questions", "set.jsonl", "--grader"], ["questions", "set.jsonl", "--vision-model"],
]  # fmt: skip
BY_STORE = [
    [*ASK, "--store"], [*ASK, "--at"], [*ASK, "--store", "cypher_server", "--at"], [*ASK, "--store", "sparql_server", "--at"],
    [*ASK, "--store", "in_memory", "--at"], [*ASK, "--namespace", "n", "--graph"], [*ASK, "--namespace", "n", "--keep", "--graph"],
    [*ASK, "--graph"], [*ASK, "--store", "bolt://127.0.0.1:9", "--at"], ["namespaces"], ["namespaces", "--delete", "n"],
    ["resume", "run.jsonl", "--documents", "my papers", "--store"], ["resume", "run.jsonl", "--documents", "my papers", "--at"],
    ["questions", "set.jsonl", "--store"],
]  # fmt: skip
WRONG = [  # an address where none belongs
    ["ask", QUESTION, "--documents"], [*ASK, "--trace"], [*ASK, "--engine"], [*ASK, "--parallel"], [*ASK], ["show"],
    ["extract"], ["export"], ["questions"], ["bench"], [*ASK, "--attach"], [*ASK, "--tool"], [*ASK, "--set"], [],
]  # fmt: skip


def refused(words: list[str]) -> list[str]:
    """Three addresses that a command refuses; each is refused by several commands."""
    addresses = STORES if words in BY_STORE else MODELS if words in BY_MODEL else [*MODELS[:1], *STORES[:4]]
    first = [*BY_MODEL, *BY_STORE, *WRONG].index(words)
    return [addresses[(first + number) % len(addresses)] for number in range(3)]


def shown(ran) -> str:
    """All that a command printed, without the line breaks of its frames, and all that lies in the folder now."""
    written = "".join(str(p) + p.read_text(errors="replace") for p in Path().rglob("*") if p.is_file())
    return "".join((ran.out + ran.err).replace("│", "").split()) + written


@pytest.fixture
def run(kgot_lab, here, finished_run, monkeypatch):
    """A folder with a run, a set of questions, and no server that waits long."""
    monkeypatch.setenv("COLUMNS", "300")
    Path("set.jsonl").write_text('{"question": "Where was Ada Lovelace born?", "answer": "London"}\n')
    Path("run.jsonl").write_text("".join(finished_run.trace.splitlines(keepends=True)[:4]))  # stopped
    return kgot_lab


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore:The Query API")
@pytest.mark.parametrize("words", [*BY_MODEL, *BY_STORE, *WRONG], ids=lambda words: " ".join(words)[:70])
def test_an_address_that_is_refused_is_told_without_its_password(run, words):
    for address in refused(words):
        asked = words not in BY_MODEL and words[:1] in (["ask"], ["questions"])
        model = ["--model", "http://127.0.0.1:9/v1#m", "--max-calls", 1] if asked else []
        ran = run(*words, address, *model)
        assert ran.code != 0 and SECRET not in shown(ran), (address, ran.err)


def test_a_key_in_the_address_of_a_store_that_is_used_is_on_no_page_and_in_no_file(
    kgot_lab, here, oxigraph_server, server
):
    at = f"{oxigraph_server.query_url}?api_key={SECRET}"
    words = asking(
        server,
        *"--store sparql_server --at".split(),
        at,
        *"--namespace n --trace run.jsonl --html run.html".split(),
    )
    ran = kgot_lab(*words, "--max-calls", 4)
    assert ran.code == 1 and "api_key=…" in ran.err and SECRET not in shown(ran)
    lost = kgot_lab(*words[:-6], "--at", at.replace(SECRET, "…"))
    assert lost.code == 1 and "give the whole address" in lost.err


def test_every_error_of_ours_shows_no_password_and_keeps_the_rest():
    for error in (
        LabError(f"no bolt://neo4j:{SECRET}@host"), BadInput(f"no http://host/q?key={SECRET}"),
        UnknownName("store", f"x://a:{SECRET}@h", ["y"]), ToolFailed(f"no page at https://a:{SECRET}@host/page"),
    ):  # fmt: skip
        assert SECRET not in str(error) and "…" in str(error)
    with pytest.raises(BadInput) as caught:
        open_store("bolt://host", at=f"bolt://neo4j:{SECRET}@host")
    assert SECRET not in str(caught.value) and "bolt://…@host" in str(caught.value)
    for text in (
        "https://medium.com/@author",
        "http://127.0.0.1:8000/@me",
        "reply_tokens.vote=500",
        "ada@example.org",
        "http://h/q?page=2",
    ):
        assert mask_secrets(text) == text
