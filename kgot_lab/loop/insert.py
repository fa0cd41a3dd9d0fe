"""An INSERT turn: find what is missing, call tools, and write what they return into the graph."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import sleep
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from kgot_lab.errors import (
    BadInput,
    BadReply,
    LabError,
    LLMError,
    OutOfMemory,
    QueryFailed,
    ToolFailed,
    error_message,
    is_out_of_memory,
)
from kgot_lab.graph.changes import Support, latest_sentence, merge_supports, supports_of
from kgot_lab.io.coroutines import run_awaitable
from kgot_lab.llm.budget import charged_account
from kgot_lab.llm.keys import mask_known_keys
from kgot_lab.llm.structured import RecordedCall, is_usage, record_calls
from kgot_lab.loop.approval import NotApproved, Proposal
from kgot_lab.loop.events import Asked, Chose, Cut, Merged, Refused, Role, ToolCall, ToolReturned, Wrote
from kgot_lab.loop.prompts import (
    Names,
    Reason,
    Statements,
    format_list,
    names_schema,
)
from kgot_lab.loop.render import fit_budget, join_lines, relevance
from kgot_lab.loop.run_context import (
    CallOptions,
    ReplyTooLong,
    RunContext,
    Steps,
    approved,
    ask_reply,
    ask_structured,
    distinct,
    record_refusal,
    run_with_repairs,
    situation,
)
from kgot_lab.memory.extraction import (
    SourcedSentence,
    facts_prompt,
    grounded_facts,
    sentences_of_documents,
    split_grounded,
)
from kgot_lab.stores.protocol import Store
from kgot_lab.text.cleaning import FENCES, estimate_tokens, fence_text, replace_surrogates
from kgot_lab.text.words import SentenceRules, content_words, sentences
from kgot_lab.tools.calls import ChosenCall, ChosenCalls, calls_schema, format_tools
from kgot_lab.tools.tool import Result, Tool, broken_tool, checked_result, combine_costs, search_argument
from kgot_lab.types import Diff, Document, Edge, Json, Message, Prompt, Triple, Usage

_Calls: TypeAlias = Sequence[ToolCall]
_Outcome: TypeAlias = Result | BaseException
_MIN_RELEVANCE = 0.4  # minimum relevance of a sentence, as a share of the best one's
_MAX_START_EDGES = 400  # edges of the graph that a run began with up to which their names are looked at
LEAD_BONUS = 1.5  # a first sentence mostly says what the thing is, so it counts a little more


def merge_reasons(run: RunContext, reasons: tuple[str, ...]) -> Steps[str]:
    """Return several reasons for INSERT as one text, fused by the model if the limits say so."""
    if len(reasons) < 2 or not run.limits.voting.merge:
        return join_lines(reasons)
    try:
        reason = (
            yield from ask_structured(
                run, "merge", run.prompts("merge", reasons=format_list(reasons)), Reason
            )
        ).reason
    except BadReply:
        reason = join_lines(reasons)  # not fused, but nothing is lost
    yield run.record(Merged, reason=reason)
    return reason


def choose_calls(run: RunContext, missing: str) -> Steps[_Calls]:
    """Choose the next tool calls.

    Calls that were made before are skipped. If none is left, the model is asked once more at a higher
    temperature.
    """
    search = search_tool(run)
    if run.limits.open_with_question and not run.state.calls and search:
        return (yield from _choose(run, [search_call(search, run.state.question)]))
    if search and run.limits.writes_triples and (names := unsearched_names(run)):
        return (yield from _choose_names(run, search, names))
    text = yield from situation(run)
    tools = list(run.tools.values())
    skipped: list[ToolCall] = []
    for attempt in range(2):
        made_calls = (*run.state.calls, *skipped)
        shown = {
            "calls": run.format_calls(made_calls),
            "missing": missing or "not stated",
            "tools": format_tools(tools),
        }
        messages = run.prompts("tools", None, situation=text, **shown)
        temperature = max(
            run.limits.models.vote_temperature if attempt else 0.0, run.limits.models.temperature
        )
        options = {"schema": calls_schema(tools, run.limits.tools.calls), "execution": True, "seed": attempt}
        try:
            ask = partial(ask_structured, run, "tools", messages, ChosenCalls)
            reply = yield from ask(temperature=temperature, **options)
        except BadReply:
            continue
        proposed = list(dict.fromkeys(_as_tool_has_it(run, call) for call in reply.calls))
        fresh, made = _new_and_made(run, proposed)
        skipped += made
        if fresh:
            most = run.limits.tools.calls
            return (yield from _choose(run, fresh[:most], skipped, fresh[most:]))
    return (yield from _choose(run, (), skipped))


def _as_tool_has_it(run: RunContext, call: ChosenCall) -> ToolCall:
    """Return a call by the tool's own letter case, with its arguments by place under their names."""
    spelt = {name.casefold(): name for name in run.tools}
    name = call.tool if call.tool in run.tools else spelt.get(call.tool.casefold(), call.tool)
    takes = run.tools[name].arguments.get("properties", {}) if name in run.tools else {}
    places = {str(place): argument for place, argument in enumerate(takes)}
    return ToolCall(name, {places.get(key, key): value for key, value in call.arguments.items()})


def _choose(run: RunContext, calls: _Calls, skipped: _Calls = (), surplus: _Calls = ()) -> Steps[_Calls]:
    """Record the calls of a step and return them. Those beyond its limit are reported if the limits say so."""
    told = tuple(surplus) if run.limits.tools.tell_unmade else ()
    yield run.record(Chose, calls=tuple(calls), skipped=tuple(skipped), surplus=told)
    return calls


def search_tool(run: RunContext) -> Tool | None:
    """Return the first tool that finds documents, or None."""
    return next((tool for tool in run.tools.values() if search_argument(tool)), None)


def search_call(tool: Tool, words: str) -> ToolCall:
    """Build the call that searches for some words."""
    return ToolCall(tool.name, {search_argument(tool): words})


def _choose_names(run: RunContext, tool: Tool, names: list[str]) -> Steps[_Calls]:
    """Choose, in operations mode, which names revealed by the graph to look up next.

    The model selects among given names, which a small model can do.
    """
    text = yield from situation(run)
    limit = run.limits.tools.calls
    options = {
        "schema": names_schema(names, limit),
        "execution": True,
        "temperature": run.limits.models.temperature,
    }
    messages = run.prompts("next names", situation=text, names="; ".join(names))
    try:
        reply = yield from ask_structured(run, "tools", messages, Names, kind="next names", **options)
        chosen = reply.about
    except BadReply:
        chosen = names[:limit]  # nearest to the question first
    proposed = [search_call(tool, name) for name in distinct(chosen)]
    fresh, skipped = _new_and_made(run, proposed[:limit])
    return (yield from _choose(run, fresh, skipped, _new_and_made(run, proposed[limit:])[0]))


def _new_and_made(run: RunContext, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[ToolCall]]:
    """Divide calls into new ones and those that were made before."""
    made = run.state.calls
    return [call for call in calls if call not in made], [call for call in calls if call in made]


def unsearched_names(run: RunContext, limit: int = 4) -> list[str]:
    """Return at most `limit` names in the graph that no call has searched for yet.

    Names in sentences about things that the question names come first, then those in sentences that share its
    words.
    """
    question_words = set(content_words(run.state.question))
    arguments = join_lines(str(value) for call in run.state.calls for value in call.arguments.values())
    used_words = question_words | set(content_words(arguments))
    titles = {document.id: document.title for returned in run.state.returns for document in returned.sources}
    start_edges = run.state.start.edges if len(run.state.start.edges) <= _MAX_START_EDGES else ()
    edges = [*start_edges, *(edge for diff in run.state.diffs for edge in diff.added_edges)]
    scores = relevance(run.state.question, [latest_sentence(edge.properties) for edge in edges])
    title_words = [set(content_words(titles.get(_last_source(edge), "").split("(")[0])) for edge in edges]
    in_question = [bool(words) and words <= question_words for words in title_words]
    order = sorted(range(len(edges)), key=lambda i: (not in_question[i], -scores[i]))
    names = (proper_name(name) for number in order for name in (edges[number].target, edges[number].source))
    fresh = (name for name in names if name and not set(content_words(name)) <= used_words)
    return list(dict.fromkeys(fresh))[:limit]


def _last_source(edge: Edge) -> str:
    return next((support.source for support in reversed(supports_of(edge.properties))), "")


# begins with a capital, has no digit (a date is no name) and is short
_NAME = re.compile(r"[^\W\d_a-z][^\d|,;\\]{1,49}")


def proper_name(text: str) -> str:
    """Return the proper name at the end of a text.

    "singer-songwriter M. Ward" gives "M. Ward". A kind such as "American film director" gives "".
    """
    parts = text.replace('"', "").split()
    first = next((number for number, part in enumerate(parts) if part[:1].isupper()), len(parts))
    name = " ".join(parts[first:])
    lower_case = [part for part in parts[first:] if part.islower() and len(part) > 3]
    return name if _NAME.fullmatch(name) and not lower_case else ""


def call_tool(run: RunContext, call: ToolCall) -> Steps[ToolReturned]:
    """Call a tool, with retries if its failure may be temporary.

    A failure is a text that the model sees, never a fact.
    """
    wait = run.limits.tools.tool_wait
    for attempt in range(1, run.limits.tools.tool_attempts + 1):
        outcome, inner_calls = run.pool.take(call.key, partial(_try_call, run, call))
        returned = yield from _record_result(run, call, outcome, inner_calls)
        if not returned.again or attempt == run.limits.tools.tool_attempts:
            return returned
        told = outcome.wait if isinstance(outcome, ToolFailed) else None
        sleep(wait if told is None else told)
        wait *= 2
    raise AssertionError("unreachable")


def _record_result(
    run: RunContext, call: ToolCall, outcome: _Outcome, inner: Sequence[RecordedCall], *, early: bool = False
) -> Steps[ToolReturned]:
    """Record what a call gave, after the model calls inside it. Raises what it raised, unless the call failed."""
    role = Role.inside(call.tool)
    role = role.but("early") if early else role
    if isinstance(outcome, Result):
        result, failure = outcome, {}
        if not result.recorded:
            sources = tuple(map(readable_document, result.sources))
            result = replace(result, text=readable_text(result.text), sources=sources)
    elif isinstance(outcome, ToolFailed):
        result = Result(_failure_text(outcome), usage=tuple(filter(is_usage, outcome.usage)))
        failure = {"failed": True, "again": outcome.again}
    else:  # stopped inside the tool: record its cost
        spent = outcome.spent if isinstance(outcome, LLMError) else None
        lost = Result("", usage=(spent,) if spent is not None else ())
        yield from _record_inner_calls(run, call, role.but("failed"), inner, lost)
        raise outcome
    yield from _record_inner_calls(run, call, role, inner, result)
    kept = {"text": result.text, "sources": result.sources, "early": early}
    returned = run.record(ToolReturned, call=call, **kept, **failure)
    yield returned
    return returned


def begin_tool_calls(run: RunContext, calls: Sequence[ToolCall]) -> None:
    """Begin tool calls side by side. `call_tool` takes their results."""
    by_key: Mapping[Hashable, ToolCall] = {call.key: call for call in calls}

    def early(key: Hashable, made: Future[tuple[_Outcome, list[RecordedCall]]]) -> Steps[None]:
        with suppress(Exception):  # the run is stopped for another reason
            yield from _record_result(run, by_key[key], *made.result(), early=True)

    run.pool.begin({key: partial(_try_call, run, call) for key, call in by_key.items()}, early)


def _try_call(run: RunContext, call: ToolCall) -> tuple[_Outcome, list[RecordedCall]]:
    """Return what a call gives or raises, and the model calls made inside it."""
    inner_calls: list[RecordedCall] = []
    try:
        return _call_once(run, call, inner_calls), inner_calls
    except BaseException as error:
        return error, inner_calls


def approved_calls(run: RunContext, calls: Sequence[ToolCall]) -> Steps[list[ToolCall]]:
    """Return the calls that may be made. A denied one returns the reason as a failure.

    If somebody approves, so does one that cannot be made, and nobody is asked about it.
    """
    if run.approve is None:
        return list(calls)
    made: list[ToolCall] = []
    for call in calls:
        text, tool = call.arguments_text, run.tools.get(call.tool)
        about = f"{call.tool}: {tool.description}" if tool else call.tool
        try:
            run.check_call(call)
            decided = yield from approved(run, Proposal("tool call", text, about), _changed_arguments)
        except (NotApproved, ToolFailed) as error:
            reason = _failure_text(error) if isinstance(error, ToolFailed) else f"denied: {error}"
            yield run.record(ToolReturned, call=call, text=reason, failed=True)
            continue
        made.append(call if decided == text else ToolCall(call.tool, _changed_arguments(decided)))
    return made


def _failure_text(error: ToolFailed) -> str:
    """Return the message of a failed call. An address or a header that a live one shows may hold a key."""
    message = error_message(error)
    return replace_surrogates(message) if error.recorded else readable_text(message)


def _changed_arguments(text: str) -> dict[str, Json]:
    try:
        return TypeAdapter(dict[str, Json]).validate_json(text)
    except ValidationError:
        given = f"approve changed a tool call to {text[:200]!r}"
        raise BadInput(f"{given}; its text is a JSON object of the arguments") from None


def _call_once(run: RunContext, call: ToolCall, inner_calls: list[RecordedCall]) -> Result:
    """Call a tool and record the model calls made inside it in `inner_calls`.

    Raises ToolFailed if the call fails, also for errors of the tool itself. Errors of models and the sandbox
    are passed on, and lack of memory raises OutOfMemory, since neither says anything about the question.
    """
    tool = run.tool_of(call)
    try:
        with record_calls(inner_calls):
            result = run_awaitable(tool(**call.arguments))
    except LabError:
        raise
    except (TimeoutError, ConnectionError) as error:
        is_late = isinstance(error, TimeoutError)
        message = error_message(error) or ("no answer in time" if is_late else type(error).__name__)
        raise ToolFailed(f"{call.tool}{' took too long' * is_late}: {message}", again=True) from error
    except SystemExit as error:  # a tool made from a script: it ends itself, not the run
        message = f"it ended itself ({type(error).__name__}: {error_message(error)})"
        raise ToolFailed(f"{call.tool} is broken: {message}") from error
    except Exception as error:  # an error of the tool itself: the run continues with other tools
        if is_out_of_memory(error):
            raise OutOfMemory(f"the tool {call.tool}") from error
        raise broken_tool(call.tool, error) from error
    try:
        return checked_result(result)
    except BadInput as error:
        raise broken_tool(call.tool, error) from error


def _charge_costs(run: RunContext, reported: Iterable[Usage], inner: Sequence[RecordedCall]) -> list[Usage]:
    """Return the costs of models behind a tool, and charge the run's budgets for calls they did not see."""
    models = run.planning, run.execution
    accounts = {account for llm in models if (account := charged_account(llm)) is not None}
    costs = combine_costs(reported, inner)
    for cost in costs:
        for account in accounts:
            if not cost.recorded and account not in cost.accounts:
                account.charge(cost.usage)
    return [cost.usage for cost in costs]


def _record_inner_calls(
    run: RunContext, call: ToolCall, role: Role, inner: Sequence[RecordedCall], result: Result
) -> Steps[None]:
    """Yield an event for each model call behind a tool."""
    for usage in _charge_costs(run, result.usage, inner):
        prompt = Prompt((Message("user", str(call)),))
        yield run.record(Asked, role=role, model=call.tool, prompt=prompt, reply=result.text, usage=usage)


def readable_document(document: Document) -> Document:
    """Return a document that every file and model accepts, without the API keys of this environment."""
    return Document(*map(readable_text, (document.id, document.text, document.title)))


def readable_text(text: str) -> str:
    """Return a text that every file and model accepts, without the API keys of this environment."""
    return mask_known_keys(replace_surrogates(text))


def write_statement(store: Store, statement: str) -> Diff:
    """Run a statement and restore the supports that facts lost by it.

    A fact that was learnt again thus gains a support. Raises QueryFailed.
    """
    diff = store.write(statement)
    merged = merge_supports(diff)
    merged_edges = {after.identity: after for _, after in merged.changed_edges}
    restored = [(after, merged_edges.get(after.identity, before)) for before, after in diff.changed_edges]
    if restored := [(after, merged_edge) for after, merged_edge in restored if merged_edge != after]:
        store.apply(Diff(changed_edges=tuple(restored)))
    return merged


def write_result(run: RunContext, returned: ToolReturned) -> Steps[None]:
    """Turn what a tool returned into statements and run them.

    A statement that cannot be repaired is recorded as refused.
    """
    ask = _triple_statements if run.limits.writes_triples else _ask_statements
    for statement in (yield from ask(run, returned)):
        yield from write_approved(run, statement, str(returned.call), repaired=True)


def write_approved(run: RunContext, statement: str, source: str, *, repaired: bool = False) -> Steps[None]:
    """Run a statement, after a decision if somebody approves. One that fails is `repaired` by the model.

    A statement that is denied or fails is recorded as refused.
    """
    write = partial(write_statement, run.store)
    try:
        final = statement = yield from approved(run, Proposal("write", statement, source))
        if repaired:
            final, diff = yield from run_with_repairs(run, write, statement, writing=True)
        else:
            diff = write(statement)
    except NotApproved as error:
        yield run.record(Refused, statement=statement, reason=f"denied: {error}", writing=True)
    except QueryFailed as error:
        yield record_refusal(run, error, writing=True)
    else:
        yield run.record(Wrote, statement=final, diff=diff, source=source)


def _ask_statements(run: RunContext, returned: ToolReturned) -> Steps[list[str]]:
    """Return the write statements that a model makes from a tool's text, cut to the budget by relevance.

    Sentences are left out whole, and never the best one.
    """
    pieces = sentences(returned.text, run.limits.sentences)
    selected, left_out = fit_budget(run.state.question, pieces, run.limits.tools.tool_tokens)
    is_whole = not left_out and estimate_tokens(returned.text) <= run.limits.tools.tool_tokens
    text = returned.text if is_whole else join_lines(pieces[number] for number in selected)
    if left_out:
        yield run.record(Cut, what=str(returned.call), kept=estimate_tokens(text), left_out=left_out)
    return (yield from _ask_statements_for(run, returned.call, text))


def _ask_statements_for(run: RunContext, call: ToolCall, text: str) -> Steps[list[str]]:
    """Return the write statements made from a text.

    If the reply is too long, the text is halved and each half is written on its own.
    """
    context = yield from situation(run)
    messages = run.prompts(
        "write", run.store.dialect, situation=context, text=fence_text(text, str(call)), fences=FENCES
    )
    temperature = run.limits.models.temperature
    try:
        reply = yield from ask_structured(run, "write", messages, Statements, temperature=temperature)
    except BadReply as error:
        pieces = sentences(text, run.limits.sentences) if isinstance(error, ReplyTooLong) else []
        if len(pieces) > 1:
            half = len(pieces) // 2
            first = yield from _ask_statements_for(run, call, join_lines(pieces[:half]))
            return first + (yield from _ask_statements_for(run, call, join_lines(pieces[half:])))
        yield record_refusal(run, error, writing=True)
        return []
    return list(dict.fromkeys(statement for statement in reply.statements if statement.strip()))


# --- operations: the model writes triples, and statements with sources are built from them ---


def _triple_statements(run: RunContext, returned: ToolReturned) -> Steps[list[str]]:
    """Return the statement that adds the triples extracted from a tool's text.

    A model extracts them from the most relevant new sentences.
    """
    all_pieces, known_sentences = sourced_sentences(returned, run.limits.sentences), run.state.sentences
    pieces = [piece for piece in all_pieces if piece.text not in known_sentences]
    grounded = list(_repeated_facts(run, [piece for piece in all_pieces if piece.text in known_sentences]))
    looked_up = set(content_words(join_lines(map(str, returned.call.arguments.values()))))
    if run.state.question:
        pieces = [piece for piece in pieces if looked_up & set(content_words(str(piece)))]
    if not pieces:
        return [run.store.dialect.add(grounded_facts(grounded, run.store))] if grounded else []
    query = join_lines([run.state.question, *map(str, returned.call.arguments.values())])
    bonus = [LEAD_BONUS if piece.place == 0 else 0.0 for piece in pieces]
    min_share = _MIN_RELEVANCE if run.state.question else 0.0  # without a question every sentence is read
    texts, budget = [str(piece) for piece in pieces], run.limits.tools.tool_tokens
    selected, left_out = fit_budget(query, texts, budget, bonus=bonus, min_share=min_share)
    if left_out:
        kept = sum(estimate_tokens(texts[number]) for number in selected)
        yield run.record(Cut, what=str(returned.call), kept=kept, left_out=left_out)
    invented: list[Triple] = []
    for piece in (pieces[number] for number in selected):
        options = CallOptions("sentence", temperature=run.limits.models.temperature)
        reply = yield from ask_reply(run, "write", facts_prompt(str(piece)), options)
        stated, unstated = split_grounded(reply.text, [piece])
        grounded += stated
        invented += unstated
    if invented:
        statement, reason = join_lines(map(str, invented)), "the sentence does not say this"
        yield run.record(Refused, statement=statement, reason=reason, writing=True)
    return [run.store.dialect.add(grounded_facts(grounded, run.store))] if grounded else []


def _repeated_facts(
    run: RunContext, pieces: Iterable[SourcedSentence]
) -> Iterator[tuple[Triple, SourcedSentence]]:
    """Yield the facts whose sentence occurs in another document too.

    The new document supports them as well, and no model needs to read the sentence again.
    """
    by_text = {piece.text: piece for piece in pieces}
    if not by_text:
        return
    written = (edge for diff in run.state.diffs for edge in diff.written_edges)
    for edge in {edge.identity: edge for edge in (*run.state.start.edges, *written)}.values():
        supports = supports_of(edge.properties)
        for support in supports:
            piece = by_text.get(support.sentence)
            if piece is not None and Support(piece.source, piece.text) not in supports:
                yield Triple(edge.source, edge.type, edge.target), piece


def sourced_sentences(returned: ToolReturned, rules: SentenceRules = "careful") -> list[SourcedSentence]:
    """Split the output of a tool into sentences, each with its document."""
    documents = returned.sources or (Document("", returned.text),)
    return sentences_of_documents(documents, rules)
