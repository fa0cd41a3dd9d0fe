"""Does a structural system see structure, or only the surface turned round? Writes benchmarks/results/structure.

Written down before the locked parts were opened:
- The measure is accuracy over four-way questions. The system named beforehand is `fitted surface + aligned`, for every set; of those
  that fit nothing it is `aligned`. Each is compared, question by question, with the best control on that set: the one with the highest
  accuracy on the develop part, among those that fit nothing for `aligned`, among all for `fitted surface + aligned`. One family of
  tests (Holm) each.
- `fitted surface` is the strongest control that could be built: it learns on the develop part how much nine traits of the surface count,
  traits among them by which a set gives its answers away. `+ aligned` is the same fit with the score of the alignment as one more trait.
- In the four cells (near or far analogue, similar or dissimilar wrong choices) a system is to be above chance, .25, in each. In the
  matched questions neither nearness nor shared nouns tell the answer; see kgot_lab/experiments/structure/cells.py for both rules.
- Thresholds and weights come from develop parts alone, as do the weights, limits and word lists of the aligner, so that its develop
  figures flatter a little; the locked ones do not. Fitted systems answer develop questions crosswise.

Added after the locked parts had been opened, to explain: `aligned, in any order` and `fitted surface + skeleton, masked`, which tell
what the order and the alignment add to masking; more systems among the searches; thresholds of edges chosen for precision.

`python benchmarks/structure.py` runs the develop parts; `--open` runs the locked ones too; both write receipts. `--table` derives all
tables from the receipts, without a model. About ten minutes; skeletons of the local model come from data/skeletons.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from structure_report import ANSWERS, CELLS, EDGES, MAPPINGS, SEARCHES, show

from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.calibration import Aim, Calibrated, calibrated_thresholds
from kgot_lab.analogy.delta_edges import compare_pairs, delta_edges
from kgot_lab.analogy.linguistic import Linguistic
from kgot_lab.analogy.skeleton_makers import StoredSkeletons, stored
from kgot_lab.analogy.skeletons import Maker, skeletons
from kgot_lab.bundled import bundled
from kgot_lab.embedding.vectors import minilm
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import Numbers
from kgot_lab.experiments.structure.analogies import CHOICES, ITEMS, Choices, choices
from kgot_lab.experiments.structure.analogy_pairs import PAIRS, AnalogyPairs, pair, pairs
from kgot_lab.experiments.structure.analogy_pools import retrieval
from kgot_lab.experiments.structure.answered import load_answers, save_answers, save_choices
from kgot_lab.experiments.structure.cells import FOUR, cells_of
from kgot_lab.experiments.structure.controls import MinusSurface, NounVeto, RandomSkeleton, SecondBySurface
from kgot_lab.experiments.structure.edges import Drawn, drawn
from kgot_lab.experiments.structure.fitted import ALL, SIMPLE, Fitted, OnTheSurface, Said, Together
from kgot_lab.experiments.structure.nouns import Nouns
from kgot_lab.experiments.structure.structural import Aligned, Delta, DeltaVerified, Skeleton
from kgot_lab.experiments.structure.system_pairs import SystemPair, mapped, system_pairs
from kgot_lab.experiments.structure.systems import Surface, System, Words, answered, searching
from kgot_lab.experiments.structure.tables import answers_in
from kgot_lab.graph import PropertyGraph
from kgot_lab.pairs.bands import SPECIFIED, Thresholds
from kgot_lab.types import Node

MODEL = "the local model"
TAUGHT_BY = {"storyanalogy-mc pool": "storyanalogy-mc", "parallelparc pool": "parallelparc advanced"}  # where a fit for a search learns
SEARCHED = ("storyanalogy-mc pool", "analobench T2 S1", "analobench T2 S10", "analobench T2 S30", "parallelparc pool")
MEASURES = ("map", "mrr", "recall@1", "recall@10")
OTHERS = 20_000  # pairs that are not analogous, drawn to calibrate on

embedder, nouns, aligner = minilm(), Nouns(), Aligner(minilm())
masked_maker, events_maker = Linguistic(style="masked"), Linguistic(style="events")


# --- systems ----------------------------------------------------------------------------------------------------------


@cache
def model() -> StoredSkeletons:
    """The skeletons that the local model made."""
    return stored(bundled("skeletons/local-model.jsonl.gz"))


def skeleton(name: str, maker: Maker) -> Skeleton:
    return Skeleton(name, lambda texts: skeletons(texts, maker), embedder)


def masked(text: str) -> str:
    return skeletons([text], masked_maker, cache=False).get(text, text)


def stranger() -> System:
    """The masked skeletons, dealt out anew among texts of like length."""

    def make(skeleton_of: Callable[[str], str]) -> System:
        return Skeleton("random skeleton", lambda texts: {text: skeleton_of(text) for text in texts}, embedder)

    return RandomSkeleton(make, lambda text: skeletons([text], masked_maker, cache=False).get(text, ""))


def surface_traits(names: Sequence[str] = ALL) -> OnTheSurface:
    return OnTheSurface(Surface(embedder), Words(), nouns, names)


def with_alignment(taught: Choices) -> Fitted:
    traits = Together(surface_traits(), Said(Aligned("aligned", aligner)))
    return Fitted("fitted surface + aligned", traits, taught, kind="structure")


def systems(taught: Choices) -> list[System]:
    """Surface, controls and structure; what is fitted or calibrated learns from the develop questions given."""
    masks, thresholds = skeleton("skeleton, masked", masked_maker), chosen(taught, masked_maker)
    return [
        Surface(embedder),
        Words(),
        MinusSurface(Surface(embedder)),
        SecondBySurface(Surface(embedder)),
        NounVeto(Surface(embedder), nouns),
        NounVeto(Surface(embedder), nouns, masked=(Surface(embedder), masked)),
        stranger(),
        Fitted("fitted surface, simple", surface_traits(SIMPLE), taught),
        Fitted("fitted surface", surface_traits(), taught),
        masks,
        skeleton("skeleton, events", events_maker),
        Delta("delta, as specified", Surface(embedder), masks),
        Delta("delta, calibrated", Surface(embedder), masks, thresholds),
        DeltaVerified("delta, verified", Delta("", Surface(embedder), masks), Aligned("", aligner)),
        Aligned("aligned", aligner),
        Aligned("aligned, veto", aligner, veto=True),
        Aligned("aligned, in any order", Aligner(embedder, ordered=False)),
        Fitted("fitted surface + skeleton, masked", Together(surface_traits(), Said(masks)), taught, kind="structure"),
        Fitted(
            "fitted surface, simple + aligned",
            Together(surface_traits(SIMPLE), Said(Aligned("aligned", aligner))),
            taught,
            kind="structure",
        ),
        with_alignment(taught),
    ]


def with_the_model(taught: Choices) -> list[System]:
    """What the local model's skeletons give, and the systems they are to be compared with."""
    own = skeleton(f"skeleton, {MODEL}", model())
    both = Together(surface_traits(), Said(Aligned("aligned", aligner)), Said(own))
    return [
        *systems(taught),
        own,
        Delta(f"delta, {MODEL}, as specified", Surface(embedder), own),
        Delta(f"delta, {MODEL}, calibrated", Surface(embedder), own, chosen(taught, model())),
        DeltaVerified(f"delta, {MODEL}, verified", Delta("", Surface(embedder), own), Aligned("", aligner)),
        Fitted(f"fitted surface + aligned + {MODEL}", both, taught, kind="structure"),
    ]


def chosen(taught: Choices, maker: Maker) -> Calibrated:
    """The thresholds that tell right choices from wrong ones best (F1) on develop questions."""
    labelled = [
        (question.source, text, place == question.answer) for question in taught.questions for place, text in enumerate(question.choices)
    ]
    labelled = [each for each in labelled if each[0] != each[1]]
    made = skeletons(taught.texts, maker)
    known = [(source, text, label) for source, text, label in labelled if source in made and text in made]
    found = compare_pairs([(source, text) for source, text, _ in known], made, embedder)
    return calibrated_thresholds(found, [label for _, _, label in known], embedder=embedder.name, maker=maker.name)


# --- sets -------------------------------------------------------------------------------------------------------------


def sets(opened: bool) -> Iterator[tuple[Choices, Callable[[Choices], list[System]]]]:
    """The sets of questions, each with its systems; only their develop parts unless they are opened."""
    for name in CHOICES:
        every = choices(name)
        yield (every if opened else every.develop), with_the_model if name == "analobench T1 S1" else systems
    for name in ITEMS:
        for traps in (FOUR, ("matched",)):
            parts = [cells_of(name, embedder, nouns, opened=part, traps=traps).choices for part in (False, True)[: 1 + opened]]
            questions = tuple(question for part in parts for question in part.questions)
            yield Choices(parts[0].name, questions, frozenset().union(*(part.locked for part in parts))), systems
    yield from with_skeletons_of_the_model(opened)


def with_skeletons_of_the_model(opened: bool) -> Iterator[tuple[Choices, Callable[[Choices], list[System]]]]:
    """The stories of which the local model made all skeletons: as many questions, in the order of a hash, as there was time for."""
    every = choices("storyanalogy-mc")
    made = skeletons(every.texts, model(), cache=False)
    ids = {question.id for question in every.questions if all(text in made for text in (question.source, *question.choices))}
    if len(ids) >= 30:
        some = replace(every.only(ids), name=f"storyanalogy-mc, {len(ids)} with skeletons of {MODEL}", locked=every.locked & ids)
        yield (some if opened else some.develop), with_the_model


def answer(opened: bool) -> None:
    """Ask every system every question, and keep what it said; what is kept already is not asked again."""
    for some, build in sets(opened):
        began, path = time.perf_counter(), ANSWERS / f"{some.name}.jsonl.gz"
        wanted = build(some.develop)
        if path.exists() and answers_in(path) == len(some.questions) and set(load_answers(path, some)) == {one.name for one in wanted}:
            continue
        said = [answered(system, some) for system in wanted]
        save_answers(said, some, path)
        if some.name not in CHOICES:
            save_choices(some, CELLS / f"{some.name}.jsonl.gz")
        print(f"{time.perf_counter() - began:5.0f} s  {some}", flush=True)


# --- searches ---------------------------------------------------------------------------------------------------------


def searchers(taught: Choices) -> list[System]:
    masks = skeleton("skeleton, masked", masked_maker)
    return [
        Surface(embedder),
        Words(),
        MinusSurface(Surface(embedder)),
        SecondBySurface(Surface(embedder)),
        NounVeto(Surface(embedder), nouns),
        NounVeto(Surface(embedder), nouns, masked=(Surface(embedder), masked)),
        stranger(),
        Fitted("fitted surface", surface_traits(), taught),
        masks,
        skeleton("skeleton, events", events_maker),
        Delta("delta, as specified", Surface(embedder), masks),
        Delta("delta, calibrated", Surface(embedder), masks, chosen(taught, masked_maker)),
        Aligned("aligned", aligner),
        with_alignment(taught),
    ]


def search(opened: bool) -> None:
    """Search each collection with every system; of a query its measures are kept, not its ranking."""
    rows = []
    for name in SEARCHED:
        began = time.perf_counter()
        every = retrieval(name)
        asked = every if opened else every.develop
        taught = choices(TAUGHT_BY.get(name, name.replace("T2", "T1"))).develop
        extra = [skeleton(f"skeleton, {MODEL}", model())] if name == "analobench T2 S1" else []
        for system in [*searchers(taught), *extra]:
            made = run(searching(system, asked), asked.dataset.queries, keep=len(asked.dataset.documents))
            found = score(made, asked.dataset.qrels, MEASURES)
            by = {measure: found.per_query(measure) for measure in MEASURES}
            for query in asked.dataset.queries:
                values = {measure: round(by[measure][query.id], 6) for measure in MEASURES}
                locked = query.id in every.dataset.locked
                rows.append({"set": name, "system": system.name, "kind": system.kind, "query": query.id, "locked": locked, **values})
        print(f"{time.perf_counter() - began:5.0f} s  {asked}", flush=True)
    keep(SEARCHES, rows)


# --- edges ------------------------------------------------------------------------------------------------------------


def draw(opened: bool) -> None:
    """Draw delta edges over all texts of each set, and as many edges by the surface alone."""
    rows = []
    for name in PAIRS:
        began = time.perf_counter()
        every = pairs(name)
        graph = PropertyGraph.of([Node(document.id, properties={"text": document.text}) for document in every.documents])
        made = skeletons([document.text for document in every.documents], masked_maker)
        for rule, thresholds in {"as specified": SPECIFIED, "calibrated": for_edges(every)}.items():
            for verifier in (None, aligner):
                found = delta_edges(graph, made, embedder, thresholds=thresholds, verifier=verifier, most=2_000_000)
                edges = [Drawn(edge.source, edge.target, float(edge.properties["weight"])) for edge in found]
                title = f"delta, {rule}{', verified' * (verifier is not None)}"
                rows += judged(title, "structure", edges, every, opened, thresholds)
                if verifier is not None:
                    aligned = [Drawn(edge.source, edge.target, float(edge.properties["alignment_score"])) for edge in found]
                    rows += judged(f"{title}, best aligned", "structure", first(aligned, every, opened), every, opened, thresholds)
        for system in (Surface(embedder), Words(), MinusSurface(Surface(embedder))):
            edges = list(drawn(system, every if opened else every.develop, 5_000))
            rows += judged(f"{system.name}, as many as analogous", system.kind, first(edges, every, opened), every, opened)
        print(f"{time.perf_counter() - began:5.0f} s  {every}", flush=True)
    keep(EDGES, rows)


def first(edges: Sequence[Drawn], every: AnalogyPairs, opened: bool) -> list[Drawn]:
    """As many of the best edges of each part as it has analogous pairs."""
    kept: dict[tuple[str, str], Drawn] = {}
    for part in (every.develop, every.opened)[: 1 + opened]:
        among = sorted((edge for edge in edges if part.judges(edge.first, edge.second)), key=lambda edge: (-edge.score, edge[:2]))
        kept |= {edge[:2]: edge for edge in among[: len(part.analogous)]}
    return list(kept.values())


def judged(
    title: str, kind: str, edges: Sequence[Drawn], every: AnalogyPairs, opened: bool, thresholds: Thresholds | None = None
) -> Iterator[dict[str, object]]:
    """For each part how many edges there are and which of them join analogous texts: the receipt."""
    for part, name in ((every.develop, "develop"), (every.opened, "locked"))[: 1 + opened]:
        among = [edge for edge in edges if part.judges(edge.first, edge.second)]
        right = [edge for edge in among if pair(edge.first, edge.second) in part.analogous]
        about = {"set": every.name, "part": name, "system": title, "kind": kind, "edges": len(among)}
        told = {"thresholds": [thresholds.skeleton, thresholds.delta]} if thresholds else {}
        size = {"analogous": len(part.analogous), "pairs": part.judged}
        yield {**about, **told, **size, "right": sorted([edge.first, edge.second] for edge in right)}


def for_edges(every: AnalogyPairs) -> Calibrated:
    """Thresholds for edges at the prevalence of a graph: the best precision at a recall of .1 on develop pairs, others drawn by lot."""
    part = every.develop
    text_of, ids = {document.id: document.text for document in every.documents}, sorted(part.ends)
    chance = np.random.default_rng(0)
    drawn_ids = [(ids[a], ids[b]) for a, b in chance.integers(0, len(ids), (OTHERS, 2)).tolist() if a != b]
    others = {pair(*both) for both in drawn_ids if part.judges(*both)} - part.analogous
    among = [*sorted(part.analogous), *sorted(others)]
    made = skeletons([document.text for document in every.documents], masked_maker)
    texts = [(text_of[a], text_of[b]) for a, b in among]
    known = [all(text in made for text in both) for both in texts]
    found = compare_pairs([both for both, sure in zip(texts, known, strict=True) if sure], made, embedder)
    labels = [number < len(part.analogous) for number, sure in enumerate(known) if sure]
    aim = Aim(least_recall=0.1, prevalence=part.prevalence)
    best = calibrated_thresholds(found, labels, embedder=embedder.name, maker=masked_maker.name, aim=aim, steps=200)
    print(f"        {every.name}: {best}", flush=True)
    return best


# --- mappings ---------------------------------------------------------------------------------------------------------

Likeness = Callable[[SystemPair], Numbers]


def likenesses() -> Mapping[str, tuple[str, Likeness]]:
    """How alike each target word is to each source word, shape (terms, terms), in several ways."""

    def words(one: SystemPair) -> tuple[Numbers, Numbers]:
        return vectors([term.target for term in one.terms]), vectors([term.source for term in one.terms])

    def near(one: SystemPair) -> Numbers:
        targets, sources = words(one)
        return targets @ sources.T

    def offset(one: SystemPair) -> Numbers:
        """As the target system is to its word, so is the source system to its own (Mikolov et al. 2013)."""
        targets, sources = words(one)
        return lengths(targets - vectors([one.target])) @ lengths(sources - vectors([one.source])).T

    def in_place(one: SystemPair) -> Numbers:
        """Each word told as a part of its system."""
        targets = vectors([f"{term.target} of a {one.target}" for term in one.terms])
        return targets @ vectors([f"{term.source} of a {one.source}" for term in one.terms]).T

    return {
        "surface": ("surface", near),
        "minus surface": ("control", lambda one: -near(one)),
        "offset from the system": ("structure", offset),
        "told in the system": ("structure", in_place),
    }


def vectors(texts: Sequence[str]) -> Numbers:
    return np.asarray(embedder.embed(texts), np.float64)


def lengths(rows: Numbers) -> Numbers:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def map_words(opened: bool) -> None:
    """Map the words of each pair of systems one to one, by the assignment with the largest sum."""
    every, rows = system_pairs(), []
    for name, (kind, likeness) in likenesses().items():
        for one in every.pairs if opened else every.develop.pairs:
            targets, sources = linear_sum_assignment(-likeness(one))
            proposed = {one.terms[t].target: one.terms[s].source for t, s in zip(targets, sources, strict=True)}
            locked = one.id in every.locked
            rows.append(
                {
                    "pair": one.id,
                    "system": name,
                    "kind": kind,
                    "locked": locked,
                    "terms": len(one.terms),
                    "right": round(mapped(one, proposed), 6),
                }
            )
    keep(MAPPINGS, rows)


def keep(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", action="store_true", help="open the locked parts too, and keep the receipts")
    parser.add_argument("--table", action="store_true", help="derive the tables from the receipts, without a model")
    wanted = parser.parse_args()
    if not wanted.table:
        answer(wanted.open)
        search(wanted.open)
        draw(wanted.open)
        map_words(wanted.open)
    show()


if __name__ == "__main__":
    main()
