"""Two instances, each in a process of its own with a key of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from support.federation import delegate

from kgot_lab.experts.federation.delegation import ASK_PATH
from kgot_lab.experts.federation.envelope import load_instance_key
from kgot_lab.experts.federation.signing import Peer, exchange, sign_envelope


@contextmanager
def other_process(folder, asker):
    """An instance in another process: the process, and the peer it is."""
    command = [sys.executable, "-m", "support.federation_script", str(folder), asker.public]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        address, public = running.stdout.readline().split()
        yield running, Peer("remote", address, public)
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


@pytest.mark.extended
def test_a_question_goes_to_another_process_and_what_is_not_right_is_refused_there(tmp_path):
    asker = load_instance_key(tmp_path / "here" / "key.pem")
    with other_process(tmp_path / "there", asker) as (running, peer):
        came = delegate("What eases pain?", peer, asker, expert="trade")
        assert came.provenance.public_key == peer.public_key != asker.public
        assert came.provenance.sources == ("trade:aspirin", "trade:willow")
        assert "What eases pain?" in came.answer
        sent = sign_envelope("question", {"expert": "trade", "question": "Who?"}, asker, peer.public_key)
        unsigned = json.dumps(
            {name: value for name, value in json.loads(sent.wire).items() if name != "signature"},
            separators=(",", ":"),
        )
        said = [
            exchange(peer.url_for(ASK_PATH), 30, 100_000, body=data).status
            for data in (unsigned.encode(), sent.wire.replace(b"Who?", b"Why?"), sent.wire, sent.wire)
        ]
        assert said == [401, 403, 200, 409]
        running.kill()
        running.wait()
        assert delegate("What eases pain?", peer, asker, expert="trade").reason.startswith(
            "it cannot be reached"
        )
    with other_process(tmp_path / "there", asker) as (_, again):
        assert again.public_key == peer.public_key, "its key is kept"
        assert exchange(again.url_for(ASK_PATH), 30, 100_000, body=sent.wire).status == 409, (
            "and so is what it has received"
        )
