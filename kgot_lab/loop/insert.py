"""An INSERT turn: what is missing, which tools to call, and what they return written into the graph."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from kgot_lab.errors import BadReply, QueryFailed, ToolFailed
from kgot_lab.loop import prompts
from kgot_lab.loop.cut import fit, joined, relevance, sentences, shorten, tokens, words
from kgot_lab.loop.events import Asked, Chose, Cut, Merged, Refused, ToolCall, ToolReturned, Voted, Wrote
from kgot_lab.loop.render import fact
from kgot_lab.loop.run import How, Run, Steps, ask, ask_text, repairing, situation
from kgot_lab.loop.shapes import Calls, Reason, Statements, calls_schema, facts_schema
from kgot_lab.types import Document, Message, Prompt, Triple

LEAD = 1.5  # a first sentence mostly says what the thing is, so it counts a little more


def insert(run: Run, voted: Voted) -> Steps[bool]:
    """Fetch what is missing and write it; False when there was nothing left to call."""
    missing = yield from _one_reason(run, voted.reasons)
    calls = yield from _choose_tools(run, missing)
    for call in calls:
        returned = yield from _use(run, call)
        if not returned.failed:
            yield from write_all(run, returned)
    return bool(calls)


def _one_reason(run: Run, reasons: tuple[str, ...]) -> Steps[str]:
    if len(reasons) < 2 or not run.limits.merge:
        return joined(reasons)
    try:
        reason = (yield from ask(run, "merge", prompts.merge(reasons), Reason, max_tokens=200)).reason
    except BadReply:
        reason = joined(reasons)  # not fused, but nothing is lost
    yield run.happened(Merged, reason=reason)
    return reason


def _choose_tools(run: Run, missing: str) -> Steps[tuple[ToolCall, ...]]:
    """The calls to make; one made before is skipped, and if nothing is left the model is asked once more, more freely."""
    text = yield from situation(run)
    tools = list(run.tools.values())
    skipped: list[ToolCall] = []
    for attempt in range(2):
        made = (*run.state.calls, *skipped)
        messages = prompts.choose_tools(text, made, missing, tools, unsearched(run))
        how = {"schema": calls_schema(tools, run.limits.calls), "execution": True, "seed": attempt, "max_tokens": 250}
        temperature = run.limits.temperature if attempt == 0 else max(run.limits.vote_temperature, run.limits.temperature)
        try:
            reply = yield from ask(run, "tools", messages, Calls, temperature=temperature, **how)
        except BadReply:
            continue
        wanted = list(dict.fromkeys(ToolCall(call.tool, call.arguments) for call in reply.calls))
        fresh = [call for call in wanted if call not in run.state.calls][: run.limits.calls]
        skipped += [call for call in wanted if call in run.state.calls]
        if fresh:
            yield run.happened(Chose, calls=tuple(fresh), skipped=tuple(skipped))
            return tuple(fresh)
    yield run.happened(Chose, calls=(), skipped=tuple(skipped))
    return ()


def unsearched(run: Run, most: int = 6) -> list[str]:
    """In operations mode, names from the facts nearest to the question that neither it nor a call has used: where to look next."""
    if run.limits.writing != "operations":
        return []
    used = set(words(joined([run.state.question, *(str(value) for call in run.state.calls for value in call.arguments.values())])))
    edges = [edge for diff in run.state.diffs for edge in diff.added_edges]
    scores = relevance(run.state.question, [f"{fact(edge)} {edge.properties.get('sentence', '')}" for edge in edges])
    order = sorted(range(len(edges)), key=lambda number: (-scores[number], number))
    names = (name for number in order for name in (edges[number].source, edges[number].target))
    return list(dict.fromkeys(name for name in names if name[:1].isupper() and len(name) <= 50 and not set(words(name)) & used))[:most]


def _use(run: Run, call: ToolCall) -> Steps[ToolReturned]:
    """Call a tool; its failure is a text the model sees, never a fact."""
    try:
        if call.tool not in run.tools:
            raise ToolFailed(f"there is no tool {call.tool!r}; there are: {', '.join(run.tools)}")
        result = run.tools[call.tool](**call.arguments)
    except ToolFailed as error:
        returned = run.happened(ToolReturned, call=call, text=str(error), failed=True)
    else:
        for usage in result.usage:
            prompt = Prompt((Message("user", str(call)),))
            yield run.happened(Asked, role=f"inside {call.tool}", model=call.tool, prompt=prompt, reply=result.text, usage=usage)
        returned = run.happened(ToolReturned, call=call, text=result.text, sources=result.sources)
    yield returned
    return returned


def write_all(run: Run, returned: ToolReturned) -> Steps[None]:
    """Turn what a tool returned into statements and run them; one that cannot be mended is given up, visibly."""
    statements = (yield from _triples(run, returned)) if run.limits.writing == "operations" else (yield from _statements(run, returned))
    for statement in statements:
        try:
            final, diff = yield from repairing(run, run.store.write, statement, writing=True)
        except QueryFailed as error:
            yield run.happened(Refused, statement=error.statement, reason=error.reason, writing=True)
        else:
            yield run.happened(Wrote, statement=final, diff=diff, source=str(returned.call))


def _statements(run: Run, returned: ToolReturned) -> Steps[list[str]]:
    """The write statements a model makes of a tool's text, which is cut to the budget by relevance."""
    pieces = sentences(returned.text)
    kept, left_out = fit(run.state.question, pieces, run.limits.tool_tokens)
    if left_out:
        yield run.happened(Cut, what=str(returned.call), kept=sum(tokens(pieces[number]) for number in kept), left_out=left_out)
    text = joined(pieces[number] for number in kept) if left_out else returned.text
    about = yield from situation(run)
    messages = prompts.write(about, str(returned.call), shorten(text, run.limits.tool_tokens), run.store.dialect)
    try:
        reply = yield from ask(run, "write", messages, Statements, temperature=run.limits.temperature, max_tokens=1500)
    except BadReply as error:
        yield run.happened(Refused, statement=error.text[:500], reason=error.reason, writing=True)
        return []
    return list(dict.fromkeys(statement for statement in reply.statements if statement.strip()))


# --- operations: the model writes triples, we spell the statement and note where each came from -------------------------------


@dataclass(frozen=True)
class Sentence:
    """A sentence and the document it stands in."""

    text: str
    title: str
    source: str
    place: int  # 0 for the first of its document

    def __str__(self) -> str:
        return f"[{self.title}] {self.text}" if self.title else self.text


def _triples(run: Run, returned: ToolReturned) -> Steps[list[str]]:
    """The statement that adds the triples which a model found in the most relevant new sentences of a tool's text."""
    pieces = [piece for piece in split(returned) if piece.text not in run.state.sentences]
    if not pieces:
        return []
    wanted = joined([run.state.question, *map(str, returned.call.arguments.values())])
    lead = [LEAD if piece.place == 0 else 0.0 for piece in pieces]
    kept, left_out = fit(wanted, [str(piece) for piece in pieces], run.limits.tool_tokens, lead)
    if left_out:
        yield run.happened(Cut, what=str(returned.call), kept=sum(tokens(str(pieces[number])) for number in kept), left_out=left_out)
    chosen = [pieces[number] for number in kept]
    how = How(max_tokens=40 + 40 * len(chosen), schema=facts_schema(len(chosen)), temperature=run.limits.temperature)
    text = yield from ask_text(run, "write", prompts.extract(paragraphs(chosen)), how)
    grounded, invented = ground(read_triples(text), chosen)
    if invented:
        yield run.happened(Refused, statement=joined(map(str, invented)), reason="no sentence of the text says this", writing=True)
    return [spelled(grounded)] if grounded else []


def paragraphs(pieces: Iterable[Sentence]) -> str:
    """Sentences under the titles of their documents, a document a line."""
    return joined(
        (f"[{title}] " if title else "") + " ".join(piece.text for piece in group)
        for (_, title), group in groupby(pieces, key=lambda piece: (piece.source, piece.title))
    )


def split(returned: ToolReturned) -> list[Sentence]:
    """The sentences of what a tool returned, with the document each stands in."""
    documents = returned.sources or (Document("", returned.text),)
    return [
        Sentence(text, document.title, document.id, place)
        for document in documents
        for place, text in enumerate(sentences(" ".join(document.text.split())))
    ]


_TRIPLE = re.compile(r"\[" + r"\s*,".join([r'\s*("(?:[^"\\]|\\.)*")'] * 3) + r"\s*\]")


def read_triples(text: str) -> list[Triple]:
    """The triples in a reply; one that was cut short at its end still gives those before."""
    found = [[" ".join(str(json.loads(part)).split()) for part in match.groups()] for match in _TRIPLE.finditer(text)]
    return list(dict.fromkeys(Triple(*parts) for parts in found if all(parts) and sum(map(len, parts)) <= 300))


def ground(triples: Iterable[Triple], pieces: list[Sentence]) -> tuple[list[tuple[Triple, Sentence]], list[Triple]]:
    """Each triple with the sentence that shares most of its words, and apart the triples whose object no sentence names."""
    bags = [(set(words(str(piece))), piece) for piece in pieces]
    grounded, invented = [], []
    for triple in triples:
        wanted, object = set(words(str(triple))), set(words(triple.object))
        bag, piece = max(bags, key=lambda pair: (len(wanted & pair[0]), -pieces.index(pair[1])))
        if object & bag and triple.subject.lower() != triple.object.lower():
            grounded.append((triple, piece))
        else:
            invented.append(triple)
    return grounded, invented


def spelled(grounded: Iterable[tuple[Triple, Sentence]]) -> str:
    """The statement that adds triples, each with the sentence and the document it was found in."""
    return joined(
        f"add({triple.subject!r}, {triple.relation!r}, {triple.object!r}, source={piece.source!r}, sentence={piece.text!r})"
        for triple, piece in grounded
    )
