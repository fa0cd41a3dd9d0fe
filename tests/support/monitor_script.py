"""Ticks of a monitor in forks, each of which may kill itself at one of the points where something becomes
durable, or has just become so.

Run as: python monitor_script.py. A line of JSON comes in for each fork: "graph", "accounts", "journal" (what
their openings take), "news", "out" (a folder), "post" (an address, or ""), "calls", "points" (files) and
"die" (the number of a point, or 0). The fork walks through the next tick, and its exit code goes out when it
is gone. The points it passed and the calls of the model stand in those files.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from kgot_lab.domains.investment.accounts import OutboxEntry, open_accounts
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.monitor.journal import open_journal
from kgot_lab.domains.investment.monitor.monitor import (
    Monitor,
    MonitorPlaces,
    deliver_to_address,
    deliver_to_folder,
)
from kgot_lab.domains.investment.monitor.news import read_news_file
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Prompt
from support.small_market import SetClock
from support.small_news import SLIDES, simulated_reader


class Points:
    """Notes each point that is passed, and kills this process at one."""

    def __init__(self, path: Path, die: int) -> None:
        self.path, self.die, self.passed = path, die, 0

    def at(self, name: str) -> None:
        self.passed += 1
        add_line(self.path, name)
        if self.passed == self.die:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalTables:
    """A TableStorage with a point before and after each of its transactions is on the disk, called by the
    last statement in it.
    """

    def __init__(self, storage: Any, points: Points) -> None:
        self._storage, self._points, self._depth, self._last = storage, points, 0, ""

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        self._last = " ".join(statement.split()[:3]) if not statement.startswith("SELECT") else self._last
        return self._storage.rows(statement, values or {})

    def insert(self, *given: Any) -> Any:
        return self._storage.insert(*given)

    def reading(self) -> Any:
        return self._storage.reading()

    @contextmanager
    def changing(self) -> Iterator[None]:
        self._depth += 1
        try:
            with self._storage.changing():
                yield
                if self._depth == 1:
                    self._points.at(f"before: {self._last}")
        finally:
            self._depth -= 1
        if not self._depth:
            self._points.at(f"after: {self._last}")

    def close(self) -> None:
        self._storage.close()


def add_line(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def delivering(told: Mapping[str, Any], points: Points) -> Callable[[OutboxEntry], None]:
    """Delivers to the folder and then to the address, with a point before, between and after."""
    ways = {"file": deliver_to_folder(told["out"])} | (
        {"post": deliver_to_address(told["post"])} if told["post"] else {}
    )

    def deliver(entry: OutboxEntry) -> None:
        points.at("before: delivery")
        for name, way in ways.items():
            way(entry)
            points.at(f"after: {name}")

    return deliver


def tick(told: Mapping[str, Any]) -> None:
    """One tick of a monitor with a simulated reader, which notes each call."""
    points, clock = Points(Path(told["points"]), told["die"]), SetClock(SLIDES.published_at)

    def reader(prompt: Prompt) -> str:
        add_line(Path(told["calls"]), "asked")
        return simulated_reader(prompt)

    graph = open_investment_graph(**told["graph"], now=clock)
    accounts = open_accounts(**told["accounts"], now=clock)
    journal = open_journal(**told["journal"], now=clock)
    for each in (graph, accounts, journal):
        each.storage = MortalTables(each.storage, points)  # type: ignore[attr-defined]
    monitor = Monitor(
        MonitorPlaces(graph, accounts, journal),
        Scripted(reader),
        lambda: read_news_file(told["news"]),
        delivering(told, points),
    )
    for event in monitor.tick(journal.next_tick(timedelta(hours=1))):
        assert "Failed" not in type(event).__name__, event


def main() -> None:
    import httpx  # noqa: F401  (once, and not in every fork)
    import psycopg  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                tick(json.loads(line))
                os._exit(0)
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
                os._exit(1)
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
