import math
import random
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.every import every
from support.searching import Letters, const

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.dense import dense
from kgot_lab.retrieval.entity_linking import (
    LinkWeights,
    NameIndex,
    follow,
    name_graph,
    normalise_name,
    title_graph,
)
from kgot_lab.retrieval.fusion import weighted
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Edge, Hit, HitColumns, Node, Query, Ranking, full_text, ranked

# --- the formula, with loops and dictionaries ---


class ByHand:
    """What the docstring of `follow` says, word by word. Kinds are those of (document, name), from the graph
    of names.
    """

    def __init__(self, documents, embedder, reach=LinkWeights(), graph=None):  # noqa: B008
        self.reach = reach
        self.documents = {d.id: d for d in sorted(documents, key=lambda d: d.id)}
        self.embedder = embedder
        self.titles = NameIndex(documents)
        vectors = embedder.embed([full_text(document) for document in self.documents.values()]).astype(float)
        self.vector = dict(zip(self.documents, vectors, strict=True))
        self.kind = {
            (e.source, e.target.removeprefix("name:")): e.type for e in (graph or name_graph(documents)).edges
        }
        self.holders, self.names = {}, {}
        for id, name in self.kind:
            self.holders.setdefault(name, []).append(id)
            self.names.setdefault(id, []).append(name)

    def begin(self, earlier):
        largest = max([0.0, *earlier.values()]) or 1.0
        own = {id: max(earlier.get(id, 0.0), 0.0) / largest for id in self.documents}
        for id in {
            id for name in self.titles.find_names(self.question, cased=False) for id in self.titles[name]
        }:
            own[id] += self.reach.asked
        asked = self.embedder.embed([self.question])[0].astype(float)
        cosine = {id: float(vector @ asked) for id, vector in self.vector.items()}
        low, high = min(cosine.values()), max(cosine.values())
        return own, {id: (value - low) / (high - low) if high > low else 1.0 for id, value in cosine.items()}

    def by_title(self, p, name, d):
        """The name is the title of one, and of the other too or mentioned there."""
        kinds = {self.kind[p, name], self.kind[d, name]}
        return "is called" in kinds and kinds <= {"is called", "mentions"}

    def links(self, p, likeness):
        """The strength of link(p, n, d), by (n, d)."""
        ways = [(name, d) for name in self.names.get(p, []) for d in self.holders[name] if d != p]
        fan = len({d for name, d in ways if self.by_title(p, name, d)})
        found = {}
        for name, d in ways:
            rarity = math.log(len(self.documents) / len(self.holders[name])) / math.log(len(self.documents))
            found[name, d] = (
                self.reach.title * (1 + likeness[d]) / 2 / math.sqrt(fan)
                if self.by_title(p, name, d)
                else 0.0
            )
            if (
                f" {name} " not in f" {normalise_name(self.question)} "
                and len(self.holders[name]) <= self.reach.common
            ):
                found[name, d] += self.reach.shared * rarity * likeness[d]
        return found

    def __call__(self, question, earlier):
        """The chosen in their order, the values of all others, and the strength of the best way to each
        document.
        """
        self.question = question
        own, likeness = self.begin(earlier)
        chosen, best = [], {}

        def value(d):
            near = max([0.0, *(float(self.vector[d] @ self.vector[p]) for p in chosen)])
            return own[d] - self.reach.repeated * near + best.get(d, 0.0)

        for _ in range(min(self.reach.hops, len(self.documents))):
            chosen.append(max((d for d in self.documents if d not in chosen), key=value))
            p = chosen[-1]
            for (_, d), strength in self.links(p, likeness).items():
                if d not in chosen:
                    best[d] = max(best.get(d, 0.0), min(own[p], 1.0) * strength)
        return (
            chosen,
            {d: value(d) for d in self.documents if d not in chosen},
            {d: gain for d, gain in best.items() if gain > 0},
        )


def assert_as_by_hand(ranking: Ranking, chosen, others, linked) -> None:
    assert ranking.ids[: len(chosen)] == chosen
    scores = dict(ranking.hits)
    assert {id: scores[id] for id in others} == pytest.approx(others, abs=2e-6)
    assert [hit.score for hit in ranking.hits] == sorted(scores.values(), reverse=True)
    assert len(scores) == len(chosen) + len(others)
    steps = [scores[one] - scores[other] for one, other in pairwise(chosen)]
    assert steps == pytest.approx([1.0] * len(steps))
    assert not (others and chosen) or scores[chosen[-1]] >= max(others.values()) + 1 - 1e-6
    assert dict(ranking.inputs[1][1].hits) == pytest.approx(linked, abs=2e-6)


@pytest.fixture(scope="module")
def hotpotqa():
    """The first passages of the set, and questions that are answered in them."""
    whole = load_dataset("hotpotqa").dev
    some = whole.documents[:300]
    ids = {document.id for document in some}
    asked = [query for query in whole.queries if whole.qrels[query.id].keys() <= ids]
    qrels = {q.id: whole.qrels[q.id] for q in asked}
    return replace(whole, documents=some, queries=tuple(asked), qrels=qrels)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return minilm(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def convex(hotpotqa, model):
    return weighted((0.7, dense(hotpotqa.documents, model)), (0.3, bm25(hotpotqa.documents)))


@pytest.fixture(scope="module")
def names(hotpotqa):
    return name_graph(hotpotqa.documents)


@every(
    ("reach", "questions"),
    [
        (LinkWeights(), 8),
        *(
            (reach, 2)
            for reach in (
                LinkWeights(hops=0),
                LinkWeights(hops=1),
                LinkWeights(hops=12, asked=0),
                LinkWeights(title=0),
                LinkWeights(shared=0, repeated=0),
                LinkWeights(common=3, shared=2),
                LinkWeights(asked=3, title=0.2, shared=1.5, repeated=1, common=10_000),
            )
        ),
    ],
    ids=str,
)
def test_questions_are_followed_as_the_docstring_says(hotpotqa, model, convex, names, reach, questions):
    stage = follow(hotpotqa.documents, model, reach, graph=names)
    by_hand = ByHand(hotpotqa.documents, model, reach, names)
    for query in hotpotqa.queries[:questions]:
        earlier = convex(Ranking(query, ()))
        assert_as_by_hand(stage(earlier), *by_hand(query.text, dict(earlier.hits)))


def by_chance(seed: int) -> tuple[list[Document], dict[str, float], str]:
    chance = random.Random(seed)
    people = [f"{first} {last}" for first in ("Ada", "Bea", "Cy") for last in ("Ray", "Moss", "Poe")] + [
        "Rome",
        "Oslo",
    ]
    documents = [
        Document(
            f"d{n:02}",
            " and then ".join(chance.sample(people, chance.randint(0, 4))),
            chance.choice([*people, ""]),
        )
        for n in range(chance.randint(1, 25))
    ]
    some = chance.sample(documents, chance.randint(1, len(documents)))
    question = f"where did {' meet '.join(chance.sample(people, chance.randint(0, 2)))} go?"
    return documents, {document.id: chance.uniform(-1, 3) for document in some}, question


@every("seed", range(25))
def test_small_collections_of_chance_are_followed_as_the_docstring_says(seed):
    documents, earlier, question = by_chance(seed)
    found = follow(documents, Letters())(ranked(Query(question), earlier))
    chosen, others, linked = ByHand(documents, Letters())(question, earlier)
    values = [round(value, 5) for value in others.values()]
    if len(set(values)) == len(values):  # where two are alike, the last bit may decide
        assert_as_by_hand(found, chosen, others, linked)
    assert set(found.ids) == {document.id for document in documents}


# --- by hand ---

STORY = [
    Document("a", "Ada Lovelace worked with Charles Babbage on a machine.", "Ada Lovelace"),
    Document("b", "An inventor who lived near Dorset Street.", "Charles Babbage"),
    Document("c", "A road in Marylebone.", "Dorset Street"),
    Document("d", "Ada Lovelace is another name in a list of pioneers.", "Pioneers"),
    Document("e", "Nothing of the kind.", "Pastry"),
]


class Alike:
    """An embedder by which passages are strangers, and each is as like the question as it is said."""

    name = digest = "alike"
    dimension = 6

    def __init__(self, **likeness: float) -> None:
        self.likeness = likeness

    def embed(self, texts):
        rows = np.zeros((len(texts), 6), np.float32)
        for row, text in enumerate(texts):
            place = next((n for n, document in enumerate(STORY) if full_text(document) == text), None)
            rows[row] = (
                np.eye(6)[place]
                if place is not None
                else [self.likeness.get(id, 0.0) for id in "abcde"] + [0]
            )
        return rows


def test_one_passage_leads_to_the_next_by_its_title():
    stage = const("earlier", a=2, e=1, d=0.8) >> follow(STORY, Alike(a=1, b=0.5), LinkWeights(hops=3))
    found = stage.search("where did her partner live?")
    # a has 2 / 2. It is linked by title to b, which it mentions, and to d, which mentions it: two passages,
    # so each link by the root of 2. d is not like the question: .4 + (1 + 0) / 2 / sqrt(2) = .75. b is half
    # like it, and its name is held by 2 of 5: 0 + (1 + .5) / 2 / sqrt(2) + .7 * log(5 / 2) / log(5) * .5 =
    # .73. From b, with an own value of 0, nothing leads on to c.
    assert found.ids == ["a", "d", "b", "e", "c"]
    scores = dict(found.hits)
    assert scores["e"] == pytest.approx(0.5) and scores["c"] == 0
    linked = found.inputs[1][1]
    assert dict(linked.hits) == pytest.approx(
        {"b": 0.75 / 2**0.5 + 0.35 * math.log(2.5) / math.log(5), "d": 0.5 / 2**0.5}
    )
    expected = "Ada Lovelace --[mentions]--> (charles babbage) <--[is called]-- Charles Babbage"
    assert found.why("b")[-1].path == expected
    assert found.why("d")[-1].path == "Ada Lovelace --[is called]--> (ada lovelace) <--[mentions]-- Pioneers"
    assert [reason.retriever for reason in found.why("a")] == ["earlier"]
    assert [reason.retriever for reason in found.why("d")] == ["earlier", "linked"]


# --- what is shown ---

PATH = re.compile(r"(.*) --\[(.*)\]--> \((.*)\) <--\[(.*)\]-- (.*)")


def test_every_path_is_one_of_the_graph_from_a_passage_chosen_before(hotpotqa, model, convex, names):
    edges = {edge.identity[:3] for edge in names.edges}
    by_title: dict[str, list[str]] = {}
    for document in hotpotqa.documents:
        by_title.setdefault(document.title, []).append(document.id)
    told, stage = 0, convex >> follow(hotpotqa.documents, model, graph=names)
    for query in hotpotqa.queries[:10]:
        ranking = stage.search(query)
        paths, chosen = ranking.inputs[1][1].paths, ranking.ids[:5]
        for id, path in paths.items():
            start, first, name, last, end = PATH.fullmatch(path).groups()
            starts = [p for p in by_title[start] if (p, first, f"name:{name}") in edges and p in chosen]
            assert starts and id in by_title[end] and (id, last, f"name:{name}") in edges
            assert id not in chosen or min(map(chosen.index, starts)) < chosen.index(id)
            told += 1
        assert ranking.why(chosen[0])[-1].path == "" and set(paths) == set(ranking.inputs[1][1].ids)
    assert told > 100
    assert all(set(names.node(id).properties) == {"name"} for id in names.ids if id.startswith("name:"))


def test_the_stage_names_what_is_not_usual():
    assert repr(follow(STORY, Letters())) == "<follow>"
    expected = "<follow(hops=3, title=0.5, other names)>"
    assert repr(follow(STORY, Letters(), LinkWeights(hops=3, title=0.5), graph=name_graph(STORY))) == expected


def test_two_runs_and_two_orders_of_the_documents_give_the_same_ranking(hotpotqa, model, convex):
    some = hotpotqa.documents[:300]
    retriever = dense(some, model)
    stages = [retriever >> follow(documents, model) for documents in (some, some[::-1])]
    for query in hotpotqa.queries[:5]:
        one, other, again = stages[0].search(query), stages[1].search(query), stages[0].search(query)
        assert one == other == again and dict(one.inputs[1][1].paths) == dict(other.inputs[1][1].paths)


# --- odd input ---


def test_a_ranking_without_hits_stays_as_it_is():
    assert follow(STORY, Letters()).search("who was Ada Lovelace?").hits == ()


@every(
    "documents",
    [[Document("x", "alone")], [Document("x", "Ada", "Ada")], [Document("x", "", ""), Document("y", "")]],
)
def test_few_documents_without_names_can_be_followed(documents):
    found = (const("earlier", x=1) >> follow(documents, Letters())).search("who?")
    assert found.ids == [document.id for document in documents] and not found.inputs[1][1].hits


def test_hits_in_columns_and_hits_one_by_one_are_followed_alike():
    columned = HitColumns([document.id for document in STORY], np.array([0, 3]), np.array([2.0, 0.5]))
    stage = follow(STORY, Letters())
    assert stage(Ranking(Query("who?"), columned)) == stage(Ranking(Query("who?"), tuple(columned)))


@every(
    ("hits", "said"),
    [
        ((Hit("a", 1.0), Hit("other", 0.5)), "'other', which is none of the documents"),
        ((Hit("a", 1.0), Hit("a", 0.5)), "more than once"),
        ((Hit("a", math.nan),), "finite"),
        ((Hit("a", math.inf),), "finite"),
    ],
)
def test_a_ranking_that_cannot_be_followed_is_refused(hits, said):
    with pytest.raises(BadInput, match=said):
        follow(STORY, Letters())(Ranking(Query("who?"), hits))


NOT_OF_NAMES = {
    "other documents": name_graph([replace(document, id=f"other {document.id}") for document in STORY]),
    "fewer documents": name_graph(STORY[:3]),
    "more documents": name_graph([*STORY[:3], Document("bb", "Ada Lovelace"), *STORY[3:]]),
    "nothing": PropertyGraph.of(),
    "title links": title_graph(STORY),
    "names to documents": PropertyGraph.of(
        [Node(d.id) for d in STORY], [Edge("name:ada", "names", "a")], dangling="add"
    ),
    "names to names": PropertyGraph.of(
        [Node(d.id) for d in STORY], [Edge("name:ada", "names", "name:bea")], dangling="add"
    ),
}


@every("graph", NOT_OF_NAMES.values(), ids=NOT_OF_NAMES)
def test_a_graph_that_is_not_of_these_documents_and_names_is_refused(graph):
    with pytest.raises(BadInput, match=r"build it with name_graph\(documents\)"):
        follow(STORY, Letters(), graph=graph)


# --- does it help? ---


def mixed(graph: PropertyGraph, seed: int) -> PropertyGraph:
    """The same documents and names, each edge with the name of another one of its type."""
    chance, edges = random.Random(seed), list(graph.edges)
    targets = {type: [edge.target for edge in edges if edge.type == type] for type in graph.types()}
    for some in targets.values():
        chance.shuffle(some)
    return PropertyGraph.of(graph.nodes, {Edge(e.source, e.type, targets[e.type].pop()) for e in edges})


@pytest.mark.extended
def test_what_is_gained_is_lost_when_names_are_mixed_up(model):
    hotpotqa = load_dataset("hotpotqa").dev
    convex = weighted((0.7, dense(hotpotqa.documents, model)), (0.3, bm25(hotpotqa.documents)))
    names = name_graph(hotpotqa.documents)

    def recall(stage: Stage) -> float:
        return score(run(stage, hotpotqa.queries, keep=5), hotpotqa.qrels, ["recall@5"]).mean("recall@5")

    before, after = recall(convex), recall(convex >> follow(hotpotqa.documents, model, graph=names))
    controls = [
        recall(convex >> follow(hotpotqa.documents, model, graph=mixed(names, seed))) for seed in range(2)
    ]
    assert Counter(mixed(names, 0).types()) == pytest.approx(Counter(names.types()), rel=0.05)
    assert after > before + 0.08 and max(controls) < before + 0.03


def test_no_documents_or_one_id_twice_is_refused():
    with pytest.raises(BadInput, match="no documents"):
        follow([], Letters())
    with pytest.raises(BadInput, match="more than once"):
        follow([*STORY, STORY[0]], Letters())
