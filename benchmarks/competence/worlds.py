"""Worlds whose facts are known: made-up chains over pages that also say other things, and questions on file
with their parts.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.competence.gold import GoldChain, GoldSet, GoldStep, gold_of_parts, gold_of_triples
from benchmarks.recall.growth import synthetic_word
from kgot_lab.errors import require_count
from kgot_lab.types import Document, Json, Triple

RELATIONS = tuple(
    "teacher founder landlord sculptor captain neighbour patron rival gardener tailor banker pilot".split()
)
# what pages say besides, and no question asks
SAID_BESIDES = tuple("cousin barber printer cook scribe".split())


@dataclass(frozen=True)
class World:
    """Pages, and questions whose chains of facts stand in them."""

    documents: tuple[Document, ...]
    gold: GoldSet


def chain_world(questions: int = 100, hops: int = 2, *, aside: int = 2, seed: int = 0) -> World:
    """Questions of so many hops, each through names of its own; a page a name, with so many facts besides
    that name other questions' names.

    All names are made up. The page of a chain's name says its one fact of the chain, so a search for a name
    finds one step and no other. The same numbers give the same world. Raises BadInput for less than one
    question or hop, or more hops than there are relations.
    """
    require_count(questions, 1, "questions")
    require_count(hops, 1, "hops")
    require_count(
        len(RELATIONS) - hops,
        0,
        "the number of relations less the hops",
        f"a chain uses each of {len(RELATIONS)} once",
    )
    require_count(aside, 0, "aside")
    chance = np.random.default_rng(seed)
    names = [[_name(number * (hops + 1) + place) for place in range(hops + 1)] for number in range(questions)]
    documents: list[Document] = []
    chains: list[GoldChain] = []
    besides: list[GoldStep] = []
    for number, own in enumerate(names):
        relations = [RELATIONS[index] for index in chance.permutation(len(RELATIONS))[:hops]]
        ends = zip(own, relations, own[1:], strict=False)
        steps = tuple(_step(*fact, after=(place - 1,) if place else ()) for place, fact in enumerate(ends))
        for place, name in enumerate(own):
            said = [
                _step(name, SAID_BESIDES[which], _of_another(names, number, chance))
                for which in chance.permutation(len(SAID_BESIDES))[:aside]
            ]
            besides += said
            page = [step.sentence for step in (*steps[place : place + 1], *said)]
            documents.append(
                Document(
                    f"w{number}-{place}",
                    " ".join(page[index] for index in chance.permutation(len(page))),
                    name,
                )
            )
        asked = "".join(f"the {relation} of " for relation in reversed(relations))
        chains.append(GoldChain(f"Who is {asked}{own[0]}?", steps, own[-1], f"w{number}"))
    return World(tuple(documents), GoldSet(tuple(chains), tuple(besides)))


def comparing_world(questions: int = 100, hops: int = 1, *, seed: int = 0) -> World:
    """Questions which of two names, or whose teacher, was born earlier: one or two hops to each year; a page
    a name, with a fact besides.

    The same numbers give the same world. Raises BadInput for less than one question, or hops that are not one
    or two.
    """
    require_count(questions, 1, "questions")
    require_count(hops, 1, "hops")
    require_count(2 - hops, 0, "two less the hops")
    chance = np.random.default_rng(seed)
    documents: list[Document] = []
    chains: list[GoldChain] = []
    besides: list[GoldStep] = []
    for number in range(questions):
        # the two things, then their teachers
        names = [_name(2 * hops * number + place) for place in range(2 * hops)]
        years = [int(year) for year in 1500 + chance.permutation(400)[:2]]
        taught = [_step(*fact) for fact in zip(names, ["teacher"] * 2, names[2:], strict=False)]
        born = [
            _born(name, year, (place,) if taught else ())
            for place, (name, year) in enumerate(zip(names[-2:], years, strict=True))
        ]
        for place, step in enumerate((*taught, *born)):
            besides.append(
                _step(
                    step.title,
                    SAID_BESIDES[int(chance.integers(len(SAID_BESIDES)))],
                    _name(2 * hops * questions + len(besides)),
                )
            )
            documents.append(
                Document(f"w{number}-{place}", f"{step.sentence} {besides[-1].sentence}", step.title)
            )
        asked = f"{'Whose teacher' if taught else 'Who'} was born earlier, {names[0]} or {names[1]}?"
        chains.append(GoldChain(asked, (*taught, *born), names[years.index(min(years))], f"w{number}"))
    return World(tuple(documents), GoldSet(tuple(chains), tuple(besides)))


def world_on_file(folder: Path) -> World:
    """The passages and decomposed questions of a folder with corpus.jsonl.gz and queries.jsonl.gz, as
    MuSiQue's lie in data/.

    Questions with a part that no sentence of its passage answers are left out.
    """
    documents = tuple(
        Document(row["_id"], row["text"], row.get("title", "")) for row in _rows(folder / "corpus.jsonl.gz")
    )
    return World(documents, gold_of_parts(_rows(folder / "queries.jsonl.gz"), documents))


def world_of_triples(folder: Path, passages: Path) -> World:
    """The questions with triples and the qrels.tsv of a folder over the corpus.jsonl.gz of another, as
    2Wiki's lie in data/.

    Questions with a triple that no sentence of their passages says are left out.
    """
    documents = tuple(
        Document(row["_id"], row["text"], row.get("title", "")) for row in _rows(passages / "corpus.jsonl.gz")
    )
    relevant: dict[str, list[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, passage, _ = line.split("\t")
        relevant.setdefault(question, []).append(passage)
    return World(documents, gold_of_triples(_rows(folder / "queries.jsonl.gz"), documents, relevant))


def first_of(world: World, questions: int) -> World:
    """The world with its first questions alone, over all its pages."""
    return World(world.documents, GoldSet(world.gold.chains[:questions], world.gold.besides))


def _rows(path: Path) -> list[Json]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def _name(number: int) -> str:
    """The name with a number: two made-up words that no other name has."""
    return f"{synthetic_word(2 * number).capitalize()} {synthetic_word(2 * number + 1).capitalize()}"


def _step(subject: str, relation: str, object: str, after: tuple[int, ...] = ()) -> GoldStep:
    asked = f"Who is the {relation} of {f'#{after[-1] + 1}' if after else subject}?"
    return GoldStep(
        Triple(subject, relation, object), f"The {relation} of {subject} is {object}.", subject, after, asked
    )


def _born(name: str, year: int, after: tuple[int, ...]) -> GoldStep:
    asked = f"When was {f'#{after[-1] + 1}' if after else name} born?"
    return GoldStep(Triple(name, "born in", str(year)), f"{name} was born in {year}.", name, after, asked)


def _of_another(names: list[list[str]], own: int, chance: np.random.Generator) -> str:
    """A name of another question, or one that is nowhere else where there is no other question."""
    if len(names) == 1:
        return _name(len(names[0]) + int(chance.integers(1_000)))
    other = names[(own + 1 + int(chance.integers(len(names) - 1))) % len(names)]
    return other[int(chance.integers(len(other)))]
