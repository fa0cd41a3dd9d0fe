"""No user in the graph: planted names and odd share counts are in the accounts, and in no byte of a graph, no
log, no message.
"""

from __future__ import annotations

import logging

import pytest
from support.claim_places import holding
from support.small_market import SHARE, event, signal, with_market

from kgot_lab.domains.investment.accounts import open_accounts
from kgot_lab.domains.investment.briefing import Briefing, Holdings, Wishes, briefings
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.errors import BadInput

USER = "canary-user-5e1"
SHARES = "73110.0417"
COST = "9183.0666"
GOAL = "canary-goal-88"
WISH = "canary-wish-12"
PLANTED = (USER, SHARES, COST, GOAL, WISH)


def iteration(graph, accounts, user):
    """Load who it is for, update the graph, decide, brief."""
    account = accounts.account(user)
    happened, affects = event("Lantern beats its forecast", SHARE)
    said, about = signal("Lantern is cheap", SHARE, owner=account.owner, strength=0.8)
    graph.write([happened], affects)
    graph.write([said], about, owner=account.owner)
    holdings = Holdings(user, account.held, frozenset(account.watchlist))
    found = list(briefings(graph.view(account.owner), holdings, Wishes.of(account.preferences)))
    return [each for each in found if accounts.post(each)]


def planted(accounts):
    accounts.set_profile(USER, goals=[GOAL], preferences={"note": WISH})
    accounts.set_position(USER, "LNTN", SHARES, COST)
    return accounts


def test_an_iteration_leaves_no_user_in_the_files_of_the_graph(tmp_path, clock, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    (tmp_path / "graph").mkdir()
    with (
        with_market(open_investment_graph(tmp_path / "graph" / "graph.db", now=clock)) as graph,
        planted(open_accounts(tmp_path / "accounts.db", now=clock)) as accounts,
    ):
        assert len(iteration(graph, accounts, USER)) == 1 and iteration(graph, accounts, USER) == []
        assert len(accounts.outbox()) == 1
        told = repr((graph, accounts, accounts.account(USER), accounts.outbox(), graph.view().nodes()))
        assert [word for word in PLANTED if holding(tmp_path / "graph", word)] == []
        assert [word for word in PLANTED if not holding(tmp_path, word)] == [], "they are in the accounts"
    out, err = capfd.readouterr()
    assert [word for word in PLANTED if word in told + caplog.text + out + err] == []


def test_no_message_repeats_what_an_account_holds(accounts):
    planted(accounts)
    for wrong in (
        lambda: accounts.set_position(USER, "", SHARES, COST),
        lambda: accounts.set_position(USER, "LNTN", f"-{SHARES}", COST),
        lambda: accounts.set_position(f"{USER} who is not there", "LNTN", SHARES, COST),
        lambda: accounts.set_profile(USER, goals=[{GOAL}]),
        lambda: accounts.account(USER + "?"),
        lambda: Wishes.of({"briefings": {WISH: 1}}),
    ):
        with pytest.raises(BadInput) as told:
            wrong()
        assert [word for word in PLANTED if word in str(told.value)] == [] and told.value.__cause__ is None


def test_a_briefing_says_no_more_than_the_symbols(graph, accounts):
    with_market(graph)
    (briefing,) = iteration(graph, planted(accounts), USER)
    assert isinstance(briefing, Briefing)
    assert [word for word in PLANTED if word in briefing.text] == []
