"""Each event of a run as a piece of a page: its telling as markup, and what is long folded away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kgot_lab.loop.events import Asked, Event, ToolCall
from kgot_lab.loop.formatting import Part, PartKind, tell
from kgot_lab.types import Diff, Edge, Node, Prompt, Rows
from kgot_lab.viz.static.markup import Markup, element, joined
from kgot_lab.viz.static.table import properties, table

BY_HAND = "(written by hand)"


def entry(event: Event, picture: Markup | None = None, *, by_hand: bool = False) -> Markup:
    """An event in words; a write may bring the picture of the graph after it, and what a person wrote is
    called so.
    """
    told, name = tell(event), type(event).__name__
    if isinstance(event, Asked):
        parts = [folded(format_model_call(event, by_hand=by_hand), *_conversation(event.prompt, event.reply))]
    else:
        parts = [*([element("b", BY_HAND + " ")] if by_hand else []), *map(_marked_up, told.parts)]
    if picture is not None:
        parts.append(folded("The graph after this write", picture))
    return element(
        "div", element("b", told.title or name, class_="kind"), " ", *parts, class_=f"event {name.lower()}"
    )


def folded(summary: object, *inside: object) -> Markup:
    """Something long behind its summary."""
    return element("details", element("summary", summary), *inside)


def verbatim(text: object) -> Markup:
    """A text exactly as it is, line by line."""
    return element("pre", text)


def format_model_call(event: Asked, *, by_hand: bool = False) -> Markup:
    """What a model was asked for, which model, and what that cost; or that a person wrote the reply."""
    if by_hand:
        return joined([element("i", event.role), " ", element("b", BY_HAND), " · the reply is no model's"])
    return joined(map(_marked_up, tell(event).parts))


def settings(prompt: Prompt) -> str:
    """How freely a prompt is answered, at what length and in what shape."""
    seed = "" if prompt.seed is None else f", seed {prompt.seed}"
    shape = (
        f", in the shape {json.dumps(prompt.schema, ensure_ascii=False, default=str)}"
        if prompt.schema
        else ""
    )
    return f"temperature {prompt.temperature:g}{seed}, at most {prompt.max_tokens:,} tokens{shape}"


def _conversation(prompt: Prompt, reply: str) -> Iterator[Markup]:
    for message in prompt.messages:
        yield element("div", element("h4", message.role), verbatim(message.text), class_="message")
    yield element("div", element("h4", "reply"), verbatim(reply), class_="message reply")
    yield element("p", settings(prompt), class_="small")


def _marked_up(part: Part) -> Markup:
    made = _MARKUP[part.kind](part.content)
    return folded(part.summary, made) if part.summary else made


def _calls(calls: Iterable[ToolCall]) -> Markup:
    return element("ul", *(element("li", element("code", call)) for call in calls))


def _rows(rows: Rows) -> Markup:
    return table(rows).html


def difference(diff: Diff) -> Markup:
    """The nodes and edges a write added, removed and changed, a line each, with a sign in front."""
    added: tuple[Node | Edge, ...] = (*diff.added_nodes, *diff.added_edges)
    removed: tuple[Node | Edge, ...] = (*diff.removed_nodes, *diff.removed_edges)
    changed: tuple[tuple[Node | Edge, Node | Edge], ...] = (*diff.changed_nodes, *diff.changed_edges)
    lines = [
        *(element("li", f"+ {_thing(thing)}", class_="added") for thing in added),
        *(element("li", f"− {_thing(thing)}", class_="removed") for thing in removed),
        *(
            element("li", f"~ {_thing(before)}  became  {_thing(after)}", class_="changed")
            for before, after in changed
        ),
    ]
    return element("ul", *lines, class_="diff") if lines else Markup()


def _thing(item: Node | Edge) -> str:
    details = f" {{{properties(item.properties)}}}" if item.properties else ""
    if isinstance(item, Node):
        return f"({item.id}{''.join(f' :{label}' for label in item.labels)}){details}"
    return f"({item.source}) --[{item.type}{f' #{item.key}' if item.key else ''}]--> ({item.target}){details}"


_MARKUP: Mapping[PartKind, Callable[[Any], Markup]] = {
    "words": lambda text: joined([text]),
    "strong": lambda text: element("b", text),
    "emphasis": lambda text: element("i", text),
    "paragraph": lambda text: element("p", text),
    "small": lambda text: element("p", text, class_="small"),
    "code": lambda text: element("code", text),
    "verbatim": verbatim,
    "calls": _calls,
    "rows": _rows,
    "diff": difference,
}
