"""Instances that ask each other in tests: keys, a clock, and a server on loopback that answers as it is told
to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kgot_lab.errors import LabError, RefusedEnvelope, UnknownName
from kgot_lab.experts.federation.delegation import (
    ASK_PATH,
    CAPABILITIES_PATH,
    DelegatedAnswer,
    DelegatedQuestion,
    Federation,
    RemoteAnswer,
    RemoteQuestion,
    delegate_to_all,
    open_question,
    refusal_reply,
)
from kgot_lab.experts.federation.envelope import InstanceKey, canonical_json
from kgot_lab.experts.federation.marketplace import AdvertisedExpert, sign_capabilities
from kgot_lab.experts.federation.signing import Peer, Peers, open_nonces
from support.loopback import QuietHandler, serving


def new_instance_key() -> InstanceKey:
    """A key that is not stored."""
    return InstanceKey(Ed25519PrivateKey.generate())


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def noon() -> datetime:
    return NOON


def sign_answer(answer: RemoteAnswer, to: DelegatedQuestion, federation: Federation) -> bytes:
    """The signed bytes of an answer to a question."""
    return federation.sign_reply("answer", answer.to_json(), to.envelope)


def delegate(question: str, peer: Peer, key: InstanceKey, *, expert: str, **options: Any) -> DelegatedAnswer:
    """What one expert of a peer answers."""
    return delegate_to_all(question, [(peer, expert)], key, **options)[0]


def after(seconds: float) -> Callable[[], datetime]:
    """A clock that is so many seconds past noon."""
    return lambda: NOON + timedelta(seconds=seconds)


def known(key: InstanceKey, name: str = "asker") -> Peers:
    """The one peer that a server knows: the holder of this key."""
    return Peers(Peer(name, "http://127.0.0.1:1", key.public))


def echo(asked: RemoteQuestion, peer: Peer) -> RemoteAnswer:
    """Answer with the question, citing two nodes."""
    answer = f"{peer.name} asked: {asked.question}"
    return RemoteAnswer(expert=asked.expert, answer=answer, sources=("trade:aspirin", "trade:willow"))


def answered_question(
    data: bytes, federation: Federation, answer: Callable[[RemoteQuestion, Peer], RemoteAnswer]
) -> bytes:
    """The bytes that answer those that came, by what `answer` says; raises RefusedEnvelope.

    Where `answer` raises an error of this package, the peer is told that there is no such expert, or no
    answer, and nothing more.
    """
    question = open_question(data, federation)
    try:
        said = answer(question.asked, question.peer)
    except UnknownName:
        said = RemoteAnswer(expert=question.asked.expert, answer=None, reason="there is no such expert here")
    except LabError:
        said = RemoteAnswer(expert=question.asked.expert, answer=None, reason="the expert could not answer")
    return sign_answer(said, question, federation)


@dataclass
class PeerServer:
    """A server of an instance: the peer it is to others, and the bodies that reached it."""

    peer: Peer
    federation: Federation
    came: list[bytes] = field(default_factory=list)


@contextmanager
def peer_server(
    asker: InstanceKey,
    answer: Callable[[RemoteQuestion, Peer], RemoteAnswer] = echo,
    experts: tuple[AdvertisedExpert, ...] = (),
    name: str = "remote",
) -> Iterator[PeerServer]:
    """An instance on loopback that knows one peer, and answers as `answer` says."""
    key = new_instance_key()
    federation = Federation(key, known(asker), open_nonces())

    def act(handler: Any, body: bytes) -> None:
        server.came.append(body)
        try:
            if handler.path == ASK_PATH:
                send(handler, 200, answered_question(body, federation, answer))
            elif handler.path == CAPABILITIES_PATH:
                send(handler, 200, sign_capabilities(body, federation, experts))
            else:
                send(handler, 404, b"{}")
        except RefusedEnvelope as error:
            body, status = refusal_reply(error)
            send(handler, status, canonical_json(body))

    with acting_server(act) as address:
        server = PeerServer(Peer(name, address, key.public), federation)
        try:
            yield server
        finally:
            federation.seen.close()


@contextmanager
def acting_server(act: Callable[[Any, bytes], None]) -> Iterator[str]:
    """A server on loopback that does `act` with its handler and the body that came; gives its address."""

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            act(self, self.rfile.read(int(self.headers.get("content-length") or 0)))

        def do_GET(self) -> None:
            act(self, b"")

    with serving(Handler) as address:
        yield address


def send(handler: Any, status: int, body: bytes, **headers: str) -> None:
    """Answer with a status and a body."""
    own = {"content-type": "application/json", "content-length": str(len(body))}
    handler.respond(status, body, own | headers)
