"""Each event of a run as a piece of a page: one line of words, and what is long folded away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from kgot_lab.draw.markup import Markup, element, joined, shortened
from kgot_lab.draw.table import properties, table
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Ballot,
    Chose,
    Computed,
    Cut,
    Event,
    Failed,
    Forced,
    Merged,
    Parsed,
    Read,
    Refused,
    Repaired,
    Started,
    ToolCall,
    ToolReturned,
    Voted,
    Wrote,
)
from kgot_lab.types import Diff, Edge, Node, Prompt


def entry(event: Event, picture: Markup | None = None, *, by_hand: bool = False) -> Markup:
    """An event in words; a write may bring the picture of the graph after it, and what a person wrote is called so."""
    parts = list(_of_asking(event, by_hand) if isinstance(event, Asked) else _parts(event))
    if by_hand and not isinstance(event, Asked):
        parts.insert(0, element("b", BY_HAND + " "))
    if picture is not None:
        parts.append(folded("The graph after this write", picture))
    name = type(event).__name__
    return element("div", element("b", _WORDS.get(name, name), class_="kind"), " ", *parts, class_=f"event {name.lower()}")


BY_HAND = "(written by hand)"
_WORDS = {"Cut": "Cut short", "ToolReturned": "Tool", "Failed": "Read failed", "Chose": "Chose tools", "Parsed": "Candidate answer"}


def folded(summary: object, *inside: object) -> Markup:
    """Something long behind its summary."""
    return element("details", element("summary", summary), *inside)


def verbatim(text: object) -> Markup:
    """A text exactly as it is, line by line."""
    return element("pre", text)


def _parts(event: Event) -> Iterator[object]:
    match event:
        case Asked() | Cut():
            yield from _of_asking(event, False)
        case Ballot() | Voted() | Merged() | Forced():
            yield from _of_voting(event)
        case Chose() | ToolReturned():
            yield from _of_tools(event)
        case Wrote() | Read() | Failed() | Repaired() | Refused():
            yield from _of_statements(event)
        case Computed() | Parsed() | Answered():
            yield from _of_answering(event)
        case Started(question=question):
            yield question
        case _:
            yield verbatim(_as_text(event))  # an event this page does not know yet


def _of_asking(event: Asked | Cut, by_hand: bool) -> Iterator[object]:
    match event:
        case Asked(prompt=prompt, reply=reply):
            yield folded(asking(event, by_hand=by_hand), *_conversation(prompt, reply))
        case Cut(what=what, kept=kept, left_out=left_out):
            yield f"the {what}: about {kept:,} tokens kept, {left_out:,} left out"


def _conversation(prompt: Prompt, reply: str) -> Iterator[Markup]:
    for message in prompt.messages:
        yield element("div", element("h4", message.role), verbatim(message.text), class_="message")
    yield element("div", element("h4", "reply"), verbatim(reply), class_="message reply")
    yield element("p", settings(prompt), class_="small")


def asking(event: Asked, *, by_hand: bool = False) -> Markup:
    """What a model was asked for, which model, and what that cost; or that a person wrote the reply."""
    if by_hand:
        return joined([element("i", event.role), " ", element("b", BY_HAND), " · the reply is no model's"])
    usage = event.usage
    tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens, {usage.seconds:.1f} s"
    return joined([element("i", event.role), f" · {event.model} · {tokens}"])


def settings(prompt: Prompt) -> str:
    """How freely a prompt is answered, at what length and in what shape."""
    seed = "" if prompt.seed is None else f", seed {prompt.seed}"
    shape = f", in the shape {json.dumps(prompt.schema, ensure_ascii=False, default=str)}" if prompt.schema else ""
    return f"temperature {prompt.temperature:g}{seed}, at most {prompt.max_tokens:,} tokens{shape}"


def _of_voting(event: Ballot | Voted | Merged | Forced) -> Iterator[object]:
    match event:
        case Ballot(number=number, choice=choice, text=text):
            yield joined([f"{number}: ", element("b", choice or "neither"), verbatim(text) if text else ""])
        case Voted(choice=choice, asked=0):
            yield joined([element("b", choice), f", without a vote: {'; '.join(event.reasons)}"])
        case Voted(choice=choice):
            counts = f"{event.inserts} INSERT, {event.retrieves} RETRIEVE" + f", {event.invalid} invalid" * bool(event.invalid)
            share = f"{event.agreement:.0%} of {event.asked} ballots agreed; {event.possible} were possible"
            yield joined([element("b", choice), f": {counts}. {share}."])
        case Merged(reason=reason):
            yield joined(["several reasons became one:", verbatim(reason)])
        case Forced(what=what):
            yield "the steps ran out: what is there must be read" if what == "read" else "nothing could be read: the model must guess"


def _of_tools(event: Chose | ToolReturned) -> Iterator[object]:
    match event:
        case Chose(calls=calls, skipped=skipped):
            yield _listed(calls) if calls else "none"
            if skipped:
                yield joined(["Asked for before, so not called again:", _listed(skipped)])
        case ToolReturned(call=call, text=text, sources=sources, failed=failed):
            yield element("code", call)
            yield folded(f"{'Failed' if failed else 'Returned'}: {shortened(text, 100)}", verbatim(text))
            if sources:
                yield element("p", "From: ", "; ".join(f"{document.title or document.id}" for document in sources), class_="small")


def _listed(calls: tuple[ToolCall, ...]) -> Markup:
    return element("ul", *(element("li", element("code", call)) for call in calls))


def _of_statements(event: Wrote | Read | Failed | Repaired | Refused) -> Iterator[object]:
    yield verbatim(event.statement)
    match event:
        case Wrote(diff=diff, source=source):
            yield joined([element("p", f"{diff}" + (f", from {source}" if source else "")), difference(diff)])
        case Read(rows=rows):
            yield table(rows).html if rows else element("p", "No rows.")
        case Failed(reason=reason):
            yield joined(["The store refused it:", verbatim(reason)])
        case Repaired(error=error, mended=mended):
            yield joined(["The store refused it:", verbatim(error), "The model mended it:", verbatim(mended)])
        case Refused(reason=reason, writing=writing):
            yield joined([f"This {'write' if writing else 'read'} was given up:", verbatim(reason)])


def _of_answering(event: Computed | Parsed | Answered) -> Iterator[object]:
    match event:
        case Computed(code=code, output=output, failed=failed):
            yield joined([verbatim(code), "Failed:" if failed else "Printed:", verbatim(output)])
        case Parsed(text=text, problem=problem):
            yield text or f"none: {problem}"
        case Answered(text=text, forced=forced):
            yield joined([element("b", text), " (a guess: no read gave rows)" if forced else ""])


def difference(diff: Diff) -> Markup:
    """The nodes and edges a write added, removed and changed, a line each, with a sign in front."""
    added: tuple[Node | Edge, ...] = (*diff.added_nodes, *diff.added_edges)
    removed: tuple[Node | Edge, ...] = (*diff.removed_nodes, *diff.removed_edges)
    changed: tuple[tuple[Node | Edge, Node | Edge], ...] = (*diff.changed_nodes, *diff.changed_edges)
    lines = [
        *(element("li", f"+ {_thing(thing)}", class_="added") for thing in added),
        *(element("li", f"− {_thing(thing)}", class_="removed") for thing in removed),
        *(element("li", f"~ {_thing(before)}  became  {_thing(after)}", class_="changed") for before, after in changed),
    ]
    return element("ul", *lines, class_="diff") if lines else Markup()


def _thing(item: Node | Edge) -> str:
    details = f" {{{properties(item.properties)}}}" if item.properties else ""
    if isinstance(item, Node):
        return f"({item.id}{''.join(f' :{label}' for label in item.labels)}){details}"
    return f"({item.source}) --[{item.type}{f' #{item.key}' if item.key else ''}]--> ({item.target}){details}"


def _as_text(event: object) -> str:
    if not is_dataclass(event):
        return str(event)
    return "\n".join(f"{item.name}: {getattr(event, item.name)}" for item in fields(event))
