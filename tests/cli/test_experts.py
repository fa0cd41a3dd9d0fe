"""`kgot-lab experts` as a user types it: a marketplace in a folder, from which another computer takes an
expert.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from support.every import every

from kgot_lab.cli.experts import proposals_location
from kgot_lab.cli.serve import warm_up
from kgot_lab.experts.federation.marketplace import publish_to_marketplace
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.http.tokens import find_tenant
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService
from kgot_lab.llm import connect
from kgot_lab.llm.recorded import Scripted


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def market(kgot_lab):
    ran = kgot_lab(
        "experts", "publish", "expert_cookbook", "market", "--store", "mine.db", "--score", "recall@5=.8"
    )
    assert ran.code == 0 and "sha256" in ran.out, ran.err
    # which begins with the shipped experts
    assert kgot_lab("experts", "list", "--store", "other.db").code == 0
    return Path("market")


def held(place):
    tables = open_experts(place)
    ids = [expert.id for expert in tables.experts()]
    tables.close()
    return ids


def test_an_expert_is_published_listed_with_its_scores_and_fetched_elsewhere(kgot_lab, market):
    ran = kgot_lab("experts", "list", market)
    assert ran.code == 0
    assert ran.out.startswith("Cookbook: ")
    assert "recall@5 0.8" in ran.out
    assert "1 expert" in ran.err
    (row,) = json.loads(kgot_lab("experts", "list", market, "--json").out)
    assert row["scores"]["recall@5"] == 0.8
    assert row["scores"]["citation precision.questions"] == 44
    assert (market / row["file"]).is_file()
    assert kgot_lab("experts", "fetch", "Cookbook", market, "--store", "other.db", "--dry").out == "it fits\n"
    before = held("other.db")
    ran = kgot_lab("experts", "fetch", "Cookbook", market, "--store", "other.db")
    assert ran.code == 0 and held("other.db") == [*before, ran.out.strip()], ran.err
    assert ran.out.strip() in kgot_lab("experts", "list", "--store", "other.db").out


def test_a_tampered_expert_is_refused_and_nothing_is_kept(kgot_lab, market):
    (file,) = market.glob("cookbook-*.json")
    file.write_text(file.read_text() + " ")
    before = held("other.db")
    ran = kgot_lab("experts", "fetch", "Cookbook", market, "--store", "other.db")
    assert ran.code == 1
    assert "its hash is another, and nothing was taken over" in ran.err
    assert held("other.db") == before


def test_an_expert_whose_graph_is_not_here_is_refused_and_another_graph_may_stand_for_it(kgot_lab, market):
    told = json.loads(next(market.glob("cookbook-*.json")).read_text().replace('"cookbook"', '"theirs"'))
    publish_to_marketplace(
        market, json.dumps({key: value for key, value in told.items() if key != "sha256"} | {"name": "Other"})
    )
    before = held("other.db")
    ran = kgot_lab("experts", "fetch", "Other", market, "--store", "other.db")
    assert ran.code == 1 and "unknown graph 'theirs'" in ran.err and held("other.db") == before
    ran = kgot_lab("experts", "fetch", "Other", market, "--store", "other.db", "--graph", "theirs=cookbook")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("publish", "nobody", "market"), "there is no such expert"),
        (("publish", "expert_cookbook", "market", "--score", "good"), "--score is NAME=NUMBER"),
        (("publish", "expert_cookbook", "market", "--score", "f1=good"), "'good' is no number"),
        (("publish", "expert_cookbook", "market", "--score", "f1=nan"), "a finite number"),
        (("publish", "expert_cookbook", "https://example.org/market"), "published in a folder"),
        (("fetch", "Cookbook", "nowhere"), "index.json of the marketplace cannot be read"),
        (("fetch", "Cookbook", "ftp://example.org/market"), "a folder or https"),
    ],
)
def test_what_makes_no_sense_is_refused_and_no_marketplace_is_made(kgot_lab, words, said, tmp_path):
    ran = kgot_lab("experts", *words, "--store", "mine.db")
    assert ran.code == 1 and said in ran.err and not (tmp_path / "market").exists()


def test_a_server_of_a_marketplace_that_is_no_folder_does_not_begin(kgot_lab):
    ran = kgot_lab("serve", "--market", "nowhere", "--store", "mine.db")
    assert ran.code == 1 and "nowhere is no folder" in ran.err and not Path("mine.db").exists()


def test_an_expert_of_a_marketplace_that_is_not_there_is_said_with_those_that_are(kgot_lab, market):
    ran = kgot_lab("experts", "fetch", "Cookbok", market, "--store", "other.db")
    assert ran.code == 1 and "did you mean 'Cookbook'" in ran.err


def test_what_several_people_contradict_is_told_and_their_words_only_when_asked_for(kgot_lab):
    # which begins with the shipped experts
    assert kgot_lab("experts", "list", "--store", "mine.db").code == 0
    tables = open_experts("mine.db")
    for name in ("ada", "bob", "carol"):
        talk = tables.begin_conversation("expert_cookbook", name, "a question")
        tables.add_message(talk, "user", "Language model API is cheap now.")
    tables.close()
    ran = kgot_lab("experts", "drift", "expert_cookbook", "--store", "mine.db")
    assert ran.code == 0 and "3 of 3 people say it is lower" in ran.out and "cheap" not in ran.out, ran.err
    assert "1 value contradicted of 1" in ran.err
    assert (
        '"Language model API is cheap now."'
        in kgot_lab("experts", "drift", "expert_cookbook", "--store", "mine.db", "--words").out
    )
    (row,) = json.loads(kgot_lab("experts", "drift", "expert_cookbook", "--store", "mine.db", "--json").out)
    assert (row["dimension"], row["against"], "words" in row) == ("pricing_tier", 3, False)
    assert kgot_lab("experts", "drift", "nobody", "--store", "mine.db").code == 1


def test_tokens_are_listed_without_anything_of_them_and_withdrawn_on_a_server_that_runs(kgot_lab):
    made = [
        kgot_lab("serve", "--store", "mine.db", "--new-token", name, "--role", role)
        for name, role in (("ada", "admin"), ("bob", "user"))
    ]
    ada, bob = (ran.out.strip() for ran in made)
    server = open_experts("mine.db")  # as one that is running holds it
    assert find_tenant(server, ada).role == "admin"
    ran = kgot_lab("experts", "tokens", "--store", "mine.db")
    assert ran.code == 0 and "2 tokens" in ran.err, ran.err
    assert [line.split("  ")[:2] for line in ran.out.splitlines()] == [["ada", "admin"], ["bob", "user"]]
    rows = kgot_lab("experts", "tokens", "--store", "mine.db", "--json").out
    assert [set(row) for row in json.loads(rows)] == [{"tenant", "role", "made"}] * 2
    assert not any(
        secret in rows + ran.out
        for token in (ada, bob)
        for secret in (token, hashlib.sha256(token.encode()).hexdigest())
    )
    assert kgot_lab("experts", "revoke", "ada", "--store", "mine.db").out == "1 token of ada revoked\n"
    assert find_tenant(server, ada) is None and find_tenant(server, bob).name == "bob"
    server.close()
    ran = kgot_lab("experts", "revoke", "ada", "--store", "mine.db")
    assert ran.code == 1 and "ada has no token that holds" in ran.err


def test_tokens_of_a_store_that_is_not_there_are_not_said_to_be_none(kgot_lab):
    for words in (("tokens",), ("revoke", "ada")):
        ran = kgot_lab("experts", *words, "--store", "mistyped.db")
        assert ran.code == 1
        assert "no experts are kept in mistyped.db" in ran.err
        assert not Path("mistyped.db").exists()


@every(
    ("store", "place"),
    [
        ("a.db", "a.proposals.db"),
        ("a.sqlite", "a.sqlite.proposals"),
        ("a", "a.proposals"),
        ("x.y/a.b.db", "x.y/a.b.proposals.db"),
        (":memory:", ":memory:"),
        ("postgresql://HOST/NAME", "postgresql://HOST/NAME"),
    ],
)
def test_each_store_has_a_place_of_its_own_for_proposals(store, place):
    assert proposals_location(store) == place


def test_experts_in_memory_leave_no_file(kgot_lab, tmp_path):
    ran = kgot_lab("experts", "drift", "expert_cookbook", "--store", ":memory:")
    assert ran.code == 0 and list(tmp_path.iterdir()) == [], ran.err


def test_a_server_says_at_its_start_that_its_model_is_not_there_and_what_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KGOT_LAB_MODEL", raising=False)
    tables = open_experts()
    service = ExpertService(tables, GraphFolder(), ExpertModels({"local": lambda: connect("local")}, "local"))
    warm_up(service)
    said = capsys.readouterr().err
    assert "the model local is not there" in said
    assert "`kgot-lab model` fetches it" in said
    assert str(tmp_path / "cache") in said
    assert "all graphs are read" in said
    service.models = ExpertModels({"script": lambda: Scripted([])}, "script")
    warm_up(service)
    assert "note:" not in capsys.readouterr().err
    tables.close()
