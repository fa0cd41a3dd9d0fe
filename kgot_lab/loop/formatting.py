"""Format events as text: a caption, a summary line or two, and all parts for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from kgot_lab.graph.changes import Support
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
    ToolReturned,
    Voted,
    Wrote,
)
from kgot_lab.loop.modes.paths.mentions import is_place, title_at
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.cleaning import format_count, printable_line
from kgot_lab.types import Usage

_BRIEF = 60  # characters of a caption
_NAMES = 400  # characters of a line that may hold several names
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
    return _flat(tell(event).caption, _BRIEF, "…")


def line(event: Event, most: int = 6) -> str:
    """Format an event as a summary line with at most `most` items of long lists below it.

    No text of a model, tool or document begins a line of its own.
    """
    told = tell(event)
    under = (
        told.under
        if len(told.under) <= most
        else (*told.under[:most], f"… and {len(told.under) - most} more")
    )
    return ("\n" + " " * _MARGIN).join(map(printable_line, (told.first_line, *under)))


def cost_of(usage: Usage) -> str:
    """Format the cost of a reply, in tokens and seconds."""
    return f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens, {usage.seconds:.1f} s"


def tell(event: Event) -> FormattedEvent:
    """Format an event at every length."""
    return _TELLERS.get(type(event), _unknown)(event)


# --- asking and voting ---


def _started(event: Started) -> FormattedEvent:
    models = (
        event.planning
        if event.planning == event.execution
        else f"{event.planning} plans, {event.execution} executes"
    )
    how = f"preset {event.preset}, {models}, {event.dialect}, tools: {', '.join(event.tools) or 'none'}"
    asked = event.question or "(none: every fact)"
    if event.start:
        how += f"; begins with a graph of {format_count(len(event.start), 'node')}"
    return FormattedEvent("question", "question", asked, (Part("words", event.question),), (how,))


def _asked(event: Asked) -> FormattedEvent:
    cost = cost_of(event.usage) + ", cut short" * event.cut
    told = Part("emphasis", event.role), Part("words", f" · {event.model} · {cost}")
    return FormattedEvent(f"asked: {event.role}", "asked", f"{event.role}: {cost}", told)


def _cut(event: Cut) -> FormattedEvent:
    much = f"about {event.kept:,} tokens kept, {event.left_out:,} left out"
    told = (Part("words", f"the {event.what}: {much}"),)
    return FormattedEvent(
        f"cut short: {event.what}", "cut", f"{_flat(event.what, 60)}: {much}", told, title="Cut short"
    )


def _ballot(event: Ballot) -> FormattedEvent:
    choice, word = event.choice or "neither", f"ballot {event.number}"
    told = (
        Part("words", f"{event.number}: "),
        Part("strong", choice),
        *([Part("verbatim", event.text)] if event.text else []),
    )
    return FormattedEvent(f"{word}: {choice}", word, f"{choice}: {_flat(event.text)}", told)


def _voted(event: Voted) -> FormattedEvent:
    decided = Part("strong", event.choice)
    if not event.ballots_cast:
        why = "; ".join(event.reasons)
        told = decided, Part("words", f", without a vote: {why}")
        return FormattedEvent(
            f"{event.choice} without a vote", "decided", f"{event.choice}: {_flat(why, _NAMES)}", told
        )
    counts = f"{event.inserts} INSERT, {event.retrieves} RETRIEVE" + f", {event.invalid} invalid" * bool(
        event.invalid
    )
    share = f"{event.agreement:.0%} of {format_count(event.ballots_cast, 'ballot')} agreed; {event.possible} were possible"
    line = f"{event.choice} ({counts}; {event.ballots_cast} of {event.possible} asked, agreement {event.agreement:.2f})"
    return FormattedEvent(
        f"vote: {event.choice}", "voted", line, (decided, Part("words", f": {counts}. {share}."))
    )


def _merged(event: Merged) -> FormattedEvent:
    told = Part("words", "several reasons became one:"), Part("verbatim", event.reason)
    return FormattedEvent("reasons merged", "missing", _flat(event.reason), told)


def _forced(event: Forced) -> FormattedEvent:
    said = (
        "nothing more is fetched: read what is there"
        if event.what == "read"
        else "nothing could be read: a guess"
    )
    return FormattedEvent(f"forced to {event.what}", "forced", said, (Part("words", said),))


# --- tools ---


def _chose(event: Chose) -> FormattedEvent:
    tools = ", ".join(dict.fromkeys(call.tool for call in event.calls)) or "no tool"
    calls = _flat("; ".join(map(str, event.calls)), _NAMES) or "no call that was not made before"
    skipped = (
        (Part("words", "Asked for before, so not called again:"), Part("calls", event.skipped))
        if event.skipped
        else ()
    )
    told = Part("calls", event.calls) if event.calls else Part("words", "none")
    return FormattedEvent(f"chose {tools}", "chose", calls, (told, *skipped), title="Chose tools")


def _returned(event: ToolReturned) -> FormattedEvent:
    ended = "failed" if event.failed else "returned"
    found = [document.title or document.id for document in event.sources]
    sources = [Part("small", f"From: {'; '.join(found)}")] if found else []
    told = (
        Part("code", str(event.call)),
        Part("verbatim", event.text, f"{ended.capitalize()}: {_flat(event.text, 100, '…')}"),
        *sources,
    )
    return FormattedEvent(
        f"{event.call.tool} {ended}",
        ended,
        _flat(", ".join(found), _NAMES) or _flat(event.text),
        told,
        title="Tool",
    )


# --- statements ---


def _wrote(event: Wrote) -> FormattedEvent:
    change = f"{event.diff}" + (f", from {event.source}" if event.source else "")
    told = Part("verbatim", event.statement), Part("paragraph", change), Part("diff", event.diff)
    facts = tuple(_flat(fact_of(edge), _NAMES) for edge in event.diff.added_edges)
    return FormattedEvent(f"wrote {event.diff}", "wrote", str(event.diff), told, facts)


def _read(event: Read) -> FormattedEvent:
    found = Part("rows", event.rows) if event.rows else Part("paragraph", "No rows.")
    rows = format_count(len(event.rows), "row")
    if event.constant:
        rows += f", {len(event.constant)} of them said by the statement itself"
    return FormattedEvent(
        f"read {rows}",
        "read",
        f"{_flat(event.statement)} -> {rows}",
        (Part("verbatim", event.statement), found),
    )


_REFUSED = Part("words", "The store refused it:")


def _failed(event: Failed) -> FormattedEvent:
    said = f"{_flat(event.reason)}: {_flat(event.statement)}"
    told = Part("verbatim", event.statement), _REFUSED, Part("verbatim", event.reason)
    return FormattedEvent("read failed", "refused", said, told, title="Read failed")


def _repaired(event: Repaired) -> FormattedEvent:
    wrong = Part("verbatim", event.statement), _REFUSED, Part("verbatim", event.error)
    told = *wrong, Part("words", "The model mended it:"), Part("verbatim", event.mended)
    return FormattedEvent("mended", "repaired", f"{_flat(event.error)} -> {_flat(event.mended)}", told)


def _refused(event: Refused) -> FormattedEvent:
    what = "write" if event.writing else "read"
    said = f"{_flat(event.reason)}: {_flat(event.statement)}"
    told = (
        Part("verbatim", event.statement),
        Part("words", f"This {what} was given up:"),
        Part("verbatim", event.reason),
    )
    return FormattedEvent(f"gave up a {what}", "refused", said, told)


# --- answering ---


def _computed(event: Computed) -> FormattedEvent:
    printed = Part("words", "Failed:" if event.failed else "Printed:"), Part("verbatim", event.output)
    said = f"{_flat(event.code)} -> {_flat(event.output)}"
    return FormattedEvent(
        "arithmetic failed" if event.failed else "computed",
        "computed",
        said,
        (Part("verbatim", event.code), *printed),
    )


def _parsed(event: Parsed) -> FormattedEvent:
    brief = "no candidate" if event.problem else f"candidate: {event.text}"
    told = (Part("words", event.text or f"none: {event.problem}"),)
    return FormattedEvent(brief, "parsed", event.text or event.problem, told, title="Candidate answer")


def _answered(event: Answered) -> FormattedEvent:
    guess = f" (a guess: {event.why_guess})" if event.forced else ""
    said = Part("strong", event.text), Part("words", guess)
    return FormattedEvent(
        f"answer: {event.text}", "answer", f"{event.text}{guess}", (*said, *_rests_on(event))
    )


def _rests_on(event: Answered) -> Iterator[Part]:
    """Yield each fact that supports an answer, with the sentences that state it and their documents."""
    for number, fact in enumerate(event.evidence):
        words, said = format_fact(str(fact), event.supports[number] if number < len(event.supports) else ())
        yield Part("paragraph", words)
        yield from (Part("small", each) for each in said)


def format_fact(fact: str, supports: Sequence[Support]) -> tuple[str, list[str]]:
    """Format a fact of an answer, and the sentences that state it.

    If a node of the fact stands for a sentence, its title and the sentence are shown.
    """
    title, says, place = fact.partition(f" --[{SAYS_SENTENCE}]--> ")
    if says and supports and is_place(place) and title_at(place) == title:
        return f"{title}: “{supports[0].sentence}”", [f"[{each.source}]" for each in supports if each.source]
    return fact, list(map(format_sentence, supports))


def format_sentence(support: Support) -> str:
    """Format a supporting sentence with the id of its document."""
    return f"“{support.sentence}” [{support.source}]" if support.source else f"“{support.sentence}”"


def _unknown(event: Event) -> FormattedEvent:
    """Format an event of an unknown kind by its fields."""
    held = (
        [f"{item.name}: {getattr(event, item.name)}" for item in fields(event)]
        if is_dataclass(event)
        else [object.__repr__(event)]
    )
    name = type(event).__name__
    return FormattedEvent(name, name, _flat("; ".join(held)), (Part("verbatim", "\n".join(held)),))


_TELLERS: Mapping[type[Event], Callable[[Any], FormattedEvent]] = {
    Started: _started, Asked: _asked, Cut: _cut, Ballot: _ballot, Voted: _voted, Merged: _merged, Forced: _forced,
    Chose: _chose, ToolReturned: _returned, Wrote: _wrote, Read: _read, Failed: _failed, Repaired: _repaired, Refused: _refused,
    Computed: _computed, Parsed: _parsed, Answered: _answered,
}  # fmt: skip


def _flat(text: object, most: int = 110, end: str = " …") -> str:
    """Join a text to one line, truncated to `most` characters."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= most else flat[: most - len(end)].rstrip() + end
