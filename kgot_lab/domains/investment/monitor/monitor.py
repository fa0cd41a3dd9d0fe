"""One tick of the monitor (gather news, update the graph, decide on briefings, deliver), and scheduled ticks.

Each step can be repeated. It takes effect by one write in one table: an item by its id, a reply by its
prompt, the facts of an item when they are read, all nodes and edges of an item in one change of the graph, a
briefing by its key. An interrupted tick is repeated from its beginning, and does only what is missing.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

from kgot_lab.domains.investment.accounts import Accounts, OutboxEntry, open_accounts
from kgot_lab.domains.investment.briefing import Holdings, Wishes, briefings
from kgot_lab.domains.investment.graph import GraphUpdate, InvestmentGraph, open_investment_graph
from kgot_lab.domains.investment.monitor import events
from kgot_lab.domains.investment.monitor.journal import CachedReplies, NewsJournal, Tick, open_journal
from kgot_lab.domains.investment.monitor.news import Feed, NewsFacts
from kgot_lab.domains.investment.monitor.news_reader import read_item
from kgot_lab.domains.investment.reach import DECAYS
from kgot_lab.domains.investment.versions import edge_key
from kgot_lab.domains.investment.view import action_of
from kgot_lab.errors import (
    BadInput,
    LabError,
    LLMError,
    ToolFailed,
    describe_value,
    mask_secrets,
    require,
    require_count,
    short_repr,
)
from kgot_lab.io.files import make_folder, write_atomically
from kgot_lab.io.http_client import describe_proxy, is_loopback, is_retryable_status, proxy_options
from kgot_lab.io.times import utc_now
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT_WITH_COMPANIES
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import LLM

# Delivery of briefings from the outbox: as a file, or by HTTP POST.
#
# A briefing may be delivered twice if the process is killed between delivery and its record. It has the same
# key then: a file of that name is overwritten with the same content, and a receiver of posts gets the key in
# the header Idempotency-Key, so that it can skip the repeat.

DeliveryFunction = Callable[[OutboxEntry], None]  # raises ToolFailed or another LabError
_DELIVERY_TIMEOUT = 20.0  # time limit of a receiver


def deliver_to_folder(folder: Path | str) -> DeliveryFunction:
    """Return a function that writes a briefing as a JSON file in a folder, named by its key.

    The function raises BadInput if the file cannot be written.
    """
    directory = Path(folder)

    def deliver(entry: OutboxEntry) -> None:
        write_atomically(directory / f"{entry.key}.json", _entry_to_json(entry), "the briefing")

    return deliver


def deliver_to_address(url: str) -> DeliveryFunction:
    """Return a function that sends a briefing by HTTP POST of JSON, with its key as Idempotency-Key.

    The function raises ToolFailed unless the status is 200 to 299. A briefing names its user, so an address
    other than this computer's must begin with https. Raises BadInput otherwise.
    """
    require(url, str, "briefings are delivered to an address, a text")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        expected = "briefings are delivered to an address such as https://HOST/PATH"
        raise BadInput(f"{expected}, not {short_repr(mask_secrets(url))}")
    if parts.scheme == "http" and not is_loopback(url):
        problem = "a briefing says whose it is"
        raise BadInput(f"{problem}: an address that is not of this computer begins with https")
    client_options = proxy_options(url)

    def deliver(entry: OutboxEntry) -> None:
        import httpx  # a dependency of openai

        address = mask_secrets(f"{parts.scheme}://{parts.netloc}")
        headers = {"Content-Type": "application/json", "Idempotency-Key": entry.key}
        try:
            with (
                httpx.Client(timeout=_DELIVERY_TIMEOUT, **client_options) as client,
                client.stream("POST", url, content=_entry_to_json(entry), headers=headers) as answer,
            ):
                status = answer.status_code
        except httpx.HTTPError as error:
            message = f"{address} did not take a briefing{describe_proxy(url)} ({type(error).__name__})"
            raise ToolFailed(f"{message}: see that it is there", again=True) from None
        if not 200 <= status < 300:
            again = is_retryable_status(status)
            later = ": it may take it later" if again else ""
            raise ToolFailed(f"{address} answers a briefing with {status}{later}", again=again)

    return deliver


def _entry_to_json(entry: OutboxEntry) -> str:
    return json.dumps({**entry.body, "user": entry.user}, sort_keys=True)


_MAX_CLOCK_CORRECTION = timedelta(minutes=1)  # a smaller difference is a correction by a time server


@dataclass(frozen=True)
class MonitorPlaces:
    """The persistent stores: graph, accounts and journal, each in its own tables.

    The journal's clock sets the time.
    """

    graph: InvestmentGraph
    accounts: Accounts
    journal: NewsJournal

    def holds(self, entry: OutboxEntry) -> bool:
        """Return whether the signal of a briefing is live, recommends the same, and still reaches an asset by a path."""
        owner = self.accounts.account(entry.user).owner
        view, body = self.graph.view(owner), entry.body
        found = view.nodes_by_id([body["signal"]])
        if not any(action_of(each.node) == body["action"] for each in found):
            return False
        paths = [{(a, by, b) if ahead else (b, by, a) for a, by, b, ahead in path} for path in body["paths"]]
        sources, types = ({hop[part] for hops in paths for hop in hops} for part in (0, 1))
        live = {edge_key(dated.edge) for dated in view.edges_from(sources, types)}
        return any(live >= hops for hops in paths)


class Monitor:
    """Updates an investment graph from a feed of news, read by a model, and delivers the resulting briefings.

    A tick reads at most `most` items, and `decays` are the hops by which a signal reaches holdings. Run one
    process on the same stores at a time: two would call the model twice, though post no briefing twice.
    """

    def __init__(
        self,
        places: MonitorPlaces,
        llm: LLM,
        feed: Feed,
        deliver: DeliveryFunction,
        *,
        most: int = 50,
        decays: Mapping[str, float] = DECAYS,
    ) -> None:
        require_count(most, 1, "how many items a tick reads")
        self.places, self.feed, self.deliver, self.most, self.decays = places, feed, deliver, most, decays
        self._llm = CachedReplies(llm, places.journal)
        stages = {"gather": self._gather, "update": self._update, "decide": self._decide}
        self.stages = stages | {"deliver": self._deliver}

    def __repr__(self) -> str:
        return f"<Monitor of {self.places.graph!r} by {self._llm.name}>"

    def tick(self, tick: Tick) -> Iterator[events.MonitorEvent]:
        """Run all stages and yield their events.

        A LabError in a stage is reported, and the other stages still run.
        """
        yield events.TickStarted(tick)
        self.places.journal.begin(tick)
        for name, stage in self.stages.items():
            try:
                yield from stage()
            except LabError as error:
                yield events.StageFailed(name, str(error))
        self.places.journal.end(tick)
        yield events.TickEnded(tick)

    # --- stages ---

    def _gather(self) -> Iterator[events.MonitorEvent]:
        """Store the items that are new and not dated in the future."""
        news, now = self.feed(), self.places.journal.now()
        due = [item for item in news.items if item.published_at <= now]
        new, others = self.places.journal.add(due)
        remark = "another item has this id and stays as it is; give it one of its own"
        duplicates = tuple(f"item {item.id}: {remark}" for item in others)
        yield events.NewsGathered(len(new), len(news.items) - len(due), (*news.refused, *duplicates))

    def _update(self) -> Iterator[events.MonitorEvent]:
        """Read items one by one, and write the facts of each to the graph before the next is read.

        The next item can then refer to its names.
        """
        graph, journal = self.places.graph, self.places.journal
        if (last := graph.view().time) - (now := journal.now()) > _MAX_CLOCK_CORRECTION:
            yield events.ClockBehind(now, last)
        yield from map(self._write_once, journal.facts_to_write())
        for item in journal.items_to_read(self.most):
            try:
                facts = read_item(self._llm, item, graph.view())
            except LLMError:
                journal.record_failure(item)
                raise
            journal.store_facts(facts)
            yield self._write_once(facts)
        if waiting := journal.count_to_read():
            yield events.ItemsWait(waiting)

    def _write_once(self, facts: NewsFacts) -> events.MonitorEvent:
        """Write the facts of an item once.

        Its own node is written in the same change, and shows that it was.
        """
        graph = self.places.graph
        try:
            with graph.storage.changing():
                versions = graph.view().history(facts.nodes[0].id)
                exists_whole = any(version.node.properties.get("item") == facts.item for version in versions)
                update = GraphUpdate() if exists_whole else self._write(facts)
        except BadInput as error:
            return events.StageFailed("update", f"{facts.item}: {error}")
        self.places.journal.mark_written(facts)
        return events.ItemWritten(facts, len(update.nodes), len(update.edges))

    def _write(self, facts: NewsFacts) -> GraphUpdate:
        graph = self.places.graph
        expiries = {id: datetime.fromisoformat(time) for id, time in facts.expires.items()}
        update = graph.write(facts.nodes, facts.edges, by=facts.item, expires_at=expiries)
        graph.expire(*facts.ends, by=facts.item)
        return update

    def _decide(self) -> Iterator[events.MonitorEvent]:
        """Post the briefings that the graph calls for now.

        This loads each user's holdings, watchlist and wishes.
        """
        graph, accounts = self.places.graph, self.places.accounts
        for number, user in enumerate(accounts.users(), start=1):
            try:
                account = accounts.account(user)
                holdings = Holdings(user, account.held, frozenset(account.watchlist))
                wishes = Wishes.of(account.preferences)
                view, posted_keys = graph.view(account.owner), accounts.sent_briefings(user)
                found = briefings(view, holdings, wishes, decays=self.decays, posted_keys=posted_keys)
                for briefing in found:
                    if accounts.post(briefing):
                        yield events.BriefingPosted(briefing.key)
            except LabError as error:
                yield events.StageFailed("decide", f"account {number} of {len(accounts.users())}: {error}")

    def _deliver(self) -> Iterator[events.MonitorEvent]:
        """Deliver the fresh briefings in the outbox. If the receiver is unreachable, the others wait too."""
        accounts = self.places.accounts
        unsent = accounts.outbox(unsent=True)
        waiting = [entry for entry in unsent if self._is_fresh(entry)]
        if stale := len(unsent) - len(waiting):
            yield events.BriefingsStale(stale)
        for position, entry in enumerate(waiting):
            try:
                self.deliver(entry)
            except ToolFailed as error:
                if error.again:
                    left = format_count(len(waiting) - position, "briefing")
                    raise ToolFailed(f"{error}; {left} in the outbox", again=True) from None
                yield events.StageFailed("deliver", f"briefing {entry.key}: {error}")
                continue
            accounts.mark_sent(entry.key)
            yield events.BriefingSent(entry.key)

    def _is_fresh(self, entry: OutboxEntry) -> bool:
        until = entry.body["live_until"]
        in_time = until is None or datetime.fromisoformat(until) > self.places.journal.now()
        return in_time and self.places.holds(entry)


@contextmanager
def open_places(folder: Path | str, *, now: Callable[[], datetime] = utc_now) -> Iterator[MonitorPlaces]:
    """Open the three stores as SQLite files in a folder, or in memory (":memory:"), until the block ends.

    Missing files are created, and the folder in an existing one. The graph also accepts relations between companies in the news: supplier,
    owner, competitor.
    """

    if folder != ":memory:":
        make_folder(Path(folder))

    def place(name: str) -> Path | str:
        return folder if folder == ":memory:" else Path(folder) / f"{name}.db"

    with (
        open_investment_graph(place("graph"), vocabulary=INVESTMENT_WITH_COMPANIES, now=now) as graph,
        open_accounts(place("accounts"), now=now) as accounts,
        open_journal(place("journal"), now=now) as journal,
    ):
        yield MonitorPlaces(graph, accounts, journal)


# Scheduled ticks: one at regular intervals, resumed after an interruption, until the end is requested.

_MAX_WAIT_SECONDS = 60.0  # seconds of one wait, after which the clock is checked: it may have been set, or the computer have slept


class StopRequest:
    """Requests the end of a run, from another thread or a signal handler."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[None] = SimpleQueue()  # an Event must not be set in a signal handler

    def request(self) -> None:
        """Request the end."""
        self._asked.put(None)

    def is_requested(self) -> bool:
        """Return whether the end was requested."""
        return not self._asked.empty()

    def wait(self, seconds: float) -> None:
        """Wait for a number of seconds, or until the end is requested."""
        try:
            self._asked.put(self._asked.get(timeout=seconds))
        except Empty:
            return


def run_scheduled(
    monitor: Monitor, every: timedelta, stop: StopRequest, *, wait: Callable[[float], object] | None = None
) -> Iterator[events.MonitorEvent]:
    """Run ticks at regular intervals and yield their events.

    The first tick runs at once, or when the previous one is over. Missed ticks are one tick: it reads what
    has come in since, up to the limit of a tick, and sends nothing that has expired. An interrupted tick is
    resumed first. A requested end takes effect between two events, so that a running model call is completed
    and stored. `wait` takes the seconds until the next check of the clock. Raises BadInput.
    """
    if not isinstance(every, timedelta) or every <= timedelta():
        expected = "the time between two ticks is a timedelta of more than 0"
        raise BadInput(f"{expected}, not {describe_value(every)}")
    wait = wait or stop.wait
    journal = monitor.places.journal
    while not stop.is_requested():
        try:
            tick = journal.next_tick(every)
            pause = (tick.due - journal.now()).total_seconds()
            if pause <= 0:
                for event in monitor.tick(tick):
                    yield event
                    if stop.is_requested():
                        return
        except LabError as error:  # the journal is unreachable
            yield events.StageFailed("tick", str(error))
            pause = every.total_seconds()
        if pause > 0:
            wait(min(pause, _MAX_WAIT_SECONDS))


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Yield an ending that the first SIGTERM or SIGINT requests. A second signal ends the process at once.

    Use it in the main thread.
    """
    stop = StopRequest()

    def request_stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.request()

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
