"""Experts that are shared and compared, over the real server: export and import, trials, scores, and
questions to another server.
"""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from support.every import every
from support.expert_server import COOK, COOK_ID, HeldModel, expert_office, served, text_of, the_cookbook
from support.federation import delegate, new_instance_key
from support.waiting import until

from kgot_lab.experts.chat.chat_events import ThoughtEvent
from kgot_lab.experts.chat.consulting import Consultants
from kgot_lab.experts.federation.delegation import ASK_PATH, Federation
from kgot_lab.experts.federation.signing import TIMED_OUT, Peer, Peers, open_nonces
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.http.auth import GuardLimits, GuardRules
from kgot_lab.experts.trials.measures import assign_variant
from kgot_lab.experts.trials.verdict import SETTLED_AFTER
from kgot_lab.graph import PropertyGraph
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Node

TRIALS = f"/api/experts/{COOK_ID}/trials"


@pytest.fixture(scope="module")
def running():
    with served(expert_office()) as found:
        yield found


@pytest.fixture
def server(running):
    running.reset()
    return running


def test_an_expert_is_exported_and_imported(server):
    sent = server.client.get(f"/api/experts/{COOK_ID}/export").json()
    dry = server.client.post("/api/import", json={"expert": sent, "dry": True})
    assert dry.status_code == 201 and dry.json() == {"id": None, "name": "Cookbook", "warnings": []}
    made = server.client.post("/api/import", json={"expert": sent}).json()
    assert made["id"] == f"{COOK_ID}_2"
    assert server.client.get(f"/api/experts/{made['id']}").json()["graph_weights"] == {}
    assert server.client.post("/api/import", json=sent).status_code == 201, "or as it was exported"
    sent["expert"]["name"] = "Changed"
    refused = server.client.post("/api/import", json={"expert": sent})
    assert refused.status_code == 422 and "hash" in refused.json()["error"]["message"]


def test_a_trial_gives_each_conversation_one_configuration_and_is_judged_by_thumbs(server):
    tables = server.service.tables
    at = datetime.now(UTC)
    tables.now = lambda: at
    begun = server.client.post(TRIALS, json={"b": {"retrieval": {"limit": 2}}, "least": 2})
    assert begun.status_code == 201 and begun.json()["decision"] == "undecided"
    trial = begun.json()["id"]
    answer = server.client.post(TRIALS, json={"b": {"retrieval": {"limit": 3}}})
    assert answer.status_code == 422
    seen = {}
    for number in range(12):
        events = server.ask(f"What is prompt caching, number {number}?")
        conversation, message = events[0]["conversation_id"], events[-1]["message_id"]
        sources = next(event["nodes"] for event in events if event["type"] == "sources")
        variant = assign_variant(trial, conversation)
        seen[conversation] = variant
        assert (len(sources) == 2) == (variant == "b")
        thumb = {"thumb": 1 if variant == "b" else -1}
        path = f"/api/experts/{COOK_ID}/conversations/{conversation}/messages/{message}/opinion"
        assert server.client.put(path, json=thumb).status_code == 200
    assert set(seen.values()) == {"a", "b"}
    (shown,) = server.client.get(TRIALS).json()
    counts = shown["comparisons"]["thumbs"]
    assert (counts["a"], counts["b"], counts["n_a"] + counts["n_b"]) == (0, 1, 12)
    assert shown["decision"] in ("undecided", "b")
    ended = server.client.delete(f"{TRIALS}/{trial}").json()
    assert ended["ended"] is not None
    after = server.stored(server.ask("And after the trial?")[0]["conversation_id"])[1]["metadata"]
    assert "trial" not in after


def test_a_trial_of_two_models_has_each_variant_answered_by_its_own():
    with served(
        expert_office(Scripted(lambda prompt: "from one", "one"), Scripted(lambda prompt: "from two", "two"))
    ) as found:
        trial = found.client.post(TRIALS, json={"b": {"models": {"chat": "two"}}}).json()["id"]
        seen = {}
        while len(seen) < 2:
            events = found.ask("What is prompt caching?")
            seen[assign_variant(trial, events[0]["conversation_id"])] = text_of(events)
    assert seen == {"a": "from one", "b": "from two"}


def test_an_expert_that_its_trial_fits_no_more_answers_as_it_is():
    service = expert_office(expert=None)
    service.graphs = GraphFolder(more={"cookbook": the_cookbook, "other": the_cookbook})
    service.create({**COOK, "kg_db_ids": ["cookbook", "other"]})
    with served(service) as found:
        trial = found.client.post(TRIALS, json={"b": {"graph_weights": {"other": 3}}}).json()["id"]
        assert (
            found.client.put(f"/api/experts/{COOK_ID}", json={"kg_db_ids": ["cookbook"]}).status_code == 200
        )
        tried = {}
        while len(tried) < 2:
            talk = found.ask("What is prompt caching?")[0]["conversation_id"]
            tried[assign_variant(trial, talk)] = found.stored(talk)[1]["metadata"].get("variant")
    assert tried == {"a": "a", "b": None}


def test_an_answer_that_nobody_judged_counts_only_after_a_while(server):
    tables, at = server.service.tables, datetime.now(UTC)
    tables.now = lambda: at
    server.client.post(TRIALS, json={"b": {"retrieval": {"limit": 2}}})
    server.ask("What is prompt caching?")
    assert server.client.get(TRIALS).json()[0]["comparisons"] == {}
    tables.now = lambda: at + SETTLED_AFTER + timedelta(seconds=1)
    assert server.client.get(TRIALS).json()[0]["comparisons"] != {}


@every(
    "sent",
    [
        {"b": {}},
        {"a": {"name": "x"}, "b": {}},
        {"b": {"kg_db_id": "other"}},
        {"b": {"retrieval": {"alpha": -1}}},
        {"b": 3},
        {"b": {"models": {"chat": "nowhere"}}},
        {"b": {"playbook_skills": ["nowhere"]}},
        {"b": {"delegates_to": ["no/where"]}},
    ],
)
def test_a_trial_that_makes_no_sense_or_needs_what_is_not_here_does_not_begin(server, sent):
    assert server.client.post(TRIALS, json=sent).status_code == 422
    assert server.client.get(TRIALS).json() == []


def test_scores_count_what_came_of_the_answers(server):
    model = Scripted(["Cached [Source: cookbook:Prompt caching] [Source: cookbook:Nothing]."])
    with served(expert_office(model)) as found:
        found.ask("What is prompt caching?")
        scores = found.client.get(f"/api/experts/{COOK_ID}/scores").json()
    assert scores["measured"] is None
    in_use = scores["in_use"]
    assert (in_use["answers"], in_use["citations"], in_use["false_citations"]) == (1, 1, 1)


GARDENER = {
    "name": "Gardener",
    "kg_db_id": "garden",
    "persona": {"name": "Garden"},
    "delegates_to": [f"cooks/{COOK_ID}"],
}


def consultants(key, peer, **more):
    """The consultants of a server with a key, which knows one peer."""
    return Consultants(Federation(key, Peers(peer), open_nonces(":memory:")), **more)


def garden(*models):
    """A service whose expert knows a garden alone."""
    service = expert_office(*models, expert=None)
    service.graphs._factories["garden"] = lambda: PropertyGraph.of(
        [Node("m", ("plant",), {"name": "Moss", "description": "Has no roots"})], []
    )
    return service


def test_an_expert_asks_one_of_another_server_where_its_graph_says_little_and_a_dead_one_costs_no_answer():
    mine, theirs = new_instance_key(), new_instance_key()
    remote = expert_office(Scripted(lambda prompt: "Cache it [Source: cookbook:Prompt caching]."))
    remote.consultants = consultants(theirs, Peer("asker", "http://127.0.0.1:9", mine.public))
    service = garden(Scripted(lambda prompt: "They say [Source: cooks/cookbook:Prompt caching]."))
    with served(remote) as other:
        service.consultants = consultants(mine, Peer("cooks", other.url, theirs.public), seconds=60)
        with served(service) as here:
            expert = here.client.post("/api/experts", json=GARDENER).json()["id"]
            events = here.ask("How does prompt caching reduce costs?", expert=expert, trace=True)
            (asked,) = next(event["trace"]["delegated"] for event in events if event["type"] == "trace")
            assert asked["provenance"]["public_key"] == theirs.public
            assert asked["provenance"]["sources"] == ["cookbook:Prompt caching"]
            assert [node["graph"] for node in events[-1]["citations"]] == ["cooks/cookbook"]
            assert events[-1]["false_citations"] == []
            known = here.ask("Has moss roots?", expert=expert, trace=True)  # its own graph says enough
            assert next(event["trace"]["delegated"] for event in known if event["type"] == "trace") == []
            assert remote.tables.conversations(COOK_ID, "peer:asker")[1] == 1
            unsigned = other.client.post(ASK_PATH, json={"question": "x"})
            assert unsigned.status_code in (400, 401, 403) and "refused" in unsigned.json()
            other_url = other.url
    with served(service) as here:  # the other is gone
        events = here.ask("How does prompt caching reduce costs?", expert=expert, trace=True)
        assert other_url
        assert events[-1]["type"] == "done"
        assert events[-1]["false_citations"] == ["cooks/cookbook:Prompt caching"]


def test_a_peer_that_does_not_say_what_it_offers_in_time_is_told_in_the_train_of_thought_and_in_the_log(
    caplog,
):
    mine, theirs = new_instance_key(), new_instance_key()
    with closing(
        socket.socket()
    ) as busy:  # takes questions and answers none, as a server that reads its graphs yet
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        peer = Peer("cooks", f"http://127.0.0.1:{busy.getsockname()[1]}", theirs.public)
        service = garden(Scripted(lambda prompt: "I do not know."))
        service.consultants = consultants(mine, peer, seconds=0.3)
        expert = service.create(GARDENER)
        *_, done = events = list(
            service.ask(expert.id, "me", "How does prompt caching reduce costs?").events()
        )
    (asked,) = next(event.thought.delegated for event in events if isinstance(event, ThoughtEvent))
    assert (asked["instance"], asked["expert"], asked["reason"]) == ("cooks", COOK_ID, TIMED_OUT)
    assert done.text
    assert f"no answer from the expert {COOK_ID} of cooks: {TIMED_OUT}" in caplog.text
    assert "prompt caching" not in caplog.text


def test_a_question_of_another_server_takes_a_place_as_any_other_and_is_refused_where_there_is_none():
    mine, theirs, model = new_instance_key(), new_instance_key(), HeldModel()
    remote = expert_office(model)
    remote.consultants = consultants(theirs, Peer("asker", "http://127.0.0.1:9", mine.public))
    with served(remote, GuardRules(limits=GuardLimits(streams=1))) as other:
        peer = Peer("cooks", other.url, theirs.public)
        with ThreadPoolExecutor(1) as asking:
            first = asking.submit(delegate, "How does prompt caching work?", peer, mine, expert=COOK_ID)
            until(lambda: model.begun == 1 and other.chats == 1, "the question of the peer has the place")
            second = delegate("And what does it cost?", peer, mine, expert=COOK_ID)
            assert second.answer is None and "could not answer" in second.reason
            model.may_write(1)
            model.finish()
            assert first.result().text.startswith("w0")
        until(lambda: other.chats == 0, "the place is free")
