"""The month from its first day to its last: news read by a model and written into a graph, and users told what that calls for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kgot_lab.domains.investment.accounts import Accounts, open_accounts
from kgot_lab.domains.investment.briefing import Briefing, Holdings, Wishes, decide, signals
from kgot_lab.domains.investment.graph import InvestmentGraph, open_investment_graph
from kgot_lab.domains.investment.reach import DECAYS, ReachedAsset, reach
from kgot_lab.domains.investment.view import InvestmentView
from kgot_lab.errors import BadInput
from kgot_lab.experiments.briefings.month import AccountChange, GoldMonth
from kgot_lab.experiments.briefings.said import MonthItem, SaidFacts, write_facts
from kgot_lab.schemas.investment import INVESTMENT_WITH_COMPANIES
from kgot_lab.types import LLM, Edge, Message, Node, Prompt


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
    """All that was told in a month, and the items of which the graph took nothing, with its reasons."""

    told: tuple[ToldBriefing, ...]
    refused: tuple[tuple[str, str], ...] = ()


def tell_month(month: GoldMonth, llm: LLM, *, every: timedelta | None = None, decays: Mapping[str, float] = DECAYS) -> MonthTold:
    """Read the news of a month with a model, and decide after each item who is to hear of what, or once in `every` of the clock.

    The model is given an item's headline and text and answers as SaidFacts.as_text does. Nothing of an account is in a prompt or the graph.
    """
    clock = [month.begins]
    refused: list[tuple[str, str]] = []
    told: list[ToldBriefing] = []
    with (
        open_investment_graph(vocabulary=INVESTMENT_WITH_COMPANIES, now=lambda: clock[0]) as graph,
        open_accounts(now=lambda: clock[0]) as accounts,
    ):
        begin_month(month, graph, accounts)
        for clock[0], happened in month_moments(month, every):
            for each in happened:
                if isinstance(each, AccountChange):
                    change_account(accounts, each)
                    continue
                try:
                    write_facts(graph, each, SaidFacts.of_text(llm(item_prompt(each)).text))
                except BadInput as error:
                    refused.append((each.id, str(error)))
            view = graph.view()
            told += [
                as_told(view, briefing, month.items, clock[0]) for briefing in decided(view, accounts, decays) if accounts.post(briefing)
            ]
    return MonthTold(tuple(told), tuple(refused))


def item_prompt(item: MonthItem) -> Prompt:
    """The plainest prompt for an item: its headline and its text."""
    return Prompt((Message("user", f"{item.headline}\n\n{item.text}"),))


def begin_month(month: GoldMonth, graph: InvestmentGraph, accounts: Accounts) -> None:
    """Write what is known before the month into a graph, and the users into accounts."""
    nodes = {ref: month.standing.node(ref) for ref in month.standing.things}
    edges = [Edge(nodes[edge.source].id, edge.type, nodes[edge.target].id, edge.properties) for edge in month.standing.edges]
    graph.write(nodes.values(), edges)
    for row in month.users:
        profile = {name: row[name] for name in ("risk_tolerance", "horizon", "goals", "preferences")}
        accounts.set_profile(row["user"], **profile)
        for position in row["positions"]:
            accounts.set_position(row["user"], position["symbol"], position["shares"], position["average_cost"])
        for symbol in row["watchlist"]:
            accounts.watch(row["user"], symbol)


def change_account(accounts: Accounts, change: AccountChange) -> None:
    """Note what a user changed."""
    if change.shares:
        accounts.set_position(change.user, change.symbol, change.shares, change.average_cost)
    else:
        accounts.watch(change.user, change.symbol, stop=True)


def decided(view: InvestmentView, accounts: Accounts, decays: Mapping[str, float] = DECAYS) -> Iterator[Briefing]:
    """The briefings that a view of what all share calls for, of all users; what a signal reaches is looked up once for all."""
    with view.reading():
        found = [(signal, reach(view, signal.insight.node.id, decays=decays)) for signal in signals(view)]
    for user in accounts.users():
        account = accounts.account(user)
        holdings, wishes = Holdings(user, account.held, frozenset(account.watchlist)), Wishes.of(account.preferences)
        decisions = (decide(signal, reached, holdings, wishes) for signal, reached in found)
        yield from (each for each in decisions if isinstance(each, Briefing))


def as_told(view: InvestmentView, briefing: Briefing, items: Iterable[MonthItem], at: datetime) -> ToldBriefing:
    """A briefing as it is scored; its items are those whose news its signal is derived from, live or not."""
    sources = {each.edge.target for each in view.edge_history(briefing.signal) if each.edge.type == "derived_from"}
    headlines = {each.node.properties.get("headline") for id in sources for each in view.history(id)}
    found = frozenset(item.id for item in items if item.headline in headlines)
    return ToldBriefing(briefing.user, found, briefing.action, {each.symbol: path_told(each) for each in briefing.reached}, at)


def path_told(reached: ReachedAsset) -> str:
    """A path after its signal, by types and names; an event by its type alone, since its words are the reader's."""
    hops = (f"-{hop.by}-> {_ref(hop.target)}" if hop.forward else f"<-{hop.by}- {_ref(hop.target)}" for hop in reached.path)
    return " ".join(hops)


def _ref(node: Node) -> str:
    type = node.labels[0]
    return type if type == "MarketEvent" else f"{type}:{node.properties['symbol' if type == 'Asset' else 'name']}"


def month_moments(month: GoldMonth, every: timedelta | None) -> Iterator[tuple[datetime, list[MonthItem | AccountChange]]]:
    """The times at which something is done, each with what came since the one before."""
    coming: list[tuple[datetime, MonthItem | AccountChange]] = [(each.published_at, each) for each in month.items]
    coming = sorted([*coming, *((each.at, each) for each in month.changes)], key=lambda each: each[0])
    if every is None:
        yield from ((at, [each]) for at, each in coming)
        return
    at = month.begins
    while coming:
        at += every
        now = [each for time, each in coming if time <= at]
        coming = coming[len(now) :]
        if now:  # to decide again when nothing came calls for nothing new
            yield at, now
