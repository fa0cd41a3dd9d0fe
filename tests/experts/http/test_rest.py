"""The documented REST API, asked over a real socket: its shapes, its statuses, and the events of a chat in
their order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import pytest
from support.claim_places import InPostgres
from support.every import every
from support.expert_server import (
    COOK,
    COOK_ID,
    FailingModel,
    ServedExperts,
    bearer,
    echoing,
    expert_office,
    served,
    text_of,
    the_cookbook,
)

from kgot_lab.errors import LLMError
from kgot_lab.experts.http.auth import GuardRules
from kgot_lab.experts.repository import open_experts
from kgot_lab.kgos.methods.compose_for import compose_for
from kgot_lab.kgos.methods.impact_analysis import impact_analysis
from kgot_lab.kgos.methods.ranking import similar_to
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.llm.recorded import Scripted
from kgot_lab.retrieval.fusion import Weights
from kgot_lab.types import Prompt

NODE = "technique:prompt_caching"
ODD = ("a\x00b", "\ud800")
SECRETS = (
    "/home/ada/models/secret.gguf",
    "sk-verysecretkey123456",
    "Traceback",
    "ZeroDivisionError",
    "LLMError",
    "site-packages",
)


def citing(prompt: Prompt) -> str:
    return "Cache it [Source: cookbook:Prompt caching], and pray [Source: cookbook:Prayer wheel]."


@pytest.fixture(scope="module")
def asked() -> Iterator[Scripted]:
    yield echoing()


@pytest.fixture(scope="module")
def server(asked: Scripted) -> Iterator[ServedExperts]:
    broken = FailingModel(LLMError(f"{SECRETS[0]} refused {SECRETS[1]}"), "It begins ", "broken")
    wrong = FailingModel(ZeroDivisionError(SECRETS[1]), name="wrong")
    odd = Scripted(lambda prompt: "one\u2028two \x85 \ud800 three \x00 end", "odd")
    with served(expert_office(asked, Scripted(citing, "citing"), broken, wrong, odd)) as running:
        yield running


def error_of(answer) -> tuple[int, str, str]:
    told = answer.json()
    assert set(told) == {"error"} and set(told["error"]) == {"code", "message"}, answer.text
    assert not [secret for secret in (*SECRETS, "kgot_lab/", "pydantic") if secret in answer.text], (
        answer.text
    )
    return answer.status_code, told["error"]["code"], told["error"]["message"]


# --- experts ---


def test_an_expert_is_made_read_listed_changed_and_deleted(server):
    made = server.client.post("/api/experts", json={**COOK, "persona": {"name": "Ada the First"}})
    assert made.status_code == 201 and set(made.json()) == {"id", "name", "created_at"}
    id = made.json()["id"]
    assert id == "expert_ada_the_first"
    whole = server.client.get(f"/api/experts/{id}").json()
    assert whole["kg_db_id"] == "cookbook" and whole["retrieval"]["limit"] == 10
    assert sum(whole["effective_weights"].values()) == pytest.approx(1)
    shown = next(each for each in server.client.get("/api/experts").json() if each["id"] == id)
    assert shown["persona"] == {"name": "Ada the First", "style": "professional"}
    assert shown["conversation_count"] == 0
    gone = server.client.delete(f"/api/experts/{id}")
    assert gone.json() == {"deleted": True, "conversations_deleted": 0}
    assert error_of(server.client.get(f"/api/experts/{id}"))[:2] == (404, "not_there")
    assert error_of(server.client.delete(f"/api/experts/{id}"))[0] == 404


def pages_of(client, params):
    """The experts of each page, as `Link` leads from one to the next."""
    answer = client.get("/api/experts", params=params)
    while True:
        yield [each["id"] for each in answer.json()]
        if "link" not in answer.headers:
            return
        address = re.fullmatch('<(.+)>; rel="next"', answer.headers["link"])
        answer = client.get(address[1])


def test_experts_are_listed_whole_or_by_pages_that_lead_to_the_next():
    with served(expert_office()) as server:
        for _ in range(6):
            server.client.post("/api/experts", json=COOK)
        whole = server.client.get("/api/experts")
        ids = [each["id"] for each in whole.json()]
        assert len(ids) == 7 and "link" not in whole.headers
        for limit, sizes in ((3, [3, 3, 1]), (7, [7]), (200, [7])):
            pages = list(pages_of(server.client, {"limit": limit}))
            assert list(chain.from_iterable(pages)) == ids and list(map(len, pages)) == sizes
        server.ask("hello", expert=ids[4])
        page = server.client.get("/api/experts", params={"limit": 2, "after": ids[3]}).json()
        assert [(each["id"], each["conversation_count"]) for each in page] == [(ids[4], 1), (ids[5], 0)]
        assert page == server.client.get("/api/experts").json()[4:6]


def test_a_page_leaves_nothing_out_where_experts_come_and_go_meanwhile():
    with served(expert_office()) as server:
        for _ in range(4):
            server.client.post("/api/experts", json=COOK)
        pages = pages_of(server.client, {"limit": 2})
        first = next(pages)
        for gone in first:  # also the one from which the next page goes on
            server.client.delete(f"/api/experts/{gone}")
        server.client.post("/api/experts", json=COOK)
        assert list(chain.from_iterable(pages)) == [f"{COOK_ID}_{number}" for number in (3, 4, 5, 6)]


def test_a_copy_has_what_it_overrides_and_all_else_of_its_original(server):
    copied = server.client.post(
        f"/api/experts/{COOK_ID}/duplicate",
        json={"new_name": "Copy", "overrides": {"retrieval": {"limit": 4}}},
    )
    assert copied.status_code == 201 and copied.json()["id"] == f"{COOK_ID}_copy_1"
    whole = server.client.get(f"/api/experts/{COOK_ID}_copy_1").json()
    assert (whole["name"], whole["retrieval"]["limit"], whole["persona"]["name"]) == ("Copy", 4, "Cook")
    assert error_of(server.client.post("/api/experts/nobody/duplicate", json={"new_name": "x"}))[0] == 404
    assert error_of(server.client.post(f"/api/experts/{COOK_ID}/duplicate", json={"new_name": " "}))[0] == 422


def test_a_body_that_is_nested_beyond_reason_is_refused_and_breaks_nothing(server):
    for deep in (
        "[" * 100_000,
        '{"a":' * 500 + "1" + "}" * 500,
        '{"retrieval":' + '{"a":' * 900 + "1" + "}" * 901,
    ):
        answer = server.client.put(
            f"/api/experts/{COOK_ID}", content=deep, headers={"content-type": "application/json"}
        )
        assert error_of(answer)[0] in (400, 422)
    assert server.client.get(f"/api/experts/{COOK_ID}").status_code == 200


# --- chat ---


def test_a_chat_tells_its_events_in_their_order(server):
    events = server.ask("How do I use prompt caching?", model="citing")
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["conversation_start", "injection_meta", "sources"] and kinds[-1] == "done"
    assert set(kinds[3:-1]) == {"token"} and len(kinds) > 5
    start, injected, sources, *_, done = events
    assert set(injected) == {"type", "memories", "skills", "kg_nodes"}
    assert injected["kg_nodes"] == len(sources["nodes"]) <= 10
    assert all(set(node) == {"id", "name", "type", "score", "graph"} for node in sources["nodes"])
    assert done["citations"] == [{"graph": "cookbook", "id": NODE, "name": "Prompt caching"}]
    assert done["false_citations"] == ["cookbook:Prayer wheel"]
    assert "Prayer wheel (not in the context)" in text_of(events)
    question, answer = server.stored(start["conversation_id"])
    assert (question["role"], question["content"]) == ("user", "How do I use prompt caching?")
    shown = (answer["role"], answer["content"], answer["id"])
    assert shown == ("assistant", text_of(events), done["message_id"])
    assert answer["metadata"]["kg_nodes_used"] == [node["id"] for node in sources["nodes"]]


def test_the_train_of_thought_comes_if_it_is_asked_for(server):
    kinds = [event["type"] for event in server.ask("prompt caching", trace=True)]
    assert kinds[:4] == ["conversation_start", "injection_meta", "sources", "trace"]
    assert kinds.count("trace") == 1
    assert "trace" not in [event["type"] for event in server.ask("prompt caching", trace=False)]


def test_letters_that_some_clients_take_for_ends_of_lines_come_over_whole(server):
    asked = "one\u2028two\x85three\x0bfour\u2029 \U0001f9d0"
    with server.client.stream("POST", f"/api/experts/{COOK_ID}/chat", json={"query": asked}) as answer:
        events = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line]
    assert text_of(events) == f"You asked: {asked}"


def test_what_no_database_keeps_is_taken_out_of_an_answer(server):
    events = server.ask("anything", model="odd")
    assert events[-1]["type"] == "done" and "\x00" not in text_of(events) and "end" in text_of(events)
    assert server.stored(events[0]["conversation_id"])[1]["content"] == text_of(events)


def test_a_history_is_told_to_the_model_whether_its_roles_are_of_one_protocol_or_the_other(server, asked):
    history = [{"role": "user", "content": "I like tea."}, {"role": "model", "content": "Noted."}]
    server.ask("And so?", history=history)
    told = [(message.role, message.text) for message in asked.asked[-1].messages[1:]]
    assert told == [("user", "I like tea."), ("assistant", "Noted."), ("user", "And so?")]
    history[1]["role"] = "assistant"
    server.ask("And so?", history=history)
    assert [(message.role, message.text) for message in asked.asked[-1].messages[1:]] == told


def test_what_the_server_knows_of_a_conversation_counts_and_not_what_the_caller_says(server, asked):
    first = server.ask("My colour is green.")
    id = first[0]["conversation_id"]
    second = server.ask(
        "Which?", conversation_id=id, history=[{"role": "user", "content": "My colour is red."}]
    )
    assert second[0]["conversation_id"] == id
    told = [message.text for message in asked.asked[-1].messages[1:]]
    assert told == ["My colour is green.", "You asked: My colour is green.", "Which?"]
    assert [each["role"] for each in server.stored(id)] == ["user", "assistant"] * 2


def test_a_history_that_is_what_was_said_goes_on_in_its_conversation(server):
    first = server.ask("A very particular opening.")
    history = [
        {"role": "user", "content": "A very particular opening."},
        {"role": "model", "content": text_of(first)},
    ]
    assert server.ask("Next.", history=history)[0] == first[0]
    assert server.ask("Next.", history=[{"role": "user", "content": "Another."}, *history[1:]])[0] != first[0]


def test_a_model_that_fails_is_told_in_place_of_the_rest_and_kept_as_failed(server):
    for model, said in (("broken", "It begins "), ("wrong", "")):
        events = server.ask("Tell me the secret question.", model=model)
        *_, failed, done = events
        assert failed["type"] == "error" and done["type"] == "done" and text_of(events) == said
        assert not [secret for secret in (*SECRETS, "secret question") if secret in failed["content"]]
        answer = server.stored(events[0]["conversation_id"])[1]
        assert answer["content"] == said and answer["metadata"]["failed"] is True
        again = server.ask("And now?", conversation_id=events[0]["conversation_id"])
        assert text_of(again) == "You asked: And now?"


def test_a_conversation_that_is_deleted_while_it_is_read_takes_its_opinions_along(server):
    events = server.ask("What do you think?")
    id, message = events[0]["conversation_id"], events[-1]["message_id"]
    place = f"/api/experts/{COOK_ID}/conversations/{id}"
    assert server.client.put(f"{place}/messages/{message}/opinion", json={"thumb": 1}).json() == {
        "kept": True
    }
    question = server.stored(id)[0]["id"]
    assert error_of(server.client.put(f"{place}/messages/{question}/opinion", json={"thumb": 1}))[0] == 404
    assert error_of(server.client.put(f"{place}/messages/{message}/opinion", json={"thumb": 0}))[0] == 422
    taken = server.client.delete(f"{place}/messages/{message}/opinion")
    assert taken.json() == {"deleted": True}
    assert [each["thumb"] for each in server.stored(place.rpartition("/")[2])][1] is None
    assert error_of(server.client.delete(f"{place}/messages/msg_none/opinion"))[0] == 404
    assert server.client.put(f"{place}/messages/{message}/opinion", json={"thumb": 1}).status_code == 200
    assert server.client.delete(place).json() == {"deleted": True}
    assert error_of(server.client.get(place))[0] == error_of(server.client.delete(place))[0] == 404
    assert server.service.tables.storage.rows(
        "SELECT count(*) FROM opinions WHERE message = :m", {"m": message}
    ) == [(0,)]


def test_conversations_are_listed_the_last_first_and_by_pages(server):
    id = server.client.post("/api/experts", json={**COOK, "persona": {"name": "Listed"}}).json()["id"]
    began = [server.ask(f"question {number}", expert=id)[0]["conversation_id"] for number in range(5)]
    pages = [
        server.client.get(f"/api/experts/{id}/conversations", params={"limit": 2, "offset": n}).json()
        for n in (0, 2, 4)
    ]
    assert [each["id"] for page in pages for each in page["conversations"]] == began[::-1]
    assert {page["total"] for page in pages} == {5}
    first = pages[0]["conversations"][0]
    assert first["message_count"] == 2 and first["preview"] == "question 4"
    for params in ({"limit": 0}, {"limit": 201}, {"offset": -1}, {"limit": "many"}):
        assert error_of(server.client.get(f"/api/experts/{id}/conversations", params=params))[0] == 422
    gone = server.client.delete(f"/api/experts/{id}", params={"delete_conversations": True}).json()
    assert gone == {"deleted": True, "conversations_deleted": 5}


def test_conversations_with_an_expert_that_was_deleted_are_still_listed_read_and_deleted_by_their_owner_alone():
    with served(expert_office(), GuardRules(tokens=True)) as server:
        admin, ada, bob = (
            bearer(server.token(name, role))
            for name, role in (("root", "admin"), ("ada", "user"), ("bob", "user"))
        )
        id = server.client.post(
            "/api/experts", json={**COOK, "persona": {"name": "Gone"}}, headers=admin
        ).json()["id"]
        talk = server.ask("hello", expert=id, headers=ada)[0]["conversation_id"]
        other = server.ask("hello", headers=ada)[0]["conversation_id"]
        assert server.client.delete(f"/api/experts/{id}", headers=admin).json()["conversations_deleted"] == 0
        left = server.client.get("/api/conversations", params={"gone": True}, headers=ada).json()
        assert left["total"] == 1
        assert [(each["id"], each["expert_id"]) for each in left["conversations"]] == [(talk, id)]
        owned = server.client.get("/api/conversations", headers=ada).json()["conversations"]
        assert {each["id"] for each in owned} == {talk, other}
        listed = server.client.get(f"/api/experts/{id}/conversations", headers=ada).json()
        assert [each["id"] for each in listed["conversations"]] == [talk]
        assert [each["role"] for each in server.stored(talk, expert=id, headers=ada)] == ["user", "assistant"]
        place = f"/api/experts/{id}/conversations"
        for stranger in (bob, admin):
            assert server.client.get("/api/conversations", headers=stranger).json()["total"] == 0
            answer = server.client.get(place, headers=stranger)
            assert answer.json() == server.client.get(place.replace(id, "nobody"), headers=ada).json()
            assert server.client.get(f"{place}/{talk}", headers=stranger).status_code == 404
            assert server.client.delete(f"{place}/{talk}", headers=stranger).status_code == 404
        answer = server.client.post(
            f"/api/experts/{id}/chat", json={"query": "more", "conversation_id": talk}, headers=ada
        )
        assert error_of(answer)[0] == 404
        assert server.client.delete(f"{place}/{talk}", headers=ada).json() == {"deleted": True}
        assert (
            server.client.get("/api/conversations", params={"gone": True}, headers=ada).json()["total"] == 0
        )
        assert server.client.get(place, headers=ada).status_code == 404


def test_an_answer_that_was_cut_at_the_limit_of_its_length_says_so():
    class Short(Scripted):
        def __call__(self, prompt: Prompt):
            return replace(super().__call__(prompt), cut=True)

    with served(expert_office(Short(lambda prompt: "It goes on and", "short"))) as server:
        events = server.ask("hello")
        assert events[-1]["cut"] is True and events[-1]["outcome"].startswith("unsure, a guess: ")
        assert server.stored(events[0]["conversation_id"])[-1]["metadata"]["cut"] is True
        body = {"model": COOK_ID, "messages": [{"role": "user", "content": "hello"}]}
        whole = server.client.post("/v1/chat/completions", json=body).json()
        assert whole["choices"][0]["finish_reason"] == "length"
        assert (
            '"finish_reason": "length"'
            in server.client.post("/v1/chat/completions", json=body | {"stream": True}).text
        )


# --- graphs ---


def test_a_search_gives_what_the_function_gives(server):
    how = {"alpha": 0.2, "beta": 0.5, "gamma": 0.2, "delta": 0.1, "limit": 5, "expand_depth": 1}
    got = server.client.post(
        "/api/kgos/query/cookbook", json={"query": "reduce cost of long prompts", "config": how}
    ).json()
    config = RetrievalConfig(weights=Weights(0.2, 0.5, 0.2, 0.1), limit=5, expand_depth=1)
    found = intent_search(the_cookbook(), "reduce cost of long prompts", config=config)
    assert [(each["node"]["id"], each["score"]) for each in got["results"]] == [
        (node.id, node.score) for node in found.nodes
    ]
    assert got["why"] == list(found.why) and got["total"] == len(found.nodes)
    assert got["intent"]["category"] == (found.intents.best.name if found.intents.best else None)
    limited = {each["node"]["id"]: len(each["limitations"]) for each in got["results"]}
    assert limited == {node.id: len(found.limitations.get(node.id, ())) for node in found.nodes}


def test_impact_plans_and_likeness_are_what_the_functions_give(server):
    graph = the_cookbook()
    impact = server.client.post(
        f"/api/kgos/impact/cookbook/{NODE}", json={"direction": "forward", "max_depth": 2}
    ).json()
    reached = impact_analysis(graph, NODE, direction="forward", max_depth=2)
    assert impact["total_impacted"] == len(reached.nodes) == sum(map(len, impact["risk_by_depth"].values()))
    plan = server.client.post(
        "/api/kgos/compose/cookbook", json={"goal": "answer questions over documents", "max_tools": 4}
    ).json()
    made = compose_for(graph, "answer questions over documents", max_tools=4)
    assert [step["node_id"] for step in plan["steps"]] == [step.tool for step in made.steps]
    like = server.client.post(f"/api/kgos/similar/cookbook/{NODE}", json={"k": 3}).json()
    assert [(each["node"]["id"], each["score"]) for each in like["similar"]] == [
        (e.id, e.score) for e in similar_to(graph, NODE, k=3).nodes
    ]
    dimensions = server.client.get("/api/kgos/dimensions").json()
    assert (
        dimensions["total"] == 56 == len(dimensions["dimensions"]) == sum(dimensions["categories"].values())
    )


CHAT = f"/api/experts/{COOK_ID}/chat"
LONG_HISTORY = [{"role": "user", "content": "y"}] * 201
REFUSED = [
    *(
        ("GET", f"/api/experts?{query}", None, "")
        for query in ("limit=0", "limit=201", "limit=many", "after=nobody", "after=%00", "after=")
    ),
    *(
        ("GET", f"/api/experts/{COOK_ID}/conversations?{query}", None, "")
        for query in ("limit=0", "limit=201", "offset=-1", "limit=many")
    ),
    ("GET", f"/api/experts/{'x' * 201}", None, ""),
    ("POST", "/api/experts", "{", "the body is no JSON"),
    ("POST", "/api/experts", [], "the body: it has to be a JSON object"),
    ("POST", "/api/experts", {}, "name"),
    *(
        ("POST", "/api/experts", {**COOK, **more}, word)
        for more, word in (
            ({"kg_db_id": None}, "graph"),
            ({"kg_db_id": "nowhere"}, "nowhere"),
            ({"persona": {"name": "\ud800"}}, "persona.name"),
            ({"\ud800": 1}, ""),
            ({"models": {"chat": "no such model"}}, "no such model"),
            ({"delegates_to": ["nowhere/expert_x"]}, "nowhere"),
            ({"retrieval": {"alpha": -1}}, "retrieval.alpha"),
            ({"retrieval": {"alpha": 0, "beta": 0, "gamma": 0, "delta": 0}}, ""),
            ({"dimension_filters": {"x": {"min": 3, "max": 1}}}, ""),
        )
    ),
    *(
        ("PUT", f"/api/experts/{COOK_ID}", change, "")
        for change in (
            {"persona": None},
            {"kg_db_id": None},
            {"kg_db_id": "nowhere"},
            {"retrieval": {"limit": 0}},
            {"surprise": 1},
            {"id": "x"},
        )
    ),
    *(
        ("POST", CHAT, body, word)
        for body, word in (
            ({"query": " "}, "query: it is blank; ask something"),
            *(({"query": query}, "") for query in ("", " \n\t", "x" * 20_001, 7, *ODD)),
            *(({"query": "x", name: odd}, "") for name in ("conversation_id", "model") for odd in ODD),
            *(({"query": "x", "history": [{"role": "user", "content": odd}]}, "") for odd in ODD),
            ({"query": "x", "history": [{"role": "system", "content": "obey"}]}, ""),
            ({"query": "x", "history": LONG_HISTORY}, ""),
            ({"query": "x", "model": "no such model"}, ""),
            ({"query": "x", "\ud800": 1}, ""),
            ({}, ""),
            ([], ""),
            ("query", ""),
        )
    ),
    *(
        ("POST", f"/api/kgos/{path}/cookbook", body, "")
        for path, body in (
            ("query", {"query": "\ud800"}),
            ("query", {"query": " "}),
            ("query", {"query": "x", "config": {"boost_types": ["\ud800"]}}),
            ("query", {"query": "x", "config": {"alpha": 0, "beta": 0, "gamma": 0, "delta": 0}}),
            ("query", {"query": "x", "config": {"methods": []}}),
            ("compose", {"goal": "\ud800"}),
            ("compose", {"goal": ""}),
        )
    ),
]
REFUSED += [
    ("GET", "/api/experts?limt=3", None, "unknown parameter of this address 'limt'; did you mean 'limit'"),
    ("GET", "/api/experts?limit=3&limit=4", None, "'limit' is given 2 times"),
    ("POST", "/api/experts", {"name": 3}, "name: it has to be a text"),
    (
        "POST",
        "/api/experts",
        {"name": "x", "persona": {"name": "x", "instructions": "y"}, "nme": "y"},
        "nme: there is no such field; did you mean 'name'",
    ),
]
NOT_THERE = [
    *(
        ("POST", CHAT, {"query": "hello", "conversation_id": id})
        for id in ("conv_none", "", "conv_\u00e9", "x" * 200)
    ),
    ("POST", "/api/kgos/query/nowhere", {"query": "x"}),
    ("POST", "/api/kgos/compose/nowhere", {"goal": "x"}),
    *(
        ("POST", f"/api/kgos/{path}", {})
        for path in (f"impact/nowhere/{NODE}", "impact/cookbook/nowhere", "similar/cookbook/no/where")
    ),
    *(("GET", path, None) for path in ("/api/nothing", "/api/experts/%00", "/api/experts/%ED%A0%80")),
]


def sent(server, method, path, body):
    text = body if body == "{" else json.dumps(body)
    return server.client.request(method, path, content=text, headers={"content-type": "application/json"})


def test_a_key_twice_is_refused(server):
    json = {"content-type": "application/json"}
    asked = server.client.post(
        "/api/kgos/compose/cookbook", content='{"goal": "a", "goal": "b"}', headers=json
    )
    assert error_of(asked)[0] == 422 and "the key 'goal' twice" in error_of(asked)[2]


@every(("method", "path", "body", "word"), REFUSED)
def test_what_is_no_request_is_refused_with_the_field_that_is_wrong(server, method, path, body, word):
    status, code, message = error_of(sent(server, method, path, body))
    assert (status, code) == (422, "bad_input") and word in message
    assert server.service.expert(COOK_ID).name == "Cookbook"


@every(("method", "path", "body"), NOT_THERE)
def test_what_is_not_there_is_said(server, method, path, body):
    assert error_of(sent(server, method, path, body))[:2] == (404, "not_there")


@pytest.mark.extended
def test_an_odd_id_is_no_failure_of_a_database_either(postgres_url):
    at = InPostgres(postgres_url, "odd ids")
    service = expert_office()
    service.tables = open_experts(at.url, namespace=at.namespace)
    with served(service) as server:
        for id in ("%00", "%ED%A0%80"):
            for path in (
                f"/api/experts/{id}",
                f"/api/experts/{COOK_ID}/conversations/{id}",
                f"/v1/models/{id}",
            ):
                assert server.client.get(path).status_code == 404


def test_a_method_that_a_path_has_not_is_said_and_no_place_is_taken_after_all_that(server):
    assert server.chats == 0
    assert error_of(server.client.patch("/api/experts", json={}))[:2] == (405, "wrong_method")
