"""The month from its first day to its last, in ticks of the monitor that users run: news is read by a model,
and users are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType

from kgot_lab.domains.investment.accounts import Accounts, OutboxEntry
from kgot_lab.domains.investment.monitor.events import ItemWritten, MonitorEvent, StageFailed
from kgot_lab.domains.investment.monitor.journal import Tick
from kgot_lab.domains.investment.monitor.monitor import Monitor, MonitorPlaces, open_places
from kgot_lab.domains.investment.monitor.news import FeedResult
from kgot_lab.domains.investment.reach import DECAYS
from kgot_lab.domains.investment.view import InvestmentView
from kgot_lab.types import LLM, Edge, Json

from .month import AccountChange, GoldMonth


@dataclass(frozen=True)
class ToldBriefing:
    """What a user was told: of the call in which items, what to do, by which paths (by symbol), and when."""

    user: str
    items: frozenset[str]
    action: str
    paths: Mapping[str, str] = field(hash=False)
    at: datetime


@dataclass(frozen=True)
class MonthTold:
    """All that was told in a month, and what was not taken of which item, with the reason; '' is of no item."""

    told: tuple[ToldBriefing, ...]
    refused: tuple[tuple[str, str], ...] = ()


class MonthPlay:
    """A month that a monitor runs through, in places of its own in memory; `told` grows, and `now` is the
    time that it has come to.

    A tick comes after each item and each change of an account, or once in `every` of the clock. The model is
    asked as users have it asked.
    """

    def __init__(
        self,
        month: GoldMonth,
        llm: LLM,
        *,
        every: timedelta | None = None,
        decays: Mapping[str, float] = DECAYS,
    ) -> None:
        self.month, self.now, self.told = month, month.begins, list[ToldBriefing]()
        self._every, self._open = every, ExitStack()
        self.places: MonitorPlaces = self._open.enter_context(open_places(":memory:", now=lambda: self.now))
        self._monitor = Monitor(self.places, llm, self._feed, self._deliver, decays=decays)
        _begin(month, self.places)

    def __repr__(self) -> str:
        return f"<{self.month!r} at {self.now.isoformat()}, {len(self.told)} briefings told>"

    def __enter__(self) -> MonthPlay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def events(self) -> Iterator[MonitorEvent]:
        """Go on to the end of the month, and tell what happens."""
        for number, (at, changes) in enumerate(_moments(self.month, self._every), start=1):
            self.now = at
            for change in changes:
                _change_account(self.places.accounts, change)
            yield from self._monitor.tick(Tick(number, at))

    def _feed(self) -> FeedResult:
        return FeedResult(self.month.items)

    def _deliver(self, entry: OutboxEntry) -> None:
        self.told.append(as_told(self.places.graph.view(), entry, self.now))


def tell_month(
    month: GoldMonth, llm: LLM, *, every: timedelta | None = None, decays: Mapping[str, float] = DECAYS
) -> MonthTold:
    """Play a month to its end, and keep who was told of what."""
    with MonthPlay(month, llm, every=every, decays=decays) as play:
        refused = [each for event in play.events() for each in _refused(event)]
        return MonthTold(tuple(play.told), tuple(refused))


def as_told(view: InvestmentView, entry: OutboxEntry, at: datetime) -> ToldBriefing:
    """A briefing that was delivered as it is scored; its items are those that its signal is derived from,
    live or not.
    """
    body = entry.body
    sources = {
        each.edge.target for each in view.edge_history(body["signal"]) if each.edge.type == "derived_from"
    }
    items = {
        str(each.node.properties["item"])
        for id in sources
        for each in view.history(id)
        if each.node.labels == ("News",)
    }
    paths = {
        symbol: path_told(view, path) for symbol, path in zip(body["symbols"], body["paths"], strict=True)
    }
    return ToldBriefing(entry.user, frozenset(items), body["action"], paths, at)


def path_told(view: InvestmentView, path: Sequence[Sequence[Json]]) -> str:
    """A path after its signal, by types and names; an event by its type alone, since its words are the
    reader's.
    """
    return " ".join(
        f"-{by}-> {_ref(view, target)}" if forward else f"<-{by}- {_ref(view, target)}"
        for _, by, target, forward in path
    )


def _ref(view: InvestmentView, id: str) -> str:
    (*_, last) = view.history(id)
    type = last.node.labels[0]
    return (
        type
        if type == "MarketEvent"
        else f"{type}:{last.node.properties['symbol' if type == 'Asset' else 'name']}"
    )


def _refused(event: MonitorEvent) -> Iterator[tuple[str, str]]:
    if isinstance(event, ItemWritten):
        yield from ((event.facts.item, line) for line in event.facts.refused)
    elif isinstance(event, StageFailed):
        yield "", str(event)


def _begin(month: GoldMonth, places: MonitorPlaces) -> None:
    """Write what is known before the month into the graph, and the users into the accounts."""
    nodes = {ref: month.standing.node(ref) for ref in month.standing.things}
    edges = [
        Edge(nodes[edge.source].id, edge.type, nodes[edge.target].id, edge.properties)
        for edge in month.standing.edges
    ]
    places.graph.write(nodes.values(), edges)
    for row in month.users:
        profile = {name: row[name] for name in ("risk_tolerance", "horizon", "goals", "preferences")}
        places.accounts.set_profile(row["user"], **profile)
        for position in row["positions"]:
            places.accounts.set_position(
                row["user"], position["symbol"], position["shares"], position["average_cost"]
            )
        for symbol in row["watchlist"]:
            places.accounts.watch(row["user"], symbol)


def _change_account(accounts: Accounts, change: AccountChange) -> None:
    """Note what a user changed."""
    if change.shares:
        accounts.set_position(change.user, change.symbol, change.shares, change.average_cost)
    else:
        accounts.watch(change.user, change.symbol, stop=True)


def _moments(month: GoldMonth, every: timedelta | None) -> Iterator[tuple[datetime, list[AccountChange]]]:
    """The times of ticks, each with what changed in accounts since the one before."""
    coming = sorted([*(each.published_at for each in month.items), *(each.at for each in month.changes)])
    if every is not None:  # only where something came: to decide again otherwise calls for nothing new
        coming = [month.begins + every * -((month.begins - at) // every) for at in coming]
    before = month.begins
    for at in dict.fromkeys(coming):
        yield at, [each for each in month.changes if before < each.at <= at]
        before = at
