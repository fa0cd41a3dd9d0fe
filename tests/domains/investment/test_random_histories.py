"""Random sequences of writes, ends and questions, by a clock that sometimes goes back, against a list of what
was written.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from support.every import every
from support.small_market import NOW, SetClock

from kgot_lab.domains.investment.graph import InvestmentGraph, open_investment_graph
from kgot_lab.types import Edge, Node

pytestmark = pytest.mark.extended

HOUR = timedelta(hours=1)
LIVES = {"Company": None, "MarketEvent": 30 * 24 * HOUR, "affects": 30 * 24 * HOUR}
OWNERS = ("", "ada", "bob")


class Listed:
    """What was written, one after the other: (time, owner, key, what it says, when it expires). A key of
    three is an edge.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def time(self, clock: Any) -> Any:
        return max([clock, *(row[0] for row in self.rows)])

    def last(self, key: Any, owner: str, until: Any = None) -> Any:
        rows = [
            row
            for row in self.rows
            if row[2] == key and row[1] == owner and (until is None or row[0] <= until)
        ]
        return rows[-1] if rows else None

    def write(self, clock: Any, owner: str, key: Any, type: str, says: Any, given: Any) -> None:
        at, before = self.time(clock), self.last(key, owner)
        life = LIVES[type]
        expires = None if life is None else at + life
        if given is not ...:
            expires = given
        elif before is not None:
            expires = None if expires is None or before[4] is None else max(expires, before[4])
        if before is None or before[3:] != (says, expires):
            self.rows.append((at, owner, key, says, expires))

    def live(self, owner: str, at: Any) -> dict[Any, Any]:
        keys = {(row[2], row[1]) for row in self.rows if row[1] in ("", owner)}
        last = {
            (key, whose): row
            for key, whose in keys
            if (row := self.last(key, whose, at)) and (row[4] is None or row[4] > at)
        }
        nodes = {key for key, _ in last if isinstance(key, str)}
        return {
            each: row[3]
            for each, row in last.items()
            if isinstance(each[0], str) or (each[0][0] in nodes and each[0][2] in nodes)
        }


def seen(graph: InvestmentGraph, owner: str, at: Any) -> dict[Any, Any]:
    view = graph.view(owner, at=at)
    nodes = {(node.node.id, node.owner): node.node.properties.get("n") for node in view.nodes()}
    links = {
        ((edge.edge.source, edge.edge.type, edge.edge.target), edge.owner): edge.edge.properties.get("n")
        for edge in view.edges()
    }
    return nodes | links


def play(graph: InvestmentGraph, clock: SetClock, random: Random, steps: int) -> None:
    listed = Listed()
    for _ in range(steps):
        clock.time += random.choice((0, 1, 5, 24, 24 * 8, 24 * 20, -24)) * HOUR
        owner = random.choice(OWNERS)
        prefix = f"{owner}/" if owner else ""
        given = random.choice((..., ..., None, clock.time + random.choice((-1, 0, 1, 48)) * HOUR))
        n = random.randrange(3)
        kind = random.choice(("node", "node", "edge", "end", "ask"))
        if kind == "node":
            type = random.choice(("Company", "MarketEvent"))
            id = f"{prefix}{type}{random.randrange(3)}"
            says = {"name": "A company"} if type == "Company" else {"type": "x", "summary": "It happens"}
            graph.write(
                [Node(id, (type,), says | {"n": n})],
                owner=owner,
                expires_at={} if given is ... else {id: given},
            )
            listed.write(clock.time, owner, id, type, n, given)
        visible = [
            key
            for key in {row[2]: row for row in listed.rows if row[1] in ("", owner)}
            if isinstance(key, str)
        ]
        events, companies = ([key for key in visible if type in key] for type in ("MarketEvent", "Company"))
        if kind == "edge" and events and companies:
            key = (random.choice(events), "affects", random.choice(companies))
            graph.write(
                edges=[Edge(*key, {"n": n})], owner=owner, expires_at={} if given is ... else {key: given}
            )
            listed.write(clock.time, owner, key, "affects", n, given)
        if kind == "end" and (own := [row[2] for row in listed.rows if row[1] == owner]):
            key = random.choice(own)
            at, before = listed.time(clock.time), listed.last(key, owner)
            graph.expire(key, owner=owner)
            if before[4] is None or before[4] > at:
                listed.rows.append((at, owner, key, before[3], at))
        for at in (
            listed.time(clock.time),
            clock.time - random.randrange(24 * 60) * HOUR,
            clock.time + 24 * HOUR,
        ):
            for asking in OWNERS:
                assert seen(graph, asking, at) == listed.live(asking, at)
    assert seen(graph, "ada", None) == listed.live("ada", listed.time(clock.time))


@every("seed", range(16))
def test_every_history_is_answered_as_a_list_would(seed):
    clock = SetClock(NOW)
    with open_investment_graph(now=clock) as graph:
        play(graph, clock, Random(seed), 25)


def test_histories_are_answered_alike_in_each_engine(graph, clock):
    play(graph, clock, Random(1_000), 40)
