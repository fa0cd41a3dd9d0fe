"""The systems of the recall benchmark by name: single retrievers, fusions, graph walks, and controls."""

from __future__ import annotations

import hashlib
import random
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from kgot_lab.analogy.delta_edges import DELTA_EDGE, replace_computed_edges
from kgot_lab.arguments import check_arguments
from kgot_lab.benchmark.recall.datasets import open_dataset
from kgot_lab.embedding.embedder import Embedder, checked_embedder
from kgot_lab.embedding.embedders import embedder, embedder_by_name
from kgot_lab.embedding.vectors import InMemoryVectors, minilm
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import cutoff, score
from kgot_lab.evaluation.results import MARGIN, Plan
from kgot_lab.evaluation.runs import run
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.entry_points import errors_of, packaged
from kgot_lab.retrieval.dense import best_sentence, dense
from kgot_lab.retrieval.entity_linking import (
    LinkWeights,
    NameIndex,
    follow,
    name_graph,
    normalise_name,
    phrase_graph,
    title_graph,
)
from kgot_lab.retrieval.fusion import hybrid, rrf, strongest, weighted
from kgot_lab.retrieval.lexical import bm25, fts5, like
from kgot_lab.retrieval.multihop.retriever import WITHOUT_LINKS, load_scorer, multihop
from kgot_lab.retrieval.neighbours import boost, boosted_neighbours, jaccard
from kgot_lab.retrieval.pagerank import Seeds, first_hits, nearest_triples, pagerank, titles_in_question
from kgot_lab.retrieval.pass_through import Walk, traverse
from kgot_lab.retrieval.selection import Selection, select_retrievers
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Edge, Ranking

# Cross-fitting: what is chosen on some queries is applied to the others.

MIN_DEV_QUERIES = 4  # minimum number of dev queries for tuning
_PRIMARY = Plan.primary  # the measure to tune for, unless a plan names another
_DEFAULT_DEPTH = 100  # hits stored for a measure without a depth
_GRID = tuple(step / 10 for step in range(11))  # candidate weights; at 0 and 1 a single retriever remains


def cross_fit(dataset: Dataset, fit: Callable[[Dataset], Stage], name: str) -> Stage:
    """Fit a stage by two-fold cross-fitting on the dev queries.

    Each half of the dev queries uses the stage fitted on the other half. All other queries use the stage
    fitted on both. The halves are chosen by a hash of the query id. Raises BadInput for fewer than four dev
    queries.
    """
    first, second = halves(dataset)
    for_first, for_second, for_others = fit(second), fit(first), fit(dataset.dev)
    fitted = dict.fromkeys((query.id for query in first.queries), for_first)
    fitted |= dict.fromkeys((query.id for query in second.queries), for_second)
    ways = {stage.name: stage for stage in (for_first, for_second, for_others)}

    def step(ranking: Ranking) -> Ranking:
        return fitted.get(ranking.query.id, for_others)(ranking)

    return Stage(f"{name}({'; '.join(ways)})", step, inputs=tuple(("", stage) for stage in ways.values()))


def halves(dataset: Dataset) -> tuple[Dataset, Dataset]:
    """Split the dev queries into two halves by a hash of their ids. Raises BadInput for fewer than four."""
    dev = dataset.dev
    ids = [query.id for query in dev.queries]
    if len(ids) < MIN_DEV_QUERIES:
        need = f"tuning in two halves takes at least {MIN_DEV_QUERIES}"
        raise BadInput(f"{dataset.name} has {len(ids)} dev queries; {need}")
    ids.sort(key=lambda id: hashlib.sha256(f"half {id}".encode()).hexdigest())
    return dev.only(ids[: len(ids) // 2]), dev.only(ids[len(ids) // 2 :])


def mean_score(part: Dataset, measure: str) -> Callable[[Stage], float]:
    """Return a function that gives the mean of a measure for a stage on the queries of a data set."""
    keep = cutoff(measure) or _DEFAULT_DEPTH
    return lambda stage: score(run(stage, part.queries, keep=keep), part.qrels, [measure]).mean(measure)


def best_weight(first: Stage, second: Stage, part: Dataset, measure: str = _PRIMARY) -> Stage:
    """Return the convex fusion of two retrievers with the best weight on a data set.

    Ties go to the weight nearest to .5.
    """
    one, other = _cached_stages({"first": first, "second": second}).values()
    reached = mean_score(part, measure)
    found = {weight: reached(weighted((weight, one), (1 - weight, other))) for weight in _GRID}
    weight = max(found, key=lambda weight: (found[weight], -abs(weight - 0.5)))
    return weighted((weight, first), (round(1 - weight, 1), second))


def select_for_fusion(
    retrievers: Mapping[str, Stage],
    fuse: Callable[[Sequence[Stage]], Stage],
    part: Dataset,
    margin: float = MARGIN,
    measure: str = _PRIMARY,
) -> Selection:
    """Select the retrievers of a fusion on the queries of a data set.

    The resulting pipeline uses the retrievers themselves, without a cache.
    """
    decided = select_retrievers(_cached_stages(retrievers), fuse, mean_score(part, measure), margin=margin)
    chosen = [retrievers[name] for name in decided.selected]
    return Selection(chosen[0] if len(chosen) == 1 else fuse(chosen), decided.trials, decided.margin)


def _cached_stages(retrievers: Mapping[str, Stage]) -> dict[str, Stage]:
    """Wrap retrievers with a cache of their rankings, since tuning repeats the same queries."""
    return {name: _cached_stage(retriever) for name, retriever in retrievers.items()}


def _cached_stage(retriever: Stage) -> Stage:
    known: dict[str, Ranking] = {}

    def step(ranking: Ranking) -> Ranking:
        if ranking.query.id not in known:
            known[ranking.query.id] = retriever(ranking)
        return known[ranking.query.id]

    return Stage(retriever.name, step, inputs=retriever.inputs)


Stages = Mapping[str, Callable[[], Stage]]
ENTRY_POINTS = "kgot_lab.retrievers"
BASELINE = "convex"
DEFAULT_PLAN = Plan(BASELINE, expected="follow, sentences")
INTERLEAVED_WALK = Walk(interleaved=True, rest=True)
INTERLEAVED_DELTA_WALK = replace(INTERLEAVED_WALK, computed=(DELTA_EDGE,))


VERSION = "1"  # version of the bundled systems: increase it when the results of one change
_WITHOUT_VECTORS = {"like", "fts5", "bm25", "static vectors", "lsa", "infonce", "graph boost only", "jaccard"}


@dataclass(frozen=True, eq=False)
class BundledSystem:
    """A builder of a bundled system, with its version and its embedder."""

    name: str
    build: Callable[[], Stage]
    embedder: Embedder | None
    version: str

    def __call__(self) -> Stage:
        return self.build()


@dataclass(frozen=True, eq=False)
class TunedSystem:
    """A system tuned by the plan of a benchmark: by its primary measure and its margin.

    Without a plan, the default plan is used.
    """

    build: Callable[[Plan], Stage]
    name: str = ""
    embedder: Embedder | None = None
    version: str = ""

    def __call__(self) -> Stage:
        return self.build(DEFAULT_PLAN)

    def tuned_by(self, plan: Plan) -> BundledSystem:
        """Return the system tuned by a plan."""
        return BundledSystem(self.name, partial(self.build, plan), self.embedder, self.version)


@check_arguments
def systems(data: Dataset | str | Path, vectors: Embedder | str | None = None) -> Stages:
    """Return the builders of all systems for a data set, by short name.

    Parts that several systems share are built once. `data` is a data set, its name or a folder. `vectors` is
    an embedder or a name that embedder_by_name() takes, by default MiniLM. Query vectors are computed when the
    first part that needs them is built, so that no search waits for them. Raises what embedder_by_name()
    raises, and BadInput if `data` is no data set or `vectors` no embedder. Every retriever has real input:
    there is no dimension filter and no intent retriever, since no bundled data set has dimensions or intents.
    The graph of a language model exists only if the data hold its triples, and delta edges only if the data
    hold them. Tuning uses dev queries with two-fold cross-fitting. Retrievers of other packages are functions
    of the documents that build a Stage, with entry points in the group kgot_lab.retrievers.
    """
    dataset = open_dataset(data)
    given = minilm() if vectors is None else vectors
    if isinstance(given, str):
        given = embedder_by_name(given)
    checked_embedder(given)
    parts, documents = _Parts(dataset, given), dataset.documents

    def fitted_dense(method: str) -> Stage:
        return dense(documents, embedder(method, documents=documents), name=f"embeddings({method})")

    def follow_links(weights: LinkWeights, graph: PropertyGraph) -> Stage:
        return parts.convex >> follow(*parts.inputs, weights, graph=graph)

    def graph_pagerank(graph: PropertyGraph) -> Stage:
        return parts.convex >> pagerank(graph, first_hits(5), parts.seeds)

    def walk_graph(graph: PropertyGraph, walk: Walk = INTERLEAVED_WALK) -> Stage:
        return traverse(graph, parts.convex, walk=walk, through_hubs=False)

    made: dict[str, Callable[[], Stage]] = {
        "like": lambda: parts.like,
        "fts5": lambda: parts.fts5,
        "bm25": lambda: parts.lexical,
        "embeddings": lambda: parts.dense,
        "static vectors": lambda: dense(documents, embedder("wordllama"), name="embeddings(wordllama)"),
        "lsa": lambda: fitted_dense("lsa"),
        "infonce": lambda: fitted_dense("infonce"),
        "sentences": lambda: parts.sentences,
        "graph boost only": lambda: parts.graph_boost,
        "jaccard": lambda: parts.jaccard,
        BASELINE: lambda: parts.convex,
        "rrf": lambda: rrf(parts.dense, parts.lexical),
        "kg-os hybrid": lambda: parts.hybrid,
        "rrf of three": lambda: rrf(parts.dense, parts.text, parts.graph_boost),
        "rrf of six": lambda: rrf(*parts.six_retrievers.values()),
        "rrf of six, paths": lambda: rrf(*(parts.six_retrievers | {"like": parts.neighbours}).values()),
        "weighted, six": lambda: _equal_weights(list(parts.six_retrievers.values())),
        "convex + boost": lambda: parts.convex >> boost(parts.titles, 0.2),
        "neighbours": lambda: parts.neighbours,
        "neighbours, turns": lambda: walk_graph(parts.titles),
        "pass-through": lambda: traverse(parts.names, parts.convex, walk=Walk(rest=True)),
        "pass-through, turns": lambda: traverse(parts.names, parts.convex, walk=INTERLEAVED_WALK),
        "pagerank, titles": lambda: parts.pagerank,
        "pagerank, names": lambda: graph_pagerank(parts.names),
        "pagerank + bm25, rrf": lambda: rrf(parts.pagerank, parts.lexical),
        "pagerank + bm25, convex": lambda: weighted((0.7, parts.pagerank), (0.3, parts.lexical)),
        "follow": lambda: parts.convex >> parts.follow,
        "follow, sentences": lambda: parts.with_sentences >> parts.follow,
        "control: titles shuffled": lambda: graph_pagerank(shuffle_targets(parts.titles)),
        "control: names shuffled": lambda: follow_links(LinkWeights(), shuffle_targets(parts.names)),
        "control: no links": lambda: follow_links(LinkWeights(title=0, shared=0, repeated=0), parts.names),
        "trail": lambda: multihop(*parts.inputs),
        "control: trail, no links": lambda: multihop(*parts.inputs, load_scorer(WITHOUT_LINKS)),
        "follow, titles only": lambda: follow_links(LinkWeights(shared=0), parts.names),
        "follow, names only": lambda: follow_links(LinkWeights(title=0), parts.names),
    }
    tuned: dict[str, Callable[[Plan], Stage]] = {}
    if len(dataset.dev.queries) >= MIN_DEV_QUERIES:
        tuned["convex, tuned"] = parts.tuned_convex
        tuned["gate"] = lambda plan: parts.selected_fusion(_equal_weights, plan, "gate")
        tuned["gate, rrf"] = lambda plan: parts.selected_fusion(
            lambda retrievers: rrf(*retrievers), plan, "gate with rrf"
        )
    if dataset.triples:
        made["pagerank, triples"] = lambda: (
            parts.convex >> pagerank(parts.phrases, parts.triple_seeds, first_hits(1000, 0.3))
        )
        made["follow, triples"] = lambda: (
            parts.with_sentences >> follow(*parts.inputs, graph=parts.triple_name_graph)
        )
    if dataset.isomorphic:
        made["neighbours, turns + delta"] = lambda: walk_graph(parts.delta, INTERLEAVED_DELTA_WALK)
        made["pagerank, titles + delta"] = lambda: graph_pagerank(parts.delta)
        made["control: delta shuffled"] = lambda: walk_graph(parts.delta_shuffled, INTERLEAVED_DELTA_WALK)
    built: dict[str, Callable[[], Stage]] = {
        name: BundledSystem(name, build, None if name in _WITHOUT_VECTORS else given, VERSION)
        for name, build in made.items()
    }
    built |= {name: TunedSystem(build, name, given, VERSION) for name, build in tuned.items()}
    return built | _packaged_systems(documents, built)


def _packaged_systems(
    documents: Sequence[Document], taken: Collection[str]
) -> dict[str, Callable[[], Stage]]:
    """Return builders of the retrievers of other packages, with a warning for one that cannot be loaded."""
    built: dict[str, Callable[[], Stage]] = {}
    for name, entry in packaged(ENTRY_POINTS, taken).items():
        try:
            with errors_of(entry):
                built[name] = partial(entry.load(), documents)
        except BadInput as error:
            warnings.warn(f"the retriever {name!r} is left out: {error}", stacklevel=3)
    return built


def shuffle_targets(graph: PropertyGraph, seed: int = 0) -> PropertyGraph:
    """Shuffle the targets of edges within each edge type, as a control that preserves all degrees."""
    targets: dict[str, list[str]] = {}
    for edge in graph.edges:
        targets.setdefault(edge.type, []).append(edge.target)
    chance = random.Random(seed)
    for some in targets.values():
        chance.shuffle(some)
    edges = [Edge(e.source, e.type, targets[e.type].pop(), key=str(n)) for n, e in enumerate(graph.edges)]
    return PropertyGraph.of(graph.nodes, edges)


class _Parts:
    """Parts that the systems of one data set share, each built on first use."""

    def __init__(self, dataset: Dataset, vectors: Embedder) -> None:
        self._dataset, self._documents, self._given = dataset, dataset.documents, vectors

    @cached_property
    def _embedder(self) -> Embedder:
        """The embedder, with the vectors of the queries: a benchmark times the search, not the model."""
        if isinstance(self._given, InMemoryVectors):
            return self._given
        remembered = InMemoryVectors(self._given)
        remembered.add_texts([query.text for query in self._dataset.queries])
        return remembered

    @property
    def inputs(self) -> tuple[tuple[Document, ...], Embedder]:
        return self._documents, self._embedder

    # retrievers

    like = cached_property(lambda self: like(self._documents))
    fts5 = cached_property(lambda self: fts5(self._documents))
    lexical = cached_property(lambda self: bm25(self._documents))
    dense = cached_property(lambda self: dense(self._documents, self._embedder))
    sentences = cached_property(lambda self: best_sentence(self._documents, self._embedder))
    text = cached_property(lambda self: strongest(self.lexical, self.fts5))
    graph_boost = cached_property(lambda self: boosted_neighbours(self.titles, self.like))
    jaccard = cached_property(lambda self: jaccard(self.titles, self.like))
    neighbours = cached_property(
        lambda self: traverse(self.titles, self.convex, walk=Walk(rest=True), through_hubs=False)
    )

    # graphs

    titles = cached_property(lambda self: title_graph(self._documents))
    names = cached_property(lambda self: name_graph(self._documents))
    phrases = cached_property(
        lambda self: phrase_graph(self._documents, self._dataset.triples, similarity=(self._embedder, 0.8))
    )
    delta = cached_property(lambda self: replace_computed_edges(self.titles, self._dataset.isomorphic))

    @cached_property
    def delta_shuffled(self) -> PropertyGraph:
        alone = PropertyGraph.of(self.titles.nodes, self._dataset.isomorphic)
        return replace_computed_edges(self.titles, shuffle_targets(alone).edges)

    @cached_property
    def triple_name_graph(self) -> PropertyGraph:
        ends = {
            id: [end for triple in some for end in (triple.subject, triple.object)]
            for id, some in self._dataset.triples.items()
        }
        held = {id: {*map(normalise_name, names)} - {""} for id, names in ends.items()}
        return name_graph(self._documents, lambda document: held.get(document.id, ()))

    name_index = cached_property(lambda self: NameIndex(self._documents))
    seeds = cached_property(lambda self: titles_in_question(self.name_index))

    @cached_property
    def triple_seeds(self) -> Seeds:
        triples = [triple for some in self._dataset.triples.values() for triple in some]
        return nearest_triples(triples, self._embedder)

    # fusions and walks

    convex = cached_property(lambda self: weighted((0.7, self.dense), (0.3, self.lexical)))
    with_sentences = cached_property(
        lambda self: weighted((0.36, self.dense), (0.36, self.sentences), (0.28, self.lexical))
    )
    hybrid = cached_property(
        lambda self: hybrid(
            "backward-compatible", embedding=self.dense, text=self.text, graph=self.graph_boost
        )
    )
    pagerank = cached_property(lambda self: self.convex >> pagerank(self.titles, first_hits(5), self.seeds))
    follow = cached_property(lambda self: follow(*self.inputs, graph=self.names))

    def tuned_convex(self, plan: Plan) -> Stage:
        """Return the convex fusion of dense and lexical retrieval with the weights tuned by the plan."""

        def fit(part: Dataset) -> Stage:
            return best_weight(self.dense, self.lexical, part, plan.primary)

        return cross_fit(self._dataset, fit, "tuned convex")

    def selected_fusion(self, fuse: Callable[[Sequence[Stage]], Stage], plan: Plan, name: str) -> Stage:
        """Return the fusion of the retrievers that are selected by the plan."""

        def fit(part: Dataset) -> Stage:
            return select_for_fusion(self.candidates, fuse, part, plan.margin, plan.primary).stage

        return cross_fit(self._dataset, fit, name)

    @cached_property
    def six_retrievers(self) -> dict[str, Stage]:
        """The seven mechanisms of KG-OS without the dimension filter, for which these data have no input."""
        return {
            "like": self.like,
            "fts5": self.fts5,
            "bm25": self.lexical,
            "embeddings": self.dense,
            "graph boost": self.graph_boost,
            "jaccard": self.jaccard,
        }

    @cached_property
    def candidates(self) -> dict[str, Stage]:
        """The retrievers to select from."""
        return self.six_retrievers | {"sentences": self.sentences, "pagerank": self.pagerank}


def _equal_weights(retrievers: Sequence[Stage]) -> Stage:
    return weighted(*((1 / len(retrievers), retriever) for retriever in retrievers))
