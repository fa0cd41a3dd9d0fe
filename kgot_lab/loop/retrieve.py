"""Reading the graph: repair failing statements, retry empty ones, and force a read when the steps run out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadReply, QueryFailed
from kgot_lab.loop.events import Answered, Computed, Cut, Failed, Forced, Parsed, Read
from kgot_lab.loop.evidence import SupportFinder, answer_evidence, judge_rows, passage_ids
from kgot_lab.loop.modes.paths.values import answer_keys, is_no_answer
from kgot_lab.loop.prompts import (
    FORMATS,
    Answer,
    CandidateChoice,
    Code,
    ComputationNeeded,
    Names,
    OperationsVote,
    Statement,
    Vote,
    retrieve_request,
)
from kgot_lab.loop.render import fit_budget, join_lines, row_lines
from kgot_lab.loop.run_context import (
    Candidate,
    RunContext,
    Steps,
    ask_structured,
    begin_calls,
    distinct,
    meant,
    read_event,
    record_refusal,
    run_with_repairs,
    situation,
)
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.stores.protocol import Dialect, Store, readers
from kgot_lab.stores.provenance import flatten_facts
from kgot_lab.text.cleaning import estimate_tokens, truncate_to_tokens
from kgot_lab.types import Message, Rows

WHOLE_GRAPH = "the whole graph, as text"
_Request: TypeAlias = tuple[str, tuple[Message, ...], type[Names] | type[Statement]]


class Reading:
    """How a run that votes reads the graph: here with statements that the model writes.

    What a vote for RETRIEVE says is the statement to read with.
    """

    vote_shape: type[Vote] | type[OperationsVote] = Vote

    def __init__(self, run: RunContext) -> None:
        self.run = run

    def vote_prompt(self, text: str) -> tuple[Message, ...]:
        """Return what a vote is asked, with the question and the graph as text."""
        return self._vote_prompt(text, self.run.store.dialect)

    def understand(self, vote: Any) -> tuple[str, str]:
        """Return the choice of a vote, and what is missing or what to read with."""
        return vote.choice, vote.text.strip()

    def check(self, statement: str) -> Steps[str]:
        """Return why a vote for RETRIEVE counts as one for INSERT, or "".

        A statement that finds no rows does. One that fails is no evidence, since it may still be repaired,
        unless the graph is empty.
        """
        run = self.run
        rows = run.state.known_rows(statement)
        if rows is None:
            try:
                event = read_event(run, run.store, statement, run.store.read(statement))
                rows = event.grounded
                yield event
            except QueryFailed as error:
                yield run.record(Failed, statement=statement, reason=error.reason)
                return "" if run.store.schema().nodes else f"reading found nothing: {statement}"
        return "" if rows else f"reading found nothing: {statement}"

    def candidates(self, retrieves: list[str]) -> Steps[list[Candidate]]:
        """Return the candidates for the RETRIEVE votes: the rows of each distinct statement."""
        found_candidates: list[Candidate] = []
        for statement in retrieves:
            _add_candidate(found_candidates, (yield from self.read(statement)))
        for reader in readers(self.run.store):
            _add_candidate(found_candidates, (yield from self._read_in_dialect(reader)))
        return found_candidates

    def forced(self) -> Steps[list[Candidate]]:
        """Return candidates when the steps ran out or the loop is stuck: the model must name what to read."""
        run = self.run
        yield run.record(Forced, what="read")
        text = yield from situation(run)
        statements = []
        samples = _samples(run, "read", run.limits.voting.forced_reads)
        messages = run.prompts("forced read", run.store.dialect, situation=text)
        begin_calls(run, *self._request(text, messages), samples)
        for temperature, seed in samples:
            options = {"temperature": temperature, "seed": seed}
            try:
                ask = self._ask("forced read", text, messages, run.store, **options)
                statements.append((yield from ask))
            except BadReply as error:
                yield record_refusal(run, error, writing=False)
        return (yield from self.candidates(distinct(statements)))

    def read(self, statement: str, reader: Store | None = None) -> Steps[Candidate]:
        """Execute a read statement, with repairs if it fails and a new statement if it finds nothing.

        `reader` is the store to read from, if not the run's own. The candidate has no rows if nothing
        succeeds.
        """
        run = self.run
        store, dialect = reader or run.store, reader.dialect.name if reader else ""
        for attempt in range(run.limits.voting.rereads + 1):
            if attempt:
                text = yield from situation(run, reader)
                try:
                    statement = yield from self._ask_again(text, statement, attempt, store)
                except BadReply as error:
                    yield record_refusal(run, error, writing=False, dialect=dialect)
                    continue
            rows = run.state.known_rows(statement, dialect)
            if rows is None:
                try:
                    repaired = run_with_repairs(run, store.read, statement, writing=False, reader=reader)
                    statement, rows = yield from repaired
                except QueryFailed as error:
                    yield record_refusal(run, error, writing=False, dialect=dialect)
                    continue
                event = read_event(run, store, statement, rows, dialect)
                statement = meant(store, statement)
                yield event
                rows = event.grounded
            if rows:
                return Candidate(rows, statement=statement, reader=store)
        return Candidate(())

    def _vote_prompt(self, text: str, dialect: Dialect | None) -> tuple[Message, ...]:
        calls = self.run.format_calls(self.run.state.calls)
        return self.run.prompts("vote", situation=text, calls=calls, retrieve=retrieve_request(dialect))

    def _read_in_dialect(self, reader: Store) -> Steps[Candidate]:
        """Read from the same graph in another query language.

        Returns a candidate without rows if no statement of the model works.
        """
        run, dialect = self.run, reader.dialect
        text = yield from situation(run, reader)
        role, temperature = f"read in {dialect.name}", run.limits.models.temperature
        try:
            messages = run.prompts("read", dialect, situation=text)
            statement = yield from self._ask(role, text, messages, reader, temperature=temperature)
        except BadReply as error:
            yield record_refusal(run, error, writing=False, dialect=dialect.name)
            return Candidate(())
        return (yield from self.read(statement, reader))

    def _request(self, text: str, messages: tuple[Message, ...]) -> _Request:
        """Return the kind, the messages and the schema of a question for what to read."""
        return "read", messages, Statement

    def _ask(
        self, role: str, text: str, messages: tuple[Message, ...], reader: Store, **options: Any
    ) -> Steps[str]:
        kind, asked, shape = self._request(text, messages)
        reply = yield from ask_structured(self.run, role, asked, shape, kind=kind, **options)
        return self._statement(reply, reader)

    def _ask_again(self, text: str, wrong: str, attempt: int, reader: Store) -> Steps[str]:
        models = self.run.limits.models
        temperature = max(models.temperature, models.vote_temperature if attempt > 1 else 0.0)
        messages = self.run.prompts("read again", reader.dialect, situation=text, wrong=wrong)
        options = {"temperature": temperature, "seed": 50 + attempt}
        return (yield from self._ask("read again", text, messages, reader, **options))

    def _statement(self, reply: Any, reader: Store) -> str:
        return str(reply.statement)


class NameReading(Reading):
    """The model names nodes, and the facts near them and near what was searched for are read."""

    vote_shape = OperationsVote

    def vote_prompt(self, text: str) -> tuple[Message, ...]:
        return self.run.prompts("vote by names", situation=text)

    def understand(self, vote: Any) -> tuple[str, str]:
        unknown = vote.answer.strip().lower().rstrip(".") in {"", "unknown"}
        if unknown or vote.choice == "INSERT":
            return "INSERT", vote.missing
        return "RETRIEVE", self._statement(vote, self.run.store)

    def _request(self, text: str, messages: tuple[Message, ...]) -> _Request:
        return "names", self.run.prompts("names", situation=text), Names

    def _statement(self, reply: Any, reader: Store) -> str:
        state = self.run.state
        arguments = (value for call in state.calls for value in call.arguments.values())
        looked_up = [str(value) for value in arguments if value != state.question]
        all_names = distinct([name.strip() for name in (*reply.about, *looked_up) if name.strip()])
        return reader.dialect.about(all_names, 2)


class TextReading(Reading):
    """The model answers from the whole graph as text. What a vote for RETRIEVE says is the answer."""

    def vote_prompt(self, text: str) -> tuple[Message, ...]:
        return self._vote_prompt(text, None)

    def check(self, statement: str) -> Steps[str]:
        if not self.run.store.schema().nodes:
            return f"the graph is empty, so nothing in it says: {statement}"
        return (yield from super().check(statement)) if is_statement(statement) else ""

    def candidates(self, retrieves: list[str]) -> Steps[list[Candidate]]:
        """Return the answers with all facts of the graph.

        An answer that is itself a read statement is executed instead.
        """
        candidates: list[Candidate] = []
        for statement in filter(is_statement, retrieves):
            _add_candidate(candidates, (yield from self.read(statement)))
        direct = [answer for answer in retrieves if not is_statement(answer)]
        if not direct and candidates:
            return candidates
        facts = graph_rows(self.run)
        yield self.run.record(Read, statement=WHOLE_GRAPH, rows=facts)
        return candidates + [Candidate(facts, answer) for answer in direct or [""]] if facts else candidates

    def forced(self) -> Steps[list[Candidate]]:
        """Return candidates for direct answers from the graph as text, as many as the limits allow."""
        run, answers = self.run, list[str]()
        yield run.record(Forced, what="read")
        if run.store.schema().nodes:
            text = yield from situation(run)
            messages = run.prompts("guess", situation=text, format=FORMATS[run.limits.answer_format])
            samples = _samples(run, "guess", run.limits.voting.forced_reads)
            begin_calls(run, "guess", messages, Answer, samples)
            for temperature, seed in samples:
                options = {"temperature": temperature, "seed": seed, "kind": "guess"}
                try:
                    reply = yield from ask_structured(run, "forced answer", messages, Answer, **options)
                except BadReply as error:
                    yield record_refusal(run, error, writing=False)
                else:
                    answers.append(reply.answer.strip())
        return (yield from self.candidates(distinct([answer for answer in answers if answer])))


READINGS: Mapping[str, type[Reading]] = {
    "statements": Reading,
    "operations": NameReading,
    "whole graph": TextReading,
}


def _add_candidate(candidates: list[Candidate], known: Candidate) -> None:
    """Append a candidate unless it is empty or its rows were read before."""
    rows = flatten_facts(known.rows)
    if rows and rows not in [known.rows for known in candidates]:
        candidates.append(replace(known, rows=rows))


def _samples(run: RunContext, kind: str, most: int) -> list[tuple[float, int]]:
    """Return the temperature and seed of each sample: the first at the set temperature, the others drawn."""
    models = run.limits.models
    # at temperature 0 all are identical
    number = most if models.temperatures.get(kind, models.vote_temperature) > 0 else 1
    return [(models.vote_temperature if seed else models.temperature, seed) for seed in range(number)]


def graph_rows(run: RunContext) -> Rows:
    """Return every edge as a row, for direct retrieve, or every node if there are no edges."""
    graph = run.store.graph()
    edges = [
        {"subject": e.source, "relation": e.type, "object": e.target, **e.properties} for e in graph.edges
    ]
    nodes = ({"id": node.id, "labels": list(node.labels), **node.properties} for node in graph.nodes)
    return tuple(edges) or tuple(nodes)


_STATEMENT_START = re.compile(
    r"(OPTIONAL\s+)?MATCH\s*\(.*\bRETURN\b|(PREFIX\s.*)?(SELECT|ASK)\s+.*\{|result\s*=[^=]|CALL\s+[\w.]+\s*(\(|YIELD\b)|CALL\s*\{|facts\(",
    re.I | re.S,
)


def is_statement(text: str) -> bool:
    """Return whether a text that should be an answer is a read statement."""
    return _STATEMENT_START.match(text.strip()) is not None


# From rows to an answer: compute if needed, parse, choose, and cite the evidence.

_NUMERIC_QUESTION = re.compile(
    r"\b(how (many|much|old|long|far)|number of|total|sum|average|difference|percent|older|younger|earlier|later|more|fewer|less)\b",
    re.I,
)


def conclude(run: RunContext, candidates: list[Candidate]) -> Steps[None]:
    """Answer from what was read.

    If nothing was read, the model must guess, and the answer says so.
    """
    pooled = candidates
    if candidates and run.limits.voting.pool:
        pooled = [Candidate(tuple(row for candidate in candidates for row in candidate.rows))]
    parsed: list[str] = []
    texts: list[str] = []
    computed = ""
    for candidate in pooled:
        facts = yield from _format_facts(run, candidate)
        computed += (result := (yield from _compute(run, facts)))
        texts.append(facts := facts + result)
        parsed += yield from _parse_answers(run, facts)
    if not parsed:
        yield from _guess_answer(run)
        return
    chosen = yield from _choose_answer(run, join_lines(distinct(texts)), parsed)
    printed = computed if _NUMERIC_QUESTION.search(run.state.question) else ""
    yield from answer_with_evidence(run, candidates, chosen, printed)


@check_arguments
def answer_with_evidence(
    run: RunContext, candidates: list[Candidate], chosen: str, printed: str = ""
) -> Steps[None]:
    """Answer with a text, the facts of the candidates that it rests on, and whether they say it.

    `printed` is what arithmetic printed for it.
    """
    evidence = answer_evidence(run, candidates, chosen)
    supports = tuple(map(SupportFinder(run.state).find, evidence))
    cited = {"evidence": tuple(map(fact_of, evidence)), "passages": passage_ids(supports)}
    judged: dict[str, Any] = {"forced": run.state.is_forced}
    if run.limits.check_answers:
        judged = yield from judge_rows(run, chosen, candidates, zip(evidence, supports, strict=True), printed)
    if is_no_answer(chosen) and judged["forced"]:
        cited, supports = {}, ()
    yield run.record(Answered, text=chosen, supports=supports, **judged, **cited)


def _format_facts(run: RunContext, candidate: Candidate) -> Steps[str]:
    """Format the rows as lines, the most relevant within the budget.

    The answer of a vote, if any, follows them.
    """
    lines = row_lines(candidate.rows)
    selected, left_out = fit_budget(run.state.question, lines, run.limits.voting.row_tokens)
    shown = [truncate_to_tokens(lines[number], run.limits.voting.row_tokens) for number in selected]
    left_out += sum(
        max(0, estimate_tokens(lines[number]) - run.limits.voting.row_tokens) for number in selected
    )
    if left_out:
        kept = sum(map(estimate_tokens, lines)) - left_out
        yield run.record(Cut, what="rows", kept=kept, left_out=left_out)
    facts = join_lines(shown)
    return f"{facts}\n\nA first answer: {candidate.said}" if candidate.said else facts


def _compute(run: RunContext, facts: str) -> Steps[str]:
    """Return what Python computes from the facts, or "" if no arithmetic is needed."""
    if run.compute is None or not _may_need_arithmetic(run, facts):
        return ""
    question = run.state.question
    try:
        verdict = yield from ask_structured(
            run, "arithmetic?", run.prompts("arithmetic?", question=question, facts=facts), ComputationNeeded
        )
        if not verdict.needed:
            return ""
        messages = run.prompts("arithmetic", question=question, facts=facts)
        for attempt in range(run.limits.voting.repairs + 1):
            reply = yield from ask_structured(run, "arithmetic", messages, Code, execution=True, seed=attempt)
            code = reply.code
            try:
                output = run.compute(code).strip()
            except QueryFailed as error:
                yield run.record(Computed, code=code, output=error.reason, failed=True)
                messages = run.prompts(
                    "arithmetic again", question=question, facts=facts, code=code, error=error.reason
                )
            else:
                yield run.record(Computed, code=code, output=output)
                return f"\nComputed: {output}" if output else ""
    except BadReply as error:
        yield run.record(Computed, code=error.text[:500], output=error.reason, failed=True)
    return ""


def _may_need_arithmetic(run: RunContext, facts: str) -> bool:
    if run.limits.voting.arithmetic == "numbers":
        return bool(_NUMERIC_QUESTION.search(run.state.question)) and len(re.findall(r"\d+", facts)) >= 2
    return run.limits.voting.arithmetic == "always"


def _parse_answers(run: RunContext, facts: str) -> Steps[list[str]]:
    """Return formatted answers, the first at the set temperature and the others sampled.

    Stops when a majority agrees.
    """
    format = FORMATS[run.limits.answer_format]
    messages = run.prompts("parse", question=run.state.question, facts=facts, format=format)
    samples = _samples(run, "parse", run.limits.voting.parses)
    begin_calls(run, "parse", messages, Answer, samples[: len(samples) // 2 + 1])  # asked in any case
    parsed: list[str] = []
    for temperature, seed in samples:
        options = {"temperature": temperature, "seed": seed}
        try:
            reply = yield from ask_structured(run, "parse", messages, Answer, **options)
        except BadReply as error:
            yield run.record(Parsed, text="", problem=error.reason)
            continue
        text = reply.answer.strip()
        yield run.record(Parsed, text=text)
        if text:
            parsed.append(text)
        if max(Counter(answer_keys(parsed)).values(), default=0) * 2 > len(samples):
            break
    return parsed


def _choose_answer(run: RunContext, facts: str, parsed: Sequence[str]) -> Steps[str]:
    """Choose one of the parsed answers: the only one, the most frequent (pool), or the model's choice."""
    keys = answer_keys(parsed)
    spellings = dict(zip(reversed(keys), reversed(parsed), strict=True))  # the first of each
    options = list(spellings.values())[::-1]
    if len(options) == 1:
        return options[0]
    most_common = spellings[max(reversed(spellings), key=Counter(keys).__getitem__)]
    if run.limits.voting.pool:
        return most_common
    listed = join_lines(f"{number}. {option}" for number, option in enumerate(options, start=1))
    facts = truncate_to_tokens(facts, run.limits.voting.row_tokens)
    messages = run.prompts("choose", question=run.state.question, facts=facts, candidates=listed)
    try:
        number = (yield from ask_structured(run, "choose", messages, CandidateChoice)).number
    except BadReply:
        return most_common  # the Asked event shows the reply that could not be used
    return options[number - 1] if 1 <= number <= len(options) else most_common


def _guess_answer(run: RunContext) -> Steps[None]:
    yield run.record(Forced, what="answer")
    text = yield from situation(run)
    messages = run.prompts("guess", situation=text, format=FORMATS[run.limits.answer_format])
    reply = yield from ask_structured(
        run, "guess", messages, Answer, temperature=run.limits.models.temperature
    )
    if not (answer := reply.answer.strip()):
        raise BadReply(
            "the model gave an empty answer; try another model, or the preset made for small models", answer
        )
    outcome = "not in the sources" if run.limits.check_answers else "unsure"
    yield run.record(Answered, text=answer, forced=True, outcome=outcome)
