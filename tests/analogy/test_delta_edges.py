"""Delta edges held against a look at each pair by itself."""

import hashlib
import itertools
import math
import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.every import every
from support.searching import const

from benchmarks.structure.calibration import CalibrationObjective, calibrate_thresholds
from kgot_lab.analogy.delta_edges import (
    DELTA_EDGE,
    compare_pairs,
    compare_texts,
    delta_edges,
    replace_computed_edges,
    texts_by_node,
)
from kgot_lab.analogy.skeletons import Skeletons
from kgot_lab.embedding.embedder import normalise_rows
from kgot_lab.embedding.embedders import embedder
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.pass_through import Walk, traverse
from kgot_lab.similarity.delta import BANDS, TextPair, Thresholds, band, row_cosines
from kgot_lab.types import Edge, Node

LOOSE = Thresholds(0.2, -0.1, words=0)
ANY_LENGTH = Thresholds(words=0)  # the skeletons here are of a word or two
LITTLE = 3_600_000  # bytes: blocks of a few dozen rows
WORDS = "ant bee cow dog elk fox gnu hen".split()


class Bags:
    """A text's vector is the sum of its words', each drawn by the hash of the word: the same text has the
    same vector in any company.
    """

    name = "bags"

    def __init__(self, dimension: int = 24, *, wrong: dict[str, float] | None = None) -> None:
        self.dimension, self.wrong = dimension, wrong or {}
        self.digest = hashlib.sha256(f"bags {dimension}".encode()).hexdigest()

    def embed(self, texts):
        return np.array([self._vector(t) for t in texts], np.float32).reshape(len(texts), self.dimension)

    def _vector(self, text):
        if text in self.wrong:
            return np.full(self.dimension, self.wrong[text])
        words = [word for word in text.split() if not word.isdigit()]  # it knows no number
        return sum((self._word(word) for word in words), np.zeros(self.dimension))

    def _word(self, word):
        return np.random.default_rng(list(hashlib.sha256(word.encode()).digest()[:8])).normal(
            size=self.dimension
        )


@dataclass(frozen=True)
class Lying:
    """How two texts lie side by side."""

    score: float
    veto: str

    def __str__(self) -> str:
        return f"score {self.score:g}"


class Lengths:
    """A verifier that refuses texts of unlike length."""

    def __init__(self) -> None:
        self.asked = []

    def align(self, a, b):
        self.asked.append((a, b))
        apart = abs(len(a.split()) - len(b.split()))
        return Lying(1 / (1 + apart), f"{apart} words apart" if apart > 1 else "")


BAGS = Bags()


def graph_of(texts: dict[str, str], *edges: tuple[str, str, str]) -> PropertyGraph:
    nodes = [Node(id, properties={"description": text} if text else {}) for id, text in texts.items()]
    return PropertyGraph.of(nodes, [Edge(*edge) for edge in edges])


def made(texts, turn=lambda text: " ".join(sorted(text.split())[:2]), **more) -> Skeletons:
    """Skeletons of some texts: their first two words, by the alphabet."""
    return Skeletons({text: turn(text) for text in texts if text.strip()}, "two words", **more)


def chance_texts(seed: int, nodes: int) -> dict[str, str]:
    """Texts of few words, so that some are the same, some have the same skeleton, and some are blank or of
    numbers alone.
    """
    chance = random.Random(seed)
    return {f"n{number:02}": chance_text(chance) for number in range(nodes)}


def chance_text(chance: random.Random) -> str:
    return chance.choice(
        ["", "  ", "7 7", *(" ".join(chance.choices(WORDS, k=chance.randint(1, 4))) for _ in range(17))]
    )


def by_hand(
    graph: PropertyGraph, skeletons: Skeletons, thresholds: Thresholds
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """The edges, each pair being looked at alone: raw similarity, skeleton similarity and delta."""
    texts = {id: text for id, text in texts_by_node(graph).items() if text in skeletons.by_text}
    found = {}
    for a, b in itertools.combinations(sorted(texts), 2):
        raw, alike = (
            cosine(*pair) for pair in ((texts[a], texts[b]), (skeletons[texts[a]], skeletons[texts[b]]))
        )
        same = texts[a].strip() == texts[b].strip()
        if (
            not same
            and not math.isnan(raw + alike)
            and alike >= thresholds.skeleton
            and round(alike - raw, 6) >= thresholds.delta
        ):
            found[a, b] = raw, alike, round(alike - raw, 6)
    return found


def cosine(a: str, b: str) -> float:
    one, other = (
        normalise_rows(row[None], "")[0] if row.any() else row * math.nan for row in BAGS.embed([a, b])
    )
    return round(math.fsum(float(x) * float(y) for x, y in zip(one, other, strict=True)), 6)


def pairs_of(found) -> dict[tuple[str, str], tuple[float, float, float]]:
    return {
        (e.source, e.target): tuple(e.properties[name] for name in ("raw", "skeleton", "weight"))
        for e in found
    }


# --- bands and thresholds ---


def test_the_step_between_two_bands_belongs_to_the_higher_one():
    told = {-1e-3: "negative", 0.0: "low", 0.049: "low", 0.05: "middle", 0.149: "middle"}
    told |= {0.15: "high", 1.9: "high"}
    assert {delta: band(delta) for delta in told} == told


def test_binary_fractions_do_not_move_a_delta_into_another_band_or_over_a_threshold():
    assert 0.3 - 0.25 < 0.05
    assert band(0.3 - 0.25) == "middle"
    assert band(0.1 + 0.2 - 0.3) == band(0.3 - 0.2 - 0.1) == "low"
    assert 0.53 - 0.45 > 0.08 > 0.58 - 0.50 - 1e-16
    assert Thresholds().are_reached(0.45, 0.53 - 0.45)
    assert Thresholds().are_reached(0.58, 0.58 - 0.50)
    assert not Thresholds().are_reached(0.449999, 0.2) and not Thresholds().are_reached(0.5, 0.079999)


def test_a_delta_that_is_no_number_is_refused():
    with pytest.raises(BadInput, match="finite number, not nan"):
        band(math.nan)


@pytest.mark.parametrize(
    "wrong", [{"skeleton": 1.01}, {"skeleton": math.nan}, {"delta": -2.5}, {"delta": math.inf}]
)
def test_thresholds_out_of_range_are_refused(wrong):
    with pytest.raises(BadInput, match=next(iter(wrong))):
        Thresholds(**wrong)


def test_a_cosine_is_the_same_whichever_text_comes_first_and_whatever_stands_around_it():
    for dimension in (1, 2, 7, 384):
        some, others = np.random.default_rng(dimension).normal(size=(2, 50, dimension)).astype(np.float32)
        alone = [float(row_cosines(others[[row]], some[[row]])[0]) for row in range(50)]
        assert row_cosines(some, others).tolist() == alone


# --- the edges ---


@pytest.mark.extended
@every("seed", range(4))
def test_the_edges_are_those_that_a_look_at_each_pair_finds(seed):
    graph = graph_of(chance_texts(seed, 25))
    skeletons = made(texts_by_node(graph).values())
    for thresholds in (ANY_LENGTH, LOOSE, Thresholds(-1, -2, words=0)):
        found = delta_edges(graph, skeletons, BAGS, thresholds=thresholds)
        expected = by_hand(graph, skeletons, thresholds)
        assert pairs_of(found) == expected and len(found) == len(expected)
        assert [(e.source, e.target) for e in found] == sorted(expected)
        assert {e.type for e in found} <= {DELTA_EDGE}
        assert all(e.properties["band"] == band(e.properties["weight"]) for e in found)


@every("seed", range(2))
def test_the_bands_count_every_pair_that_is_alike_in_skeleton(seed):
    graph = graph_of(chance_texts(seed, 30))
    skeletons = made(texts_by_node(graph).values())
    found = delta_edges(graph, skeletons, BAGS, thresholds=ANY_LENGTH)
    all_alike = by_hand(graph, skeletons, Thresholds(delta=-2, words=0))
    expected = [band(delta) for _, _, delta in all_alike.values()]
    assert found.candidates == {name: expected.count(name) for name in BANDS}
    assert found.counts_by_band == {name: [e.properties["band"] for e in found].count(name) for name in BANDS}
    assert found.counts_by_band["low"] == 0


def test_an_edge_says_what_it_was_made_from():
    graph = graph_of({"b": "ant bee gnu", "a": "hen bee ant"})
    (edge,) = delta_edges(graph, made(texts_by_node(graph).values()), BAGS, thresholds=LOOSE)
    assert (edge.source, edge.type, edge.target) == ("a", DELTA_EDGE, "b")
    measured = {name: edge.properties[name] for name in ("raw", "skeleton", "weight")}
    assert measured == {
        "raw": cosine("ant bee gnu", "hen bee ant"),
        "skeleton": 1.0,
        "weight": round(1 - measured["raw"], 6),
    }
    said = {name: value for name, value in edge.properties.items() if name not in measured}
    assert said == {
        "band": "high",
        "source_skeleton": "ant bee",
        "target_skeleton": "ant bee",
        "embedder": "bags",
        "embedder_digest": BAGS.digest[:16],
        "maker": "two words",
        "thresholds": {"skeleton": 0.2, "delta": -0.1, "words": 0},
    }


def test_what_has_no_text_skeleton_or_known_word_gets_no_edge_and_is_counted():
    texts = {
        "a": "ant bee",
        "b": "bee ant fox",
        "bare": "",
        "blank": " ",
        "number": "7",
        "lost": "cow",
        "failed": "dog",
        "mute": "elk hen",
    }
    skeletons = made(["ant bee", "bee ant fox", "7", "of no node"], failed={"dog": "no answer"})
    skeletons = replace(skeletons, by_text={**skeletons.by_text, "elk hen": "7"})
    found = delta_edges(graph_of(texts), skeletons, BAGS, thresholds=Thresholds(-1, -2, words=0))
    assert [(e.source, e.target) for e in found] == [("a", "b")]
    counts = found.counts
    without = counts.without_text, counts.without_skeleton
    assert (counts.nodes, *without, counts.failed, counts.wordless) == (8, 2, 1, 1, 2)
    assert (counts.unused, counts.pairs) == (1, 1)
    assert str(counts) == (
        "8 nodes, 2 without a text, 1 without a skeleton, 1 whose skeleton failed, 2 without a word the embedder knows, "
        "1 skeletons of other texts"
    )


@pytest.mark.parametrize("texts", [{}, {"a": "ant"}, {"a": "", "b": ""}, {"a": "7", "b": "8"}], ids=str)
def test_a_graph_without_two_nodes_to_compare_has_no_edges(texts):
    graph = graph_of(texts)
    found = delta_edges(graph, made(texts.values()), BAGS, thresholds=ANY_LENGTH)
    assert not found and not found.counts.pairs
    assert replace_computed_edges(graph, found) == graph


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_vector_that_holds_no_number_is_refused_by_its_text(number):
    graph = graph_of({"a": "ant bee", "b": "cow dog"})
    message = r"bags: 1 of 3 vectors hold NaN or infinity; the first is that of 'cow dog'"
    with pytest.raises(BadInput, match=message):
        delta_edges(
            graph,
            made(texts_by_node(graph).values(), turn=lambda text: "ant"),
            Bags(wrong={"cow dog": number}),
            thresholds=ANY_LENGTH,
        )


def test_vectors_that_do_not_fit_their_texts_are_refused():
    class Short(Bags):
        def embed(self, texts):
            return super().embed(texts)[1:]

    with pytest.raises(BadInput, match=r"bags gave numbers of shape \(1, 24\) for 2 texts of 24 each"):
        delta_edges(
            graph_of({"a": "ant"}), made(["ant"], turn=lambda text: "bee"), Short(), thresholds=ANY_LENGTH
        )


def test_more_edges_than_allowed_are_refused_rather_than_cut():
    graph = graph_of(chance_texts(1, 30))
    skeletons = made(texts_by_node(graph).values())
    count = len(delta_edges(graph, skeletons, BAGS, thresholds=LOOSE))
    assert len(delta_edges(graph, skeletons, BAGS, thresholds=LOOSE, most=count)) == count
    message = f"{count} pairs pass, and most={count - 1} are allowed: raise the thresholds"
    with pytest.raises(BadInput, match=message):
        delta_edges(graph, skeletons, BAGS, thresholds=LOOSE, most=count - 1)


# --- the verifier ---


def test_a_verifier_is_shown_the_texts_of_the_pairs_that_pass_and_its_veto_is_kept_with_the_reason():
    graph = graph_of(chance_texts(5, 25))
    skeletons = made(texts_by_node(graph).values())
    verifier = Lengths()
    plain = delta_edges(graph, skeletons, BAGS, thresholds=ANY_LENGTH)
    checked = delta_edges(graph, skeletons, BAGS, verifier=verifier, thresholds=ANY_LENGTH)
    texts = texts_by_node(graph)
    assert sorted(verifier.asked) == sorted((texts[e.source], texts[e.target]) for e in plain)
    assert checked.edges
    assert checked.vetoed
    assert sorted(pairs_of(checked) | pairs_of(checked.vetoed)) == sorted(pairs_of(plain))
    for edge in (*checked, *checked.vetoed):
        apart = abs(len(texts[edge.source].split()) - len(texts[edge.target].split()))
        said = {name: edge.properties[name] for name in ("alignment", "alignment_score", "veto")}
        score = 1 / (1 + apart)
        assert said == {
            "alignment": f"score {score:g}",
            "alignment_score": score,
            "veto": f"{apart} words apart" if apart > 1 else "",
        }
        assert (edge in checked.edges) == (apart <= 1)
    assert sum(checked.counts_by_band.values()) == len(checked) and checked.candidates == plain.candidates


def test_a_verifier_that_prepares_is_told_each_text_of_the_pairs_once_beforehand():
    class Prepared(Lengths):
        def prepare(self, texts):
            assert not self.asked
            self.told = texts

    texts = {"a": "ant bee gnu", "b": "hen bee ant", "c": "dog"}
    verifier = Prepared()
    delta_edges(graph_of(texts), made(texts.values()), BAGS, thresholds=LOOSE, verifier=verifier)
    assert sorted(verifier.told) == ["ant bee gnu", "hen bee ant"]


# --- edges in a graph ---


def test_new_edges_replace_computed_ones_of_their_type_and_leave_curated_ones():
    texts = chance_texts(2, 20)
    graph = graph_of(texts, ("n00", "cites", "n01"), ("n02", "similarity", "n03"), ("n00", DELTA_EDGE, "n01"))
    found = delta_edges(graph, made(texts_by_node(graph).values()), BAGS, thresholds=LOOSE)
    grown = replace_computed_edges(graph, found)
    assert set(found.edges) < set(grown.edges)
    assert grown.types() == {DELTA_EDGE: len(found), "cites": 1, "similarity": 1}
    assert replace_computed_edges(grown, found) == grown
    assert replace_computed_edges(grown, []).types() == {"cites": 1, "similarity": 1}


def test_edges_of_another_type_and_types_that_are_curated_are_refused():
    graph = graph_of({"a": "ant", "b": "bee"}, ("a", "cites", "b"))
    with pytest.raises(BadInput, match="'cites' edges may be somebody's own"):
        replace_computed_edges(graph, [], "cites")
    with pytest.raises(BadInput, match="some are of type 'cites'"):
        replace_computed_edges(graph, graph.edges)
    with pytest.raises(BadInput, match="no node 'c'"):
        replace_computed_edges(graph, [Edge("a", DELTA_EDGE, "c")])


def test_a_reader_walks_delta_edges_both_ways_where_the_walk_names_them_beside_curated_ones():
    graph = graph_of({"a": "ant bee gnu", "b": "hen bee ant", "c": "cow"}, ("b", "cites", "c"))
    grown = replace_computed_edges(
        graph, delta_edges(graph, made(texts_by_node(graph).values()), BAGS, thresholds=LOOSE)
    )
    for start, other in (("a", "b"), ("b", "a")):
        near = const("const", **{start: 3.0, "c": 0.1, other: 0.0})
        usual = traverse(grown, near, walk=Walk(entry=1)).search("?")
        told = traverse(grown, near, walk=Walk(entry=1, types=["cites", DELTA_EDGE])).search("?")
        assert other not in usual.ids and other in told.ids
    assert told.paths["a"] == "b <--[structural_isomorphism]-- a" and told.ids == ["b", "c", "a"]


# --- a single pair ---


def test_a_pair_is_compared_whatever_the_thresholds():
    a, b = "ant bee gnu", "ant cow dog"
    pair = compare_texts(a, b, made([a, b]), BAGS, verifier=Lengths())
    assert (pair.raw, pair.skeleton) == (cosine(a, b), cosine("ant bee", "ant cow"))
    assert pair.delta == round(pair.skeleton - pair.raw, 6)
    assert pair.skeletons == ("ant bee", "ant cow") and pair.alignment == Lying(1, "") and not pair.veto
    assert compare_texts(a, a, made([a]), BAGS).delta == 0
    assert compare_texts(a, a, made([a]), BAGS).band == "low"


def test_pairs_compared_together_are_as_each_alone_and_as_their_edges():
    graph = graph_of(chance_texts(9, 20))
    skeletons, texts = made(texts_by_node(graph).values()), texts_by_node(graph)
    edges = delta_edges(graph, skeletons, BAGS, thresholds=ANY_LENGTH).edges
    pairs = compare_pairs([(texts[e.source], texts[e.target]) for e in edges], skeletons, BAGS)
    expected = [tuple(e.properties[name] for name in ("raw", "skeleton", "weight", "band")) for e in edges]
    assert [(p.raw, p.skeleton, p.delta, p.band) for p in pairs] == expected
    assert pairs[3] == compare_texts(pairs[3].source, pairs[3].target, skeletons, BAGS)
    assert compare_pairs([], skeletons, BAGS) == ()


def test_a_text_that_cannot_be_compared_is_named():
    skeletons = made(["ant", "7"], failed={"bee": "no answer"})
    wrong = {"bee": "'bee': no answer", "cow": "'cow': none was made", "7": "knows no word of '7'"}
    for text, told in wrong.items():
        with pytest.raises(BadInput, match=told):
            compare_texts("ant", text, skeletons, BAGS)


def test_a_pair_says_its_numbers_in_one_line():
    assert str(TextPair("a", "b", 0.31, 0.2)) == "skeletons 0.200 - texts 0.310 = delta -0.110, negative"
    vetoed = TextPair("a", "b", 0.05, 0.5, alignment=Lying(0, "roles crossed"))
    assert str(vetoed) == "skeletons 0.500 - texts 0.050 = delta +0.450, high; vetoed: roles crossed"


def test_calibrated_thresholds_say_in_one_line_where_they_come_from_and_are_used_as_they_are():
    pairs = [
        TextPair("", "", 0.1, 0.6),
        TextPair("", "", 0.2, 0.5),
        TextPair("", "", 0.2, 0.3),
        TextPair("", "", 0.7, 0.6),
    ]
    chosen = calibrate_thresholds(
        pairs,
        [True, True, False, False],
        embedder="bags",
        maker="two words",
        aim=CalibrationObjective(least_recall=0.9, prevalence=0.03),
    )
    told = (
        "skeleton >= 0.5 and delta >= 0.3, for precision at a recall of 0.9 or more, 3.0% of the pairs being analogous: "
        "precision 1.000, recall 1.000 on the 4 pairs they were chosen on (2 analogous); bags, skeletons by two words"
    )
    assert repr(chosen) == f"<{told}>"
    graph = graph_of({"a": "ant bee gnu hen", "b": "fox elk dog bee ant"})
    found = delta_edges(
        graph, made(texts_by_node(graph).values(), lambda text: "ant bee cow"), BAGS, thresholds=chosen
    )
    assert found.rule == told
    assert found.edges[0].properties["thresholds"] == {"skeleton": 0.5, "delta": 0.3, "words": 3}
    assert chosen.describe(Named("other")) == f"{told}, not for other: calibrate again"


class Named(Bags):
    def __init__(self, name: str, dimension: int = 24) -> None:
        super().__init__(dimension)
        self.name = name


def test_the_default_thresholds_say_that_they_belong_to_a_larger_model():
    told = "skeleton >= 0.45 and delta >= 0.08"
    expected = f"{told}: the defaults, set for a 3072-dimensional model; bags has 24, so calibrate them"
    assert Thresholds().describe(BAGS) == expected
    assert Thresholds().describe(Named("OpenAI:text-embedding-3-large", 3072)) == f"{told}, the defaults"
    assert Thresholds(0.5).describe(BAGS) == "skeleton >= 0.5 and delta >= 0.08"


# --- with a real embedder ---

STORIES = {  # text and skeleton, both by hand; the skeletons are said with a small stock of general words
    "guano": (
        "Farmers spread guano on their fields; larger harvests fed more people, who needed still more guano, until the islands were bare.",
        "A resource raises output, more output raises the demand for the resource, and the growing demand uses it up.",
    ),
    "credit": (
        "A town borrowed to build roads; the new taxes paid for further loans, and each called for a bigger one, until no bank would lend.",
        "A resource makes growth possible, growth raises the demand for the resource, and in the end none is left.",
    ),
    "immune": (
        "After a mild infection the body keeps a few cells that know the virus, so the next infection is met within hours.",
        "A small first exposure leaves a record, and the record makes the response to a later exposure fast.",
    ),
    "drill": (
        "A crew that has rehearsed one small blaze keeps its checklist on the wall, and when the warehouse burns all are at the pumps.",
        "Exposure to a small case leaves a stored response, which is ready when a later, larger case comes.",
    ),
    "swarm": (
        "When the hive is full the bees of the colony split in two, and the old queen leaves with half of the bees.",
        "A group that has filled its space divides, and one half moves away with the leader.",
    ),
    "warmth": (
        "In winter the bees of the colony crowd round the queen in the hive, and those outside change places with those inside.",
        "Members take turns in the exposed position, so that the cost is shared evenly.",
    ),
}


@pytest.mark.parametrize("name", ["minilm", "wordllama"])
def test_a_real_embedder_joins_two_mechanisms_across_fields_and_not_two_texts_of_one_field(name, tmp_path):
    pytest.importorskip({"minilm": "onnxruntime", "wordllama": "wordllama"}[name])
    model = embedder(name, **({"folder": tmp_path} if name == "minilm" else {}))
    graph = graph_of({id: text for id, (text, _) in STORIES.items()})
    skeletons = Skeletons(dict(STORIES.values()), "by hand")
    analogous = [("credit", "guano"), ("drill", "immune")]
    both = list(itertools.combinations(sorted(STORIES), 2))
    pairs = compare_pairs([(STORIES[a][0], STORIES[b][0]) for a, b in both], skeletons, model)
    how = {
        "thresholds": calibrate_thresholds(
            pairs, [pair in analogous for pair in both], embedder=model.name, maker="by hand"
        )
    }
    found = delta_edges(graph, skeletons, model, **how)
    assert [(e.source, e.target) for e in found] == analogous and found.counts_by_band["high"] == 2
    bees = compare_texts(STORIES["swarm"][0], STORIES["warmth"][0], skeletons, model)
    assert bees.band == "negative" and bees.raw > 0.4
    assert repr(found).startswith(
        "<2 structural_isomorphism edges, 0 vetoed; 15 pairs looked at>\n  skeleton >= "
    )


def test_nodes_of_one_text_get_no_edge_and_are_counted():
    graph = graph_of({"a": "ant bee", "b": " ant bee", "c": "ant bee", "d": "bee ant fox"})
    thresholds = Thresholds(0.2, -2, words=0)
    found = delta_edges(graph, made(texts_by_node(graph).values()), BAGS, thresholds=thresholds)
    assert [(e.source, e.target) for e in found] == [("a", "d"), ("b", "d"), ("c", "d")]
    assert (found.counts.pairs, found.counts.same_text) == (3, 3)


def test_a_name_is_no_text_and_a_summary_is_one():
    properties = {"summary": "ant bee"}
    graph = PropertyGraph.of([Node("a", properties={"name": "ant bee"}), Node("b", properties=properties)])
    assert texts_by_node(graph) == {"b": "ant bee"}


@pytest.mark.extended
def test_a_pair_exactly_at_both_thresholds_is_an_edge():
    graph = graph_of(chance_texts(3, 30))
    skeletons = made(texts_by_node(graph).values())
    for edge in delta_edges(graph, skeletons, BAGS, thresholds=LOOSE).edges[:10]:
        at = Thresholds(edge.properties["skeleton"], edge.properties["weight"], words=0)
        assert edge.identity in {e.identity for e in delta_edges(graph, skeletons, BAGS, thresholds=at)}
        above = replace(at, delta=at.delta + 1e-6)
        unwanted = edge.identity
        assert unwanted not in {e.identity for e in delta_edges(graph, skeletons, BAGS, thresholds=above)}
