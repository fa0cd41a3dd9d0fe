"""An envelope is opened once, by the one it is for, while it is valid; anything else is refused with its
reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.every import every
from support.federation import NOON, after, known, new_instance_key, noon

from kgot_lab.errors import BadInput, RefusedEnvelope
from kgot_lab.experts.federation.envelope import (
    MAX_ENVELOPE_BYTES,
    REFUSALS,
    canonical_json,
    signed_bytes,
)
from kgot_lab.experts.federation.signing import Peers, open_envelope, open_nonces, sign_envelope

ASKER, REMOTE, STRANGER = new_instance_key(), new_instance_key(), new_instance_key()
BODY = {"expert": "trade", "question": "Что снижает боль?", "n": [1, 2.5, None, True, {"é": '\n"<'}]}
QUESTION = sign_envelope("question", BODY, ASKER, REMOTE.public, now=noon)
UNSIGNED = {name: value for name, value in json.loads(QUESTION.wire).items() if name != "signature"}


def opened(data, *, me=REMOTE.public, peers=None, now=noon, seen=None, **more):
    peers = known(ASKER) if peers is None else peers
    return open_envelope(data, peers, me, **{"kind": "question"} | more, now=now, seen=seen or open_nonces())


def code_of(data, **more):
    with pytest.raises(RefusedEnvelope) as caught:
        opened(data, **more)
    assert caught.value.code in REFUSALS and str(caught.value).startswith("the envelope is refused")
    return caught.value.code


def changed(wire, key=None, **fields):
    """An envelope with other fields, signed again where a key is given."""
    told = json.loads(wire) | fields
    if key is not None:
        told["signature"] = key.sign(
            signed_bytes({name: value for name, value in told.items() if name != "signature"})
        )
    return canonical_json(told)


def test_a_signed_question_is_opened_as_it_was_signed():
    envelope = opened(QUESTION.wire)
    assert envelope == QUESTION and envelope.digest == QUESTION.digest
    assert (envelope.body, envelope.issued_at, envelope.sender) == (BODY, NOON, ASKER.public)


def test_the_bytes_have_one_spelling():
    assert QUESTION.wire == canonical_json(json.loads(QUESTION.wire))
    assert canonical_json({"b": "é", "a": [1, {}]}) == '{"a":[1,{}],"b":"é"}'.encode()
    twice = QUESTION.wire.replace(b"{", b'{"body":{},', 1)
    for spelt in (QUESTION.wire + b"\n", json.dumps(json.loads(QUESTION.wire)).encode(), twice):
        assert code_of(spelt) == "malformed"


@pytest.mark.parametrize("body", [{1: object()}, {"a": float("nan")}, {"a": "\ud800"}, {"a": b"bytes"}])
def test_what_json_cannot_say_is_not_signed(body):
    with pytest.raises(BadInput, match="only JSON"):
        sign_envelope("question", body, ASKER, REMOTE.public)


def test_an_unsigned_envelope_is_refused():
    told = json.loads(QUESTION.wire)
    codes = [code_of(changed(QUESTION.wire, signature=each)) for each in ("", None)]
    assert codes == ["unsigned"] * 2
    unsigned = {name: value for name, value in told.items() if name != "signature"}
    assert code_of(canonical_json(unsigned)) == "unsigned"


def test_an_unknown_sender_is_refused_however_well_it_signs():
    assert (
        code_of(sign_envelope("question", BODY, STRANGER, REMOTE.public, now=noon).wire) == "unknown sender"
    )
    assert code_of(QUESTION.wire, peers=Peers()) == "unknown sender"


@every(
    "fields",
    [
        {"body": {"expert": "trade", "question": "other"}},
        {"nonce": "A" * 22},
        {"expires_at": json.loads(QUESTION.wire)["expires_at"] + 1},
        {"recipient": STRANGER.public},
        {"signature": STRANGER.sign(b"x")},
        {"signature": "x"},
        {"signature": STRANGER.sign(signed_bytes(UNSIGNED))},
        {"signature": ASKER.sign(canonical_json(UNSIGNED))},
    ],
)
def test_a_tampered_envelope_is_refused_before_anything_in_it_counts(fields):
    assert code_of(changed(QUESTION.wire, **fields)) == "tampered"


def test_an_envelope_for_another_recipient_is_refused():
    assert code_of(QUESTION.wire, me=STRANGER.public) == "another recipient"


def test_an_envelope_is_valid_until_it_expires_and_from_thirty_seconds_before_it_was_issued():
    assert opened(QUESTION.wire, now=after(299.9))
    assert code_of(QUESTION.wire, now=after(300)) == code_of(QUESTION.wire, now=after(10**6)) == "expired"
    assert opened(QUESTION.wire, now=after(-30))
    assert code_of(QUESTION.wire, now=after(-30.1)) == "from the future"


def test_a_replay_is_refused_and_a_new_envelope_of_the_same_words_is_not():
    seen = open_nonces()
    opened(QUESTION.wire, seen=seen)
    assert (
        code_of(QUESTION.wire, seen=seen) == code_of(QUESTION.wire, seen=seen, now=after(200)) == "replayed"
    )
    assert opened(sign_envelope("question", BODY, ASKER, REMOTE.public, now=noon).wire, seen=seen)


def test_a_question_is_not_opened_without_a_memory_of_nonces():
    with pytest.raises(BadInput, match="memory of nonces"):
        open_envelope(QUESTION.wire, known(ASKER), REMOTE.public, kind="question", now=noon)


def test_an_answer_is_opened_for_its_question_only_and_never_as_a_question():
    other = sign_envelope("question", BODY, ASKER, REMOTE.public, now=noon)
    answer = sign_envelope("answer", {}, REMOTE, ASKER.public, in_reply_to=QUESTION.digest, now=noon)
    whose = {"me": ASKER.public, "peers": known(REMOTE, "remote")}
    reply = opened(answer.wire, **whose, kind="answer", in_reply_to=QUESTION.digest)
    assert reply.in_reply_to == QUESTION.digest
    assert code_of(answer.wire, **whose, kind="answer", in_reply_to=other.digest) == "another question"
    other = {"kind": "capabilities", "in_reply_to": QUESTION.digest}
    assert code_of(answer.wire, **whose) == code_of(answer.wire, **whose, **other) == "another kind"


def test_what_is_too_large_is_refused_unread_and_not_signed():
    assert code_of(b"x" * (MAX_ENVELOPE_BYTES + 1)) == "too large"
    with pytest.raises(BadInput, match="at most"):
        sign_envelope("question", {"a": "x" * MAX_ENVELOPE_BYTES}, ASKER, REMOTE.public)


def test_a_life_that_would_fill_the_memory_of_nonces_is_neither_signed_nor_opened():
    with pytest.raises(BadInput, match="lives"):
        sign_envelope("question", BODY, ASKER, REMOTE.public, lifetime=timedelta(minutes=16))
    late = json.loads(QUESTION.wire)["issued_at"] + 16 * 60 * 10**6
    assert code_of(changed(QUESTION.wire, ASKER, expires_at=late)) == "malformed"


@every(
    "fields",
    [
        {"version": 2},
        {"body": []},
        {"kind": "order"},
        {"kind": []},
        {"nonce": "short"},
        {"nonce": 1},
        {"issued_at": True},
        {"issued_at": 1.5},
        {"expires_at": 10**30},
        {"sender": "x"},
        {"recipient": None},
        {"in_reply_to": "x"},
        {"in_reply_to": "0" * 64},
        {"more": 1},
        {"signature": 5},
    ],
)
def test_an_envelope_of_another_shape_is_refused_even_if_it_is_signed(fields):
    assert code_of(changed(QUESTION.wire, None if "signature" in fields else ASKER, **fields)) == "malformed"


@every(
    "data",
    [b"", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b"1" * 10_000, b'{"a":NaN}', b'{"a":"\\ud800"}'],
)
def test_bytes_that_are_no_envelope_are_refused(data):
    assert code_of(data) in ("malformed", "unsigned")


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(QUESTION.wire) - 1), st.integers(1, 255))
def test_a_byte_that_was_flipped_anywhere_is_always_refused(place, by):
    data = bytearray(QUESTION.wire)
    data[place] ^= by
    assert code_of(bytes(data)) in ("malformed", "unsigned", "unknown sender", "tampered")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(QUESTION.wire)), st.integers(0, 20), st.binary(max_size=20))
def test_bytes_put_in_or_taken_out_are_always_refused(place, fewer, more):
    data = QUESTION.wire[:place] + more + QUESTION.wire[place + fewer :]
    if data != QUESTION.wire:
        assert code_of(data) in ("malformed", "unsigned", "unknown sender", "tampered")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_other_bytes_are_refused_and_break_nothing(data):
    assert code_of(data) in REFUSALS


@pytest.mark.extended
def test_of_several_processes_one_opens_an_envelope(tmp_path):
    program = f"""
import sys
from support.federation import noon
from kgot_lab.errors import RefusedEnvelope
from kgot_lab.experts.federation.signing import open_nonces
from kgot_lab.experts.federation.signing import Peer, Peers
from kgot_lab.experts.federation.signing import open_envelope
peers = Peers(Peer("asker", "http://127.0.0.1:1", {ASKER.public!r}))
seen = open_nonces({str(tmp_path / "seen.db")!r})
try:
    open_envelope(sys.stdin.buffer.read(), peers, {REMOTE.public!r}, kind="question", seen=seen, now=noon)
    print("opened")
except RefusedEnvelope as error:
    print(error.code)
"""
    path = os.pathsep.join(sys.path)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    said = [process.communicate(QUESTION.wire)[0].decode().strip() for process in running]
    assert sorted(said) == ["opened", "replayed", "replayed"]


def test_of_many_threads_one_opens_an_envelope():
    seen = open_nonces()

    def attempt(_):
        try:
            opened(QUESTION.wire, seen=seen)
        except RefusedEnvelope as error:
            return error.code
        return "opened"

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(attempt, range(8))) == ["opened", *["replayed"] * 7]


def test_a_sender_that_fills_its_memory_waits_and_holds_up_nobody_else():
    seen, peers = open_nonces(limit=2), Peers(*known(ASKER), *known(STRANGER, "other"))
    for _ in range(2):
        opened(sign_envelope("question", BODY, ASKER, REMOTE.public, now=noon).wire, seen=seen, peers=peers)
    assert code_of(QUESTION.wire, seen=seen, peers=peers) == "too many"
    assert opened(
        sign_envelope("question", BODY, STRANGER, REMOTE.public, now=noon).wire, seen=seen, peers=peers
    )
    later = sign_envelope("question", BODY, ASKER, REMOTE.public, now=after(400))
    assert opened(later.wire, seen=seen, peers=peers, now=after(400))
