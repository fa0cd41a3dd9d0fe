"""The kinds of files: how each is opened, how the n-th thing is written to it, and how all are read back."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from faults.disk import Disk, below_sqlite
from kgot_lab.domains.investment.accounts import open_accounts
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.monitor.journal import open_journal
from kgot_lab.domains.investment.monitor.news import NewsItem
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.embedding.vectors import CACHE_NAME, CachedEmbedder, CacheFile
from kgot_lab.errors import StoreUnavailable
from kgot_lab.experts.expert import expert_config
from kgot_lab.experts.federation.envelope import Envelope
from kgot_lab.experts.federation.signing import open_nonces
from kgot_lab.experts.learning.ledger import GraphProposal, NodeToAdd, ProposalSource, open_proposals
from kgot_lab.experts.repository import open_experts
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.memory.sqlite import SQLiteTripleStore
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.types import Diff, Edge, Node, Triple

NOON = datetime(2026, 2, 6, 12, tzinfo=UTC)
MOST = 100  # things in a file
_NUMBER = re.compile(r"thing (\d+):")


def text(number: int) -> str:
    """The text of a thing, of some length; one in seven is longer than a page."""
    return f"thing {number}: " + "x" * (6_000 if number % 7 == 3 else number * 37 % 400)


def number_of(thing: str) -> int:
    """The number of a thing, and -1 for what nobody wrote."""
    found = _NUMBER.search(thing)
    return int(found[1]) if found else -1


@dataclass(frozen=True)
class Kind:
    """What opens a file, writes the n-th thing to it in one transaction, and reads all things, as texts."""

    name: str
    open: Callable[[Path], Any]
    write: Callable[[Any, int], object]
    read: Callable[[Any], Iterable[object]]
    file: str = "file.db"
    below: Callable[[Disk], AbstractContextManager[Disk]] = below_sqlite
    durable: bool = True  # a loss of power takes no write back; of a cache it may take the last one
    tidy: Callable[[Any], object] = id  # rewrites a file, with the same things

    def things(self, path: Path) -> dict[int, str]:
        """All things that are read from a file, by number."""
        with closing(self.open(path)) as opened:
            return self.held(opened)

    def held(self, opened: Any) -> dict[int, str]:
        """All things in an open file, by number."""
        things = [repr(thing) for thing in self.read(opened)]
        found = {number_of(thing): thing for thing in things}
        return found if len(found) == len(things) else {-1: f"a thing twice: {sorted(things)}"}

    def __str__(self) -> str:
        return self.name


# --- what is written and read ---


def _graph_write(store: Any, number: int) -> None:
    node = Node(f"n{number}", ("Thing",), {"text": text(number), "number": number})
    store.apply(
        Diff(added_nodes=(node,), added_edges=(Edge(node.id, "is", node.id, {"of": text(number)[:20]}),))
    )


def _graph_read(store: Any) -> list[object]:
    graph, found = store.graph(), set(store.search("thing", MOST))
    edges = {edge.source: edge for edge in graph.edges}
    return [(node, node in found, edges.pop(node.id, None)) for node in graph.nodes] + list(edges.values())


def _fact(number: int) -> Triple:
    return Triple(f"s{number}", "is", text(number), 0.9, number)


def _triples_read(triples: Any) -> list[object]:
    found = set(triples.search(["thing"], MOST))
    return [(triple, triple in found) for triple in triples.all()]


def _claims_read(claims: Any) -> list[object]:
    return [(fact, claims.claims_on(fact)) for fact in claims.triples()]


def _expert_write(tables: Any, number: int) -> None:
    about = {"name": "Cook", "kg_db_id": "cookbook", "description": text(number)[:900]}
    expert = expert_config({**about, "persona": {"name": "Cook"}})
    with tables.storage.changing():
        tables.add_expert(expert, id=f"e{number}")
        conversation = tables.begin_conversation(f"e{number}", "ada", text(number))
        tables.add_message(conversation, "user", text(number))


def _experts_read(tables: Any) -> list[object]:
    return [
        (expert, [(c, tables.messages(c.id)) for c in tables.conversations(expert.id, "ada", limit=9)[0]])
        for expert in tables.experts()
    ]


def _proposal_write(ledger: Any, number: int) -> None:
    proposal = GraphProposal("cookbook", (NodeToAdd(f"technique:{number}", "technique", text(number)[:300]),))
    ledger.propose(proposal, ProposalSource("m", "c", f"ada {number}", text(number)[:300]))


def _nonce_write(nonces: Any, number: int) -> None:
    nonce = text(number)[:500]
    envelope = Envelope("sender", "recipient", "question", {}, NOON, NOON + timedelta(hours=1), nonce)
    nonces.accept(envelope, NOON)


def _nonces_read(nonces: Any) -> list[object]:
    return nonces.storage.rows("SELECT sender, nonce, gone_at FROM nonces")


def _world_write(world: Any, number: int) -> None:
    each = Entity("npc", f"thing {number}: {number}", {"text": text(number)}, f"{number:032x}")
    world.add([each], [Relationship(each.id, each.id, "KNOWS", {}, Provenance("s1"))])


def _world_read(world: Any) -> list[object]:
    return [(e, e.created_at, e.updated_at, world.get_relationships(e.id)) for e in world.find_entities()]


def _investment_write(graph: Any, number: int) -> None:
    graph.write(
        [
            investment_node(
                "Company", name=f"thing {number}: {number}", ticker=f"T{number}", country=text(number)
            )
        ]
    )


def _account_write(accounts: Any, number: int) -> None:
    with accounts.storage.changing():
        accounts.set_profile(f"u{number}", horizon=text(number)[:900])
        accounts.set_position(f"u{number}", "LNTN", "0.1", number)


def _accounts_read(accounts: Any) -> list[object]:
    return [astuple(accounts.account(user)) for user in accounts.users()]


class Absent(Exception):
    """Vectors that are not in the cache were asked for: of these texts."""


class Numbers:
    """An embedder of texts by their numbers, or one that has none."""

    name, digest, dimension = "numbers", "1", 32

    def __init__(self, *, computes: bool) -> None:
        self.computes = computes

    def embed(self, texts: list[str]) -> Any:
        if not self.computes:
            raise Absent(texts)
        rows = [np.sin(np.arange(1, 33) * (1 + number_of(each))) for each in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


class Cache:
    """A cache in a folder: it warns instead of raising, which here is a refusal."""

    def __init__(self, path: Path) -> None:
        self.folder = path.parent

    def close(self) -> None:
        """Nothing: a cache is opened for each batch."""


def _warned(act: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            return act()
        finally:
            if warned:
                raise StoreUnavailable(str(warned[0].message))


def _vector_write(cache: Cache, number: int) -> None:
    _warned(lambda: CachedEmbedder(Numbers(computes=True), cache.folder).embed([text(number)]))


def _vectors_read(cache: Cache) -> list[object]:
    cached, texts = (
        CachedEmbedder(Numbers(computes=False), cache.folder, chunk=MOST),
        list(map(text, range(MOST))),
    )
    try:
        _warned(lambda: cached.embed(texts))
    except Absent as absent:
        texts = [each for each in texts if each not in absent.args[0]]
    return list(zip(texts, _warned(lambda: cached.embed(texts)).tolist(), strict=True)) if texts else []


def _texts(cache: Cache) -> CacheFile:
    return CacheFile(cache.folder, "file.db", label="skeleton", fallback="they are made")


def _text_write(cache: Cache, number: int) -> None:
    _warned(lambda: _texts(cache).write({b"%d" % number: text(number).encode()}))


def _texts_read(cache: Cache) -> list[object]:
    keys = [b"%d" % number for number in range(MOST)]
    return _warned(lambda: list(_texts(cache).read(keys).items()))


_ALL = (
    Kind("graph", Sqlite, _graph_write, _graph_read),
    Kind(
        "claims",
        open_claims,
        lambda c, n: c.learn(Claim(_fact(n), f"doc {n}")),
        _claims_read,
        tidy=lambda c: c.storage.scrub(),
    ),
    Kind("triples", SQLiteTripleStore, lambda t, n: t.add([_fact(n)]), _triples_read),
    Kind("experts", open_experts, _expert_write, _experts_read),
    Kind("proposals", open_proposals, _proposal_write, lambda ledger: ledger.queue("cookbook")),
    Kind("nonces", open_nonces, _nonce_write, _nonces_read),
    Kind("worlds", open_world, _world_write, _world_read),
    Kind("investment", open_investment_graph, _investment_write, lambda g: g.view().nodes()),
    Kind("accounts", open_accounts, _account_write, _accounts_read),
    Kind(
        "journal",
        open_journal,
        lambda j, n: j.add([NewsItem(f"i{n}", text(n), NOON)]),
        lambda j: j.items_to_read(MOST),
    ),
    Kind("vectors", Cache, _vector_write, _vectors_read, file=CACHE_NAME, durable=False),
    Kind("texts", Cache, _text_write, _texts_read, durable=False),
    Kind("embedded", lambda path: InMemory(path=path), _graph_write, _graph_read),
)
KINDS = {kind.name: kind for kind in _ALL}
