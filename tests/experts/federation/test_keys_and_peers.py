"""The key of an instance is its owner's alone, and peers are those of the list."""

from __future__ import annotations

import json
import os
import pickle
import stat
import subprocess
import sys

import pytest
from support.every import every
from support.federation import new_instance_key

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.experts.federation.envelope import (
    decode_base64url,
    is_signed_by,
    load_instance_key,
)
from kgot_lab.experts.federation.signing import Peer, Peers, read_peers


def test_a_key_is_made_once_and_only_its_owner_can_read_it(tmp_path):
    path = tmp_path / "own" / "key.pem"
    first = load_instance_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_instance_key(path).public == first.public
    assert sorted(each.name for each in path.parent.iterdir()) == ["key.pem"]


@pytest.mark.extended
def test_processes_that_make_a_key_at_once_have_one(tmp_path):
    program = f"from kgot_lab.experts.federation.envelope import *; print(load_instance_key({str(tmp_path / 'key.pem')!r}).public)"
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert len({process.communicate()[0] for process in running}) == 1
    assert [process.returncode for process in running] == [0, 0, 0]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620])
def test_a_key_that_others_can_reach_is_refused_and_the_error_shows_neither_key_nor_path(tmp_path, mode):
    path = tmp_path / "key.pem"
    load_instance_key(path)
    path.chmod(mode)
    with pytest.raises(BadInput, match="chmod 600") as caught:
        load_instance_key(path)
    assert str(tmp_path) not in str(caught.value)
    assert path.read_text().splitlines()[1] not in str(caught.value)


def test_a_link_a_folder_a_pipe_and_a_file_that_is_no_key_are_refused(tmp_path):
    load_instance_key(tmp_path / "key.pem")
    (tmp_path / "link").symlink_to(tmp_path / "key.pem")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "text").write_text("hello")
    (tmp_path / "text").chmod(0o600)
    for name in ("link", "dangling", "folder", "pipe", "text"):
        with pytest.raises(BadInput, match="the file of the instance's key"):
            load_instance_key(tmp_path / name)
    assert not (tmp_path / "nowhere").exists()


def test_a_key_is_neither_shown_nor_pickled():
    key = new_instance_key()
    assert repr(key) == f"<InstanceKey {key.public}>"
    with pytest.raises(BadInput, match="not copied or pickled"):
        pickle.dumps(key)


def test_a_signature_is_of_one_key_and_of_these_bytes_and_has_one_spelling():
    key, other = new_instance_key(), new_instance_key()
    signature = key.sign(b"words")
    assert is_signed_by(key.public, signature, b"words")
    assert not is_signed_by(other.public, signature, b"words")
    assert not is_signed_by(key.public, signature, b"wordz")
    longer = (signature + "=", signature + "A", " " + signature)
    for wrong in ("", "é", *longer, signature[:-1], signature[:-1] + chr(ord(signature[-1]) + 1)):
        assert not is_signed_by(key.public, wrong, b"words")
        with pytest.raises(ValueError, match="base64url"):
            decode_base64url(wrong, 64)


def test_peers_are_read_from_a_file_and_found_by_name_and_by_key(tmp_path):
    key = new_instance_key().public
    (tmp_path / "peers.json").write_text(
        json.dumps({"peers": [{"name": "north", "url": "https://north.example/kg/", "public_key": key}]})
    )
    peers = read_peers(tmp_path / "peers.json")
    assert list(peers) == [peers.with_name("north")]
    assert peers.with_key(key) is peers.with_name("north")
    assert peers.with_key("other") is None
    assert peers.with_name("north").url_for("/ask") == "https://north.example/kg/ask"
    with pytest.raises(UnknownName, match="north"):
        peers.with_name("nort")


@every(
    "url",
    [
        "north",
        "ftp://north",
        "https://",
        "https://u:p@north",
        "https://north?key=1",
        "https://north#a",
        "https://a b",
        "http://north",
        "https://n:x",
    ],
)
def test_an_address_that_cannot_be_asked_or_would_be_read_on_the_way_is_refused(url):
    with pytest.raises(BadInput, match="url of the peer"):
        Peer("north", url, new_instance_key().public)


def test_plain_http_is_for_this_computer_or_where_it_is_allowed():
    key = new_instance_key().public
    assert Peer("here", "http://127.0.0.1:8000", key)
    assert Peer("near", "http://node2:8000", key, plain_http=True)


def test_two_peers_of_one_name_or_key_and_files_that_are_no_peers_are_refused(tmp_path):
    one, two = new_instance_key().public, new_instance_key().public
    for pair in (
        (Peer("a", "https://a", one), Peer("a", "https://b", two)),
        (Peer("a", "https://a", one), Peer("b", "https://b", one)),
    ):
        with pytest.raises(BadInput, match="two peers"):
            Peers(*pair)
    path = tmp_path / "peers.json"
    with pytest.raises(BadInput, match="cannot be read"):
        read_peers(path)
    good = {"name": "a", "url": "https://a", "public_key": one}
    wrong = (good | {"more": 1}, good | {"public_key": "x"})
    for text in ("", "[]", "{}", '{"peers": [1]}', *(json.dumps({"peers": [each]}) for each in wrong)):
        path.write_text(text)
        with pytest.raises(BadInput, match="peer"):
            read_peers(path)
