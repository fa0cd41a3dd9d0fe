"""Writers of one namespace go one after the other, for a server has no lock for a node that is not there yet.

Each namespace has a node of its own, which does not bear its mark, so that no statement meets it. A write
sets it before it reads anything. A server with locks then lets the next writer wait until the commit; one
without (ArcadeDB) refuses the later of two commits, and that write is made again. Where two stores made such
a node at once, both are set from then on: whoever writes sees at least its own and all that were there
before, so that any two writers have one in common.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from kgot_lab.errors import ServerLost, StoreUnavailable
from kgot_lab.io.processes import ended_after
from kgot_lab.stores.cypher.connection import BoltLink, Late, Overtaken

if TYPE_CHECKING:
    from neo4j import Transaction

_OWN = "MATCH (w:KgotLabWriters {of: $run}) WHERE w._run IS NULL "  # else a statement could make one that is another namespace's
_TAKE = _OWN + "SET w.written = w.written + $step RETURN w.written"
_READ = _OWN + "RETURN w.written"
_MAKE = "CREATE (:KgotLabWriters {of: $run, written: $start})"
_FORGET = _OWN + "DELETE w"
_WAIT = 60.0  # seconds for another writer's transaction to end


class Turn(NamedTuple):
    """A transaction that no other writer of the namespace is beside, or that cannot be kept; what the nodes
    it set held before.
    """

    transaction: Transaction
    before: list[int]


class Turns:
    """The turns in which the writers of a namespace write."""

    def __init__(self, link: BoltLink, namespace: str):
        self._link, self._namespace = link, namespace

    @contextmanager
    def taken(self, seconds: float | None = None) -> Iterator[Turn]:
        """A transaction as of `BoltLink.writing` that begins with the turn; raises StoreUnavailable where
        none comes, changing nothing.

        Raises Overtaken in the place of an error that may come of another writer's change, seen in the middle
        of the own ones.
        """
        while True:
            with self._link.writing(seconds) as transaction:
                if before := self._take(transaction):
                    turn = Turn(transaction, before)
                    with self._believed(turn):
                        yield turn
                    return
                transaction.rollback()
            with (
                self._link.writing() as transaction
            ):  # of its own, so that others see it before this one writes
                start = random.getrandbits(40)  # so that it is never taken for one that was deleted
                transaction.run(_MAKE, run=self._namespace, start=start).consume()

    def require_unwritten(self, turn: Turn) -> None:
        """Raise Overtaken where somebody wrote since a turn was taken, other than in a transaction that is
        open.
        """
        if self.written() != turn.before:
            raise Overtaken

    def written(self) -> list[int]:
        """What the nodes hold by which turns are taken: something else after each write that was kept."""
        return sorted(number for (number,) in self._link.ask(_READ, {"run": self._namespace}))

    def forget(self, turn: Turn) -> None:
        """Leave nothing in the database that turns were taken by, once this turn's transaction is kept."""
        turn.transaction.run(_FORGET, run=self._namespace).consume()

    @contextmanager
    def _believed(self, turn: Turn) -> Iterator[None]:
        from neo4j.exceptions import DriverError

        try:
            yield
        except (DriverError, Late, ServerLost):  # the server may be away
            raise
        except Exception:
            self.require_unwritten(turn)
            raise

    def _take(self, transaction: Transaction) -> list[int]:
        from neo4j.exceptions import Neo4jError

        step = random.randrange(1, 1 << 20)  # so that two who set it at once do not set the same
        with ended_after(_WAIT, self._link.cut) as late:
            try:
                return sorted(
                    number - step
                    for (number,) in transaction.run(_TAKE, run=self._namespace, step=step).values()
                )
            except Exception as error:
                # somebody deletes the namespace
                if isinstance(error, Neo4jError) and (error.code or "").endswith(".EntityNotFound"):
                    raise Overtaken from error
                if not late.is_set():
                    raise
        raise StoreUnavailable(
            f"{self._link.name} did not let us write to the namespace {self._namespace!r} for {_WAIT:g} s: another writer keeps it, or the "
            "server hangs; nothing was changed, so try again later"
        )
