"""Learning over the real server: what somebody says is queued, changes nothing until an admin accepts it, and
is taken back exactly.
"""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from support.expert_server import (
    COOK,
    COOK_ID,
    ServedExperts,
    bearer,
    echoing,
    expert_office,
    served,
    text_of,
    the_cookbook,
)
from support.simulated_learning import SimulatedLearner

from kgot_lab.experts.http.auth import GuardRules
from kgot_lab.experts.learning.ledger import open_proposals
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Reply

SAYS = "Prompt weaving is a technique. Prompt weaving requires Embedding model."
NEW = "technique:prompt_weaving"


class AnswersAndReads:
    """A model of tests: it echoes, and reads changes as the simulated learner does where it is asked for
    JSON.
    """

    name = "both"

    def __init__(self) -> None:
        self._answers, self._reads = echoing(), SimulatedLearner()

    def __call__(self, prompt) -> Reply:
        return (self._reads if prompt.schema else self._answers)(prompt)


@pytest.fixture
def server():
    service = expert_office(AnswersAndReads(), expert=COOK)
    learned = LearnedGraphs(service, open_proposals())
    with served(service, GuardRules(tokens=True), learned) as found:
        yield found


@pytest.fixture
def ada(server: ServedExperts):
    return bearer(server.token("ada"))


@pytest.fixture
def grace(server: ServedExperts):
    return bearer(server.token("grace", "admin"))


def found(server, words, headers):
    answer = server.client.post("/api/kgos/query/cookbook", json={"query": words}, headers=headers).json()
    return [each["node"]["id"] for each in answer["results"]]


def test_what_somebody_says_waits_is_accepted_found_and_taken_back(server, ada, grace):
    before = server.service.graphs.graph("cookbook").digest
    conversation = server.ask(SAYS, headers=ada)[0]["conversation_id"]
    talk = f"/api/experts/{COOK_ID}/conversations/{conversation}"
    (mine,) = server.client.post(f"{talk}/learn", json={}, headers=ada).json()
    assert mine["standing"] == "queued"
    assert mine["quotes"]
    assert server.service.graphs.graph("cookbook").digest == before
    path = f"/api/experts/{COOK_ID}"
    assert (
        server.client.put(f"{path}/proposals/{mine['id']}/accepted", json={}, headers=ada).status_code == 403
    )
    (waits,) = server.client.get(f"{path}/proposals", headers=grace).json()
    assert waits["id"] == mine["id"] and waits["quotes"] == []  # the words of another are not told
    accepted = server.client.put(f"{path}/proposals/{mine['id']}/accepted", json={}, headers=grace)
    assert accepted.status_code == 200 and NEW in found(server, "prompt weaving", ada)
    answer = server.client.put(f"{path}/proposals/{mine['id']}/accepted", json={}, headers=grace)
    assert answer.status_code == 422
    undone = server.client.delete(f"{path}/decisions/{accepted.json()['number']}", headers=grace)
    assert undone.json()["undoes"] == accepted.json()["number"]
    assert server.service.graphs.graph("cookbook").digest == before
    assert [each["action"] for each in server.client.get(f"{path}/decisions", headers=grace).json()] == [
        "undo",
        "accept",
    ]


def test_a_conversation_of_another_teaches_nothing_and_one_that_is_deleted_is_forgotten(server, ada, grace):
    conversation = server.ask(SAYS, headers=ada)[0]["conversation_id"]
    talk = f"/api/experts/{COOK_ID}/conversations/{conversation}"
    assert server.client.post(f"{talk}/learn", json={}, headers=grace).status_code == 404
    assert len(server.client.post(f"{talk}/learn", json={}, headers=ada).json()) == 1
    assert server.client.delete(talk, headers=ada).json() == {"deleted": True}
    assert server.client.get(f"/api/experts/{COOK_ID}/proposals", headers=grace).json() == []
    told = server.client.post(f"/api/experts/{COOK_ID}/duplicate", json={"new_name": "Twin"}, headers=grace)
    copy = f"/api/experts/{told.json()['id']}"
    conversation = server.ask(SAYS, expert=told.json()["id"], headers=ada)[0]["conversation_id"]
    server.client.post(f"{copy}/conversations/{conversation}/learn", headers=ada)
    assert len(server.client.get(f"/api/experts/{COOK_ID}/proposals", headers=grace).json()) == 1
    server.client.delete(copy, params={"delete_conversations": True}, headers=grace)
    assert server.client.get(f"/api/experts/{COOK_ID}/proposals", headers=grace).json() == []


def test_the_gaps_of_ones_own_questions_are_told_and_of_nobody_elses(server, ada, grace):
    events = server.ask("Where does prompt weaving help?", headers=ada)
    talk = f"/api/experts/{COOK_ID}/conversations/{events[0]['conversation_id']}/messages/{events[-1]['message_id']}/opinion"
    assert server.client.put(talk, json={"thumb": -1}, headers=ada).status_code == 200
    mine = server.client.get(f"/api/experts/{COOK_ID}/gaps", headers=ada).json()
    assert (mine["asked"], mine["failed"]) == (1, 1)
    assert any("weaving" in line for line in mine["gaps"] + mine["regions"])
    # sentences, and nothing of the inside
    assert not [line for line in mine["gaps"] + mine["regions"] if "(asked=" in line]
    assert server.client.get(f"/api/experts/{COOK_ID}/gaps", headers=grace).json()["asked"] == 0


def test_a_model_that_cannot_read_changes_is_said_and_gives_its_place_back():
    service = expert_office(Scripted(lambda prompt: "no JSON"), expert=COOK)
    with served(service, learned=LearnedGraphs(service, open_proposals())) as found:
        conversation = found.ask(SAYS)[0]["conversation_id"]
        answer = found.client.post(f"/api/experts/{COOK_ID}/conversations/{conversation}/learn", json={})
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "model_away"
        assert found.chats == 0


DEAR = {"graph": "cookbook", "node": "tool:language_model_api", "dimension": "pricing_tier"}
CHEAP = "Language model API is cheap now."


def drift(server, headers, **more):
    return server.client.get(f"/api/experts/{COOK_ID}/drift", headers=headers, params=more).json()


@pytest.mark.extended
def test_a_value_that_several_people_contradict_is_told_to_an_admin_in_numbers_and_own_words_alone(
    server, ada, grace
):
    value = server.service.graphs.graph("cookbook").node(DEAR["node"]).properties[DEAR["dimension"]]
    for _ in range(3):
        server.ask(CHEAP, headers=ada)
    told = drift(server, grace)
    assert (told["watched"], told["drifted"]) == (1, []), "one person is never believed alone"
    for name in ("bob", "carol"):
        server.ask(CHEAP, headers=bearer(server.token(name)))
    (found,) = drift(server, grace)["drifted"]
    assert {name: found[name] for name in DEAR} == DEAR and found["quotes"] == []
    assert (found["value"], found["way"], found["against"], found["agreeing"]) == (value, "lower", 3, 0)
    server.ask(f"{CHEAP} So I think", headers=grace)
    assert drift(server, grace)["drifted"][0]["quotes"] == [CHEAP]
    assert server.client.get(f"/api/experts/{COOK_ID}/drift", headers=ada).status_code == 403
    assert server.client.get(f"/api/experts/{COOK_ID}/drift?days=0", headers=grace).status_code == 422
    tables = server.service.tables
    now, tables.now = tables.now, lambda: now() + timedelta(days=10)
    assert drift(server, grace, days=30)["drifted"] and drift(server, grace, days=5)["watched"] == 0
    assert server.client.get("/api/experts/nobody/drift", headers=grace).status_code == 404


def test_another_value_is_proposed_waits_and_is_accepted_and_then_nothing_is_contradicted(server, grace):
    for name in ("ada", "bob", "carol"):
        server.ask(CHEAP, headers=bearer(server.token(name)))
    path = f"/api/experts/{COOK_ID}"
    assert server.client.post(f"{path}/drift", json={**DEAR, "value": 0.9}, headers=grace).status_code == 422
    answer = server.client.post(f"{path}/drift", json={**DEAR, "node": NEW, "value": 0.1}, headers=grace)
    assert answer.status_code == 404
    made = server.client.post(f"{path}/drift", json={**DEAR, "value": 0.1}, headers=grace)
    assert made.status_code == 201
    assert made.json()["standing"] == "queued"
    assert "3 of 3 people" in made.json()["quotes"][0]
    assert server.service.graphs.graph("cookbook").node(DEAR["node"]).properties[DEAR["dimension"]] != 0.1
    answer = server.client.put(f"{path}/proposals/{made.json()['id']}/accepted", json={}, headers=grace)
    assert answer.status_code == 200
    assert server.service.graphs.graph("cookbook").node(DEAR["node"]).properties[DEAR["dimension"]] == 0.1
    assert drift(server, grace)["drifted"] == []


@pytest.mark.extended
def test_a_graph_whose_file_changed_under_a_decision_is_asked_without_that_decision(tmp_path, caplog):
    lines = [
        json.dumps({"type": "node", "id": node.id, "labels": node.labels, "properties": node.properties})
        for node in the_cookbook().nodes
    ]
    file = tmp_path / "own.json"
    file.write_text("\n".join(lines))
    service = expert_office(AnswersAndReads(), folder=tmp_path, expert={**COOK, "kg_db_id": "own"})
    learned = LearnedGraphs(service, open_proposals())
    with served(service, learned=learned) as found:
        place = f"/api/experts/{COOK_ID}"

        def accepted(words):
            conversation = found.ask(words)[0]["conversation_id"]
            (said,) = found.client.post(f"{place}/conversations/{conversation}/learn").json()
            return found.client.put(f"{place}/proposals/{said['id']}/accepted").json()["number"]

        taken_back = accepted("Prompt knitting is a technique.")
        assert found.client.delete(f"{place}/decisions/{taken_back}").status_code == 200
        first, second = accepted("Prompt weaving is a technique."), accepted("Prompt sewing is a technique.")
        own = [
            {"type": "node", "id": f"technique:prompt_{each}", "labels": ["technique"], "properties": {}}
            for each in ("weaving", "knitting")
        ]
        file.write_text("\n".join([*lines, *map(json.dumps, own)]))  # somebody takes it over into the file
        assert text_of(found.ask("What is prompt sewing?")).startswith("You asked")
        graph = service.graphs.graph("own")
        assert "technique:prompt_sewing" in graph
        assert "curated" not in graph.node("technique:prompt_weaving").properties
        assert f"decisions {first}" in caplog.text and f"decisions {first}, " not in caplog.text
        assert found.client.delete(f"{place}/decisions/{second}").status_code == 200
        assert "technique:prompt_sewing" not in service.graphs.graph("own")
