"""Simulations to try learning on: an extractor that reads set sentences, and users who say how things are and
err at a set rate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import numpy as np

from kgot_lab.experts.learning.contradictions import END_PHRASES, DimensionEnd
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.llm.presets import FREE
from kgot_lab.types import Json, Prompt, Reply, Usage

_FENCED = re.compile(r"<<<(\w+) found: a message\n(.*)\n>>>\1", re.S)
_RELATIONS = re.compile(r"^Relations: (.*)\.$", re.M)
_SENTENCE = re.compile(r"[^.!?]+(?:\.\d+[^.!?]*)*[.!?]?")


class SimulatedLearner:
    """A model that notes changes of set sentences, for tests.

    "A is a TYPE.", "A requires B." (any relation, underscores as spaces), "It is wrong that A requires B.",
    "The P of A is V."; with `inventing` it adds to every reply a change whose words the message does not
    hold, and one that asks for what there is not.
    """

    price = FREE

    def __init__(self, *, inventing: bool = False) -> None:
        self.name, self.inventing = "simulated learner", inventing

    def __call__(self, prompt: Prompt) -> Reply:
        asked = prompt.messages[-1].text
        message, relations = _FENCED.search(asked), _RELATIONS.search(asked)
        changes = list(_noted(message[2], relations[1].split(", "))) if message and relations else []
        if self.inventing:
            changes.append(
                _change("edge", "Invented thing", "nobody said this", relation="requires", object="this")
            )
        reply = json.dumps({"changes": changes})
        return Reply(reply, Usage(len(asked.split()), len(reply.split())))


def _noted(text: str, relations: Sequence[str]) -> Iterator[dict[str, Json]]:
    for found in _SENTENCE.findall(text):
        said = found.strip().rstrip(".!")
        if said.endswith("?"):
            continue
        wrong = re.sub(r"^it is wrong that ", "", said, flags=re.I)
        if made := re.fullmatch(r"(?:No, )?the (\w+) of (.+?) is (.+)", said, re.I):
            yield _change("property", made[2], said, property=made[1].lower(), value=made[3])
            continue
        for relation in sorted(relations, key=len, reverse=True):
            subject, there, object = wrong.partition(f" {relation.replace('_', ' ')} ")
            if there:
                kind = "no edge" if wrong != said else "edge"
                yield _change(kind, subject.removeprefix("No, "), said, relation=relation, object=object)
                break
        else:
            if made := re.fullmatch(r"(.+?) is an? ([\w ]+)", said):
                yield _change("node", made[1], said, type=made[2].replace(" ", "_"))


def _change(kind: str, subject: str, quote: str, **more: str) -> dict[str, Json]:
    return {"kind": kind, "subject": subject.strip(), "quote": quote, **more}


def simulated_sayings(
    graph: PropertyGraph, pairs: Sequence[tuple[str, str]], *, people: float, error: float, seed: int = 0
) -> list[tuple[str, str]]:
    """What simulated users say of some nodes and dimensions, as (person, sentence): the end at which a graph
    has the value, or, at a rate of `error`, the other one. So many people on average speak of each (Poisson);
    a seed gives the same sayings."""
    chance, index, said = np.random.default_rng(seed), graph_index(graph), []
    for number, (id, dimension) in enumerate(pairs):
        row = graph.row(id)
        high = float(graph.node_properties[row][dimension]) > 0.5
        for person in range(int(chance.poisson(people))):
            end: DimensionEnd = "high" if high != bool(chance.random() < error) else "low"
            phrases = END_PHRASES[dimension][end]
            phrase = phrases[int(chance.integers(len(phrases)))]
            said.append(
                (f"person {number}-{person}", f"{index.names[row]}: {phrase}, as I see it these days.")
            )
    return said
