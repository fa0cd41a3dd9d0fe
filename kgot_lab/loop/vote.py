"""Ballots: INSERT or RETRIEVE, by strict majority, stopped once the outcome is decided."""

from __future__ import annotations

import re

from kgot_lab.errors import BadReply, QueryFailed
from kgot_lab.loop import prompts
from kgot_lab.loop.events import Ballot, Failed, Voted
from kgot_lab.loop.prompts import Look, Vote
from kgot_lab.loop.run_context import Loop, Steps, ask_for, distinct, read_event, situation
from kgot_lab.stores.protocol import Store


def poll(run: Loop) -> Steps[tuple[Voted, list[str]]]:
    """Vote on the next step; returns the outcome and the distinct read statements (or answers) of the
    RETRIEVE ballots.
    """
    limits = run.limits
    if run.state.step < limits.unpolled and not run.state.start:
        bare = limits.unpolled == 1 and not run.store.schema().nodes
        reasons = (
            "no vote on an empty graph"
            if bare
            else f"no vote before {limits.unpolled} turn{'s' * (limits.unpolled > 1)}",
        )
        return run.happened(
            Voted, choice="INSERT", inserts=0, retrieves=0, invalid=0, possible=0, reasons=reasons
        ), []
    # at temperature 0 every ballot is the same text
    freely = limits.temperatures.get("vote", limits.vote_temperature) > 0
    possible = limits.votes if freely else 1
    text = yield from situation(run)
    ballots: list[Ballot] = []
    while len(ballots) < possible and not _decided(ballots, possible):
        ballot = yield from _cast(run, text, len(ballots) + 1)
        ballots.append(ballot)
        yield ballot
    inserts = distinct([ballot.text for ballot in ballots if ballot.choice == "INSERT" and ballot.text])
    retrieves = distinct([ballot.text for ballot in ballots if ballot.choice == "RETRIEVE"])
    voted = run.happened(
        Voted,
        choice="RETRIEVE" if _count(ballots, "RETRIEVE") > _count(ballots, "INSERT") else "INSERT",
        inserts=_count(ballots, "INSERT"),
        retrieves=_count(ballots, "RETRIEVE"),
        invalid=_count(ballots, ""),
        possible=possible,
        reasons=tuple(inserts),
    )
    return voted, retrieves


def _count(ballots: list[Ballot], choice: str) -> int:
    return sum(ballot.choice == choice for ballot in ballots)


def _decided(ballots: list[Ballot], possible: int) -> bool:
    """True when the ballots not yet cast cannot change the outcome; ties go to INSERT."""
    left = possible - len(ballots)
    inserts, retrieves = _count(ballots, "INSERT"), _count(ballots, "RETRIEVE")
    return retrieves > inserts + left or inserts >= retrieves + left


def _cast(run: Loop, text: str, number: int) -> Steps[Ballot]:
    """One ballot; a RETRIEVE whose read finds nothing counts as INSERT, and a reply that is neither counts as
    nothing.
    """
    options = {"temperature": run.limits.vote_temperature, "seed": 100 * run.state.step + number}
    try:
        if run.limits.reading == "operations":
            look = yield from ask_for(run, "vote", prompts.vote_by_names(text), Look, **options)
            unknown = look.answer.strip().lower().rstrip(".") in {"", "unknown"}
            choice, said = "INSERT" if unknown else look.choice, look.missing
            statement = look_up(run, look.about)
        else:
            dialect = None if run.limits.reading == "whole graph" else run.store.dialect
            messages = prompts.vote(text, run.state.calls, dialect)
            vote = yield from ask_for(run, "vote", messages, Vote, **options)
            choice, said, statement = vote.choice, vote.text.strip(), vote.text.strip()
    except BadReply as error:
        return run.happened(Ballot, number=number, choice="", text=error.reason)
    if choice == "INSERT":
        return run.happened(Ballot, number=number, choice="INSERT", text=said)
    if run.limits.reading == "whole graph" and not run.store.schema().nodes:
        return run.happened(
            Ballot,
            number=number,
            choice="INSERT",
            text=f"the graph is empty, so nothing in it says: {statement}",
        )
    if (run.limits.reading != "whole graph" or is_statement(statement)) and (
        yield from _finds_nothing(run, statement)
    ):
        return run.happened(
            Ballot, number=number, choice="INSERT", text=f"reading found nothing: {statement}"
        )
    return run.happened(Ballot, number=number, choice="RETRIEVE", text=statement)


def _finds_nothing(run: Loop, statement: str) -> Steps[bool]:
    """Whether a read statement gives no rows; one that fails may still be mended and is no evidence, unless
    there is nothing to read.
    """
    if (known := run.state.rows_of(statement)) is not None:
        return not known
    try:
        rows = run.store.read(statement)
    except QueryFailed as error:
        yield run.happened(Failed, statement=statement, reason=error.reason)
        return not run.store.schema().nodes
    happened = read_event(run, run.store, statement, rows)
    yield happened
    return not happened.grounded


_BEGINS = re.compile(
    r"(OPTIONAL\s+)?MATCH\s*\(.*\bRETURN\b|(PREFIX\s.*)?(SELECT|ASK)\s+.*\{|result\s*=[^=]|CALL\s+[\w.]+\s*(\(|YIELD\b)|CALL\s*\{|facts\(",
    re.I | re.S,
)


def is_statement(text: str) -> bool:
    """Whether a text that should be an answer is a statement that reads one."""
    return _BEGINS.match(text.strip()) is not None


def look_up(run: Loop, names: list[str], reader: Store | None = None) -> str:
    """The read statement that an operations-mode reply stands for: the facts near the names it gave and the
    names that were looked up.
    """
    looked_up = [
        str(value)
        for call in run.state.calls
        for value in call.arguments.values()
        if value != run.state.question
    ]
    about = distinct([name.strip() for name in (*names, *looked_up) if name.strip()])
    return (reader or run.store).dialect.about(about, 2)
