"""Graphs that people bring: uploaded file by file, read with progress, edited by hand; what must be refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.expert_server import COOK_ID, ServedExperts, echoing, expert_office, served
from support.waiting import until

from kgot_lab.experts.http.auth import GuardLimits, GuardRules
from kgot_lab.experts.learning.ledger import open_proposals
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.experts.uploads import UploadFolder

NOTES = (
    b"# Ovens\n\nBread is baked at 240 degrees.\n\n## Steam\n\nSteam helps the crust in the first minutes.\n"
)
RULES = GuardRules(uploads=True, limits=GuardLimits(uploaded_file=10_000))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedExperts]:
    service = expert_office(echoing())
    service.graphs.uploads = UploadFolder(tmp_path_factory.mktemp("uploads") / "graphs")
    with served(service, RULES, LearnedGraphs(service, open_proposals(":memory:"))) as running:
        yield running


def put(server: ServedExperts, path: str, data: bytes, upload: str = "upload123", **headers: str):
    about = {"content-type": "application/octet-stream", **headers}
    return server.client.put(f"/api/uploads/{upload}/{path}", content=data, headers=about)


def state(server: ServedExperts, id: str) -> dict:
    return next(each for each in server.client.get("/api/choices").json()["graphs"] if each["id"] == id)


def brought(server: ServedExperts, name: str, **files: bytes) -> dict:
    """The state of a graph of some files, once it is read or failed."""
    for path, data in files.items():
        assert put(server, path.replace("__", "/"), data).json() == {"kept": True}
    made = server.client.post("/api/graphs", json={"upload": "upload123", "name": name})
    assert made.status_code == 201, made.text
    id = made.json()["id"]
    until(lambda: state(server, id)["state"] in ("ready", "failed"), "it is read")
    return state(server, id)


def test_a_folder_is_uploaded_read_and_asked(server):
    files = {"notes__ovens.md": NOTES, "notes__empty.md": b"", "notes__people.txt": b"Ada bakes.\n"}
    read = brought(server, "My notes!", **files)
    assert (read["id"], read["state"], read["error"]) == ("my_notes", "ready", "") and read["total"] == 3
    size = server.client.get("/api/kgos/graphs/my_notes").json()
    assert size["nodes"] >= 4
    persona = {"name": "Baker"}
    made = server.client.post(
        "/api/experts", json={"name": "Notes", "kg_db_id": "my_notes", "persona": persona}
    )
    asked = {"query": "How hot is the oven for bread?"}
    events = server.client.post(f"/api/experts/{made.json()['id']}/chat", json=asked).text
    assert "ovens.md" in events
    used = server.client.delete("/api/graphs/my_notes")
    assert used.status_code == 422 and "Notes" in used.json()["error"]["message"]
    again = brought(server, "My notes!", **files)
    assert again["id"] == "my_notes_2"
    assert server.client.delete("/api/graphs/my_notes_2").json() == {"deleted": True}
    assert server.client.delete("/api/graphs/nobody").status_code == 404


@pytest.mark.parametrize(
    ("name", "files", "nodes"),
    [
        ("pdfless", {"one.md": NOTES}, 2),
        ("gml", {"g.graphml": b'<graphml><graph><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>'}, 2),
        ("pairs", {"e.txt": b"a knows b\nb knows c\n"}, 3),
        ("prose", {"e.txt": b"The oven is hot. The bread is the best of all the bread.\n"}, 1),
        ("tables", {"edges.csv": b"source,target\na,b\n", "nodes.csv": b"id,name\na,Ada\nb,Bo\n"}, 2),
        ("code", {"a.py": b"def f():\n    return g()\n\ndef g():\n    return 1\n"}, 3),
    ],
)  # fmt: skip
def test_each_kind_of_file_becomes_a_graph(server, name, files, nodes):
    read = brought(server, name, **files)
    assert (read["state"], read["error"]) == ("ready", "")
    assert server.client.get(f"/api/kgos/graphs/{read['id']}").json()["nodes"] >= nodes


def test_what_holds_nothing_fails_with_the_reason_and_can_be_removed(server):
    read = brought(server, "nothing", **{"a.bin": bytes(range(256)), "b.bin": bytes(200)})
    assert read["state"] == "failed" and "nothing" in read["error"] and "/" not in read["error"].split("(")[0]
    assert server.client.delete(f"/api/graphs/{read['id']}").json() == {"deleted": True}


@pytest.mark.parametrize(
    "path",
    [
        "../out.md", "a/../../out.md", "a//b.md", "%2e%2e/out.md", "..%2fout.md", "a%5Cb.md", "C:/a.md",
        "a%00.md", "a/%2e%2e/%2e%2e/b", " /a.md", "a%0Ab.md", "/".join(["d"] * 40), "n" * 300, ".",
    ],
)  # fmt: skip
def test_no_path_leaves_its_folder(server, path):
    folder = server.service.graphs.uploads.folder
    before = {each for each in folder.parent.rglob("*") if ".unfinished" not in str(each)}
    assert put(server, path, b"x", "hostile12").status_code in (404, 405, 422)
    assert {each for each in folder.parent.rglob("*") if ".unfinished" not in str(each)} == before
    assert not list((folder / ".unfinished").rglob("hostile12/*.md"))


def test_an_upload_is_bounded_typed_and_discarded(server):
    assert put(server, "big.md", b"x" * 10_001).status_code == 413
    assert put(server, "a.md", b"x", **{"content-type": "text/plain"}).status_code == 415
    assert put(server, "a.md", b"x", origin="https://evil.example").status_code == 403
    assert put(server, "a.md", b"x", "Short").status_code == 422
    assert put(server, "a.md", b"x", "discarded1").status_code == 200
    assert put(server, "a.md", b"y", "discarded1").status_code == 422  # nothing is overwritten
    assert put(server, "a.md/b.md", b"y", "discarded1").status_code == 422
    assert server.client.delete("/api/uploads/discarded1").json() == {"deleted": True}
    nothing = server.client.post("/api/graphs", json={"upload": "discarded1", "name": "x"})
    assert nothing.status_code == 422 and "nothing was uploaded" in nothing.text


def test_only_admins_upload_and_only_where_it_is_allowed(tmp_path: Path):
    service = expert_office(echoing())
    service.graphs.uploads = UploadFolder(tmp_path / "graphs")
    with served(service, GuardRules(tokens=True, uploads=True)) as running:
        user = {"authorization": f"Bearer {running.token('bo')}"}
        admin = {"authorization": f"Bearer {running.token('ada', 'admin')}"}
        assert put(running, "a.md", b"x").status_code == 401
        assert put(running, "a.md", b"x", **user).status_code == 403
        assert put(running, "a.md", b"x", **admin).status_code == 200
    with served(service) as running:
        assert put(running, "a.md", b"x").status_code in (404, 415)


def edit(server: ServedExperts, *edits: dict, graph: str = "cookbook", status: int = 201) -> dict:
    answer = server.client.post(f"/api/kgos/edits/{graph}", json=list(edits))
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_node_and_an_edge_are_added_changed_and_undone(server):
    node = {"edit": "NodeToAdd", "id": "technique:slow_oven", "type": "technique", "name": "Slow oven"}
    edge = {
        "edit": "EdgeToAdd",
        "source": "technique:slow_oven",
        "type": "enables",
        "target": "Prompt caching",
    }
    made = edit(server, node, edge)
    assert made["standing"] == "accepted" and "Slow oven" in made["says"]
    path = "/api/kgos/node/cookbook/technique:slow_oven"
    seen = server.client.get(path).json()
    assert [each["type"] for each in seen["edges"]] == ["enables"]
    change = {
        "edit": "PropertyToChange",
        "id": "technique:slow_oven",
        "name": "cost_to_operate",
        "value": 0.25,
    }
    changed = edit(server, change)
    assert server.client.get(path).json()["properties"]["cost_to_operate"] == 0.25
    assert server.client.delete(f"/api/kgos/edits/cookbook/{changed['number']}").status_code == 200
    assert server.client.delete(f"/api/kgos/edits/cookbook/{made['number']}").status_code == 200
    assert server.client.get(path).status_code == 404
    before = server.client.get("/api/kgos/node/cookbook/technique:prompt_caching").json()
    removed = edit(server, {"edit": "NodeToRemove", "id": "prompt_caching"})
    assert server.client.get("/api/kgos/node/cookbook/technique:prompt_caching").status_code == 404
    assert server.client.delete(f"/api/kgos/edits/cookbook/{removed['number']}").status_code == 200
    assert server.client.get("/api/kgos/node/cookbook/technique:prompt_caching").json() == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"edit": "NodeToAdd", "id": "technique:prompt_caching", "type": "technique", "name": "Again"},
        {"edit": "NodeToAdd", "id": "x", "type": " ", "name": "X"},
        {"edit": "EdgeToAdd", "source": "nobody", "type": "requires", "target": "Prompt caching"},
        {"edit": "EdgeToRemove", "source": "Prompt caching", "type": "requires", "target": "Prompt caching"},
        {"edit": "PropertyToChange", "id": "Prompt caching", "name": "id", "value": "y"},
        {"edit": "PropertyToChange", "id": "Prompt caching", "name": "cost_to_operate", "value": 7, "before": "other"},
        {"edit": "NodeToRemove", "id": "nobody"},
        {"edit": "Explode"},
    ],
    ids=str,
)  # fmt: skip
def test_an_edit_that_breaks_a_rule_is_refused_in_words(server, wrong):
    message = edit(server, wrong, status=422)["error"]["message"]
    assert len(message) > 10 and "pydantic" not in message
    edit(server, {"edit": "EdgeToRemove"}, graph="nowhere", status=404)


def test_what_a_user_edits_waits_for_an_admin():
    service = expert_office(echoing())
    with served(
        service, GuardRules(tokens=True), LearnedGraphs(service, open_proposals(":memory:"))
    ) as running:
        user, admin = (
            {"authorization": f"Bearer {running.token(*who)}"} for who in (("bo",), ("ada", "admin"))
        )
        sent = [{"edit": "NodeToAdd", "id": "goal:rest", "type": "goal", "name": "Rest"}]
        made = running.client.post("/api/kgos/edits/cookbook", json=sent, headers=user).json()
        assert (made["standing"], made["number"]) == ("queued", None)
        waiting = running.client.get(f"/api/experts/{COOK_ID}/proposals", headers=admin).json()
        assert [each["id"] for each in waiting] == [made["id"]]


def talks(server: ServedExperts, **headers: str) -> int:
    path = f"/api/experts/{COOK_ID}/conversations"
    return server.client.get(
        path, headers={name.replace("_", "-"): text for name, text in headers.items()}
    ).json()["total"]


def test_each_user_has_conversations_of_their_own(server):
    before = talks(server)
    for user in ("ada", "Bo%20Str%C3%B6m"):
        (started, *_) = server.ask("Whose is this?", headers={"x-user": user})
        assert talks(server, x_user=user) == 1
    path = f"/api/experts/{COOK_ID}/conversations/{started['conversation_id']}"
    assert server.client.get(path, headers={"x-user": "Bo%20Str%C3%B6m"}).status_code == 200
    assert server.client.get(path, headers={"x-user": "ada"}).status_code == 404
    body = {"model": COOK_ID, "messages": [{"role": "user", "content": "hello"}], "user": "ada"}
    assert server.client.post("/v1/chat/completions", json=body).status_code == 200
    assert (talks(server, x_user="ada"), talks(server)) == (2, before)
    for wrong in ("a/b", "../x", " ", "a" * 101, "peer:x"):
        assert (
            server.client.get("/api/choices", headers={"x-user": wrong.replace(" ", "%20")}).status_code
            == 400
        )
        assert server.client.post("/v1/chat/completions", json={**body, "user": wrong}).status_code == 422
