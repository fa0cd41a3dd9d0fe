"""`kgot-lab invest FOLDER`: update an investment graph from news, record holdings, list briefings. Not
financial advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.memory import BY_COMMAND, print_effects, print_log, print_result
from kgot_lab.cli.options import argument, option
from kgot_lab.errors import BadInput, StoreUnavailable

if TYPE_CHECKING:
    from kgot_lab.domains.investment.graph import InvestmentGraph

NEWS, BRIEFINGS = "news.jsonl", "briefings"

investments = typer.Typer(
    help="Update an investment graph from news, and brief its users. Nothing here is financial advice.",
    no_args_is_help=True,
)


@investments.callback()
def invest(
    context: typer.Context,
    folder: Path = argument("where the graph, the accounts, the journal and the briefings are"),
) -> None:
    """Update an investment graph from news, and brief its users.

    Nothing here is financial advice: it repeats what news said.
    """
    context.obj = folder


@dataclass(frozen=True)
class _ReaderOptions:
    """Options for the model that reads the news, and its budget."""

    model: str | None = options.MODEL
    models: Path | None = options.MODELS_FILE
    max_calls: int | None = options.MAX_CALLS
    recording: Path | None = options.RECORDING


@investments.command("run")
@options.with_options
def run_monitor(
    context: typer.Context,
    *,
    reader: _ReaderOptions,
    news: Path | None = option(f"a file of news (default: FOLDER/{NEWS})"),
    post: str | None = option(f"an address that briefings are posted to (default: FOLDER/{BRIEFINGS})"),
    minutes: float = option("minutes between two ticks", "--every", default=60.0),
    once: bool = option("one tick, and an exit code of 1 if something in it failed", default=False),
) -> None:
    """Read news and deliver briefings. The command resumes after a stop. Ctrl-C ends it after the current
    step.

    The news file has one JSON object per line: id (permanent), headline and published_at (ISO 8601 with its zone,
    2026-02-05T14:00:00+00:00), and may have text and source.
    """
    from kgot_lab.domains.investment.briefing import DISCLAIMER
    from kgot_lab.domains.investment.monitor.events import StageFailed
    from kgot_lab.domains.investment.monitor.monitor import (
        Monitor,
        deliver_to_address,
        deliver_to_folder,
        open_places,
        run_scheduled,
        stop_on_signals,
    )
    from kgot_lab.domains.investment.monitor.news import read_news_file

    folder: Path = context.obj
    source = news or folder / NEWS
    read_news_file(source)  # reports a mistyped name at once, not in every step
    deliver = deliver_to_address(post) if post else deliver_to_folder(folder / BRIEFINGS)
    if not 0 < minutes < 1e6:
        raise BadInput(f"--every is more than 0 minutes, not {minutes:g}")
    every = timedelta(minutes=minutes)
    with _lock_folder(folder), open_places(folder) as places, stop_on_signals() as ending:
        terminal.say(DISCLAIMER)
        budget = terminal.make_budget(reader.max_calls, None, None)
        registry = str(reader.models) if reader.models else None
        llm = terminal.connect_model(reader.model or "local", budget, reader.recording, models=registry)
        monitor = Monitor(places, llm, lambda: read_news_file(source), deliver)
        failed = False
        ticks = run_scheduled(monitor, every, ending)
        for event in monitor.tick(places.journal.next_tick(every)) if once else ticks:
            terminal.say(str(event))
            failed |= isinstance(event, StageFailed)
            if ending.is_requested():
                terminal.say("Stopped; the same command goes on.")
                break
    if once and failed:
        raise typer.Exit(1)


# -3 shares are parsed as a number and rejected
@investments.command("hold", context_settings={"ignore_unknown_options": True})
def record_position(
    context: typer.Context,
    user: str = argument("who holds it; new users get an account"),
    symbol: str = argument("of the asset, such as AAPL"),
    shares: str = argument("how many; 0 ends the position"),
    cost: str = argument("what a share cost on average", default="0"),
    as_json: bool = options.AS_JSON,
) -> None:
    """Record what a user holds, in the accounts only, and show the position."""
    from kgot_lab.domains.investment.monitor.monitor import open_places
    from kgot_lab.domains.investment.view import symbol_key

    ticker = symbol_key(symbol)
    with open_places(context.obj) as places:
        with places.accounts.storage.changing():
            if user not in places.accounts.users():
                places.accounts.set_profile(user)
            places.accounts.set_position(user, symbol, shares, cost)
            positions = {each.symbol: each for each in places.accounts.account(user).positions}
        row: dict[str, Any] = {"user": user, "symbol": ticker, "shares": "0", "average_cost": "0"}
        line = f"{user} holds no {ticker}."
        if held := positions.get(ticker):
            row |= {"shares": str(held.shares), "average_cost": str(held.average_cost)}
            line = f"{user} holds {held.shares} {ticker} at {held.average_cost} on average."
        print_result(row, as_json, [line])
        known_symbols = places.graph.view().symbols_meant(symbol)
        if held and ticker not in known_symbols:
            issued = f"it is the ticker of who issued {' and '.join(known_symbols)}"
            reason = issued if known_symbols else "a signal reaches it once news has named it"
            terminal.say(f"Noted; no asset in the graph has the symbol {ticker} now: {reason}.")


@investments.command("leave")
def erase_user(context: typer.Context, user: str = argument("who leaves")) -> None:
    """Erase a user's account (holdings, watchlist, wishes, briefings) and private part of the graph. There is no
    undo.
    """
    from kgot_lab.domains.investment.monitor.monitor import open_places

    with open_places(context.obj) as places:
        places.graph.erase_owner(places.accounts.account(user).owner, by=BY_COMMAND)
        places.accounts.erase_user(user)
    terminal.say("Erased; briefings that were delivered before are where they were delivered.")


@investments.command("brief")
def list_briefings(
    context: typer.Context,
    name: str = argument("a user, or the symbol of an asset: only the briefings for it", default=""),
    as_json: bool = options.AS_JSON,
) -> None:
    """List the briefings that were posted, with evidence and paths, and whether they were sent and still hold."""
    from kgot_lab.domains.investment.monitor.monitor import open_places

    if not (context.obj / "accounts.db").exists():
        raise BadInput(f"{context.obj} holds no accounts: `invest FOLDER hold USER SYMBOL SHARES` makes one")
    with open_places(context.obj) as places:
        users, symbols = places.accounts.users(), set(places.graph.view().symbols_meant(name))
        if name and name not in users and not symbols:
            known = f"the users are {', '.join(users)}" if users else "there are no users"
            raise BadInput(f"{name} is no user here, and no asset in the graph has this symbol: {known}")
        rows: list[dict[str, Any]] = [
            {
                "user": e.user,
                "sent_at": e.sent_at and e.sent_at.isoformat(),
                "holds": places.holds(e),
                **e.body,
            }
            for e in places.accounts.outbox()
            if not name or e.user == name or symbols & set(e.body["symbols"])
        ]
    sent = {row["key"]: "sent" if row["sent_at"] else "not sent" for row in rows}
    states = {row["key"]: sent[row["key"]] + ", no longer holds" * (not row["holds"]) for row in rows}
    texts = (f"{row['user']}, {states[row['key']]}: {row['text']}\n" for row in rows)
    lines = (
        chain.from_iterable(text.split("\n") for text in texts) if rows else ["No briefing was posted yet."]
    )
    print_result(rows, as_json, lines)


@investments.command("log")
def list_changes(context: typer.Context, as_json: bool = options.AS_JSON) -> None:
    """List every change of the graph with its number, time, author (the item of news) and kind."""
    with _opened_graph(context.obj) as graph:
        print_log(graph.log(), as_json)


@investments.command("undo")
def undo_change(
    context: typer.Context,
    number: int = argument("of a change, as `log` lists them"),
    as_json: bool = options.AS_JSON,
) -> None:
    """Undo a change of the graph, also an undo, before later ones of the same things."""
    with _opened_graph(context.obj) as graph:
        print_effects(graph.undo(number, by=BY_COMMAND), as_json)


@contextmanager
def _opened_graph(folder: Path) -> Iterator[InvestmentGraph]:
    from kgot_lab.domains.investment.monitor.monitor import open_places

    if not (folder / "graph.db").exists():
        raise BadInput(f"{folder} holds no graph: `invest FOLDER run` makes one from news")
    with open_places(folder) as places:
        yield places.graph


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder so that no other command runs on it. Raises StoreUnavailable if one does."""
    from kgot_lab.io.files import make_folder
    from kgot_lab.io.processes import lock_file

    make_folder(folder)
    with (folder / "running").open("a") as file:
        try:
            lock_file(file)
        except OSError:
            raise StoreUnavailable(f"{folder}: another command runs on here; end that first") from None
        yield
