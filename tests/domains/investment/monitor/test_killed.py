"""kill -9 at every point where something becomes durable: what comes of it, resumed, is what an undisturbed
run leaves.

A reply that had come in and was not on the disk yet is the one thing that is asked for again, and the journal
counts it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path

import pytest
from support import monitor_script
from support.claim_places import InPostgres
from support.loopback import serving
from support.small_market import SetClock
from support.small_news import ITEMS, SLIDES, prompt_counts, put_on_file

from kgot_lab.domains.investment.accounts import open_accounts
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.monitor.journal import open_journal

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL"),
]
UNKEPT = "before: UPDATE replies SET"  # the reply is there, and not on the disk
ANNOUNCED = "after: INSERT INTO replies"  # the model is about to be asked, and was not
UNMARKED = ("after: post", "before: UPDATE outbox SET")  # the receiver has it, and the outbox does not know
number = count()


class Ground:
    """New places for one run, in files or in schemas, with two users; and what is found there afterwards."""

    def __init__(self, folder: Path, url: str | None, post: str = "") -> None:
        self.folder = folder / f"run {next(number)}"
        self.folder.mkdir()
        names = ("graph", "accounts", "journal")
        self.told = {
            name: {"place": url, "namespace": f"{self.folder.name} {name}"}
            if url
            else {"place": str(self.folder / f"{name}.db")}
            for name in names
        }
        files = {name: str(self.folder / name) for name in ("out", "calls", "points")}
        self.told |= {"news": str(put_on_file(self.folder / "news.jsonl", *ITEMS)), "post": post, **files}
        with open_accounts(**self.told["accounts"]) as accounts:
            for user, symbol in (("ada", "LNTN"), ("bob", "ORCH")):
                accounts.set_profile(user)
                accounts.set_position(user, symbol, 1, 1)

    def lines(self, name: str) -> list[str]:
        path = Path(self.told[name])
        return path.read_text().splitlines() if path.exists() else []

    def left(self) -> dict[str, object]:
        """All that a run leaves, but for how often the model was asked."""
        clock = SetClock(SLIDES.published_at)
        with (
            open_investment_graph(**self.told["graph"], now=clock) as graph,
            open_accounts(**self.told["accounts"], now=clock) as accounts,
            open_journal(**self.told["journal"], now=clock) as journal,
        ):
            tables = {
                name: sorted(map(repr, graph.storage.rows(f"SELECT * FROM {name}")))
                for name in ("changes", "nodes", "edges")
            }
            return {
                **tables,
                "outbox": accounts.outbox(),
                "facts": journal.facts(),
                "replies": sorted(journal.storage.rows("SELECT key, reply FROM replies")),
                "ticks": journal.storage.rows("SELECT * FROM ticks WHERE id = 1"),
                "files": {path.name: path.read_text() for path in Path(str(self.told["out"])).iterdir()},
            }

    def asked(self) -> int:
        with open_journal(**self.told["journal"]) as journal:
            return prompt_counts(journal)[1]


@contextmanager
def launched():
    """A program that walks through ticks in forks; gives what starts one and tells its exit code."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(monitor_script.__file__).parents[1]), *sys.path])
    }
    command = [sys.executable, monitor_script.__file__]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    ) as launcher:

        def run(ground: Ground, die: int = 0) -> int:
            launcher.stdin.write(json.dumps({**ground.told, "die": die}) + "\n")
            return int(launcher.stdout.readline())

        yield run
        launcher.stdin.close()


@contextmanager
def receiver():
    """A server that counts what is posted to it, by key."""
    posted: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            posted[self.headers["Idempotency-Key"]] += 1
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as url:
        yield url, posted


def by_keys(outbox):
    return {entry.key: entry.sent_at is not None for entry in outbox}


@pytest.mark.parametrize(("engine", "step"), [("file", 1), ("postgres", 4)])
def test_a_run_that_is_killed_anywhere_leaves_what_an_undisturbed_one_does(engine, step, tmp_path, request):
    url = InPostgres(request.getfixturevalue("postgres_url"), "").url if engine == "postgres" else None
    with launched() as run, receiver() as (post, posted):
        whole = Ground(tmp_path, url, post)
        assert run(whole) == 0
        expected, points, calls = whole.left(), whole.lines("points"), len(whole.lines("calls"))
        assert calls == len(ITEMS) == whole.asked()
        assert set(by_keys(expected["outbox"]).values()) == {True}
        assert len(posted) == 2
        assert all(points.count(each) == 3 for each in (UNKEPT, ANNOUNCED))
        assert all(points.count(each) == 2 for each in UNMARKED)
        posted.clear()
        for die, point in [*enumerate(points, start=1)][::step]:
            ground = Ground(tmp_path, url, post)
            assert run(ground, die) == -signal.SIGKILL, point
            assert ground.lines("points") == points[:die]
            assert run(ground) == 0, point
            assert ground.left() == expected, point
            assert len(ground.lines("calls")) == calls + (point == UNKEPT), point
            assert ground.asked() == calls + (point in (UNKEPT, ANNOUNCED)), point
            assert posted.keys() == by_keys(expected["outbox"]).keys() and sum(posted.values()) == 2 + (
                point in UNMARKED
            ), point
            posted.clear()


def test_a_run_that_is_killed_again_and_again_ends_with_the_same(tmp_path):
    with launched() as run:
        whole, ground = Ground(tmp_path, None), Ground(tmp_path, None)
        assert run(whole) == 0
        lost = 0
        for die in count(4):  # a point later with every start
            if run(ground, die) == 0:
                break
            lost += ground.lines("points")[-1] == UNKEPT
        assert die > 10 and ground.left() == whole.left() and len(ground.lines("calls")) == 3 + lost
