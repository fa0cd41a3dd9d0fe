"""The marketplace of a server: what it offers, taking an expert in, and what is refused without a word on
where it lies.
"""

from __future__ import annotations

import json
from shutil import rmtree

import pytest
from support.expert_server import COOK_ID, bearer, expert_office, served

from kgot_lab.experts.federation.marketplace import publish_to_marketplace
from kgot_lab.experts.http.auth import GuardRules
from kgot_lab.experts.portable import expert_to_json


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    service = expert_office()
    service.market = tmp_path_factory.mktemp("trading") / "market"
    with served(service) as found:
        yield found


@pytest.fixture
def market(running):
    rmtree(running.service.market, ignore_errors=True)
    running.reset()
    service = running.service
    publish_to_marketplace(
        service.market, json.dumps(expert_to_json(service.expert(COOK_ID), service.graphs)), {"recall@5": 0.8}
    )
    return service.market


@pytest.fixture
def server(running, market):
    return running


def experts_of(server):
    return [each["id"] for each in server.client.get("/api/experts").json()]


def test_what_the_marketplace_offers_is_listed_with_its_scores_and_taken_in(server):
    (offered,) = server.client.get("/api/market").json()
    assert (offered["name"], offered["scores"]) == ("Cookbook", {"recall@5": 0.8}) and "file" not in offered
    dry = server.client.post("/api/market/import", json={"name": "Cookbook", "dry": True})
    assert dry.status_code == 201 and dry.json() == {"id": None, "name": "Cookbook", "warnings": []}
    made = server.client.post("/api/market/import", json={"name": "Cookbook"}).json()
    assert experts_of(server) == [COOK_ID, made["id"]]
    assert server.ask("What is prompt caching?", expert=made["id"])[-1]["type"] == "done"


def test_a_graph_that_is_not_here_is_said_and_one_of_ours_may_stand_for_it(server, market):
    told = expert_to_json(server.service.expert(COOK_ID), server.service.graphs)
    told = {**json.loads(json.dumps(told).replace('"cookbook"', '"theirs"')), "name": "Other"}
    del told["sha256"]
    publish_to_marketplace(market, json.dumps(told))
    refused = server.client.post("/api/market/import", json={"name": "Other"})
    assert refused.status_code == 422 and "unknown graph 'theirs'" in refused.json()["error"]["message"]
    assert experts_of(server) == [COOK_ID]


@pytest.mark.parametrize("name", ["Nobody", "../secret", "/etc/passwd", "http://127.0.0.1/x"])
def test_a_request_names_an_expert_of_the_index_and_no_other_place(server, name, tmp_path):
    answer = server.client.post("/api/market/import", json={"name": name})
    assert answer.status_code == 404 and str(tmp_path) not in answer.text


@pytest.mark.parametrize("spoilt", ["", "[]", '{"experts": 3}', None])
def test_a_marketplace_that_cannot_be_used_is_said_without_where_it_lies(server, market, spoilt, tmp_path):
    (market / "index.json").unlink() if spoilt is None else (market / "index.json").write_text(spoilt)
    for answer in (
        server.client.get("/api/market"),
        server.client.post("/api/market/import", json={"name": "Cookbook"}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "market_away")
        assert str(tmp_path) not in answer.text and "index" not in answer.text


def test_only_an_admin_sees_the_marketplace_and_a_server_without_one_has_no_such_route(market):
    service = expert_office()
    with served(service) as found:
        assert found.client.get("/api/market").status_code == 404
    service.market = market
    with served(service, GuardRules(tokens=True)) as found:
        ada, grace = bearer(found.token("ada")), bearer(found.token("grace", "admin"))
        assert found.client.get("/api/market", headers=ada).status_code == 403
        assert (
            found.client.post("/api/market/import", json={"name": "Cookbook"}, headers=ada).status_code == 403
        )
        assert found.client.get("/api/market", headers=grace).status_code == 200
