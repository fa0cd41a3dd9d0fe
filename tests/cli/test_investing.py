"""`kgot-lab invest`: one tick, running on until a signal, going on after kill -9, and what is said where
nothing can be done.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from support.answering_server import answering_server
from support.command_line import begun
from support.small_news import ITEMS, LANTERN, prompt_counts, put_on_file, simulated_reader
from support.waiting import AMPLE, until

from kgot_lab.domains.investment.briefing import DISCLAIMER
from kgot_lab.domains.investment.monitor.journal import open_journal
from kgot_lab.domains.investment.monitor.monitor import open_places
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.types import Edge

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def folder(tmp_path, monkeypatch, kgot_lab):
    """A folder with news of today and a user who holds a share; worked in."""
    monkeypatch.chdir(tmp_path)
    now = datetime.now(UTC)
    put_on_file(
        tmp_path / "news.jsonl",
        *(replace(each, published_at=now - timedelta(hours=9 - hour)) for hour, each in enumerate(ITEMS)),
    )
    assert kgot_lab("invest", ".", "hold", "ada", "LNTN", "3", "10.5").code == 0
    return tmp_path


def test_a_tick_from_the_command_line_reads_all_news_and_says_that_it_is_no_advice(kgot_lab, folder):
    with answering_server(simulated_reader) as server:
        ran = kgot_lab("invest", ".", "run", "--once", "--model", f"{server.url}#m")
    assert ran.code == 0 and DISCLAIMER in ran.err and "gather: 3 new items" in ran.err, ran.err
    listed = kgot_lab("invest", ".", "brief", "--json")
    (row,) = json.loads(listed.out)
    assert (row["user"], row["action"], row["symbols"]) == ("ada", "buy", ["LNTN"]) and row["sent_at"]
    assert [path.stem for path in Path("briefings").iterdir()] == [row["key"]]
    for name in ((), ("ada",), ("lntn",)):
        assert "ada, sent: buy signal" in kgot_lab("invest", ".", "brief", *name).out
    unknown = kgot_lab("invest", ".", "brief", "NOFUND")
    assert unknown.code == 1 and "NOFUND is no user here, and no asset" in unknown.err
    last = json.loads(kgot_lab("invest", ".", "log", "--json").out)[-1]
    assert last["action"] == "write" and last["by"] in {item.id for item in ITEMS}
    undone = kgot_lab("invest", ".", "undo", str(last["change"]))
    assert undone.code == 0 and "fell" in undone.out, undone.err
    assert kgot_lab("invest", ".", "log").out.splitlines()[-1].split()[3:5] == ["took", "back"]
    assert json.loads(kgot_lab("invest", ".", "undo", str(last["change"] + 1), "--json").out)["risen"]


def test_a_user_who_leaves_is_in_no_file_of_the_accounts(kgot_lab, folder):
    assert kgot_lab("invest", ".", "hold", "wilhelmina", "LNTN", "3").code == 0
    with open_places(folder) as places:
        owner = places.accounts.account("wilhelmina").owner
        places.graph.write([investment_node("Sector", name="tulip bulbs", owner=owner)], owner=owner)
    assert kgot_lab("invest", ".", "leave", "wilhelmina").code == 0
    assert not any(b"tulip" in path.read_bytes() for path in folder.glob("graph.db*"))
    assert [path.name for path in folder.glob("accounts.db*") if b"wilhelmina" in path.read_bytes()] == []
    again = kgot_lab("invest", ".", "leave", "wilhelmina")
    assert again.code != 0 and "no profile" in again.err


def test_what_news_says_between_companies_is_kept(kgot_lab, folder):
    supplies = {"source": "Lantern Devices", "type": "supplier", "target": "Orchard Chips"}
    things = [{"type": "Company", "name": name} for name in ("Lantern Devices", "Orchard Chips")]
    put_on_file(folder / "links.jsonl", replace(LANTERN, text="Orchard Chips supplies Lantern Devices."))
    with answering_server(lambda _: json.dumps({"things": things, "links": [supplies]})) as server:
        ran = kgot_lab("invest", ".", "run", "--once", "--news", "links.jsonl", "--model", f"{server.url}#m")
    assert ran.code == 0 and "edge type" not in ran.err, ran.err
    with open_places(folder) as places:
        assert [
            each.edge.target
            for each in places.graph.view().edges_from(["Company:lantern devices"], ["supplier"])
        ] == ["Company:orchard chips"]


@pytest.mark.extended
@posix
def test_a_run_that_was_killed_while_a_model_answered_is_gone_on_with(kgot_lab, folder):
    with answering_server(simulated_reader) as server:
        server.hold_after(1)
        process = begun(["invest", ".", "run", "--model", f"{server.url}#m"])
        until(lambda: server.held or process.poll() is not None, "the second request waits")
        process.kill()
        process.communicate(timeout=AMPLE)
        server.release()
        ran = kgot_lab("invest", ".", "run", "--once", "--model", f"{server.url}#m")
        assert ran.code == 0
        assert "goes on after a stop" in ran.err
        assert len(server.answered) == 3
        assert server.repeated == []
    with open_journal(folder / "journal.db") as journal:
        assert prompt_counts(journal) == (3, 4, 3), (
            "one call was under way: it is counted, and may have been paid for"
        )


@pytest.mark.extended
@posix
def test_a_signal_ends_a_run_once_the_reply_under_way_is_kept(kgot_lab, folder):
    with answering_server(simulated_reader) as server:
        ends = partial(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        process = begun(["invest", ".", "run", "--model", f"{server.url}#m"], preexec_fn=ends)
        until(lambda: len(server.answered) == 3 or process.poll() is not None, "everything is read")
        second = kgot_lab("invest", ".", "run", "--once", "--model", f"{server.url}#m")
        assert second.code == 1 and "another command runs on here" in second.err
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=AMPLE)
    assert process.returncode == 0 and "Traceback" not in err, err


def test_what_cannot_be_done_is_one_line(kgot_lab, tmp_path):
    for words, said in (
        (["run", "--model", "local"], "cannot be read"),
        (["brief"], "holds no accounts"),
        (["log"], "holds no graph"),
        (["undo", "1"], "holds no graph"),
        (["hold", "ada", " ", "1"], "the value after ada is blank"),
        (["hold", "ada", "LNTN", "many"], "is a number"),
    ):
        ran = kgot_lab("invest", str(tmp_path / "new"), *words)
        assert ran.code == 1 and said in ran.err and len(ran.err.splitlines()) == 1, ran.err
    put_on_file(tmp_path / "news.jsonl", LANTERN)
    for more in (["--every", "0"], ["--post", "http://example.org/"]):
        assert kgot_lab("invest", str(tmp_path), "run", *more).code == 1
    help_text = " ".join(kgot_lab("invest", "--help").out.split())
    assert "not financial advice" in help_text or "Nothing here is financial advice" in help_text


# --- bad input ---


def test_a_position_that_is_none_is_one_clear_error_and_makes_no_account(kgot_lab, tmp_path):
    for words, said in (
        (["ada", "", "3"], "the value after ada is blank"),
        (["ada", "LNTN", "-3"], "is a number, 0 or more"),
        (["ada", "LNTN", "3", "nan"], "is a number, 0 or more"),
    ):
        ran = kgot_lab("invest", str(tmp_path), "hold", *words)
        assert ran.code == 1 and said in ran.err and len(ran.err.splitlines()) == 1, ran.err
    with open_places(tmp_path) as places:
        assert places.accounts.users() == ()


def test_a_position_by_a_shared_ticker_is_noted_and_says_whose_assets_it_may_mean(kgot_lab, tmp_path):
    with open_places(tmp_path) as places:
        companies = [
            investment_node("Company", name=name, ticker="SAL")
            for name in ("Saltern Airways", "Saltmarch Lithium")
        ]
        assets = [investment_node("Asset", symbol=symbol) for symbol in ("SAL.MD", "SAL.OR")]
        places.graph.write(
            [*companies, *assets],
            [Edge(one.id, "issued_by", other.id) for one, other in zip(assets, companies, strict=True)],
        )
    ran = kgot_lab("invest", str(tmp_path), "hold", "ada", "sal", "3")
    assert ran.code == 0
    assert (
        "no asset in the graph has the symbol SAL now: it is the ticker of who issued SAL.MD and SAL.OR"
        in ran.err
    )
    held = kgot_lab("invest", str(tmp_path), "hold", "ada", "sal.md", "3", "10.5")
    assert (held.err, held.out) == ("", "ada holds 3 SAL.MD at 10.5 on average.\n")
    assert "ada holds no NEW" in kgot_lab("invest", str(tmp_path), "hold", "ada", "NEW", "0").out
    assert "once news has named it" in kgot_lab("invest", str(tmp_path), "hold", "ada", "NEW", "3").err
    with open_places(tmp_path) as places:
        assert places.accounts.account("ada").held == {"SAL", "SAL.MD", "NEW"}


def test_a_shared_ticker_an_unknown_edge_type_and_news_of_tomorrow_are_said_and_all_else_is_kept(
    kgot_lab, folder
):
    with open_places(folder) as places:
        places.graph.write(
            investment_node("Company", name=name, ticker=ticker)
            for name, ticker in (
                ("Saltern Airways", "SAL"),
                ("Saltmarch Lithium", "SAL"),
                ("Lantern Devices", "LNTN"),
            )
        )
    call = {"type": "signal", "summary": "SAL is a hold", "action": "hold", "about": ["SAL"]}
    things = [{"type": "Company", "name": "Lantern Devices"}, {"type": "Asset", "name": "LNTN"}]
    links = [
        {"source": "LNTN", "type": type, "target": "Lantern Devices"}
        for type in ("by", "adores", "issued_by")
    ]
    now = datetime.now(UTC)
    today = replace(
        LANTERN, text="SAL is a hold. Lantern Devices issued LNTN.", published_at=now - timedelta(hours=1)
    )
    put_on_file(
        folder / "odd.jsonl", today, replace(LANTERN, id="later", published_at=now + timedelta(days=1))
    )
    with answering_server(
        lambda _: json.dumps({"things": things, "links": links, "insights": [call]})
    ) as server:
        ran = kgot_lab("invest", ".", "run", "--once", "--news", "odd.jsonl", "--model", f"{server.url}#m")
    assert ran.code == 0 and "gather: 1 new item, 1 dated later than now, which wait" in ran.err, ran.err
    for said in (
        "Saltern Airways",
        "Saltmarch Lithium",
        "which is meant is not said",
        "'adores'",
        "role 'issuer'",
    ):
        assert said in ran.err, ran.err
    with open_places(folder) as places:
        live = {(edge.edge.source, edge.edge.type, edge.edge.target) for edge in places.graph.view().edges()}
        assert ("Asset:LNTN", "issued_by", "Company:lantern devices") in live
        assert places.graph.view().nodes("Insight") == ()


def test_a_clock_that_is_behind_the_graph_is_said(kgot_lab, folder):
    ahead = datetime.now(UTC) + timedelta(days=400)
    with open_places(folder, now=lambda: ahead) as places:
        places.graph.write([investment_node("Sector", name="Technology")])
    with answering_server(simulated_reader) as server:
        ran = kgot_lab("invest", ".", "run", "--once", "--model", f"{server.url}#m")
    assert ran.code == 0, ran.err
    assert f"the graph was last changed at {ahead.isoformat()}" in ran.err, ran.err
    assert "set the clock right" in ran.err, ran.err
    with open_places(folder) as places:
        assert (
            len(places.journal.facts()) == len(places.graph.view().history("Sector:technology")) + 2 == 3
        ), "nothing is lost"
