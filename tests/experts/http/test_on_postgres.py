"""The same server on PostgreSQL: what is kept, what is continued, and what no database takes."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from support.expert_server import COOK, COOK_ID, bearer, expert_office, served, text_of

from kgot_lab.experts.http.auth import GuardRules

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def server(postgres_url):
    from psycopg.conninfo import conninfo_to_dict

    where = conninfo_to_dict(postgres_url)
    host = urlencode({"host": where["host"], "port": where["port"], "user": where["user"]})
    with served(
        expert_office(place=f"postgresql:///{where['dbname']}?{host}"), GuardRules(tokens=True)
    ) as running:
        running.client.headers.update(bearer(running.token("ada", "admin")))
        yield running


def test_a_conversation_is_kept_continued_judged_and_deleted(server):
    first = server.ask("Hello there \U0001f9d0")
    id = first[0]["conversation_id"]
    history = [
        {"role": "user", "content": "Hello there \U0001f9d0"},
        {"role": "model", "content": text_of(first)},
    ]
    assert server.ask("More", history=history)[0]["conversation_id"] == id
    assert [each["role"] for each in server.stored(id)] == ["user", "assistant"] * 2
    place = f"/api/experts/{COOK_ID}/conversations/{id}"
    message = first[-1]["message_id"]
    assert server.client.put(f"{place}/messages/{message}/opinion", json={"thumb": -1}).json() == {
        "kept": True
    }
    assert server.client.get(place, headers=bearer(server.token("bob"))).status_code == 404
    assert (
        server.client.delete(place).json() == {"deleted": True}
        and server.client.get(place).status_code == 404
    )


def test_experts_come_and_go_and_no_id_comes_again(server):
    told = {**COOK, "persona": {"name": "Phoenix"}}
    for id in ("expert_phoenix", "expert_phoenix_2"):
        assert server.client.post("/api/experts", json=told).json()["id"] == id
        assert (
            server.client.put(f"/api/experts/{id}", json={"description": "changed"}).json()["description"]
            == "changed"
        )
        assert server.client.delete(f"/api/experts/{id}").status_code == 200


def test_experts_are_listed_by_pages_as_they_are_whole(server):
    for _ in range(2):
        server.client.post("/api/experts", json=COOK)
    whole = server.client.get("/api/experts").json()
    first = server.client.get("/api/experts", params={"limit": 2})
    second = server.client.get("/api/experts", params={"limit": 2, "after": first.json()[-1]["id"]})
    assert first.json() + second.json() == whole and "link" in first.headers and "link" not in second.headers


def test_what_people_contradict_is_read_there_too(server):
    for name in ("ada", "bob", "carol"):
        server.ask("Language model API is cheap now.", headers=bearer(server.token(name)))
    assert [
        each[0] for each in server.service.tables.spoken(COOK_ID, datetime(2000, 1, 1, tzinfo=UTC), 3)
    ] == ["carol", "bob", "ada"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/experts/%00",
        f"/api/experts/{COOK_ID}/conversations/%00",
        "/v1/models/%00",
        "/api/experts/%ED%A0%80",
    ],
)
def test_what_no_database_looks_for_is_not_there(server, path):
    assert server.client.get(path).status_code == 404
