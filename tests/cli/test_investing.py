"""`kgot-lab invest`: one tick, running on until a signal, going on after kill -9, and what is said where nothing can be done."""

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
from support.small_news import ITEMS, LANTERN, put_on_file, simulated_reader
from support.waiting import AMPLE, until

from kgot_lab.domains.investment.briefing import DISCLAIMER
from kgot_lab.domains.monitor.journal import open_journal
from kgot_lab.domains.monitor.monitor import open_places

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.fixture
def folder(tmp_path, monkeypatch, kgot_lab):
    """A folder with news of today and a user who holds a share; worked in."""
    monkeypatch.chdir(tmp_path)
    now = datetime.now(UTC)
    put_on_file(tmp_path / "news.jsonl", *(replace(each, published_at=now - timedelta(hours=9 - hour)) for hour, each in enumerate(ITEMS)))
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
    assert "ada, sent: buy signal" in kgot_lab("invest", ".", "brief").out


def test_what_news_says_between_companies_is_kept(kgot_lab, folder):
    supplies = {"source": "Lantern Devices", "type": "supplier", "target": "Orchard Chips"}
    things = [{"type": "Company", "name": name} for name in ("Lantern Devices", "Orchard Chips")]
    put_on_file(folder / "links.jsonl", replace(LANTERN, text="Orchard Chips supplies Lantern Devices."))
    with answering_server(lambda _: json.dumps({"things": things, "links": [supplies]})) as server:
        ran = kgot_lab("invest", ".", "run", "--once", "--news", "links.jsonl", "--model", f"{server.url}#m")
    assert ran.code == 0 and "edge type" not in ran.err, ran.err
    with open_places(folder) as places:
        assert [each.edge.target for each in places.graph.view().edges_from(["Company:lantern devices"], ["supplier"])] == [
            "Company:orchard chips"
        ]


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
        assert ran.code == 0 and "goes on after a stop" in ran.err and len(server.answered) == 3 and server.repeated == []
    with open_journal(folder / "journal.db") as journal:
        assert journal.asked() == (3, 4, 3), "one call was under way: it is counted, and may have been paid for"


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
        (["hold", "ada", " ", "1"], "a position has the symbol"),
        (["hold", "ada", "LNTN", "many"], "is a number"),
    ):
        ran = kgot_lab("invest", str(tmp_path / "new"), *words)
        assert ran.code == 1 and said in ran.err and len(ran.err.splitlines()) == 1, ran.err
    put_on_file(tmp_path / "news.jsonl", LANTERN)
    for more in (["--every", "0"], ["--post", "http://example.org/"]):
        assert kgot_lab("invest", str(tmp_path), "run", *more).code == 1
    help_text = " ".join(kgot_lab("invest", "--help").out.split())
    assert "not financial advice" in help_text or "Nothing here is financial advice" in help_text
