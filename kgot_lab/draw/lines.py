"""An event as a line or two of plain text, for a terminal and for the value of a notebook cell."""

from __future__ import annotations

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
)  # fmt: skip
from kgot_lab.stores.in_memory import fact_of
from kgot_lab.text.harmless import harmless

LONG = 400  # letters of a line that may hold several names


def line(event: Event, most: int = 6) -> str:
    """What happened, in words; of long lists at most a few items. No text of a model, tool or document begins a line of its own."""
    return "\n           ".join(map(harmless, _parts(event, most)))


def _parts(event: Event, most: int) -> list[str]:
    match event:
        case Started():
            models = event.planning if event.planning == event.execution else f"{event.planning} plans, {event.execution} executes"
            how = f"preset {event.preset}, {models}, {event.dialect}, tools: {', '.join(event.tools) or 'none'}"
            return [f"question   {event.question or '(none: every fact)'}", how]
        case Asked():
            used = event.usage
            return [f"asked      {event.role}: {used.prompt_tokens} + {used.completion_tokens} tokens, {used.seconds:.1f} s"]
        case Ballot():
            return [f"ballot {event.number}   {event.choice or 'neither'}: {_one_line(event.text)}"]
        case Voted(asked=0):
            return [f"decided    {event.choice}: {_one_line('; '.join(event.reasons), LONG)}"]
        case Voted():
            counts = f"{event.inserts} INSERT, {event.retrieves} RETRIEVE" + (f", {event.invalid} neither" if event.invalid else "")
            return [f"voted      {event.choice} ({counts}; {event.asked} of {event.possible} asked, agreement {event.agreement:.2f})"]
        case Merged():
            return [f"missing    {_one_line(event.reason)}"]
        case Chose():
            calls = _one_line("; ".join(map(str, event.calls)), LONG)
            return [f"chose      {calls or 'no call that was not made before'}"]
        case ToolReturned():
            found = ", ".join(document.title or document.id for document in event.sources)
            return [f"{'failed' if event.failed else 'returned'}   {_one_line(found, LONG) or _one_line(event.text)}"]
        case Wrote():
            return [f"wrote      {event.diff}", *_few([_one_line(fact_of(edge), LONG) for edge in event.diff.added_edges], most)]
        case Read():
            return [f"read       {_one_line(event.statement)} -> {len(event.rows)} rows"]
        case Failed() | Refused():
            return [f"refused    {_one_line(event.reason)}: {_one_line(event.statement)}"]
        case Repaired():
            return [f"repaired   {_one_line(event.error)} -> {_one_line(event.mended)}"]
        case Cut():
            return [f"cut        {_one_line(event.what, 60)}: kept about {event.kept} tokens, left out {event.left_out}"]
        case Forced(what="read"):
            return ["forced     no more steps: read what is there"]
        case Forced():
            return ["forced     nothing could be read: a guess"]
        case Computed():
            return [f"computed   {_one_line(event.code)} -> {_one_line(event.output)}"]
        case Parsed():
            return [f"parsed     {event.text or event.problem}"]
        case Answered():
            return [f"answer     {event.text}" + (" (a guess: no read gave rows)" if event.forced else "")]
        case _:
            return [str(event)]


def _one_line(text: str, most: int = 110) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 2] + " …"


def _few(items: list[str], most: int) -> list[str]:
    return items if len(items) <= most else [*items[:most], f"… and {len(items) - most} more"]
