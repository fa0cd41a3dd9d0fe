"""The structure benchmark: every system answers every question, searches, draws edges, maps words; each
leaves its results in a folder.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.structure.analogies import CHOICES, ITEMS, Choices, choices
from benchmarks.structure.analogy_pairs import PAIRS, AnalogyPairs, pair, pairs
from benchmarks.structure.analogy_pools import Retrieval, retrieval
from benchmarks.structure.answered import load_answers, save_answers, save_choices
from benchmarks.structure.calibration import CalibratedThresholds, CalibrationObjective, calibrate_thresholds
from benchmarks.structure.cells import FOUR, cells_of
from benchmarks.structure.controls import MinusSurface
from benchmarks.structure.edges import Drawn, drawn
from benchmarks.structure.instruments import MODEL_OF_SKELETONS, Instruments, skeletons_of_the_model
from benchmarks.structure.system_pairs import SystemPair, mapped, system_pairs
from benchmarks.structure.systems import Surface, System, Words, answered, searching
from benchmarks.structure.tables import answers_in
from kgot_lab.analogy.delta_edges import compare_pairs, delta_edges
from kgot_lab.analogy.skeletons import make_skeletons
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import Numbers
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import write_atomically
from kgot_lab.similarity.delta import DEFAULT_THRESHOLDS, Thresholds
from kgot_lab.types import Node

# where a fit for a search learns
_TAUGHT_BY = {"storyanalogy-mc pool": "storyanalogy-mc", "parallelparc pool": "parallelparc advanced"}
_SEARCHED = (
    "storyanalogy-mc pool",
    "analobench T2 S1",
    "analobench T2 S10",
    "analobench T2 S30",
    "parallelparc pool",
)
_MEASURES = ("map", "mrr", "recall@1", "recall@10")
# that the local model works through, as far as it came
_PARTLY_MADE = ("storyanalogy-mc", "analobench T1 S10", "analobench T1 S30")
_FEWEST = 20  # questions that are a set of their own, as many as a judge is asked
_OTHERS = 20_000  # pairs that are not analogous, drawn to calibrate on


def _sets(tools: Instruments, opened: bool) -> Iterator[tuple[Choices, Callable[[Choices], list[System]]]]:
    """The sets of questions, each with its systems; only their dev parts unless they are opened."""
    for name in CHOICES:
        every = choices(name)
        yield (
            (every if opened else every.dev),
            tools.with_the_model if _made_by_the_model(every.texts) else tools.systems,
        )
    for name in ITEMS:
        for traps in (FOUR, ("matched",)):
            parts = [
                cells_of(name, tools.embedder, tools.nouns, opened=part, traps=traps).choices
                for part in (False, True)[: 1 + opened]
            ]
            questions = tuple(question for part in parts for question in part.questions)
            yield (
                Choices(parts[0].name, questions, frozenset().union(*(part.test_ids for part in parts))),
                tools.systems,
            )
    yield from _with_skeletons_of_the_model(tools, opened)


def _made_by_the_model(texts: Iterable[str]) -> bool:
    """Whether the local model made a skeleton of every text."""
    return all(text in skeletons_of_the_model() for text in texts)


def _with_skeletons_of_the_model(
    tools: Instruments, opened: bool
) -> Iterator[tuple[Choices, Callable[[Choices], list[System]]]]:
    """The sets of which the local model made some skeletons: as many questions, in the order of a hash, as
    there was time for.
    """
    for name in _PARTLY_MADE:
        every = choices(name)
        ids = {
            question.id
            for question in every.questions
            if _made_by_the_model((question.source, *question.choices))
        }
        if _FEWEST <= len(ids) < len(every.questions):
            title = f"{name}, with skeletons of {MODEL_OF_SKELETONS}"
            some = replace(every.only(ids), name=title, test_ids=every.test_ids & ids)
            yield (some if opened else some.dev), tools.with_the_model


def answer_sets(tools: Instruments, folder: Path, opened: bool) -> Iterator[Choices]:
    """Ask every system every question, and keep what it said; what is kept already is not asked again."""
    for some, build in _sets(tools, opened):
        path = folder / "answers" / f"{some.name}.jsonl.gz"
        wanted = build(some.dev)
        if (
            path.exists()
            and answers_in(path) == len(some.questions)
            and set(load_answers(path, some)) == {one.name for one in wanted}
        ):
            continue
        said = [answered(system, some) for system in wanted]
        save_answers(said, some, path)
        if some.name not in CHOICES:
            save_choices(some, folder / "questions" / f"{some.name}.jsonl.gz")
        yield some


def search_pools(tools: Instruments, path: Path, opened: bool) -> Iterator[Retrieval]:
    """Search each collection with every system; of a query its measures are kept, not its ranking."""
    rows: list[dict[str, object]] = []
    for name in _SEARCHED:
        every = retrieval(name)
        asked = every if opened else every.dev
        taught = choices(_TAUGHT_BY.get(name, name.replace("T2", "T1"))).dev
        whole = _made_by_the_model(document.text for document in every.dataset.documents)
        extra = [tools.skeleton(f"skeleton, {MODEL_OF_SKELETONS}", skeletons_of_the_model())] * whole
        for system in [*tools.searchers(taught), *extra]:
            made = run(searching(system, asked), asked.dataset.queries, keep=len(asked.dataset.documents))
            found = score(made, asked.dataset.qrels, _MEASURES)
            by = {measure: found.per_query(measure) for measure in _MEASURES}
            for query in asked.dataset.queries:
                values = {measure: round(by[measure][query.id], 6) for measure in _MEASURES}
                test = query.id in every.dataset.test_ids
                rows.append(
                    {
                        "set": name,
                        "system": system.name,
                        "kind": system.kind,
                        "query": query.id,
                        "locked": test,
                        **values,
                    }
                )
        yield asked
    _keep(path, rows)


def draw_edges(tools: Instruments, path: Path, opened: bool) -> Iterator[AnalogyPairs | str]:
    """Draw delta edges over all texts of each set, and as many edges by the surface alone."""
    rows: list[dict[str, object]] = []
    for name in PAIRS:
        every = pairs(name)
        graph = PropertyGraph.of(
            [Node(document.id, properties={"text": document.text}) for document in every.documents]
        )
        made = make_skeletons([document.text for document in every.documents], tools.masked_maker)
        calibrated = _for_edges(tools, every)
        yield f"{every.name}: {calibrated}"
        for rule, thresholds in {"as specified": DEFAULT_THRESHOLDS, "calibrated": calibrated}.items():
            for verifier in (None, tools.aligner):
                found = delta_edges(
                    graph,
                    made,
                    tools.embedder,
                    thresholds=replace(thresholds, words=0),
                    verifier=verifier,
                    most=2_000_000,
                )
                edges = [Drawn(edge.source, edge.target, float(edge.properties["weight"])) for edge in found]
                title = f"delta, {rule}{', verified' * (verifier is not None)}"
                rows += _judged(title, "structure", edges, every, opened, thresholds)
                if verifier is not None:
                    aligned = [
                        Drawn(edge.source, edge.target, float(edge.properties["alignment_score"]))
                        for edge in found
                    ]
                    rows += _judged(
                        f"{title}, best aligned",
                        "structure",
                        _first(aligned, every, opened),
                        every,
                        opened,
                        thresholds,
                    )
        for system in (Surface(tools.embedder), Words(), MinusSurface(Surface(tools.embedder))):
            edges = list(drawn(system, every if opened else every.dev, 5_000))
            rows += _judged(
                f"{system.name}, as many as analogous",
                system.kind,
                _first(edges, every, opened),
                every,
                opened,
            )
        yield every
    _keep(path, rows)


def _first(edges: Sequence[Drawn], every: AnalogyPairs, opened: bool) -> list[Drawn]:
    """As many of the best edges of each part as it has analogous pairs."""
    kept: dict[tuple[str, str], Drawn] = {}
    for part in (every.dev, every.held_out)[: 1 + opened]:
        among = sorted(
            (edge for edge in edges if part.judges(edge.first, edge.second)),
            key=lambda edge: (-edge.score, edge[:2]),
        )
        kept |= {edge[:2]: edge for edge in among[: len(part.analogous)]}
    return list(kept.values())


def _judged(
    title: str,
    kind: str,
    edges: Sequence[Drawn],
    every: AnalogyPairs,
    opened: bool,
    thresholds: Thresholds | None = None,
) -> Iterator[dict[str, object]]:
    """For each part how many edges there are and which of them join analogous texts: the result."""
    for part, name in ((every.dev, "develop"), (every.held_out, "locked"))[: 1 + opened]:
        among = [edge for edge in edges if part.judges(edge.first, edge.second)]
        right = [edge for edge in among if pair(edge.first, edge.second) in part.analogous]
        about = {"set": every.name, "part": name, "system": title, "kind": kind, "edges": len(among)}
        told = {"thresholds": [thresholds.skeleton, thresholds.delta]} if thresholds else {}
        size = {"analogous": len(part.analogous), "pairs": part.judged}
        yield {**about, **told, **size, "right": sorted([edge.first, edge.second] for edge in right)}


def _for_edges(tools: Instruments, every: AnalogyPairs) -> CalibratedThresholds:
    """Thresholds for edges at the prevalence of a graph: the best precision at a recall of .1 on dev
    pairs, others drawn at random.
    """
    part = every.dev
    text_of, ids = {document.id: document.text for document in every.documents}, sorted(part.ends)
    chance = np.random.default_rng(0)
    drawn_ids = [(ids[a], ids[b]) for a, b in chance.integers(0, len(ids), (_OTHERS, 2)).tolist() if a != b]
    others = {pair(*both) for both in drawn_ids if part.judges(*both)} - part.analogous
    among = [*sorted(part.analogous), *sorted(others)]
    made = make_skeletons([document.text for document in every.documents], tools.masked_maker)
    texts = [(text_of[a], text_of[b]) for a, b in among]
    known = [all(text in made for text in both) for both in texts]
    found = compare_pairs(
        [both for both, sure in zip(texts, known, strict=True) if sure], made, tools.embedder
    )
    labels = [number < len(part.analogous) for number, sure in enumerate(known) if sure]
    aim = CalibrationObjective(least_recall=0.1, prevalence=part.prevalence)
    best = calibrate_thresholds(
        found, labels, embedder=tools.embedder.name, maker=tools.masked_maker.name, aim=aim, steps=200
    )
    return best


_Likeness = Callable[[SystemPair], Numbers]


def _likenesses(embedder: Embedder) -> Mapping[str, tuple[str, _Likeness]]:
    """How alike each target word is to each source word, shape (terms, terms), in several ways."""

    def words(one: SystemPair) -> tuple[Numbers, Numbers]:
        return _vectors(embedder, [term.target for term in one.terms]), _vectors(
            embedder, [term.source for term in one.terms]
        )

    def near(one: SystemPair) -> Numbers:
        targets, sources = words(one)
        return targets @ sources.T

    def offset(one: SystemPair) -> Numbers:
        """As the target system is to its word, so is the source system to its own (Mikolov et al. 2013)."""
        targets, sources = words(one)
        return (
            _lengths(targets - _vectors(embedder, [one.target]))
            @ _lengths(sources - _vectors(embedder, [one.source])).T
        )

    def in_place(one: SystemPair) -> Numbers:
        """Each word told as a part of its system."""
        targets = _vectors(embedder, [f"{term.target} of a {one.target}" for term in one.terms])
        return targets @ _vectors(embedder, [f"{term.source} of a {one.source}" for term in one.terms]).T

    return {
        "surface": ("surface", near),
        "minus surface": ("control", lambda one: -near(one)),
        "offset from the system": ("structure", offset),
        "told in the system": ("structure", in_place),
    }


def _vectors(embedder: Embedder, texts: Sequence[str]) -> Numbers:
    return np.asarray(embedder.embed(texts), np.float64)


def _lengths(rows: Numbers) -> Numbers:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def map_words(tools: Instruments, path: Path, opened: bool) -> None:
    """Map the words of each pair of systems one to one, by the assignment with the largest sum."""
    from scipy.optimize import linear_sum_assignment

    every, rows = system_pairs(), []
    for name, (kind, likeness) in _likenesses(tools.embedder).items():
        for one in every.pairs if opened else every.dev.pairs:
            targets, sources = linear_sum_assignment(-likeness(one))
            proposed = {
                one.terms[t].target: one.terms[s].source for t, s in zip(targets, sources, strict=True)
            }
            test = one.id in every.test_ids
            rows.append(
                {
                    "pair": one.id,
                    "system": name,
                    "kind": kind,
                    "locked": test,
                    "terms": len(one.terms),
                    "right": round(mapped(one, proposed), 6),
                }
            )
    _keep(path, rows)


def _keep(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    write_atomically(
        path, gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0), "the result"
    )
