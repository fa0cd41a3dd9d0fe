"""Accounts: profiles, positions, watchlists, preferences and the outbox, in tables separate from the graph.

The graph knows the owner of a private node by a meaningless key, which only these tables can map to a user.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Literal, get_args

from kgot_lab.arguments import check_names
from kgot_lab.domains.investment import statements as sql
from kgot_lab.domains.investment.briefing import Briefing
from kgot_lab.domains.investment.view import MAX_ID_LENGTH, symbol_key
from kgot_lab.errors import BadInput, require_known
from kgot_lab.io.times import from_micros, from_micros_or_none, to_micros
from kgot_lab.stores.tables.opening import TableBacked
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Json

Amount = Decimal | int | str
RiskTolerance = Literal["conservative", "moderate", "aggressive"]


@dataclass(frozen=True)
class HeldPosition:
    """A position in an asset. Its representation hides shares and cost."""

    symbol: str
    shares: Decimal = field(repr=False)
    average_cost: Decimal = field(repr=False)
    added_at: datetime = field(repr=False)


@dataclass(frozen=True)
class UserAccount:
    """All data of a user. Its representation shows none of it."""

    user: str = field(repr=False)
    owner: str = field(repr=False)  # the owner key of the user's private nodes in the graph
    risk_tolerance: RiskTolerance = field(repr=False)
    horizon: str = field(repr=False)
    goals: tuple[Json, ...] = field(repr=False)
    preferences: Mapping[str, Json] = field(repr=False, hash=False)
    positions: tuple[HeldPosition, ...] = field(repr=False)
    watchlist: tuple[str, ...] = field(repr=False)

    @property
    def held(self) -> frozenset[str]:
        """The symbols of the positions."""
        return frozenset(position.symbol for position in self.positions)


@dataclass(frozen=True)
class OutboxEntry:
    """A briefing that waits to be sent or was sent. Receivers recognize a repeat by its key."""

    key: str
    user: str = field(repr=False)
    body: Mapping[str, Json] = field(repr=False, hash=False)
    created_at: datetime
    sent_at: datetime | None


class Accounts(TableBacked):
    """Accounts in tables."""

    layout = sql.ACCOUNTS_LAYOUT

    # --- reads ---

    def users(self) -> tuple[str, ...]:
        """Return the users, by name."""
        return tuple(user for (user,) in self.storage.rows(sql.USERS))

    def account(self, user: str) -> UserAccount:
        """Return all data of a user.

        Raises BadInput if there is no such profile.
        """
        with self.storage.reading():
            owner, risk, horizon, goals, preferences = self._require_profile(user)
            positions = self.storage.rows(sql.POSITIONS, {"user": user})
            watched = self.storage.rows(sql.WATCHED, {"user": user})
        held = tuple(HeldPosition(s, Decimal(n), Decimal(c), from_micros(at)) for s, n, c, at in positions)
        parsed = tuple(json.loads(goals)), json.loads(preferences)
        return UserAccount(user, owner, risk, horizon, *parsed, held, tuple(symbol for (symbol,) in watched))

    # --- changes ---

    def set_profile(
        self,
        user: str,
        *,
        risk_tolerance: RiskTolerance = "moderate",
        horizon: str = "",
        goals: Sequence[Json] = (),
        preferences: Mapping[str, Json] | None = None,
    ) -> UserAccount:
        """Create or replace the profile of a user, who keeps the first owner key."""
        user = _check_user(user)
        require_known("risk tolerance", get_args(RiskTolerance), risk_tolerance)
        try:
            given = {"goals": list(goals), "preferences": dict(preferences or {})}
            serialized = {name: json.dumps(value, allow_nan=False) for name, value in given.items()}
        except (TypeError, ValueError):
            raise BadInput("goals and preferences are JSON: texts, numbers, lists and dictionaries") from None
        horizon = checked_text(horizon, "a horizon", blank=True)
        values = serialized | {"user": user, "risk_tolerance": risk_tolerance, "horizon": horizon}
        with self.storage.changing():
            self.storage.rows(sql.PUT_PROFILE, values | {"owner": secrets.token_hex(8)})
            return self.account(user)

    @check_names  # what was given is private
    def set_position(self, user: str, symbol: str, shares: Amount, average_cost: Amount) -> None:
        """Set the shares of an asset that a user holds, and their average cost. Zero shares end the position.

        Raises BadInput if the symbol is empty or an amount is no number, without repeating the input.
        """
        key = {"user": _check_user(user), "symbol": _check_symbol(symbol, "a position")}
        count = _check_amount(shares, "the shares of a position")
        cost = _check_amount(average_cost, "the average cost of a position")
        with self.storage.changing():
            self._require_profile(user)
            if not count:
                self.storage.rows(sql.END_POSITION, key)
            else:
                values = {"shares": str(count), "avg_cost": str(cost), "at": to_micros(self.now(), "now")}
                self.storage.rows(sql.SET_POSITION, key | values)

    def watch(self, user: str, symbol: str, *, stop: bool = False) -> None:
        """Add an asset to a user's watchlist, or remove it."""
        key = {"user": _check_user(user), "symbol": _check_symbol(symbol, "an entry of a watchlist")}
        with self.storage.changing():
            self._require_profile(user)
            if stop:
                self.storage.rows(sql.UNWATCH, key)
            else:
                self.storage.rows(sql.WATCH, key | {"at": to_micros(self.now(), "now")})

    def erase_user(self, user: str) -> None:
        """Erase a user's profile, positions, watchlist and briefings, sent or not. There is no undo.

        Raises BadInput if there is no such profile.
        """
        with self.storage.changing():
            self._require_profile(user)
            for statement in sql.ERASE_USER:
                self.storage.rows(statement, {"user": _check_user(user)})

    # --- the outbox ---

    def post(self, briefing: Briefing) -> bool:
        """Put a briefing in the outbox unless its key was ever posted, and return whether it was new."""
        with self.storage.changing():
            if self.storage.rows(sql.IN_OUTBOX, {"key": briefing.key}):
                return False
            self._require_profile(briefing.user)
            body = json.dumps(briefing.to_json(), sort_keys=True)
            values = {"key": briefing.key, "user": briefing.user, "body": body}
            self.storage.rows(sql.POST_BRIEFING, values | {"at": to_micros(self.now(), "now")})
            return True

    def outbox(self, *, unsent: bool = False) -> tuple[OutboxEntry, ...]:
        """Return the posted briefings, the oldest first, or only the `unsent` ones."""
        rows = self.storage.rows(sql.UNSENT_BRIEFINGS if unsent else sql.POSTED_BRIEFINGS)
        return tuple(
            OutboxEntry(key, user, json.loads(body), from_micros(created), from_micros_or_none(sent))
            for key, user, body, created, sent in rows
        )

    def sent_briefings(self, user: str) -> frozenset[str]:
        """Return the keys of all briefings ever posted for a user."""
        return frozenset(key for (key,) in self.storage.rows(sql.POSTED_KEYS, {"user": _check_user(user)}))

    def mark_sent(self, key: str) -> None:
        """Record that a briefing was sent. The first time counts."""
        checked_text(key, "the key of a briefing")
        with self.storage.changing():
            if not self.storage.rows(sql.IN_OUTBOX, {"key": key}):
                raise BadInput("no briefing in the outbox has this key; take one of outbox()")
            self.storage.rows(sql.MARK_SENT, {"key": key, "at": to_micros(self.now(), "now")})

    # --- helpers ---

    def _require_profile(self, user: str) -> tuple[str, RiskTolerance, str, str, str]:
        rows = self.storage.rows(sql.PROFILE, {"user": _check_user(user)})
        if not rows:
            raise BadInput("this user has no profile here; set_profile or a holding makes one")
        return rows[0]


open_accounts = Accounts.open


def _check_user(user: str) -> str:
    if not isinstance(user, str) or not user.strip() or len(user) > MAX_ID_LENGTH:
        raise BadInput(f"a user has a name or a number, as a text of at most {MAX_ID_LENGTH} characters")
    return checked_text(user, "a user")


def _check_symbol(symbol: str, what: str) -> str:
    if not symbol_key(symbol):
        raise BadInput(f"{what} has the symbol of an asset, such as AAPL; give it")
    return symbol_key(symbol)


_MAX_AMOUNT = 10**15


def _check_amount(value: Amount, what: str) -> Decimal:
    """Convert a number to an exact Decimal.

    Floats are refused, because they are not exact.
    """
    is_number = isinstance(value, Decimal | int | str) and not isinstance(value, bool)
    try:
        amount = Decimal(value) if is_number else None
    except InvalidOperation:
        amount = None
    if amount is None or not amount.is_finite() or not 0 <= amount < _MAX_AMOUNT:
        expected = f"{what} is a number, 0 or more and below 10^15"  # what was given is private
        raise BadInput(f'{expected}, as a whole number, a Decimal or a text such as "12.5"')
    return amount
