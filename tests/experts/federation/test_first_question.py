"""The first question to a peer that has just begun, and still reads its graphs, is answered."""

from __future__ import annotations

import threading

from support.expert_server import COOK, COOK_ID, echoing, served, the_cookbook
from support.federation import new_instance_key
from support.waiting import AMPLE, until

from kgot_lab.cli.serve import load_consultants
from kgot_lab.experts.chat.consulting import Consultants
from kgot_lab.experts.expert import expert_config
from kgot_lab.experts.federation.delegation import Federation
from kgot_lab.experts.federation.signing import Peer, Peers, open_nonces
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService


def test_the_first_question_is_answered_though_the_graph_of_the_peer_is_still_read():
    may_end, asker, own = threading.Event(), new_instance_key(), new_instance_key()

    def slow():
        assert may_end.wait(AMPLE)
        return the_cookbook()

    near = Peer("near", "http://127.0.0.1:1", asker.public)
    service = ExpertService(
        open_experts(), GraphFolder(None, {"slow": slow}), ExpertModels({"echo": echoing}, "echo")
    )
    service.tables.add_expert(expert_config({**COOK, "kg_db_id": "slow"}), id=COOK_ID)
    service.consultants = Consultants(Federation(own, Peers(near), open_nonces()))
    service.loading.add("slow")
    with served(service) as running:
        far = Peers(Peer("far", running.url, own.public))
        consultants, answers = Consultants(Federation(asker, far, open_nonces()), seconds=AMPLE), []
        thread = threading.Thread(
            target=lambda: answers.extend(consultants.ask("What lowers costs?", [f"far/{COOK_ID}"])),
            daemon=True,
        )
        thread.start()
        until(lambda: "slow" in service.graphs.readings or not thread.is_alive(), "the graph is wanted")
        assert not answers
        may_end.set()
        thread.join(AMPLE)
    (answer,) = answers
    assert answer.answer and "You asked: What lowers costs?" in answer.answer


def test_each_server_has_a_key_of_its_own_which_it_keeps(tmp_path, capfd):
    near, far, again = (
        load_consultants(Peers(), str(tmp_path / store)).federation.key.public
        for store in ("near.db", "far.db", "near.db")
    )
    assert near == again != far
    assert {"near.instance.key", "far.instance.key"} <= {each.name for each in tmp_path.iterdir()}
    assert near in capfd.readouterr().err and "PRIVATE" not in capfd.readouterr().err
