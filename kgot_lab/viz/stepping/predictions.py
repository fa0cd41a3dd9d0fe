"""Predict, then reveal: questions to the reader at each decision of a run.

They are asked before the event that shows the decision. A question has a few choices, each with a key. If the
choices are texts of the run (a tool call, an answer), a hash determines their order, so that the right one
has no preferred position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

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
from kgot_lab.loop.insert import proper_name
from kgot_lab.loop.retrieve import WHOLE_GRAPH
from kgot_lab.loop.trace import graph_after
from kgot_lab.memory.extraction import EXTRACTION_SYSTEM, parse_triples
from kgot_lab.text.words import canonical_answer
from kgot_lab.types import Json

# A question to the reader of a run: before which event it is asked, its choices, and where the truth is
# revealed.

QUESTION_KINDS = ("tool", "fact", "vote", "statement", "answer")
MAX_DISTRACTORS = 3  # maximum wrong choices if the choices are texts
_MIN_SIMILARITY = 0.5  # F1 from which two texts count as the same
_MAX_CHOICE_LENGTH = 160  # maximum characters of a choice


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
        return {**asdict(self), "choices": choices}


def multiple_choice(
    kind: str, event_range: tuple[int, int], question: str, intro: str, truth: str, others: Iterable[str]
) -> Prediction:
    """Create a multiple-choice question from the right text and a few others that differ from it.

    A hash determines the order of the choices.
    """
    texts = [truth]
    for other in sorted(set(others), key=stable_hash):
        if len(texts) > MAX_DISTRACTORS or not canonical_answer(other):
            continue
        if all(f1(other, text) < _MIN_SIMILARITY for text in texts):
            texts.append(other)
    order = sorted(texts, key=lambda text: stable_hash((event_range, text, truth)))
    limit = _MAX_CHOICE_LENGTH
    shown = [text if len(text) <= limit else f"{text[: limit - 1]}…" for text in order]
    choices = tuple((str(number), text) for number, text in enumerate(shown, start=1))
    return Prediction(kind, *event_range, question, intro, choices, str(order.index(truth) + 1))


def stable_hash(what: object) -> str:
    """Return a pseudorandom hex string that is the same each time."""
    return hashlib.sha256(str(what).encode("utf-8", "backslashreplace")).hexdigest()


_MAX_DROPPED_FACTS = 2  # maximum questions on dropped facts per write
_MAX_FEW_ROWS = 5  # maximum rows of a read with "few" rows
_NO_LOOKUP = "nothing: it reads what is there"
_ANSWER_ROLES = ("parse", "guess", "forced answer", "path", "wide", "reread", "compared")


def predictions(events: Sequence[Event]) -> list[Prediction]:
    """Return the questions for a reader of a run, in the order of the run.

    They ask about tool calls, facts, votes, statements and the answer of a model. What is decided by rule is
    not asked about: a search for the question itself, a vote that was not held, a statement that is built for
    the model when it writes.
    """
    parts = (_tool_questions, _fact_questions, _vote_questions, _statement_questions, _answer_question)
    questions = (question for find_questions in parts for question in find_questions(events))
    return sorted(questions, key=lambda question: (question.before, QUESTION_KINDS.index(question.kind)))


# --- tools ---


def _tool_questions(events: Sequence[Event]) -> Iterator[Prediction]:
    for at, event in enumerate(events):
        if not isinstance(event, Chose) or not _is_model_call(events[at - 1], "tools"):
            continue
        before = _first_consecutive_call(events, at, "tools")
        looked_up = ["; ".join(map(str, call.arguments.values())) for call in event.calls]
        truth = looked_up[0] if looked_up else _NO_LOOKUP
        names = (proper_name(node.id) for node in graph_after(events[:before]).nodes)
        others = [_NO_LOOKUP, *(name for name in names if name and name not in looked_up)]
        more_note = f" It makes {len(looked_up)} calls; which is the first?" if len(looked_up) > 1 else ""
        tools = (
            ", ".join(next((event.tools for event in events if isinstance(event, Started)), {})) or "a tool"
        )
        intro = f"Facts are missing. The model chooses what to look up with {tools}.{more_note}"
        yield multiple_choice("tool", (before, at), "What will it look up next?", intro, truth, others)


def _is_model_call(event: Event, role: str) -> bool:
    return isinstance(event, Asked) and event.role.purpose == role


def _first_consecutive_call(events: Sequence[Event], at: int, role: str) -> int:
    """Return the first of the consecutive model calls in a role that end before an event."""
    while at and _is_model_call(events[at - 1], role):
        at -= 1
    return at


# --- facts ---


def _fact_questions(events: Sequence[Event]) -> Iterator[Prediction]:
    """Yield questions on extracted facts: for each write, one that was kept and up to two dropped ones."""
    written: list[tuple[str, str]] = []  # facts with their sentences, since the last write
    for at, event in enumerate(events):
        if isinstance(event, Asked) and event.prompt.messages[0].text == EXTRACTION_SYSTEM:
            text = event.prompt.messages[-1].text
            written += [(str(triple), text) for triple in parse_triples(event.reply)]
        elif isinstance(event, Refused) and event.writing and written:
            dropped = set(event.statement.splitlines())
            wrote = at + 1 if isinstance(events[min(at + 1, len(events) - 1)], Wrote) else at
            yield from _selection_questions(written, dropped, (at, wrote))
            written = []
        elif isinstance(event, Wrote) and written:
            yield from _selection_questions(written, set(), (at, at))
            written = []


def _selection_questions(
    written: Sequence[tuple[str, str]], dropped: set[str], event_range: tuple[int, int]
) -> Iterator[Prediction]:
    first, write_event = event_range
    facts = sorted(dict(written).items(), key=stable_hash)
    dropped_facts = [pair for pair in facts if pair[0] in dropped][:_MAX_DROPPED_FACTS]
    kept_facts = [pair for pair in facts if pair[0] not in dropped][:1]
    intro = "A fact is kept if its sentence contains all words of its object and one of its subject. The model wrote:"
    for fact, sentence in sorted([*dropped_facts, *kept_facts], key=lambda pair: written.index(pair)):
        is_kept = fact not in dropped
        yield Prediction(
            "fact", first, write_event if is_kept else first, "Will this fact be kept?", intro,
            (("kept", "Kept"), ("dropped", "Dropped")), "kept" if is_kept else "dropped", f"{fact}\n\nfrom the sentence\n{sentence}",
        )  # fmt: skip


# --- votes ---


_VOTES = (
    ("INSERT", "INSERT, all agree"), ("RETRIEVE", "RETRIEVE, all agree"),
    ("not all INSERT", "INSERT, not all agree"), ("though split, RETRIEVE", "RETRIEVE, though not all agree"),
)  # fmt: skip


def _vote_outcome(voted: Voted) -> str:
    """Return the outcome of a vote as a value of _VOTES."""
    index = 0 if voted.choice == "INSERT" else 1
    return _VOTES[index if voted.agreement == 1 else index + 2][0]


def _vote_questions(events: Sequence[Event]) -> Iterator[Prediction]:
    start = -1
    for at, event in enumerate(events):
        if start < 0 and _is_model_call(event, "vote"):
            start = at
        elif isinstance(event, Voted) and start >= 0:
            intro = "INSERT: facts are missing, so more are fetched. RETRIEVE: the graph gives the answer, so it is read. "
            if event.possible > 1:
                intro += f"At most {event.possible} votes; RETRIEVE wins with more votes than INSERT. "
            choices = _VOTES[: 4 if event.possible > 1 else 2]
            asks, outcome = "How will the vote go?", _vote_outcome(event)
            yield Prediction("vote", start, at, asks, intro.strip(), choices, outcome)
            start = -1


# --- statements ---

_READ = (
    ("refused", "Refused by the store"),
    ("no rows", "No rows"),
    ("few", f"1 to {_MAX_FEW_ROWS} rows"),
    ("many", f"More than {_MAX_FEW_ROWS} rows"),
)
_WRITE = (
    ("refused", "Refused by the store"),
    ("same", "It runs, and changes nothing"),
    ("more", "It runs, and the graph changes"),
)


def _statement_questions(events: Sequence[Event]) -> Iterator[Prediction]:
    """Yield a question for each statement of a model when it is first run on a graph."""
    limits = next((event.limits for event in events if isinstance(event, Started)), {})
    is_built_for_model = limits.get("writing", "statements") != "statements"
    seen_statements: set[str] = set()  # statements whose outcome on this graph the reader has seen
    # whether the last requested statement writes; votes, reads and answers from rows do not
    is_writing = True
    for at, event in enumerate(events):
        if isinstance(event, Asked) and event.role.purpose != "mend":
            is_writing = event.role.purpose == "write"
        elif isinstance(event, Failed | Repaired | Refused | Read | Wrote):
            is_shown = event.statement not in seen_statements and not (is_built_for_model and is_writing)
            if is_shown and (outcome := _outcome(event)):
                seen_statements.add(event.statement)
                # a refusal is already seen in the prompt that asks to repair the statement
                first = _first_consecutive_call(events, at, "mend") if isinstance(event, Repaired) else at
                yield _statement_question(event.statement, (first, at), outcome, is_writing=is_writing)
            if isinstance(event, Wrote):
                seen_statements.clear()


def _outcome(event: Event) -> str:
    match event:
        case Read(statement=statement) if statement == WHOLE_GRAPH:
            return ""
        case Read(rows=rows):
            return "no rows" if not rows else "few" if len(rows) <= _MAX_FEW_ROWS else "many"
        case Wrote(diff=diff):
            return "more" if diff else "same"
        case _:
            return "refused"


def _statement_question(
    statement: str, event_range: tuple[int, int], outcome: str, *, is_writing: bool
) -> Prediction:
    asks = "What will this statement do to the graph?" if is_writing else "How many rows will this read find?"
    intro = "It is about to be run:" if is_writing else "The statement is about to be run on the graph:"
    choices = _WRITE if is_writing else _READ
    return Prediction("statement", *event_range, asks, intro, choices, outcome, statement)


# --- the answer ---


def _answer_question(events: Sequence[Event]) -> Iterator[Prediction]:
    end = next((at for at, event in enumerate(events) if isinstance(event, Answered)), None)
    roles = ((at, event) for at, event in enumerate(events) if isinstance(event, Asked))
    before = next((at for at, event in roles if event.role.purpose in _ANSWER_ROLES), end)
    if end is None or before is None:
        return
    truth, intro = events[end].text, "What was read is turned into a short answer."  # type: ignore[attr-defined]
    if canonical_answer(truth) in {"yes", "no"}:
        others = ["no" if canonical_answer(truth) == "yes" else "yes"]
    else:
        parsed = [event.text for event in events[:end] if isinstance(event, Parsed) and event.text]

        def distance(id: str) -> tuple[bool, int, str]:
            return _has_digit(id) != _has_digit(truth), abs(len(id) - len(truth)), stable_hash(id)

        ids = sorted(graph_after(events[:before]).ids, key=distance)
        others = [*parsed, *ids[: 2 * MAX_DISTRACTORS]]
    question = events[0].question if isinstance(events[0], Started) else ""
    asks, intro = "What will the answer be?", f"The question was: {question} {intro}"
    yield multiple_choice("answer", (before, end), asks, intro, truth, others)


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)
