"""What peers offer is signed, and the expert that fits a question is chosen by shared words."""

from __future__ import annotations

import pytest
from support.every import every
from support.federation import acting_server, new_instance_key, peer_server, send
from support.loopback import free_port

from kgot_lab.errors import BadInput
from kgot_lab.experts.federation.marketplace import (
    AdvertisedExpert,
    AdvertisedGraph,
    PeerOffer,
    best_match,
    request_offers,
)
from kgot_lab.experts.federation.signing import Peer

ASKER = new_instance_key()
HERBS = AdvertisedExpert(
    id="herbs",
    name="Herbalist",
    description="Plants that ease pain.",
    topics=("medicine",),
    graphs=(AdvertisedGraph(name="plants", nodes=120, edges=300),),
    scores={"recall@5": 0.8},
)
SHIPS = AdvertisedExpert(
    id="ships",
    name="Harbour master",
    description="Ships, cargo and tides.",
    topics=("trade_routes",),
    graphs=(AdvertisedGraph(name="ports", nodes=40, edges=90),),
)


def offers(*experts):
    return PeerOffer(Peer("north", "https://north", new_instance_key().public), experts)


def test_what_a_peer_offers_arrives_as_it_was_signed():
    with peer_server(ASKER, experts=(HERBS, SHIPS)) as remote:
        (came,) = request_offers([remote.peer], ASKER)
    assert came.experts == (HERBS, SHIPS)
    assert came.peer == remote.peer
    assert came.signed_at
    assert len(came.digest) == 64
    assert came.reason == ""


def test_strangers_are_not_told_what_is_offered_and_dead_peers_hold_up_none():
    dead = Peer("dead", f"http://127.0.0.1:{free_port()}", new_instance_key().public)
    with peer_server(ASKER, experts=(HERBS,)) as remote:
        assert (
            request_offers([remote.peer], new_instance_key())[0].reason
            == "it refused what was asked: unknown sender"
        )
        first, second = request_offers([dead, remote.peer], ASKER)
    assert first.experts == () and first.reason.startswith("it cannot be reached")
    assert second.experts == (HERBS,)


def test_what_is_not_signed_offers_nothing():
    with acting_server(lambda handler, _: send(handler, 200, b'{"experts":[]}')) as address:
        (came,) = request_offers([Peer("bad", address, new_instance_key().public)], ASKER)
    assert came.experts == () and came.reason == "what it sent is refused: unsigned"


@every(
    "body",
    [
        {},
        {"experts": [5]},
        {"experts": [{"id": "a"}]},
        {"experts": [HERBS.to_json(), HERBS.to_json()]},
        {"experts": [HERBS.to_json() | {"more": 1}]},
        {"experts": [HERBS.to_json() | {"scores": {"x": "y"}}]},
        {"experts": [HERBS.to_json() | {"name": "a\nb"}]},
        {"experts": [HERBS.to_json()] * 201},
        {"experts": [HERBS.to_json() | {"graphs": [{"name": "g", "nodes": -1, "edges": 0}]}]},
        {"experts": [HERBS.to_json() | {"topics": "abc"}]},
    ],
)
def test_signed_capabilities_that_are_none_offer_nothing(body):
    with peer_server(ASKER) as remote:
        federation = remote.federation

        def lie(handler, data):
            envelope, _ = federation.open_request(data, "introduction")
            send(handler, 200, federation.sign_reply("capabilities", body, envelope))

        with acting_server(lie) as address:
            (came,) = request_offers([Peer("bad", address, federation.key.public)], ASKER)
    assert came.experts == () and came.reason == "what it sent are no capabilities"


def test_the_expert_that_shares_words_with_a_question_is_chosen():
    there = [offers(HERBS), offers(SHIPS)]
    assert best_match("Which plant eases pain?", there)[1] is HERBS
    assert best_match("trade routes of the harbour", there) == (there[1].peer, SHIPS)
    assert best_match("What is in the plants?", there)[1] is HERBS


def test_none_is_chosen_where_no_telling_word_is_shared():
    assert best_match("What is the weather?", [offers(HERBS), offers(SHIPS)]) is None
    assert best_match("and that of the", [offers(SHIPS)]) is None
    assert best_match("Which plant?", []) is None and best_match("Which plant?", [offers()]) is None


def test_an_expert_that_cannot_be_offered_is_refused():
    for make in (
        lambda: AdvertisedExpert(id="", name="a"),
        lambda: AdvertisedExpert(id="a", name="b", description="x" * 2001),
        lambda: AdvertisedExpert(id="a", name="b", scores={"x": float("nan")}),
        lambda: AdvertisedExpert(id="a", name="b", schema_version=0),
        lambda: AdvertisedGraph(name="g", nodes=1, edges=True),
    ):
        with pytest.raises(BadInput):
            make()
