"""Experts are published in a folder and fetched from it, or from an address, only as the index describes
them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import SimpleHTTPRequestHandler

import pytest
from support.federation import acting_server, send
from support.loopback import free_port, serving

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable, UnknownName
from kgot_lab.experts.federation.marketplace import (
    HASH_MISMATCH,
    fetch_from_marketplace,
    list_marketplace,
    publish_to_marketplace,
)

HERBS = json.dumps({"name": "Herbalist é", "description": "Plants.", "persona": {"name": "Hilde"}})


@pytest.fixture
def market(tmp_path):
    publish_to_marketplace(tmp_path / "market", HERBS, {"recall@5": 0.8})
    return tmp_path / "market"


def index_of(folder):
    return json.loads((folder / "index.json").read_text())


def changed_entry(folder, **fields):
    index = index_of(folder)
    index["experts"][0] |= fields
    (folder / "index.json").write_text(json.dumps(index))


def test_what_was_published_is_listed_and_fetched(market):
    (listed,) = list_marketplace(market)
    assert (listed.name, listed.description, listed.scores) == ("Herbalist é", "Plants.", {"recall@5": 0.8})
    assert fetch_from_marketplace(market, "Herbalist é") == json.loads(HERBS)
    with pytest.raises(UnknownName, match="Herbalist"):
        fetch_from_marketplace(market, "Harbour master")


def test_the_same_stands_behind_an_address(market):
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *more):
            super().__init__(*more, directory=str(market))

        def log_message(self, *_):
            pass

    with serving(Handler) as address:
        assert list_marketplace(address + "/") == list_marketplace(market)
        assert fetch_from_marketplace(address, "Herbalist é") == json.loads(HERBS)
        with pytest.raises(StoreUnavailable, match="HTTP 404"):
            list_marketplace(address + "/nowhere")


def test_an_expert_that_is_published_again_takes_the_place_of_the_earlier_one(market):
    old = list_marketplace(market)[0].file
    publish_to_marketplace(market, json.dumps({"name": "Herbalist é", "version": 2}))
    (listed,) = list_marketplace(market)
    assert listed.scores is None and fetch_from_marketplace(market, "Herbalist é")["version"] == 2
    assert (market / old).exists(), "who has read the old index finds the old file"


def test_a_file_that_was_changed_is_refused_in_words_that_are_always_the_same(market):
    file = market / list_marketplace(market)[0].file
    for text in (HERBS + " ", "", "{}"):
        file.write_text(text)
        with pytest.raises(StoreDamaged) as caught:
            fetch_from_marketplace(market, "Herbalist é")
        assert str(caught.value) == HASH_MISMATCH


@pytest.mark.parametrize(
    "file",
    [
        "../secret.json",
        "/etc/passwd",
        "a/b.json",
        "..",
        ".json",
        "index.json",
        "a\\b.json",
        "http://x/a.json",
        "a.json\n",
        "%2e%2e.json",
        5,
    ],
)
def test_an_index_that_leads_out_of_the_folder_is_refused(market, file):
    (market.parent / "secret.json").write_text(HERBS)
    changed_entry(market, file=file)
    with pytest.raises(BadInput):
        list_marketplace(market)


def test_a_link_out_of_the_folder_is_refused(market):
    file = market / list_marketplace(market)[0].file
    (market.parent / "secret.json").write_text(HERBS)
    file.unlink()
    file.symlink_to(market.parent / "secret.json")
    with pytest.raises(BadInput, match="is a link"):
        fetch_from_marketplace(market, "Herbalist é")
    with pytest.raises(BadInput, match="links"):
        publish_to_marketplace(market, HERBS)
    (market / "index.json").rename(market.parent / "index.json")
    (market / "index.json").symlink_to(market.parent / "index.json")
    with pytest.raises(BadInput, match="is a link"):
        list_marketplace(market)


@pytest.mark.parametrize(
    "fields",
    [
        {"sha256": "x"},
        {"more": 1},
        {"scores": {"a": "b"}},
        {"scores": 5},
        {"name": ""},
        {"name": "a\nb"},
        {"description": 5},
    ],
)
def test_an_index_of_another_shape_is_refused(market, fields):
    changed_entry(market, **fields)
    with pytest.raises(BadInput):
        list_marketplace(market)


@pytest.mark.parametrize("text", ["", "[]", '{"experts": 5}', '{"experts": [5]}', "[" * 100_000])
def test_an_index_that_is_none_is_refused(market, text):
    (market / "index.json").write_text(text)
    with pytest.raises(BadInput):
        list_marketplace(market)


def test_what_is_too_large_is_not_read(market):
    (market / list_marketplace(market)[0].file).write_bytes(b"x" * 5_000_001)
    with pytest.raises(StoreUnavailable, match="larger than 5 MB"):
        fetch_from_marketplace(market, "Herbalist é")
    with (
        acting_server(lambda handler, _: send(handler, 200, b"x" * 5_000_001)) as address,
        pytest.raises(StoreUnavailable, match="larger than 5 MB"),
    ):
        list_marketplace(address)


def test_a_place_that_is_dead_redirects_or_is_none_says_so():
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        list_marketplace(f"http://127.0.0.1:{free_port()}")
    with (
        acting_server(lambda handler, _: send(handler, 302, b"", location="/other")) as address,
        pytest.raises(StoreUnavailable, match="redirects"),
    ):
        list_marketplace(address)
    with (
        acting_server(lambda handler, _: handler.rfile.read(1)) as address,
        pytest.raises(StoreUnavailable, match="in time"),
    ):
        list_marketplace(address, timeout=0.3)
    for place in ("ftp://host", "http://u:p@host", "http://", "http://host?x=1"):
        with pytest.raises(BadInput, match="a marketplace is"):
            list_marketplace(place)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 5}', '{"name": "a\\nb"}'])
def test_what_is_no_exported_expert_is_not_published(tmp_path, text):
    with pytest.raises(BadInput):
        publish_to_marketplace(tmp_path / "market", text)
    with pytest.raises(BadInput, match="finite"):
        publish_to_marketplace(tmp_path / "market", HERBS, {"x": float("inf")})
    assert not (tmp_path / "market").exists()


@pytest.mark.extended
def test_processes_that_publish_at_once_lose_none(tmp_path):
    program = """
import json, sys
from kgot_lab.experts.federation.marketplace import publish_to_marketplace
for number in range(5):
    publish_to_marketplace(sys.argv[1], json.dumps({"name": f"{sys.argv[2]} {number}"}))
"""
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "market"), name]) for name in "abc"
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(list_marketplace(tmp_path / "market")) == 15
