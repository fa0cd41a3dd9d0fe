"""Paths of sentences between names: the words they are told in, and how Python finds them.

A name says a sentence, and a sentence mentions names; each of these edges has the properties `source` and `sentence`. Any other edge
between two names is a fact. Runs inside the sandbox too: imports the standard library and its sisters only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kgot_lab.sandbox.inside.tracked import TrackedGraph

SAYS, MENTIONS = "says", "mentions"
PATH = (
    *("start", "place_1", "sentence_1", "source_1", "relation", "subject", "object"),
    *("name", "end", "place_2", "sentence_2", "source_2", "worth"),
)
PATH_ORDER = (
    *("start", "place_1", "place_2", "end", "name", "relation", "subject", "object"),
    *("sentence_1", "source_1", "sentence_2", "source_2"),
)
FACT_WORTH = 1.0  # of a fact that is a step of a path; sentences are worth what they are said to be
_Row = dict[str, Any]


def paths_found(graph: TrackedGraph, names: Collection[str], worth: Mapping[str, float], most: int) -> list[_Row]:
    """The paths from some names by sentences that are worth something: the best, ties by their texts; "" stands for what a path lacks."""
    told = [row for place in worth for row in _told(graph, place, worth[place])]
    found = {tuple(row[column] for column in PATH): row for row in _all_paths(graph, set(names), told)}
    return sorted(found.values(), key=lambda row: (-row["worth"], *(row[column] for column in PATH_ORDER)))[:most]


def _told(graph: TrackedGraph, place: str, worth: float) -> Iterator[_Row]:
    """A sentence as the last of a path, for each name that says it."""
    for title, _, data in graph.in_edges(place, data=True) if place in graph else ():
        if data.get("relation") == SAYS:
            yield _row(end=title, place_2=place, sentence_2=_text(data, "sentence"), source_2=_text(data, "source"), worth=worth)


def _all_paths(graph: TrackedGraph, names: Collection[str], told: list[_Row]) -> Iterator[_Row]:
    mentioned = {row["place_2"]: _mentioned(graph, row["place_2"]) for row in told}
    for last in told:
        yield from _after_a_fact(graph, names, last)
    for said in told:
        if said["end"] in names:
            first = {"start": said["end"], "place_1": said["place_2"], "sentence_1": said["sentence_2"], "source_1": said["source_2"]}
            yield _row(**first, worth=said["worth"])
            for last in told:
                joints = {last["end"], *mentioned[last["place_2"]]} & mentioned[said["place_2"]] - {said["end"]}
                if last["end"] != said["end"] and last["place_2"] != said["place_2"]:
                    yield from (last | first | {"name": joint, "worth": said["worth"] + last["worth"]} for joint in joints)


def _after_a_fact(graph: TrackedGraph, names: Collection[str], last: _Row) -> Iterator[_Row]:
    """The paths that go from a name to a sentence's own name by a fact, whichever way it points."""
    end = last["end"]
    for subject, object, data in (*graph.in_edges(end, data=True), *graph.out_edges(end, data=True)):
        start = subject if object == end else object
        if start in names and start != end and data.get("relation") not in (SAYS, MENTIONS):
            fact = {"relation": str(data.get("relation", "")), "subject": subject, "object": object}
            told = {"sentence_1": _text(data, "sentence"), "source_1": _text(data, "source")}
            yield last | fact | told | {"start": start, "worth": FACT_WORTH + last["worth"]}


def _mentioned(graph: TrackedGraph, place: str) -> set[str]:
    return {name for _, name, data in graph.out_edges(place, data=True) if data.get("relation") == MENTIONS}


def _row(*, worth: float, **texts: str) -> _Row:
    return {**dict.fromkeys(PATH, ""), **texts, "worth": worth}


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""
