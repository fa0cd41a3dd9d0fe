"""Decide whether a user receives a briefing, from the signal, its reach, and the user's holdings and wishes.

A briefing needs a signal: a live insight of type signal with an action, which reaches an asset that the user
holds or watches. An event that reaches a holding is not a sufficient reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, NamedTuple

from pydantic import ConfigDict, TypeAdapter, ValidationError

from kgot_lab.arguments import CheckedRecord, check_arguments
from kgot_lab.domains.investment.reach import DECAYS, ReachedAsset, reach
from kgot_lab.domains.investment.view import DatedNode, InvestmentView, action_of, display_name, symbol_key
from kgot_lab.errors import BadInput
from kgot_lab.types import Json, Node

LATEST = datetime.max.replace(tzinfo=UTC)
DISCLAIMER = "This repeats what a graph was told; it is not financial advice."


@dataclass(frozen=True)
class Wishes(CheckedRecord):
    """A user's preferences about briefings. Other preferences are ignored here."""

    least_strength: float = 0.0
    least_weight: float = 0.0
    muted: frozenset[str] = frozenset()  # symbols
    actions: frozenset[str] = frozenset({"buy", "sell", "hold"})
    watchlist: bool = True  # whether assets that are only watched count

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    @classmethod
    def of(cls, preferences: Mapping[str, Json]) -> Wishes:
        """Parse the wishes in preferences, under "briefings".

        Raises BadInput if they are invalid.
        """
        try:
            return TypeAdapter(cls).validate_python(preferences.get("briefings", {}))
        except ValidationError:
            names = ", ".join(cls.__dataclass_fields__)
            problem = f"preferences for briefings are {names}"
            raise BadInput(f"{problem}: two numbers, two lists, and true or false") from None


@dataclass(frozen=True)
class Signal:
    """A signal with what it was derived from, and until when all of that is live."""

    insight: DatedNode
    evidence: tuple[Node, ...] = ()
    asked_at: datetime | None = None  # the time of the view
    falls_at: datetime | None = None  # when the last of its evidence expires

    @property
    def action(self) -> str:
        """The action it recommends, or '' if it is no signal with an action."""
        return action_of(self.insight.node)

    @property
    def strength(self) -> float:
        """How sure it is. A signal without a strength counts as fully sure."""
        return float(self.insight.node.properties.get("strength", 1.0))


@dataclass(frozen=True)
class Briefing:
    """A briefing for a user: signal, affected assets, paths, evidence, and until when it is fresh."""

    user: str = field(repr=False)
    signal: str
    action: str
    strength: float
    summary: str
    reached: tuple[ReachedAsset, ...]
    held: frozenset[str] = field(repr=False)
    evidence: tuple[Node, ...]
    generated_at: datetime
    live_until: datetime | None

    @property
    def key(self) -> str:
        """A key that is the same for the same user, signal and action, which prevents repeats."""
        return briefing_key(self.user, self.signal, self.action)

    @property
    def text(self) -> str:
        """The text of the briefing, with its disclaimer."""
        symbols = [f"{e.symbol} ({'held' if e.symbol in self.held else 'watched'})" for e in self.reached]
        head = f"{self.action} signal, strength {self.strength:.2f}, for {', '.join(symbols)}"
        lines = [f"{head}: {self.summary}"]
        lines += [f"path: {each} (weight {each.weight:.2f})" for each in self.reached]
        lines += [f"evidence: {display_name(each)} ({each.id})" for each in self.evidence]
        until = self.live_until.isoformat() if self.live_until else "no time that is known"
        fresh = f"generated {self.generated_at.isoformat()}, fresh until {until}"
        return "\n".join([*lines, fresh, DISCLAIMER])

    def to_json(self) -> dict[str, Json]:
        """Return the briefing as stored in the outbox."""
        return {
            "key": self.key,
            "signal": self.signal,
            "action": self.action,
            "strength": self.strength,
            "symbols": [each.symbol for each in self.reached],
            "paths": [
                [[hop.source.id, hop.by, hop.target.id, hop.forward] for hop in each.path]
                for each in self.reached
            ],
            "weights": [each.weight for each in self.reached],
            "evidence": [each.id for each in self.evidence],
            "generated_at": self.generated_at.isoformat(),
            "live_until": self.live_until.isoformat() if self.live_until else None,
            "text": self.text,
        }


def briefing_key(user: str, signal: str, action: str) -> str:
    """Return the key of the briefing of a user about a signal."""
    return hashlib.blake2b(json.dumps([user, signal, action]).encode(), digest_size=16).hexdigest()


class Withheld(NamedTuple):
    """Why there is no briefing."""

    reason: str


@dataclass(frozen=True)
class Holdings(CheckedRecord):
    """What a user holds and watches, by symbol."""

    user: str
    held: frozenset[str]
    watched: frozenset[str] = frozenset()


@check_arguments
def signals(view: InvestmentView) -> tuple[Signal, ...]:
    """Return the live signals with an action that an owner sees, by id.

    Each has the live nodes that it was derived from.
    """
    with view.reading():
        insights = [insight for insight in view.nodes("Insight") if Signal(insight).action]
        edges = view.edges_from([insight.node.id for insight in insights], ["derived_from"])
        sources = {dated.node.id: dated for dated in view.nodes_by_id(e.edge.target for e in edges)}
    found = []
    for insight in insights:
        of_it = [(edge, sources[edge.edge.target]) for edge in edges if edge.edge.source == insight.node.id]
        evidence = {source.node.id: source.node for _, source in of_it}
        events = [each for each in of_it if each[1].node.labels == ("MarketEvent",)]
        ends = [min(end.expires_at or LATEST for end in each) for each in events or of_it]
        falls_at = max(ends, default=LATEST)
        fallen = None if falls_at == LATEST else falls_at
        found.append(Signal(insight, tuple(evidence.values()), view.time, fallen))
    return tuple(found)


@check_arguments
def decide(
    signal: Signal, reached: Sequence[ReachedAsset], holdings: Holdings, wishes: Wishes = Wishes()
) -> Briefing | Withheld:
    """Decide whether a user receives a briefing about a signal, and return it, or why not.

    This is a pure function of its arguments.
    """
    if unwanted := _reason_against(signal, wishes):
        return unwanted
    symbols = holdings.held | (holdings.watched if wishes.watchlist else frozenset())
    symbols -= {symbol_key(symbol) for symbol in wishes.muted}
    relevant = [asset for asset in reached if asset.symbol in symbols]
    strong_enough = tuple(asset for asset in relevant if asset.weight >= wishes.least_weight)
    if not strong_enough:
        far = "what it reaches is too far away"
        return Withheld(far if relevant else "it reaches nothing that the user holds or watches")
    insight = signal.insight
    expiries = [asset.live_until for asset in strong_enough if asset.live_until is not None]
    expiries += [signal.falls_at] if signal.falls_at is not None else []
    return Briefing(
        holdings.user, insight.node.id, signal.action, signal.strength,
        str(insight.node.properties["summary"]), strong_enough, holdings.held, signal.evidence,
        insight.created_at, min(expiries, default=None),
    )  # fmt: skip


def _reason_against(signal: Signal, wishes: Wishes) -> Withheld | None:
    """Return why a signal cannot be the reason for a briefing, whatever it reaches, or None."""
    if not signal.action:
        return Withheld("it is no signal with an action")
    at, expires = signal.asked_at, signal.insight.expires_at
    if at is not None and expires is not None and expires <= at:
        return Withheld("the signal has expired")
    if signal.action not in wishes.actions:
        return Withheld("the user does not want to hear of this action")
    if signal.strength < wishes.least_strength:
        return Withheld("the signal is weaker than the user wants to hear of")
    return None


@check_arguments
def briefings(
    view: InvestmentView,
    holdings: Holdings,
    wishes: Wishes = Wishes(),
    *,
    decays: Mapping[str, float] = DECAYS,
    posted_keys: Container[str] = (),
) -> Iterable[Briefing]:
    """Yield the briefings that a user's view of the graph calls for now, by signal.

    Briefings whose keys are in `posted_keys` are left out. Repeated calls give the same briefings with the same
    keys. Reach is computed only for signals that can lead to a briefing.
    """
    for signal in signals(view):
        id = signal.insight.node.id
        if _reason_against(signal, wishes) or briefing_key(holdings.user, id, signal.action) in posted_keys:
            continue
        decision = decide(signal, reach(view, id, decays=decays), holdings, wishes)
        if isinstance(decision, Briefing):
            yield decision
