"""Reading the graph: mend what fails, ask anew when nothing comes back, and force a read when the steps have
run out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgot_lab.errors import BadReply, QueryFailed
from kgot_lab.loop import prompts
from kgot_lab.loop.controller import is_statement, look_up
from kgot_lab.loop.events import Forced, Read, Refused
from kgot_lab.loop.prompts import Answer, Names, Statement
from kgot_lab.loop.run_context import Loop, Steps, ask_for, distinct, meant, read_event, repairing, situation
from kgot_lab.stores.protocol import Store, readers
from kgot_lab.types import Rows

WHOLE_GRAPH = "the whole graph, as text"


@dataclass(frozen=True)
class Candidate:
    """What an answer can be made from: rows read from the graph, and in direct mode the answer that a ballot
    gave.
    """

    rows: Rows
    said: str = ""
    statement: str = ""


def candidates(run: Loop, retrieves: list[str]) -> Steps[list[Candidate]]:
    """What the RETRIEVE ballots lead to: the rows of each distinct statement, or the direct answers with the
    facts of the graph.
    """
    if run.limits.reading == "whole graph":
        return (yield from _directly(run, retrieves))
    found: list[Candidate] = []
    for statement in retrieves:
        _note(found, (yield from read(run, statement)))
    for reader in readers(run.store):
        _note(found, (yield from _read_in(run, reader)))
    return found


def _note(found: list[Candidate], read: Candidate) -> None:
    """Add what was read, unless it is nothing or the same rows were read before."""
    rows = facts_in(read.rows)
    if rows and rows not in [candidate.rows for candidate in found]:
        found.append(replace(read, rows=rows))


def facts_in(rows: Rows) -> Rows:
    """Rows in which a fact stands beside its properties, whatever the language: one that gives them as a map
    is spread out.
    """
    fact = {"subject", "relation", "object", "properties"}
    return tuple(
        {**row["properties"], **{name: row[name] for name in ("subject", "relation", "object")}}
        if isinstance(row, dict) and row.keys() == fact and isinstance(row["properties"], dict)
        else row
        for row in rows
    )


def _read_in(run: Loop, reader: Store) -> Steps[Candidate]:
    """What a statement in another language reads from the same graph; no rows when none of the model's does."""
    text = yield from situation(run, reader)
    role = f"read in {reader.dialect.name}"
    try:
        if run.limits.reading == "operations":
            names = (
                yield from ask_for(
                    run, role, prompts.names(text), Names, kind="names", temperature=run.limits.temperature
                )
            ).about
            statement = look_up(run, names, reader)
        else:
            messages = prompts.read_in(text, reader.dialect)
            statement = (
                yield from ask_for(
                    run, role, messages, Statement, kind="read", temperature=run.limits.temperature
                )
            ).statement
    except BadReply as error:
        yield run.happened(
            Refused,
            statement=error.text[:500],
            reason=error.reason,
            writing=False,
            dialect=reader.dialect.name,
        )
        return Candidate(())
    return (yield from read(run, statement, reader))


def forced(run: Loop) -> Steps[list[Candidate]]:
    """The same when the steps ran out or the loop is stuck: the model must name what to read; in direct mode
    it reads everything.
    """
    yield run.happened(Forced, what="read")
    if run.limits.reading == "whole graph":
        return (yield from _directly(run, (yield from _forced_answers(run))))
    text = yield from situation(run)
    statements = []
    possible = run.limits.forced_reads if run.limits.vote_temperature > 0 else 1
    for number in range(possible):
        temperature = run.limits.vote_temperature if number else run.limits.temperature
        try:
            statements.append((yield from _forced_statement(run, text, temperature, number)))
        except BadReply as error:
            yield run.happened(Refused, statement=error.text[:500], reason=error.reason, writing=False)
    return (yield from candidates(run, distinct(statements)))


def _forced_statement(run: Loop, text: str, temperature: float, number: int) -> Steps[str]:
    if run.limits.reading == "operations":
        reply = yield from ask_for(
            run, "forced read", prompts.names(text), Names, kind="names", temperature=temperature, seed=number
        )
        return look_up(run, reply.about)
    messages = prompts.forced_read(text, run.store.dialect)
    return (
        yield from ask_for(
            run, "forced read", messages, Statement, kind="read", temperature=temperature, seed=number
        )
    ).statement


def _forced_answers(run: Loop) -> Steps[list[str]]:
    """Answers from the graph as text, as many as the limits say; none from an empty one."""
    if not run.store.schema().nodes:
        return []
    text = yield from situation(run)
    answers = []
    for number in range(run.limits.forced_reads if run.limits.vote_temperature > 0 else 1):
        temperature = run.limits.vote_temperature if number else run.limits.temperature
        messages = prompts.guess(text, run.limits.answer_format)
        try:
            reply = yield from ask_for(
                run, "forced answer", messages, Answer, kind="guess", temperature=temperature, seed=number
            )
        except BadReply as error:
            yield run.happened(Refused, statement=error.text[:500], reason=error.reason, writing=False)
        else:
            answers.append(reply.answer.strip())
    return distinct([answer for answer in answers if answer])


def _directly(run: Loop, answers: list[str]) -> Steps[list[Candidate]]:
    """The answers with all facts of the graph; one that is a statement is read, for it is no answer."""
    found: list[Candidate] = []
    for statement in filter(is_statement, answers):
        _note(found, (yield from read(run, statement)))
    said = [answer for answer in answers if not is_statement(answer)]
    if not said and found:
        return found
    facts = rows_of_graph(run)
    yield run.happened(Read, statement=WHOLE_GRAPH, rows=facts)
    return found + [Candidate(facts, answer) for answer in said or [""]] if facts else found


def rows_of_graph(run: Loop) -> Rows:
    """Every edge as a row, for direct retrieve; a graph without edges gives its nodes."""
    graph = run.store.graph()
    edges = [
        {"subject": edge.source, "relation": edge.type, "object": edge.target, **edge.properties}
        for edge in graph.edges
    ]
    return tuple(edges) or tuple(
        {"id": node.id, "labels": list(node.labels), **node.properties} for node in graph.nodes
    )


def read(run: Loop, statement: str, reader: Store | None = None) -> Steps[Candidate]:
    """The rows that a statement reads: mended when it fails, asked anew when it finds nothing; none when all
    of that gave nothing.

    `reader` is the store to read from, if not the run's own.
    """
    dialect = reader.dialect.name if reader else ""
    for attempt in range(run.limits.rereads + 1):
        if attempt:
            text = yield from situation(run, reader)
            try:
                statement = yield from _another(run, text, statement, attempt, reader)
            except BadReply as error:
                yield run.happened(
                    Refused, statement=error.text[:500], reason=error.reason, writing=False, dialect=dialect
                )
                continue
        rows = run.state.rows_of(statement, dialect)
        if rows is None:
            try:
                statement, rows = yield from repairing(
                    run, (reader or run.store).read, statement, writing=False, reader=reader
                )
            except QueryFailed as error:
                yield run.happened(
                    Refused, statement=error.statement, reason=error.reason, writing=False, dialect=dialect
                )
                continue
            happened, statement = (
                read_event(run, reader or run.store, statement, rows, dialect),
                meant(reader or run.store, statement),
            )
            yield happened
            rows = happened.grounded
        if rows:
            return Candidate(rows, statement=statement)
    return Candidate(())


def _another(run: Loop, text: str, wrong: str, attempt: int, reader: Store | None) -> Steps[str]:
    temperature = max(run.limits.temperature, run.limits.vote_temperature if attempt > 1 else 0.0)
    if run.limits.reading == "operations":
        reply = yield from ask_for(
            run,
            "read again",
            prompts.names(text),
            Names,
            kind="names",
            temperature=temperature,
            seed=50 + attempt,
        )
        return look_up(run, reply.about, reader)
    messages = prompts.reread(text, wrong, (reader or run.store).dialect)
    return (
        yield from ask_for(
            run, "read again", messages, Statement, kind="read", temperature=temperature, seed=50 + attempt
        )
    ).statement
