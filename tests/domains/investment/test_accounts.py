"""Accounts in each engine: profiles, positions, watchlists, and an outbox in which nothing is twice."""

from __future__ import annotations

import re
import threading
from decimal import Decimal

import pytest
from support.small_market import NOW, SHARE, signal, with_market

from kgot_lab.domains.investment.accounts import open_accounts
from kgot_lab.domains.investment.briefing import Holdings, briefings
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.errors import BadInput, UnknownName


@pytest.fixture
def briefing(clock):
    with with_market(open_investment_graph(now=clock)) as graph:
        said, about = signal("Lantern is cheap", SHARE, strength=0.8)
        graph.write([said], about)
        (found,) = briefings(graph.view(), Holdings("ada", frozenset({"LNTN"})))
        return found


def test_an_account_is_kept_and_keeps_its_owner(accounts):
    made = accounts.set_profile(
        "ada", risk_tolerance="aggressive", goals=["a house"], preferences={"esg": True}
    )
    accounts.set_position("ada", " lntn ", "0.1", "12.34")
    accounts.set_position("ada", "BNDX", 3, Decimal("80"))
    accounts.watch("ada", "qcn")
    accounts.watch("ada", "QCN")
    again = accounts.set_profile("ada", horizon="10 years")
    assert again.owner == made.owner and re.fullmatch("[0-9a-f]{16}", again.owner), (
        "a key of chance, not made of the name"
    )
    assert (again.risk_tolerance, again.horizon, again.goals, again.preferences) == (
        "moderate",
        "10 years",
        (),
        {},
    )
    assert [(position.symbol, position.shares, position.average_cost) for position in again.positions] == [
        ("BNDX", Decimal(3), Decimal(80)),
        ("LNTN", Decimal("0.1"), Decimal("12.34")),
    ]
    assert again.held == {"LNTN", "BNDX"} and again.watchlist == ("QCN",) and accounts.users() == ("ada",)


def test_a_position_is_changed_and_ends_and_a_watch_stops(accounts):
    accounts.set_profile("ada")
    accounts.set_position("ada", "LNTN", 3, 10)
    accounts.set_position("ada", "LNTN", 5, 11)
    accounts.watch("ada", "QCN")
    assert [(position.shares, position.added_at) for position in accounts.account("ada").positions] == [
        (Decimal(5), NOW)
    ]
    accounts.set_position("ada", "LNTN", 0, 0)
    accounts.watch("ada", "QCN", stop=True)
    assert accounts.account("ada").positions == () and accounts.account("ada").watchlist == ()


@pytest.mark.parametrize("symbol", ["", "  ", None, 3])
def test_a_position_without_a_symbol_is_an_error(accounts, symbol):
    accounts.set_profile("ada")
    with pytest.raises(BadInput, match="a position has the symbol of an asset, such as AAPL; give it"):
        accounts.set_position("ada", symbol, 3, 10)
    with pytest.raises(BadInput, match=r"an entry of a watchlist has the symbol|'symbol' is a text"):
        accounts.watch("ada", symbol)
    assert accounts.account("ada").positions == ()


@pytest.mark.parametrize("amount", ["many 7311", "-7311", 7311.5, "nan", True, None, "inf"])
def test_what_is_no_number_of_shares_is_an_error_that_does_not_repeat_it(accounts, amount):
    accounts.set_profile("ada")
    for given in ((amount, 1), (1, amount)):
        with pytest.raises(BadInput, match="is a number, 0 or more") as told:
            accounts.set_position("ada", "LNTN", *given)
        assert "7311" not in str(told.value)


def test_a_user_without_a_profile_and_a_profile_that_is_none_are_errors(accounts, briefing):
    for ask in (
        lambda: accounts.account("eve"),
        lambda: accounts.set_position("eve", "LNTN", 1, 1),
        lambda: accounts.watch("eve", "LNTN"),
    ):
        with pytest.raises(BadInput, match="no profile here; set_profile or a holding makes one"):
            ask()
    with pytest.raises(BadInput, match="no profile"):
        accounts.post(briefing)
    with pytest.raises(UnknownName, match="conservative"):
        accounts.set_profile("eve", risk_tolerance="wild")
    with pytest.raises(BadInput, match="JSON"):
        accounts.set_profile("eve", preferences={"odd": {1}})
    with pytest.raises(BadInput, match="a user has a name"):
        accounts.set_profile(" ")


def test_a_user_who_leaves_leaves_nothing_behind_and_others_stay(accounts, briefing):
    for user in ("ada", "bob"):
        accounts.set_profile(user)
        accounts.set_position(user, "LNTN", 3, 10)
        accounts.watch(user, "QCN")
    first = accounts.account("ada").owner
    accounts.post(briefing)
    accounts.erase_user("ada")
    assert accounts.users() == ("bob",) and accounts.outbox() == ()
    assert accounts.account("bob").held == {"LNTN"}
    for ask in (accounts.account, accounts.erase_user):
        with pytest.raises(BadInput, match="no profile"):
            ask("ada")
    again = accounts.set_profile("ada")
    assert again.owner != first and (again.positions, again.watchlist) == ((), ())


def test_a_briefing_is_posted_once_for_ever(accounts, briefing, clock):
    accounts.set_profile("ada")
    assert accounts.post(briefing) and not accounts.post(briefing)
    (entry,) = accounts.outbox(unsent=True)
    assert (entry.key, entry.user, entry.body["signal"], entry.sent_at) == (
        briefing.key,
        "ada",
        briefing.signal,
        None,
    )
    accounts.mark_sent(entry.key)
    clock.time = NOW.replace(year=2027)
    accounts.mark_sent(entry.key)
    assert not accounts.post(briefing) and accounts.outbox(unsent=True) == ()
    assert [each.sent_at for each in accounts.outbox()] == [NOW]
    with pytest.raises(BadInput, match="no briefing in the outbox"):
        accounts.mark_sent("another")


def test_those_who_post_the_same_at_once_post_it_once(accounts, place, tmp_path, briefing, clock):
    accounts.set_profile("ada")
    same = (
        {"namespace": accounts.storage.namespace}
        if "namespace" in place
        else {"place": tmp_path / "accounts.db"}
    )
    posted = []
    with open_accounts(**place | same, now=clock) as others:
        posting = [
            threading.Thread(target=lambda by=by: posted.append(by.post(briefing)))
            for by in (accounts, others) * 4
        ]
        for each in posting:
            each.start()
        for each in posting:
            each.join()
    assert sorted(posted) == [False] * 7 + [True] and len(accounts.outbox()) == 1
