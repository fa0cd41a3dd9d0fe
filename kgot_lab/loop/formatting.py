"""Format events as text: a caption, a summary line or two, and all parts for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import zip_longest
from typing import Any, Literal

from kgot_lab.graph.changes import Support
from kgot_lab.loop import events
from kgot_lab.loop.events import Event
from kgot_lab.loop.modes.paths.mentions import is_sentence_node, node_title
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.cleaning import format_count, printable_line

_CAPTION_WIDTH = 60  # characters of a caption
_NAMES_WIDTH = 400  # characters of a line that may hold several names
_MARGIN = 11  # characters in front of what a line says

PartKind = Literal[
    "words", "strong", "emphasis", "paragraph", "small", "code", "verbatim", "calls", "rows", "diff"
]


@dataclass(frozen=True)
class Part:
    """A part of a formatted event: a text of some kind, or calls, rows or changes.

    It may be collapsed behind a summary.
    """

    kind: PartKind
    content: Any
    summary: str = ""


@dataclass(frozen=True)
class FormattedEvent:
    """A formatted event: a caption, a summary line, further lines, and all its parts under a title."""

    caption: str
    word: str
    said: str
    parts: tuple[Part, ...] = ()
    under: tuple[str, ...] = ()
    title: str = ""

    @property
    def first_line(self) -> str:
        """The label in the margin, and the text after it."""
        return f"{self.word:<{_MARGIN}}{self.said}"


def caption(event: Event) -> str:
    """Format an event as a caption of a few words on one line."""
    return _one_line(format_event(event).caption, _CAPTION_WIDTH, "…")


def summary_line(event: Event, limit: int = 6) -> str:
    """Format an event as a summary line with at most `limit` items of long lists below it.

    No text of a model, tool or document begins a line of its own.
    """
    formatted = format_event(event)
    lines, count = formatted.under[:limit], len(formatted.under)
    more = (f"… and {count - limit} more",) if count > limit else ()
    return ("\n" + " " * _MARGIN).join(map(printable_line, (formatted.first_line, *lines, *more)))


def format_event(event: Event) -> FormattedEvent:
    """Format an event at every length."""
    return _FORMATTERS.get(type(event), _unknown)(event)


# --- asking and voting ---


def _started(event: events.Started) -> FormattedEvent:
    models = event.planning
    if event.planning != event.execution:
        models = f"{event.planning} plans, {event.execution} executes"
    resources = f"preset {event.preset}, {models}, {event.dialect}, tools: {', '.join(event.tools) or 'none'}"
    question = event.question or "(none: every fact)"
    if event.start:
        resources += f"; begins with a graph of {format_count(len(event.start), 'node')}"
    return FormattedEvent("question", "question", question, (Part("words", event.question),), (resources,))


def _asked(event: events.Asked) -> FormattedEvent:
    usage = event.usage
    tokens = f"{usage.prompt_tokens:,} + {format_count(usage.completion_tokens, 'token')}"
    cost = f"{tokens}, {usage.seconds:.1f} s{', cut short' * event.cut}"
    parts = Part("emphasis", event.role), Part("words", f" · {event.model} · {cost}")
    return FormattedEvent(f"asked: {event.role}", "asked", f"{event.role}: {cost}", parts)


def _cut(event: events.Cut) -> FormattedEvent:
    counts = f"about {format_count(event.kept, 'token')} kept, {event.left_out:,} left out"
    parts = (Part("words", f"the {event.what}: {counts}"),)
    text = f"{_one_line(event.what, 60)}: {counts}"
    return FormattedEvent(f"cut short: {event.what}", "cut", text, parts, title="Cut short")


def _vote(event: events.Vote) -> FormattedEvent:
    choice, label = event.choice or "neither", f"vote {event.number}"
    reason = (Part("verbatim", event.text),) if event.text else ()
    parts = (Part("words", f"{event.number}: "), Part("strong", choice), *reason)
    return FormattedEvent(f"{label}: {choice}", label, f"{choice}: {_one_line(event.text)}", parts)


def _voted(event: events.Voted) -> FormattedEvent:
    choice = Part("strong", event.choice)
    if not event.votes:
        reason = "; ".join(event.reasons)
        parts = choice, Part("words", f", without a vote: {reason}")
        text = f"{event.choice}: {_one_line(reason, _NAMES_WIDTH)}"
        return FormattedEvent(f"{event.choice} without a vote", "decided", text, parts)
    invalid = f", {event.invalid} invalid" if event.invalid else ""
    counts = f"{event.inserts} INSERT, {event.retrieves} RETRIEVE{invalid}"
    agreement = (
        f"{event.agreement:.0%} of {format_count(event.votes, 'vote')} agreed; {event.possible} were possible"
    )
    text = (
        f"{event.choice} ({counts}; {event.votes} of {event.possible} asked, agreement {event.agreement:.2f})"
    )
    parts = choice, Part("words", f": {counts}. {agreement}.")
    return FormattedEvent(f"vote: {event.choice}", "voted", text, parts)


def _merged(event: events.Merged) -> FormattedEvent:
    parts = Part("words", "several reasons became one:"), Part("verbatim", event.reason)
    return FormattedEvent("reasons merged", "missing", _one_line(event.reason), parts)


def _forced(event: events.Forced) -> FormattedEvent:
    text = "nothing could be read: a guess"
    if event.what == "read":
        text = "nothing more is fetched: read what is there"
    return FormattedEvent(f"forced to {event.what}", "forced", text, (Part("words", text),))


# --- tools ---


def _chose(event: events.Chose) -> FormattedEvent:
    tools = ", ".join(dict.fromkeys(call.tool for call in event.calls)) or "no tool"
    calls = _one_line("; ".join(map(str, event.calls)), _NAMES_WIDTH) or "no call that was not made before"
    parts: tuple[Part, ...] = (Part("calls", event.calls) if event.calls else Part("words", "none"),)
    if event.skipped:
        parts += Part("words", "Asked for before, so not called again:"), Part("calls", event.skipped)
    if event.surplus:
        parts += Part("words", "More than a step may make, so not called:"), Part("calls", event.surplus)
        calls += f"; not {_one_line('; '.join(map(str, event.surplus)))}: too many at once"
    return FormattedEvent(f"chose {tools}", "chose", calls, parts, title="Chose tools")


def _decided(event: events.Decided) -> FormattedEvent:
    about = f" ({_one_line(event.about, 60)})" if event.about else ""
    text = f"{event.what}{about}: {_one_line(event.text or event.proposed)}"
    head = (Part("words", event.about),) if event.about else ()
    parts = *head, Part("verbatim", event.proposed), Part("words", f"{event.decision}: {event.text}")
    return FormattedEvent(f"{event.decision} a {event.what}", event.decision, text, parts)


def _returned(event: events.ToolReturned) -> FormattedEvent:
    outcome = "failed" if event.failed else "returned"
    titles = [document.title or document.id for document in event.sources]
    sources = [Part("small", f"From: {'; '.join(titles)}")] if titles else []
    summary = f"{outcome.capitalize()}: {_one_line(event.text, 100, '…')}"
    parts = Part("code", str(event.call)), Part("verbatim", event.text, summary), *sources
    text = _one_line(", ".join(titles), _NAMES_WIDTH) or _one_line(event.text)
    return FormattedEvent(f"{event.call.tool} {outcome}", outcome, text, parts, title="Tool")


# --- statements ---


def _wrote(event: events.Wrote) -> FormattedEvent:
    merged = [
        f"; {', '.join(map(str, node.properties['aliases']))} = {node.id}"
        for node in event.diff.written_nodes
        if isinstance(node.properties.get("aliases"), list | tuple)
    ]
    size = f"{event.diff}{''.join(merged)}"
    change = size + (f", from {event.source}" if event.source else "")
    parts = Part("verbatim", event.statement), Part("paragraph", change), Part("diff", event.diff)
    facts = tuple(_one_line(fact_of(edge), _NAMES_WIDTH) for edge in event.diff.added_edges)
    return FormattedEvent(f"wrote {size}", "wrote", size, parts, facts)


def _read(event: events.Read) -> FormattedEvent:
    result = Part("rows", event.rows) if event.rows else Part("paragraph", "No rows.")
    rows = format_count(len(event.rows), "row")
    if event.constant:
        rows += f", {len(event.constant)} of them said by the statement itself"
    text = f"{_one_line(event.statement)} -> {rows}"
    return FormattedEvent(f"read {rows}", "read", text, (Part("verbatim", event.statement), result))


_REFUSED_PART = Part("words", "The store refused it:")


def _failed(event: events.Failed) -> FormattedEvent:
    text = f"{_one_line(event.reason)}: {_one_line(event.statement)}"
    parts = Part("verbatim", event.statement), _REFUSED_PART, Part("verbatim", event.reason)
    return FormattedEvent("read failed", "refused", text, parts, title="Read failed")


def _repaired(event: events.Repaired) -> FormattedEvent:
    statement = Part("verbatim", event.statement), _REFUSED_PART, Part("verbatim", event.error)
    parts = *statement, Part("words", "The model repaired it:"), Part("verbatim", event.mended)
    text = f"{_one_line(event.error)} -> {_one_line(event.mended)}"
    return FormattedEvent("repaired", "repaired", text, parts)


def _refused(event: events.Refused) -> FormattedEvent:
    kind = "write" if event.writing else "read"
    text = f"{_one_line(event.reason)}: {_one_line(event.statement)}"
    given_up = Part("words", f"This {kind} was given up:")
    parts = Part("verbatim", event.statement), given_up, Part("verbatim", event.reason)
    return FormattedEvent(f"gave up a {kind}", "refused", text, parts)


# --- answering ---


def _computed(event: events.Computed) -> FormattedEvent:
    outcome, label = ("arithmetic failed", "Failed:") if event.failed else ("computed", "Printed:")
    text = f"{_one_line(event.code)} -> {_one_line(event.output)}"
    parts = Part("verbatim", event.code), Part("words", label), Part("verbatim", event.output)
    return FormattedEvent(outcome, "computed", text, parts)


def _parsed(event: events.Parsed) -> FormattedEvent:
    short = "no candidate" if event.problem else f"candidate: {event.text}"
    parts = (Part("words", event.text or f"none: {event.problem}"),)
    return FormattedEvent(short, "parsed", event.text or event.problem, parts, title="Candidate answer")


def _answered(event: events.Answered) -> FormattedEvent:
    text, remark = event.shown_text, f" ({event.remark})" if event.forced else ""
    parts = Part("strong", text), Part("words", remark), *_evidence_parts(event)
    return FormattedEvent(f"answer: {text}", "answer", f"{text}{remark}", parts)


def _evidence_parts(event: events.Answered) -> Iterator[Part]:
    """Yield each fact that supports an answer, with the sentences that state it and their documents."""
    for fact, supports in zip_longest(event.evidence, event.supports[: len(event.evidence)], fillvalue=()):
        line, sentences = format_fact(str(fact), supports)
        yield Part("paragraph", line)
        yield from (Part("small", sentence) for sentence in sentences)


def format_fact(fact: str, supports: Sequence[Support]) -> tuple[str, list[str]]:
    """Format a fact of an answer, and the sentences that state it.

    If a node of the fact stands for a sentence, its title and the sentence are shown.
    """
    title, relation, node = fact.partition(f" --[{SAYS_SENTENCE}]--> ")
    if relation and supports and is_sentence_node(node) and node_title(node) == title:
        return f"{title}: “{supports[0].sentence}”", [f"[{s.source}]" for s in supports if s.source]
    return fact, [f"“{s.sentence}”" + (f" [{s.source}]" if s.source else "") for s in supports]


def _unknown(event: Event) -> FormattedEvent:
    """Format an event of an unknown kind by its fields."""
    items = fields(event) if is_dataclass(event) else ()
    values = [f"{item.name}: {getattr(event, item.name)}" for item in items] or [object.__repr__(event)]
    name = type(event).__name__
    return FormattedEvent(name, name, _one_line("; ".join(values)), (Part("verbatim", "\n".join(values)),))


_FORMATTERS: Mapping[type[Event], Callable[[Any], FormattedEvent]] = {
    events.Started: _started, events.Asked: _asked, events.Cut: _cut, events.Vote: _vote,
    events.Voted: _voted, events.Merged: _merged, events.Forced: _forced, events.Chose: _chose,
    events.Decided: _decided, events.ToolReturned: _returned, events.Wrote: _wrote, events.Read: _read, events.Failed: _failed,
    events.Repaired: _repaired, events.Refused: _refused, events.Computed: _computed, events.Parsed: _parsed,
    events.Answered: _answered,
}  # fmt: skip


def _one_line(text: object, limit: int = 110, end: str = " …") -> str:
    """Join a text to one line, truncated to `limit` characters."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= limit else flat[: limit - len(end)].rstrip() + end
