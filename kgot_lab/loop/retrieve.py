"""Reading the graph: repair failing statements, retry empty ones, and force a read when the steps run out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kgot_lab.errors import BadReply, QueryFailed
from kgot_lab.graph.changes import PROVENANCE_PROPERTIES, latest_sentence
from kgot_lab.loop import prompts
from kgot_lab.loop.events import Answered, Computed, Cut, Forced, Parsed, Read, Refused
from kgot_lab.loop.evidence import FoundSupports, evidence_of, passages_of
from kgot_lab.loop.prompts import Answer, Code, Names, Needed, Number, Statement
from kgot_lab.loop.render import by_sentence, fit, joined_lines
from kgot_lab.loop.run_context import (
    Candidate,
    Loop,
    Steps,
    ask_for,
    distinct,
    meant,
    read_event,
    repairing,
    situation,
)
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.stores.protocol import Store, readers
from kgot_lab.text.cleaning import estimate_tokens, truncate_to_tokens
from kgot_lab.text.words import canonical_answer
from kgot_lab.types import Json, Rows

WHOLE_GRAPH = "the whole graph, as text"


def candidates(run: Loop, retrieves: list[str]) -> Steps[list[Candidate]]:
    """Return the candidates for the RETRIEVE ballots.

    These are the rows of each distinct statement, or the direct answers with the facts of the graph.
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
    """Append a candidate unless it is empty or its rows were read before."""
    rows = facts_in(read.rows)
    if rows and rows not in [candidate.rows for candidate in found]:
        found.append(replace(read, rows=rows))


def facts_in(rows: Rows) -> Rows:
    """Flatten rows of facts whose properties are a nested map, so that all languages give the same form."""
    fact = {"subject", "relation", "object", "properties"}
    return tuple(
        {**row["properties"], **{name: row[name] for name in ("subject", "relation", "object")}}
        if isinstance(row, dict) and row.keys() == fact and isinstance(row["properties"], dict)
        else row
        for row in rows
    )


def _read_in(run: Loop, reader: Store) -> Steps[Candidate]:
    """Read from the same graph in another query language.

    Returns a candidate without rows if no statement of the model works.
    """
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
    """Return candidates when the steps ran out or the loop is stuck.

    The model must name what to read. In direct mode it reads the whole graph.
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
    """Return direct answers from the graph as text, as many as the limits allow.

    Returns none if the graph is empty.
    """
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
    """Return the answers with all facts of the graph as candidates.

    An answer that is itself a read statement is executed instead.
    """
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
    """Return every edge as a row, for direct retrieve, or every node if there are no edges."""
    graph = run.store.graph()
    edges = [
        {"subject": edge.source, "relation": edge.type, "object": edge.target, **edge.properties}
        for edge in graph.edges
    ]
    return tuple(edges) or tuple(
        {"id": node.id, "labels": list(node.labels), **node.properties} for node in graph.nodes
    )


def read(run: Loop, statement: str, reader: Store | None = None) -> Steps[Candidate]:
    """Execute a read statement, with repairs if it fails and a new statement if it finds nothing.

    `reader` is the store to read from, if not the run's own. The candidate has no rows if nothing succeeds.
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
            happened = read_event(run, reader or run.store, statement, rows, dialect)
            statement = meant(reader or run.store, statement)
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


_BEGINS = re.compile(
    r"(OPTIONAL\s+)?MATCH\s*\(.*\bRETURN\b|(PREFIX\s.*)?(SELECT|ASK)\s+.*\{|result\s*=[^=]|CALL\s+[\w.]+\s*(\(|YIELD\b)|CALL\s*\{|facts\(",
    re.I | re.S,
)


def is_statement(text: str) -> bool:
    """Return whether a text that should be an answer is a read statement."""
    return _BEGINS.match(text.strip()) is not None


def look_up(run: Loop, names: list[str], reader: Store | None = None) -> str:
    """Return the read statement for an operations-mode reply.

    It reads the facts near the given names and near the names that were searched for.
    """
    looked_up = [
        str(value)
        for call in run.state.calls
        for value in call.arguments.values()
        if value != run.state.question
    ]
    about = distinct([name.strip() for name in (*names, *looked_up) if name.strip()])
    return (reader or run.store).dialect.about(about, 2)


# From rows to an answer: compute if needed, parse, choose, and cite the evidence.

_COUNTING = re.compile(
    r"\b(how (many|much|old|long|far)|number of|total|sum|average|difference|percent|older|younger|earlier|later|more|fewer|less)\b",
    re.I,
)


def conclude(run: Loop, found: list[Candidate]) -> Steps[None]:
    """Answer from what was read.

    If nothing was read, the model must guess, and the answer says so.
    """
    pooled = (
        [Candidate(tuple(row for candidate in found for row in candidate.rows))]
        if found and run.limits.pool
        else found
    )
    parsed: list[str] = []
    texts: list[str] = []
    for candidate in pooled:
        facts = yield from _facts(run, candidate)
        facts += yield from _computed(run, facts)
        texts.append(facts)
        parsed += yield from _parses(run, facts)
    if not parsed:
        yield from _guess(run)
        return
    chosen = yield from _choose(run, joined_lines(distinct(texts)), parsed)
    evidence = evidence_of(run, found, chosen)
    supports = tuple(map(FoundSupports(run.state).of, evidence))
    yield run.happened(
        Answered,
        text=chosen,
        forced=run.state.forced,
        evidence=tuple(fact_of(edge) for edge in evidence),
        supports=supports,
        passages=passages_of(supports),
    )


def _facts(run: Loop, candidate: Candidate) -> Steps[str]:
    """Format the rows as lines, the most relevant within the budget.

    The answer of a ballot, if any, follows them.
    """
    lines = row_lines(candidate.rows)
    kept, left_out = fit(run.state.question, lines, run.limits.row_tokens)
    shown = [truncate_to_tokens(lines[number], run.limits.row_tokens) for number in kept]
    left_out += sum(max(0, estimate_tokens(lines[number]) - run.limits.row_tokens) for number in kept)
    if left_out:
        yield run.happened(
            Cut, what="rows", kept=sum(map(estimate_tokens, lines)) - left_out, left_out=left_out
        )
    facts = joined_lines(shown)
    return f"{facts}\n\nA first answer: {candidate.said}" if candidate.said else facts


def row_lines(rows: Rows) -> list[str]:
    """Format rows as lines, with the triples from one sentence together."""

    def pair(row: Json) -> tuple[str, str]:
        sentence = latest_sentence(row) if isinstance(row, dict) else ""
        return row_text({**row, "sentence": ""} if sentence else row), sentence

    return distinct(by_sentence(dict.fromkeys(map(pair, rows))))


def row_text(row: Json) -> str:
    """Format a row as one line: a triple with its sentence, or plain JSON."""
    if isinstance(row, dict) and {"subject", "relation", "object"} <= row.keys():
        triple = f"{row['subject']} {row['relation']} {row['object']}"
        hidden = {"subject", "relation", "object", *PROVENANCE_PROPERTIES}
        more = ", ".join(f"{name}: {value}" for name, value in row.items() if name not in hidden)
        said = latest_sentence(row)
        return triple + (f" ({more})" if more else "") + (f' ("{said}")' if said else "")
    return row if isinstance(row, str) else json.dumps(row, ensure_ascii=False, default=str)


def _computed(run: Loop, facts: str) -> Steps[str]:
    """Return what Python computes from the facts, or "" if no arithmetic is needed."""
    if run.compute is None or not _may_need_arithmetic(run, facts):
        return ""
    question = run.state.question
    try:
        if not (
            yield from ask_for(run, "arithmetic?", prompts.needs_arithmetic(question, facts), Needed)
        ).needed:
            return ""
        messages = prompts.arithmetic(question, facts)
        for mends in range(run.limits.repairs + 1):
            code = (yield from ask_for(run, "arithmetic", messages, Code, execution=True, seed=mends)).code
            try:
                output = run.compute(code).strip()
            except QueryFailed as error:
                yield run.happened(Computed, code=code, output=error.reason, failed=True)
                messages = prompts.mend_arithmetic(question, facts, code, error.reason)
            else:
                yield run.happened(Computed, code=code, output=output)
                return f"\nComputed: {output}" if output else ""
    except BadReply as error:
        yield run.happened(Computed, code=error.text[:500], output=error.reason, failed=True)
    return ""


def _may_need_arithmetic(run: Loop, facts: str) -> bool:
    if run.limits.arithmetic == "numbers":
        return bool(_COUNTING.search(run.state.question)) and len(re.findall(r"\d+", facts)) >= 2
    return run.limits.arithmetic == "always"


def _parses(run: Loop, facts: str) -> Steps[list[str]]:
    """Return formatted answers, the first at the set temperature and the others sampled.

    Stops when a majority agrees.
    """
    limits = run.limits
    possible = limits.parses if limits.temperatures.get("parse", limits.vote_temperature) > 0 else 1
    parsed: list[str] = []
    for number in range(possible):
        temperature = limits.vote_temperature if number else limits.temperature
        messages = prompts.answer(run.state.question, facts, limits.answer_format)
        try:
            text = (
                yield from ask_for(run, "parse", messages, Answer, temperature=temperature, seed=number)
            ).answer.strip()
        except BadReply as error:
            yield run.happened(Parsed, text="", problem=error.reason)
            continue
        yield run.happened(Parsed, text=text)
        if text:
            parsed.append(text)
        if parsed and Counter(map(canonical_answer, parsed)).most_common(1)[0][1] * 2 > possible:
            break
    return parsed


def _choose(run: Loop, facts: str, parsed: Sequence[str]) -> Steps[str]:
    """Choose one of the parsed answers: the only one, the most frequent (pool), or the model's choice."""
    counts = Counter(map(canonical_answer, parsed))
    # the first spelling of each
    options = list({canonical_answer(text): text for text in reversed(parsed)}.values())[::-1]
    if len(options) == 1:
        return options[0]
    most_common = max(options, key=lambda text: (counts[canonical_answer(text)], -options.index(text)))
    if run.limits.pool:
        return most_common
    messages = prompts.choose(run.state.question, truncate_to_tokens(facts, run.limits.row_tokens), options)
    try:
        number = (yield from ask_for(run, "choose", messages, Number)).number
    except BadReply:
        return most_common  # the Asked event shows the reply that could not be used
    return options[number - 1] if 1 <= number <= len(options) else most_common


def _guess(run: Loop) -> Steps[None]:
    yield run.happened(Forced, what="answer")
    text = yield from situation(run)
    messages = prompts.guess(text, run.limits.answer_format)
    answer = (
        yield from ask_for(run, "guess", messages, Answer, temperature=run.limits.temperature)
    ).answer.strip()
    if not answer:
        raise BadReply(
            "the model gave an empty answer; try another model, or the preset made for small models", answer
        )
    yield run.happened(Answered, text=answer, forced=True)
