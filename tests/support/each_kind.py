"""Events of every kind, for what must hold of each."""

from __future__ import annotations

from kgot_lab.loop.events import (
    Answered,
    Asked,
    Chose,
    Computed,
    Cut,
    Decided,
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
    Vote,
    Voted,
    Wrote,
)  # fmt: skip
from kgot_lab.types import Diff, Document, Edge, Message, Node, Prompt


def each_kind(text: str) -> list[Event]:
    """One event of every kind, and of some two, with a text wherever somebody else's words can stand."""
    call = ToolCall(text, {"query": text})
    edges = tuple(Edge(f"{text}{number}", text, "b") for number in range(9))
    return [
        Started(
            question=text,
            limits={"preset": "p"},
            planning=text,
            execution="e",
            dialect="Python",
            tools={text: {}},
        ),
        Asked(role=text, model="m", prompt=Prompt((Message("user", text),)), reply=text),
        Cut(what=text, kept=1, left_out=2),
        Vote(number=1, choice=text, text=text),
        Voted(choice="INSERT", inserts=1, retrieves=0, invalid=1, possible=3, reasons=(text,)),
        Voted(choice="INSERT", inserts=0, retrieves=0, invalid=0, possible=0, reasons=(text,)),
        Merged(reason=text),
        Chose(calls=(call,), skipped=(call,)),
        Decided(what="write", proposed=text, decision="denied", text=text),
        ToolReturned(call=call, text=text),
        ToolReturned(call=call, text=text, sources=(Document(text, text, text),)),
        Failed(statement=text, reason=text),
        Repaired(statement=text, error=text, mended=text),
        Wrote(statement=text, diff=Diff((Node(text),), (), (), edges), source=text),
        Read(statement=text, rows=(text,)),
        Refused(statement=text, reason=text, writing=True),
        Forced(what="read"),
        Forced(what=text),
        Computed(code=text, output=text),
        Parsed(text=text),
        Answered(text=text, forced=True, evidence=(text,), passages=(text,)),
    ]
