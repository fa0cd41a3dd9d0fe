"""A run as the stepper draws it: every event with its words, its place in a vote, and the graph after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import groupby

from kgot_lab.loop.events import (
    Answered,
    Asked,
    Ballot,
    Cut,
    Event,
    Read,
    Refused,
    Repaired,
    Started,
    Voted,
    Wrote,
)
from kgot_lab.loop.formatting import caption
from kgot_lab.loop.replay.forks import aligned, change_of, changeable, comparable_texts
from kgot_lab.loop.replay.replay import Fork
from kgot_lab.loop.trace import graph_after
from kgot_lab.types import Json, Usage
from kgot_lab.viz.graph.marks import Place
from kgot_lab.viz.page import BY_HAND, entry, format_model_call, settings, verbatim
from kgot_lab.viz.static.markup import Markup, element, joined
from kgot_lab.viz.stepping.data import RunGraphs, facts_of_run, graph_at
from kgot_lab.viz.stepping.predictions import predictions


def run_data(
    events: Sequence[Event], positions: Mapping[str, Place], known: Sequence[Event] = (), *, by_hand: int = -1
) -> dict[str, Json]:
    """A run as JSON: `positions` says where nodes go; an event that is among the `known` ones is only named,
    by its number there.

    `by_hand` is the number of the event that a person wrote, if one did.
    """
    texts, graphs = _Texts(), RunGraphs(positions)
    numbers = {text: number for number, text in reversed(list(enumerate(comparable_texts(known))))}
    keys = comparable_texts(events)
    answer = next((event for event in events if isinstance(event, Answered)), None)
    return {
        "events": [
            {"as": numbers[key]} if key in numbers else _event(events, number, texts, by_hand)
            for number, key in enumerate(keys)
        ],
        "polls": polls(events),
        "questions": [] if known else [asked.as_json() for asked in predictions(events)],
        "graph_at": graph_at(events, graphs),
        "steps": step_costs(events),
        "grounds": facts_of_run(events, texts.number),
        "answer": answer.text if answer else "",
        "forced": bool(answer and answer.forced),
        "why_guess": answer.why_guess if answer else "",
        "finished": answer is not None,
        "texts": list(texts.numbers),
        **graphs.data(),
    }


def fork_data(events: Sequence[Event], fork: Fork, positions: Mapping[str, Place]) -> dict[str, Json]:
    """A fork as JSON, beside the run it was made from: what differs, what it cost, and both last graphs with
    the difference marked.
    """
    was, graphs = graph_after(events), RunGraphs(positions)
    difference = was.diff(fork.graph)
    lost = replace(difference, added_nodes=(), added_edges=())
    gained = replace(difference, removed_nodes=(), removed_edges=())
    ends = [graphs.add(was, lost), graphs.add(fork.graph, gained)]
    keys = comparable_texts(events), comparable_texts(fork.events)
    pairs = aligned(events, fork.events)
    return {
        **run_data(fork.events, positions, events, by_hand=fork.first_difference),
        "ends": {"of": ends, **graphs.data()},
        "difference": str(difference) if difference else "none",
        "first": fork.first_difference,
        "change": _change(events, fork),
        "avoided": fork.avoided,
        "asked": fork.asked,
        "stopped": fork.stopped,
        "pairs": [
            [one, other, None not in (one, other) and keys[0][one or 0] == keys[1][other or 0]]
            for one, other in pairs
        ],
    }


# --- events
# ---------------------------------------------------------------------------------------------------------------


class _Texts:
    """Long texts, each once: the same prompt is asked for every ballot."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))


def _event(events: Sequence[Event], number: int, texts: _Texts, by_hand: int) -> dict[str, Json]:
    """An event: a line for the list, words for the page, and the text one may change."""
    event, part = events[number], changeable(events[number])
    words, named = _words(events, number, by_hand), caption(event) + f" {BY_HAND}" * (number == by_hand)
    made: dict[str, Json] = {
        "kind": type(event).__name__,
        "step": event.step,
        "caption": named,
        "words": words,
    }
    if isinstance(event, Ballot):
        made["ballot"] = event.choice
    if isinstance(event, Asked):
        made["prompt"] = [[message.role, texts.number(message.text)] for message in event.prompt.messages]
        made["reply"] = texts.number(event.reply)
        made["settings"] = settings(event.prompt)
    if part:
        made["part"], made["text"] = part, texts.number(change_of(events, number))
    return made


def _words(events: Sequence[Event], number: int, by_hand: int) -> Markup:
    event = events[number]
    if isinstance(event, Asked):  # prompt and reply stand side by side, and come as texts
        return element(
            "div",
            element("b", "Asked", class_="kind"),
            " ",
            format_model_call(event, by_hand=number == by_hand),
            class_="event asked",
        )
    told = entry(event, by_hand=number == by_hand)
    return joined([*_repairs(events, number), told])


def _repairs(events: Sequence[Event], number: int) -> Iterator[Markup]:
    """Where a statement comes from that was refused at first: each form it had, and why the store did not
    take it.
    """
    repairs = repairs_before(events, number)
    if not repairs:
        return
    tries = "once" if len(repairs) == 1 else f"{len(repairs)} times"
    parts: list[Markup] = [
        element("p", element("b", "Repaired", class_="kind"), f" {tries} before it was run or given up")
    ]
    for repair in repairs:
        parts += [verbatim(repair.statement), element("p", "refused: ", repair.error, class_="refusal")]
    parts.append(element("p", "mended, and then:"))
    yield element("div", *parts, class_="event repaired")


def repairs_before(events: Sequence[Event], number: int) -> list[Repaired]:
    """The repairs that led to the statement of a Wrote, Read or Refused event, first one first."""
    event = events[number]
    wanted = event.statement if isinstance(event, Wrote | Read | Refused) else None
    found: list[Repaired] = []
    for before in reversed(events[:number]):
        if isinstance(before, Repaired) and before.mended == wanted:
            found.append(before)
            wanted = before.statement
        elif not isinstance(before, Asked | Cut):
            break
    return found[::-1]


def step_costs(events: Iterable[Event]) -> list[dict[str, Json]]:
    """For each step in order: its number, how many times a model was asked in it, and the tokens and seconds
    that took.
    """
    found = []
    for step, group in groupby(events, key=lambda event: event.step):
        asked = [event.usage for event in group if isinstance(event, Asked)]
        total = Usage.total(asked)
        found.append(
            {
                "step": step,
                "calls": len(asked),
                "tokens": total.prompt_tokens + total.completion_tokens,
                "seconds": round(total.seconds, 1),
            }
        )
    return found


# --- votes
# --------------------------------------------------------------------------------------------------------------


def polls(events: Sequence[Event]) -> list[dict[str, Json]]:
    """Each vote: the event it starts with, its ballots as (event, choice), how many were possible, and the
    event that decides it.

    `end` is -1 when the run stops inside it.
    """
    found: list[dict[str, Json]] = []
    open_: dict[str, Json] | None = None
    for number, event in enumerate(events):
        if open_ is None and isinstance(event, Asked) and event.role == "vote":
            open_ = {"start": number, "ballots": [], "possible": _possible(events), "end": -1, "choice": ""}
            found.append(open_)
        elif open_ is not None and isinstance(event, Ballot):
            open_["ballots"].append([number, event.choice])
        elif open_ is not None and isinstance(event, Voted):
            open_ |= {"end": number, "choice": event.choice, "possible": event.possible}
            open_ = None
    return found


def _possible(events: Sequence[Event]) -> int:
    """How many ballots a vote of this run may have: one where every ballot would be the same text."""
    limits = next((event.limits for event in events if isinstance(event, Started)), {})
    return int(limits.get("votes", 0)) if limits.get("vote_temperature", 1) else 1


# --- forks
# ----------------------------------------------------------------------------------------------------------------


def _change(events: Sequence[Event], fork: Fork) -> dict[str, Json]:
    """What was changed by hand, in words and line by line."""
    at = fork.first_difference
    was, now = change_of(events, at).splitlines(), change_of(fork.events, at).splitlines()
    if at >= min(len(events), len(fork.events)):
        return {"words": "nothing: the run says the same again", "lines": ""}
    words = f"the {changeable(events[at])} of event {at} ({caption(events[at])})"
    return {"words": words, "lines": element("ul", *_lines(was, now), class_="diff")}


def _lines(was: Sequence[str], now: Sequence[str]) -> Iterator[Markup]:
    """Two texts line by line: what went away, what came in its place, what stayed."""
    for tag, low, high, other_low, other_high in SequenceMatcher(
        None, was, now, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            yield from (element("li", f"  {line}") for line in was[low:high])
        else:
            yield from (element("li", f"− {line}", class_="removed") for line in was[low:high])
            yield from (element("li", f"+ {line}", class_="added") for line in now[other_low:other_high])
