"""Predict, then reveal: questions to the reader at each decision of a run.

They are asked before the event that shows the decision. A question has a few choices, each with a key. If the
choices are texts of the run (a tool call, an answer), a hash determines their order, so that the right one
has no preferred position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kgot_lab.evaluation.grading import f1
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Chose,
    Event,
    Failed,
    Parsed,
    Read,
    Refused,
    Repaired,
    Started,
    Voted,
    Wrote,
)
from kgot_lab.loop.insert import proper
from kgot_lab.loop.retrieve import WHOLE_GRAPH
from kgot_lab.loop.trace import graph_after
from kgot_lab.memory.extraction import EXTRACT, read_triples
from kgot_lab.text.words import canonical_answer
from kgot_lab.types import Json

# A question to the reader of a run: before which event it is asked, its choices, and where the truth is
# revealed.

ASKED_ABOUT = ("tool", "fact", "vote", "statement", "answer")
OTHERS = 3  # maximum wrong choices if the choices are texts
_ALIKE = 0.5  # F1 from which two texts count as the same
_LONGEST = 160  # maximum characters of a choice


@dataclass(frozen=True)
class Prediction:
    """A question to the reader: asked before event `before`, answered when event `reveal` is reached.

    `choices` are (value, words), and `truth` is the value of the right one. `quoted` is a text of the run
    that the question is about.
    """

    kind: str
    before: int
    reveal: int
    asks: str
    told: str
    choices: tuple[tuple[str, str], ...]
    truth: str
    quoted: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the question as JSON, with a key for each choice.

        The key is the first letter of the choice's value, or its number.
        """
        choices = [{"value": value, "words": words, "key": value[0].upper()} for value, words in self.choices]
        told = {
            "kind": self.kind,
            "before": self.before,
            "reveal": self.reveal,
            "asks": self.asks,
            "told": self.told,
        }
        return {**told, "quoted": self.quoted, "choices": choices, "truth": self.truth}


def among(
    kind: str, places: tuple[int, int], asks: str, told: str, truth: str, others: Iterable[str]
) -> Prediction:
    """Create a multiple-choice question from the right text and a few others that differ from it.

    A hash determines the order of the choices.
    """
    texts = [truth]
    for other in sorted(set(others), key=chance):
        if (
            len(texts) <= OTHERS
            and canonical_answer(other)
            and all(f1(other, text) < _ALIKE for text in texts)
        ):
            texts.append(other)
    order = sorted(texts, key=lambda text: chance((places, text, truth)))
    shown = [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in order]
    choices = tuple((str(number), text) for number, text in enumerate(shown, start=1))
    return Prediction(kind, *places, asks, told, choices, str(order.index(truth) + 1))


def chance(what: object) -> str:
    """Return a pseudorandom hex string that is the same each time."""
    return hashlib.sha256(str(what).encode("utf-8", "backslashreplace")).hexdigest()


_DROPPED = 2  # maximum questions on dropped facts per write
_FEW = 5  # maximum rows of a read with "few" rows
_NOTHING = "nothing: it reads what is there"
_ANSWERING = ("parse", "guess", "forced answer", "path", "wide", "compared")


def predictions(events: Sequence[Event]) -> list[Prediction]:
    """Return the questions for a reader of a run, in the order of the run.

    They ask about tool calls, facts, votes, statements and the answer of a model. What is decided by rule is
    not asked about: a search for the question itself, a vote that was not held, a statement that is built for
    the model when it writes.
    """
    found = [*_tools(events), *_facts(events), *_votes(events), *_statements(events), *_answer(events)]
    return sorted(found, key=lambda asked: (asked.before, ASKED_ABOUT.index(asked.kind)))


# --- tools ---


def _tools(events: Sequence[Event]) -> Iterator[Prediction]:
    for at, event in enumerate(events):
        if not isinstance(event, Chose) or not _asks(events[at - 1], "tools"):
            continue
        before = _first_of_run(events, at, "tools")
        looked_up = ["; ".join(map(str, call.arguments.values())) for call in event.calls]
        truth = looked_up[0] if looked_up else _NOTHING
        names = (proper(node.id) for node in graph_after(events[:before]).nodes)
        others = [_NOTHING, *(name for name in names if name and name not in looked_up)]
        more = f" It makes {len(looked_up)} calls; which is the first?" if len(looked_up) > 1 else ""
        told = f"Facts are missing. The model chooses what to look up with {_tool_names(events)}.{more}"
        yield among("tool", (before, at), "What will it look up next?", told, truth, others)


def _tool_names(events: Sequence[Event]) -> str:
    return ", ".join(next((event.tools for event in events if isinstance(event, Started)), {})) or "a tool"


def _asks(event: Event, role: str) -> bool:
    return isinstance(event, Asked) and event.role.split(",")[0] == role


def _first_of_run(events: Sequence[Event], at: int, role: str) -> int:
    """Return the first of the consecutive model calls in a role that end before an event."""
    while at and _asks(events[at - 1], role):
        at -= 1
    return at


# --- facts ---


def _facts(events: Sequence[Event]) -> Iterator[Prediction]:
    """Yield questions on extracted facts: for each write, one that was kept and up to two dropped ones."""
    written: list[tuple[str, str]] = []  # facts with their sentences, since the last write
    for at, event in enumerate(events):
        if isinstance(event, Asked) and event.prompt.messages[0].text == EXTRACT:
            written += [(str(triple), event.prompt.messages[-1].text) for triple in read_triples(event.reply)]
        elif isinstance(event, Refused) and event.writing and written:
            dropped = set(event.statement.splitlines())
            wrote = at + 1 if isinstance(events[min(at + 1, len(events) - 1)], Wrote) else at
            yield from _selection_answer(written, dropped, (at, wrote))
            written = []
        elif isinstance(event, Wrote) and written:
            yield from _selection_answer(written, set(), (at, at))
            written = []


def _selection_answer(
    written: Sequence[tuple[str, str]], dropped: set[str], places: tuple[int, int]
) -> Iterator[Prediction]:
    first, wrote = places
    lost = sorted((pair for pair in dict(written).items() if pair[0] in dropped), key=chance)[:_DROPPED]
    kept = sorted((pair for pair in dict(written).items() if pair[0] not in dropped), key=chance)[:1]
    told = "A fact is kept if its sentence says it: all words of what stands last, and one of what stands first. The model wrote:"
    for fact, sentence in sorted([*lost, *kept], key=lambda pair: written.index(pair)):
        is_kept = fact not in dropped
        yield Prediction(
            "fact", first, wrote if is_kept else first, "Will this fact be kept?", told,
            (("kept", "Kept"), ("dropped", "Dropped")), "kept" if is_kept else "dropped", f"{fact}\n\nfrom the sentence\n{sentence}",
        )  # fmt: skip


# --- votes ---


_VOTES = (
    ("INSERT", "INSERT, all agree"), ("RETRIEVE", "RETRIEVE, all agree"),
    ("not all INSERT", "INSERT, not all agree"), ("though split, RETRIEVE", "RETRIEVE, though not all agree"),
)  # fmt: skip


def _vote(voted: Voted) -> str:
    """Return the outcome of a vote as a value of _VOTES."""
    place = 0 if voted.choice == "INSERT" else 1
    return _VOTES[place if voted.agreement == 1 else place + 2][0]


def _votes(events: Sequence[Event]) -> Iterator[Prediction]:
    start = -1
    for at, event in enumerate(events):
        if start < 0 and _asks(event, "vote"):
            start = at
        elif isinstance(event, Voted) and start >= 0:
            told = "INSERT: facts are missing, so more are fetched. RETRIEVE: the graph gives the answer, so it is read. "
            if event.possible > 1:
                told += f"At most {event.possible} ballots; RETRIEVE wins with more ballots than INSERT. "
            yield Prediction(
                "vote",
                start,
                at,
                "How will the vote go?",
                told.strip(),
                _VOTES[: 4 if event.possible > 1 else 2],
                _vote(event),
            )
            start = -1


# --- statements ---

_READ = (
    ("refused", "Refused by the store"),
    ("no rows", "No rows"),
    ("few", f"1 to {_FEW} rows"),
    ("many", f"More than {_FEW} rows"),
)
_WRITE = (
    ("refused", "Refused by the store"),
    ("same", "It runs, and changes nothing"),
    ("more", "It runs, and the graph changes"),
)


def _statements(events: Sequence[Event]) -> Iterator[Prediction]:
    """Yield a question for each statement of a model when it is first run on a graph."""
    spelled = any(
        isinstance(event, Started) and event.limits.get("writing", "statements") != "statements"
        for event in events
    )
    known: set[str] = set()  # statements whose outcome on this graph the reader has seen
    writing = True  # whether the last requested statement writes; ballots, reads and answers from rows do not
    for at, event in enumerate(events):
        if isinstance(event, Asked) and event.role.split(",")[0] != "mend":
            writing = event.role.split(",")[0] == "write"
        elif isinstance(event, Failed | Repaired | Refused | Read | Wrote):
            if event.statement not in known and (told := _outcome(event)) and not (spelled and writing):
                known.add(event.statement)
                yield _of_statement(event.statement, (_before(events, at), at), told, writing=writing)
            if isinstance(event, Wrote):
                known.clear()


def _outcome(event: Event) -> str:
    match event:
        case Read(statement=statement) if statement == WHOLE_GRAPH:
            return ""
        case Read(rows=rows):
            return "no rows" if not rows else "few" if len(rows) <= _FEW else "many"
        case Wrote(diff=diff):
            return "more" if diff else "same"
        case _:
            return "refused"


def _before(events: Sequence[Event], at: int) -> int:
    """Return the event at which an outcome is first seen.

    A refusal is already seen in the prompt that asks to repair the statement.
    """
    return _first_of_run(events, at, "mend") if isinstance(events[at], Repaired) else at


def _of_statement(statement: str, places: tuple[int, int], outcome: str, *, writing: bool) -> Prediction:
    asks = "What will this statement do to the graph?" if writing else "How many rows will this read find?"
    told = "It is about to be run:" if writing else "The statement is about to be run on the graph:"
    return Prediction("statement", *places, asks, told, _WRITE if writing else _READ, outcome, statement)


# --- the answer ---


def _answer(events: Sequence[Event]) -> Iterator[Prediction]:
    end = next((at for at, event in enumerate(events) if isinstance(event, Answered)), None)
    before = next(
        (at for at, event in enumerate(events) if any(_asks(event, role) for role in _ANSWERING)), end
    )
    if end is None or before is None:
        return
    truth, told = events[end].text, "What was read is turned into a short answer."  # type: ignore[attr-defined]
    if canonical_answer(truth) in {"yes", "no"}:
        others = ["no" if canonical_answer(truth) == "yes" else "yes"]
    else:
        parsed = [event.text for event in events[:end] if isinstance(event, Parsed) and event.text]
        ids = sorted(
            graph_after(events[:before]).ids,
            key=lambda id: (_has_digit(id) != _has_digit(truth), abs(len(id) - len(truth)), chance(id)),
        )
        others = [*parsed, *ids[: 2 * OTHERS]]
    asked = events[0].question if isinstance(events[0], Started) else ""
    yield among(
        "answer",
        (before, end),
        "What will the answer be?",
        f"The question was: {asked} {told}",
        truth,
        others,
    )


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)
