"""Links by the triples of a local model, beside those of GPT-3.5 and names found by rule: in a pool that a
small model can read.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np

from kgot_lab.benchmark.recall.datasets import load_dataset, untitled
from kgot_lab.benchmark.recall.systems import BASELINE, systems
from kgot_lab.embedding.cache import Remembered
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import interval, sign_flip_p
from kgot_lab.evaluation.tables import Cell, Grid, decimal, format_p_value, signed
from kgot_lab.memory.grounded_extraction import SourcedSentence, facts_prompt, grounded_and_not
from kgot_lab.retrieval.names import capitalised, compared_name
from kgot_lab.types import LLM, Document, Json, Prompt, Triple, full_text

POOL_SET = "musique"
POOLED = 10  # first hits of convex fusion that a question brings to the pool, beside its relevant passages
_SEED = 20261204  # of the order of the questions, fixed before the first was read
_LONGEST_REPLY = 200  # tokens: some 13 triples
_MEASURE = "recall@5"
_BY_RULE = "follow, sentences"
_OF_TRIPLES = ("follow, triples", "pagerank, triples")
_RULE, _READER, _GPT = "by rule", "the model", "GPT-3.5"  # who made the links
PassageTriples = Mapping[str, tuple[Triple, ...]]  # those of each passage, by its id
Brought = Sequence[
    tuple[str, tuple[Document, ...]]
]  # a question's id and the passages that it adds to the pool
FoundByLinks = Mapping[
    str, Mapping[str, Mapping[str, Mapping[str, float]]]
]  # recall@5 by data set, system, who made the links, question


def pools(embedder: Embedder) -> Brought:
    """The questions of the set in the order of a hash, each with the passages that it brings to the pool,
    those not brought before.
    """
    whole = load_dataset(POOL_SET)
    fused = systems(whole, embedder)[BASELINE]()
    asked = sorted(
        whole.queries, key=lambda query: hashlib.sha256(f"{_SEED}\0triples\0{query.id}".encode()).hexdigest()
    )
    brought: dict[str, None] = {}
    found = []
    for query in asked:
        near = [hit.id for hit in fused.search(query).hits[:POOLED]]
        relevant = [id for id, grade in whole.qrels[query.id].items() if grade > 0]
        new = [id for id in sorted({*near, *relevant}) if id not in brought]
        brought.update(dict.fromkeys(new))
        found.append((query.id, tuple(document for document in whole.documents if document.id in new)))
    return found


def triples_read(
    model: LLM, documents: Sequence[Document], kept: Collection[str] = ()
) -> Iterator[dict[str, Json]]:
    """The triples that a model takes from each passage by one call, and how many of them the passage does not
    say; raises LLMError.

    What is `kept` is not asked again. The prompt is the one that reads a sentence, with a whole passage in
    its place.
    """
    for document in documents:
        if document.id in kept:
            continue
        began = time.perf_counter()
        passage = SourcedSentence(" ".join(document.text.split()), document.title, document.id, 0)
        reply = model(Prompt(facts_prompt(str(passage)), max_tokens=_LONGEST_REPLY, temperature=0.0, seed=0))
        said, invented = grounded_and_not(reply.text, [passage])
        row: dict[str, Json] = {
            "passage": document.id,
            "model": model.name,
            "triples": [list(triple.identity) for triple, _ in said],
        }
        yield row | {
            "refused": len(invented),
            "cut": reply.cut,
            "seconds": round(time.perf_counter() - began, 1),
        }


@dataclass(frozen=True)
class ReadPool:
    """The questions whose passages have all been read, with those passages, and the triples of them by their
    maker.
    """

    model: str
    data: Dataset
    triples: Mapping[str, PassageTriples]
    seconds: float  # a passage, the median

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Json]], brought: Brought) -> ReadPool:
        """The first questions whose passages are all in the rows of a model; raises BadInput for fewer than
        two, and without any triple.
        """
        read = {str(row["passage"]): row for row in rows}
        asked, documents = list[str](), list[Document]()
        for query, some in brought:
            if any(document.id not in read for document in some):
                break
            asked.append(query)
            documents += some
        if len(asked) < 2:
            raise BadInput(
                f"the passages of {len(asked)} questions have been read; two are the least to measure on"
            )
        whole = load_dataset(POOL_SET)
        pool = replace(whole.only(asked), documents=tuple(documents))
        ids = [document.id for document in documents]
        local = {id: tuple(Triple(*parts) for parts in read[id]["triples"]) for id in ids}
        if not any(local.values()):
            raise BadInput(
                f"of {len(ids)} passages that were read no triple was kept: there is nothing to measure"
            )
        by_others = {id: whole.triples.get(id, ()) for id in ids}
        return cls(
            str(rows[0]["model"]),
            pool,
            {_READER: local, _GPT: by_others},
            float(np.median([read[id]["seconds"] for id in ids])),
        )


def triples_measured(pool: ReadPool, embedder: Embedder) -> FoundByLinks:
    """recall@5 of each system with each maker's links, in the pool with the passages' titles and without."""
    remembered = Remembered(embedder)
    return {
        data.name: _measured(replace(pool, data=data), remembered)
        for data in (pool.data, untitled(pool.data))
    }


def _measured(pool: ReadPool, embedder: Embedder) -> dict[str, dict[str, dict[str, float]]]:
    found = {
        BASELINE: {"none": _reached(pool.data, BASELINE, embedder)},
        _BY_RULE: {_RULE: _reached(pool.data, _BY_RULE, embedder)},
    }
    made = {**pool.triples, f"{_READER}, shuffled": _shuffled(pool.triples[_READER])}
    for name in _OF_TRIPLES:
        found[name] = {
            maker: _reached(replace(pool.data, triples=triples), name, embedder)
            for maker, triples in made.items()
        }
    return found


def questions_in(found: FoundByLinks) -> set[str]:
    """The ids of the questions that were measured, the same for each system."""
    return {
        id
        for systems in found.values()
        for by_links in systems.values()
        for values in by_links.values()
        for id in values
    }


def triples_grids(pool: ReadPool, found: FoundByLinks) -> list[Grid]:
    """What each graph found in the pool, of what triples_measured() gave of it, and what the graphs hold."""
    return [*(_found_grid(pool, name, systems) for name, systems in found.items()), _held_grid(pool)]


def _found_grid(pool: ReadPool, data: str, found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Grid:
    """Means, and paired differences to the walk over names found by rule; intervals by BCa, p by sign flips."""
    asked = [query.id for query in pool.data.queries]
    rival = found[_BY_RULE][_RULE]
    rows = []
    for name, by_links in found.items():
        for links, values in by_links.items():
            mean = interval([values[id] for id in asked])
            cells = [
                name,
                links,
                decimal(mean.mean),
                f"{decimal(mean.low)} to {decimal(mean.high)}",
                "",
                "",
                "",
            ]
            if values is not rival:
                gaps = [values[id] - rival[id] for id in asked]
                gap = interval(gaps)
                cells[4:] = [
                    signed(gap.mean),
                    f"{signed(gap.low)} to {signed(gap.high)}",
                    format_p_value(sign_flip_p(gaps)),
                ]
            rows.append(tuple(map(Cell, cells)))
    told = (
        f"{data}: {len(asked)} questions over {len(pool.data.documents)} passages that {pool.model} has read"
    )
    return Grid(told, ("system", "links", _MEASURE, "95 %", f"minus {_BY_RULE}", "95 %", "p"), tuple(rows))


def _reached(data: Dataset, name: str, embedder: Embedder) -> dict[str, float]:
    return dict(
        score(run(systems(data, embedder)[name](), data.queries), data.qrels, [_MEASURE]).per_query(_MEASURE)
    )


def _shuffled(triples: PassageTriples, seed: int = 0) -> PassageTriples:
    """A control: each passage with the triples of another."""
    others = list(triples.values())
    random.Random(seed).shuffle(others)
    return dict(zip(triples, others, strict=True))


def _held_grid(pool: ReadPool) -> Grid:
    """How many triples and names each maker has of a passage, and how many pairs of passages that a question
    needs share a name.
    """
    needed = [
        pair
        for each in pool.data.qrels.values()
        for pair in combinations(sorted(id for id, grade in each.items() if grade > 0), 2)
    ]
    names = {
        maker: {id: _names(some) for id, some in triples.items()} for maker, triples in pool.triples.items()
    }
    by_rule = {document.id: frozenset(capitalised(full_text(document))) for document in pool.data.documents}
    rows = []
    for maker, held in {_RULE: by_rule, **names}.items():
        triples = pool.triples.get(maker)
        many = f"{fmean(map(len, triples.values())):.1f}" if triples else ""
        also = [len(held[id] & names[_GPT][id]) / len(names[_GPT][id]) for id in held if names[_GPT][id]]
        linked = sum(bool(held[one] & held[other]) for one, other in needed)
        cells = (
            maker,
            many,
            f"{fmean(map(len, held.values())):.1f}",
            decimal(fmean(also)),
            f"{linked} of {len(needed)}",
        )
        rows.append(tuple(map(Cell, cells)))
    columns = (
        "names by",
        "triples a passage",
        "names a passage",
        f"of {_GPT}'s names",
        "pairs of a question's passages that share a name",
    )
    return Grid(
        f"What the graphs hold; {pool.model} took {pool.seconds:.0f} s a passage (median)",
        columns,
        tuple(rows),
    )


def _names(triples: Iterable[Triple]) -> frozenset[str]:
    return frozenset(compared_name(end) for triple in triples for end in (triple.subject, triple.object)) - {
        ""
    }
