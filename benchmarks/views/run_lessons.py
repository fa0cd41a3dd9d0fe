"""What a recorded run shows: the turns of the loop that a teacher looks for, and at which events they happen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from kgot_lab.evaluation.grading import contains_answer, f1
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Computed,
    Event,
    Failed,
    Forced,
    Read,
    Repaired,
    Started,
    ToolReturned,
    Voted,
    Wrote,
)
from kgot_lab.loop.render import join_lines, row_text
from kgot_lab.loop.trace import Trace, graph_after
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.types import Document, Edge, full_text

AHEAD = 0.5  # the F1 from which an answer counts as right, and by which one answer is better than another


@dataclass(frozen=True)
class KnownAnswer:
    """What is known of a question besides its run: the right answer, and what five passages in the prompt
    (RAG) made of it; "" if not.
    """

    gold: str = ""
    rag: str = ""


def known_of(run: Trace) -> KnownAnswer:
    """What the head of a trace says of its question."""
    rag = run.about.get("rag")
    return KnownAnswer(
        str(run.about.get("gold", "")), str(rag.get("answer", "")) if isinstance(rag, Mapping) else ""
    )


def lessons_of(run: Trace, known: KnownAnswer | None = None) -> dict[str, tuple[int, ...]]:
    """Which of LESSONS a run shows, each with the numbers of the events at which it happens; those it does
    not show are left out.

    `known` is by default what the head of the trace says.
    """
    known = known or known_of(run)
    found = {name: tuple(lesson.finds(run.events, known)) for name, lesson in LESSONS.items()}
    return {name: places for name, places in found.items() if places}


# --- votes ---


def _inserted_by_vote(events: Sequence[Event], _: KnownAnswer) -> Iterator[int]:
    yield from (
        at
        for at, event in enumerate(events)
        if isinstance(event, Voted) and event.votes and event.choice == "INSERT"
    )


def _split(more: int, fewer: int) -> Callable[[Sequence[Event], KnownAnswer], Iterator[int]]:
    def finds(events: Sequence[Event], _: KnownAnswer) -> Iterator[int]:
        votes = ((at, event) for at, event in enumerate(events) if isinstance(event, Voted))
        yield from (at for at, vote in votes if {vote.inserts, vote.retrieves} == {more, fewer})

    return finds


# --- statements ---


def _repaired_reads(events: Sequence[Event], _: KnownAnswer) -> Iterator[int]:
    """The reads that gave rows once the refused statement of a RETRIEVE vote was repaired."""
    refused = {event.statement for event in events if isinstance(event, Failed)}
    for event in events:
        if isinstance(event, Repaired) and event.statement in refused:
            refused.add(event.mended)
    refused -= {event.statement for event in events if isinstance(event, Failed)}
    yield from (
        at
        for at, event in enumerate(events)
        if isinstance(event, Read) and event.grounded and event.statement in refused
    )


def _repaired(events: Sequence[Event], _: KnownAnswer) -> Iterator[int]:
    mended: set[str] = set()
    for at, event in enumerate(events):
        if isinstance(event, Repaired):
            mended.add(event.mended)
        elif isinstance(event, Wrote | Read) and event.statement in mended:
            yield at


def _retried_reads(events: Sequence[Event], _: KnownAnswer) -> Iterator[int]:
    last: Read | None = None
    for at, event in enumerate(events):
        if isinstance(event, Read):
            last = event
        elif (
            isinstance(event, Asked) and event.role == "read again" and last is not None and not last.grounded
        ):
            yield at


def _forced(events: Sequence[Event], _: KnownAnswer) -> Iterator[int]:
    yield from (at for at, event in enumerate(events) if isinstance(event, Forced) and event.what == "answer")


def _computed(events: Sequence[Event], _: KnownAnswer) -> Iterator[int]:
    yield from (
        at
        for at, event in enumerate(events)
        if isinstance(event, Computed) and not event.failed and event.output
    )


# --- answers ---


def _wins(ours: bool) -> Callable[[Sequence[Event], KnownAnswer], Iterator[int]]:
    def finds(events: Sequence[Event], known: KnownAnswer) -> Iterator[int]:
        for at, event in enumerate(events):
            if isinstance(event, Answered) and known.gold and known.rag:
                ahead = f1(event.text, known.gold) - f1(known.rag, known.gold)
                if (ahead if ours else -ahead) >= AHEAD:
                    yield at

    return finds


def _misread(events: Sequence[Event], known: KnownAnswer) -> Iterator[int]:
    answer = next((event.text for event in events if isinstance(event, Answered)), "")
    if not known.gold or not answer or f1(answer, known.gold) >= AHEAD:
        return
    for at, event in enumerate(events):
        if isinstance(event, Read) and contains_answer(join_lines(map(row_text, event.grounded)), known.gold):
            yield at


def _two_hops(events: Sequence[Event], _: KnownAnswer) -> Iterator[int]:
    """The answer, where two of its facts lead to it from the question, and no passage that was fetched names
    both ends.
    """
    question = next((event.question for event in events if isinstance(event, Started)), "")
    passages = [document for event in events if isinstance(event, ToolReturned) for document in event.sources]
    facts = {fact_of(edge): edge for edge in graph_after(events).edges}
    for at, event in enumerate(events):
        if isinstance(event, Answered):
            edges = [facts[fact] for fact in event.evidence if fact in facts]
            if passages and any(
                _joins(pair, question, event.text, passages) for pair in combinations(edges, 2)
            ):
                yield at


def _joins(pair: tuple[Edge, Edge], question: str, answer: str, passages: Sequence[Document]) -> bool:
    first, second = ({edge.source, edge.target} for edge in pair)
    if len(first & second) != 1:
        return False
    (one,), (other,) = first - second or {""}, second - first or {""}
    for begin, end in ((one, other), (other, one)):
        if (
            begin
            and end
            and contains_answer(question, begin)
            and (contains_answer(end, answer) or contains_answer(answer, end))
        ):
            return not any(
                contains_answer(full_text(passage), begin) and contains_answer(full_text(passage), end)
                for passage in passages
            )
    return False


@dataclass(frozen=True)
class Lesson:
    """Something that may happen in a run: what it means, and the numbers of the events at which it happens."""

    told: str
    finds: Callable[[Sequence[Event], KnownAnswer], Iterator[int]]


LESSONS: Mapping[str, Lesson] = {
    "INSERT by vote": Lesson("the votes say that facts are missing, so more are fetched", _inserted_by_vote),
    "a vote split 2:1": Lesson("three votes, and one of them is outvoted", _split(2, 1)),
    "a vote split 3:2": Lesson("five votes, and two of them are outvoted", _split(3, 2)),
    "a wrong RETRIEVE repaired": Lesson(
        "the store refuses the statement of a vote; repaired, it reads rows", _repaired_reads
    ),
    "a refused statement repaired": Lesson(
        "the store refuses a statement; the model repairs it, and it runs", _repaired
    ),
    "an empty read asked again": Lesson(
        "a read finds nothing, and the model is asked for another", _retried_reads
    ),
    "a forced answer": Lesson("no read gave rows that say it, so the model must guess", _forced),
    "arithmetic": Lesson("the rows hold the numbers, and Python computes with them", _computed),
    "the graph wins over RAG": Lesson(
        "the run's answer is right where five passages in the prompt give a wrong one", _wins(True)
    ),
    "RAG wins over the graph": Lesson(
        "five passages in the prompt give the right answer, and the run does not", _wins(False)
    ),
    "a row misread": Lesson(
        "the right answer stands in the rows that were read, and the model says another", _misread
    ),
    "a path of two hops": Lesson(
        "two facts lead from the question to the answer, and no passage names both ends", _two_hops
    ),
}
