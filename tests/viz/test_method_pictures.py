"""Pictures of query methods: a search with its retrievers, an impact as rings, two nodes by their dimensions; and
what any answer shows as.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest

import kgot_lab as lab
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.tables import format_decimal
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.dimensions import dimension_profile
from kgot_lab.kgos.methods.goals import can_it
from kgot_lab.kgos.methods.impact_analysis import impact_analysis
from kgot_lab.kgos.methods.ranking import similar_to
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.marks import MARKS
from kgot_lab.viz.methods import impact_picture, profile_picture, search_picture
from kgot_lab.viz.static.table import Table

SVG = "{http://www.w3.org/2000/svg}"
EVIL = '</title></text></svg><script>alert("1")</script>&amp;\x00\u202e ' + "long " * 60
TRIPLES = [
    ("prompt cache", "reduces", "cost of input"), ("shorter prompts", "reduces", "cost of input"), ("chat", "requires", "prompt cache"),
    ("prompt cache", "has_limitation", "stale answers"), ("stale answers", "has_workaround", "short lifetime"),
]  # fmt: skip
QUESTION = "how do I reduce the cost of input"


@pytest.fixture(scope="module")
def graph():
    return cookbook()


def tiny(*more):
    return PropertyGraph.from_triples([*TRIPLES, *more])


def parts(svg, name):
    return [each for each in ET.fromstring(svg).iter() if each.tag.removeprefix(SVG) == name]


def texts(svg):
    return ["".join(text.itertext()) for text in parts(svg, "text")]


def places(svg):
    """The middle of each node of a picture of a graph and the area of its shape, by id."""
    found = {}
    for group in parts(svg, "g"):
        if len(group) > 1 and group[0].tag == f"{SVG}title" and "\nid: " in group[0].text:
            id, shape = group[0].text.split("\nid: ")[1].split("\n")[0], group[1]
            if shape.tag == f"{SVG}circle":
                corners = np.array([(float(shape.get("cx")), float(shape.get("cy")))])
            else:
                corners = np.array(
                    [list(map(float, pair.split(","))) for pair in shape.get("points").split()]
                )
            found[id] = corners.mean(axis=0), np.ptp(corners, axis=0).prod()
    return found


def bars(drawn):
    """The lengths and colours of the parts of bars, by retriever and row by row."""
    (axes,) = drawn.figure.axes
    return {
        kind.get_label(): [(round(bar.get_y() + 0.34), bar.get_width(), bar.get_facecolor()) for bar in kind]
        for kind in axes.containers
    }


def rows(drawn):
    (sheet,) = drawn.table().sheets
    return [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]


# --- a search ---


def test_a_search_shows_the_path_from_the_seed_and_what_each_retriever_gave():
    found = intent_search(tiny(), QUESTION)
    drawn = search_picture(found)
    shown = " | ".join(texts(drawn.svg))
    for said in (
        f"Answers to '{QUESTION}'",
        "1. cost of input",
        "2. prompt cache",
        "cost of input <--[reduces]--",
        ".263: graph .231, intent .032",
        "Intent: cost_optimization, 0.3. Purpose: goal.",
        f"graph {format_decimal(found.weights.graph)}, intent",
        "Drawn: 3 of 3 nodes, the table has all. Seeds: 1, of which 1 led to a node that is drawn.",
    ):
        assert said in shown, said
    assert "prompt cache, .263 of which graph .231, intent .032" in drawn.alt
    assert {row["node"]: row["came by"] for row in rows(drawn)}["prompt cache"] == found.nodes[1].path


def test_the_parts_of_a_bar_are_as_long_as_what_the_retrievers_gave(graph):
    found = intent_search(graph, "stop the model from making stuff up")
    drawn = bars(search_picture(found, limit=5))
    for retriever in ("text", "graph"):
        given = [
            (row, getattr(node, retriever))
            for row, node in enumerate(found.nodes[:5])
            if getattr(node, retriever)
        ]
        assert [row for row, _, _ in drawn[retriever]] == [row for row, _ in given]
        assert [wide for _, wide, _ in drawn[retriever]] == pytest.approx(
            [wide for _, wide in given], abs=1e-4
        )
    assert set(drawn) == {"text", "graph"} and len({part[0][2] for part in drawn.values()}) == 2
    for node in found.nodes:
        assert node.score == pytest.approx(node.embedding + node.text + node.graph + node.intent, abs=1e-3)


def test_what_is_left_out_is_counted_and_nothing_found_is_said(graph):
    found = intent_search(graph, "stop the model from making stuff up")
    drawn = search_picture(found, limit=3)
    assert f"Drawn: 3 of {len(found.nodes)} nodes, the table has all." in " ".join(texts(drawn.svg))
    assert len(rows(drawn)) == len(found.nodes)
    nothing = search_picture(intent_search(graph, "xyzzy"))
    assert "Answers to 'xyzzy': nothing was found. Intent: none found." in nothing.alt
    assert "nothing was found" in " ".join(texts(nothing.svg))


# --- an impact ---


def test_an_impact_has_a_node_on_the_ring_of_its_depth():
    chains = [(f"first {n}", "requires", "hub") for n in range(7)]
    chains += [(f"second {n}", "requires", f"first {n}") for n in range(7)]
    impact = impact_analysis(PropertyGraph.from_triples(chains), "hub", direction="backward")
    drawn = impact_picture(impact)
    at = {id: place for id, (place, _) in places(drawn.svg).items()}
    assert len(at) == 15 and len({tuple(place.round()) for place in at.values()}) == 15
    for number in range(7):
        step = at[f"first {number}"] - at["hub"]
        assert at[f"second {number}"] - at["hub"] == pytest.approx(2 * step, abs=1.5)


def test_an_impact_is_told_in_words_and_as_a_table():
    drawn = impact_picture(impact_analysis(tiny(), "prompt cache", direction="forward", follow="dependants"))
    shown = set(texts(drawn.svg))
    assert {"prompt cache", "cost of input", "chat", "stale answers", "short lifetime"} <= shown
    assert {"reduces", "what changes", "1 edge away", "2 edges away"} - {"reduces"} <= shown
    assert "direction: forward, 4 of 4 nodes drawn" in shown
    assert "reaches 4 nodes. Depth 1: cost of input" in drawn.alt and "Depth 2: short lifetime." in drawn.alt
    told = {row["id"]: row for row in rows(drawn)}["short lifetime"]
    assert (told["depth"], told["from"], told["via"]) == ("2", "stale answers", "has_workaround")


def test_the_riskiest_chain_is_marked_and_told_in_words():
    impact = impact_analysis(tiny(), "prompt cache", direction="forward", follow="dependants")
    drawn = impact_picture(impact)
    thick = [
        line for line in parts(drawn.svg, "path") if line.get("stroke-width") == str(MARKS["path"].width)
    ]
    assert len(thick) == len(impact.critical_path) - 1 > 0
    assert f"riskiest chain: product {impact.critical_risk:.2g}" in texts(drawn.svg)
    assert f"Riskiest chain: {' → '.join(impact.critical_path)}." in drawn.alt


def test_of_a_large_ring_the_riskiest_are_drawn_with_what_they_hang_on_and_the_rest_is_counted():
    wide = PropertyGraph.from_triples(
        [(f"part {number}", "requires", "hub") for number in range(120)] + [("end", "requires", "part 119")]
    )
    impact = impact_analysis(wide, "hub", direction="forward", follow="dependants")
    drawn = impact_picture(impact, per_ring=10)
    assert "direction: forward, 11 of 121 nodes drawn" in texts(drawn.svg)
    assert {"part 119", "end"} <= set(texts(drawn.svg))
    assert len(rows(drawn)) == impact.total_impacted == 121
    (_, risky), (_, safe) = (places(drawn.svg)[id] for id in ("part 119", "part 0"))
    assert risky > 1.5 * safe


@pytest.mark.parametrize("follow", ["dependants", "arrows"])
@pytest.mark.parametrize("node", ["tool:embedding_model", "technique:prompt_caching", "tool:vector_database"])
def test_every_node_lies_within_the_picture_and_no_lines_cross(graph, node, follow):
    impact = impact_analysis(graph, node, follow=follow)
    svg = impact_picture(impact, per_ring=12).svg
    at = {id: place for id, (place, _) in places(svg).items()}
    _, _, width, height = map(float, ET.fromstring(svg).get("viewBox").split())
    assert len(at) > 12 and all(0 < x < width and 0 < y < height for x, y in at.values())
    lines = [(each.parent, each.id) for each in impact.nodes if each.id in at]

    def left_of(one, other, point):
        (x, y), (a, b) = at[other] - at[one], at[point] - at[one]
        return x * b - y * a > 0

    for (a, b), (c, d) in combinations(lines, 2):
        if len({a, b, c, d}) == 4:
            crossed = left_of(a, b, c) != left_of(a, b, d) and left_of(c, d, a) != left_of(c, d, b)
            assert not crossed, (a, b, c, d)


# --- two nodes ---


def test_a_profile_shows_both_nodes_at_their_values_between_what_0_and_1_mean(graph):
    profile = dimension_profile(graph, "technique:prompt_caching", "technique:semantic_caching")
    drawn = profile_picture(profile)
    shown = set(texts(drawn.svg))
    assert {
        "1. Prompt caching",
        "2. Semantic caching",
        "debugging difficulty",
        "the message names the fault",
        "fails without a sign",
    } <= shown
    marks = {line.get_label(): line.get_xdata().tolist() for line in drawn.figure.axes[0].lines}
    assert marks["1. Prompt caching"] == [row.first for row in profile.dimensions]
    assert marks["2. Semantic caching"] == [row.second for row in profile.dimensions]
    assert rows(drawn)[3]["second less first"] == "0.35" and "debugging difficulty 0.4 and 0.75" in drawn.alt


def test_two_nodes_of_one_name_have_a_column_each():
    values = {"name": "Twin", "learning_curve": 0.25}
    twins = PropertyGraph.of([Node("a", (), values), Node("b", (), {**values, "learning_curve": 0.5})])
    (row,) = rows(profile_picture(dimension_profile(twins, "a", "b")))
    assert (row["1. Twin"], row["2. Twin"]) == ("0.25", "0.5")


def test_what_only_one_has_what_neither_has_and_what_is_no_number_from_0_to_1_is_told():
    one, other = {"learning_curve": 0.2, "pricing_tier": "cheap"}, {"learning_curve": 7}
    nodes = [Node("a", (), one), Node("b", (), other), Node("c")]
    given = PropertyGraph.of(nodes)
    profile = dimension_profile(given, "a", "b")
    assert [(row.dimension, row.first, row.second, row.gap) for row in profile.dimensions] == [
        ("learning_curve", 0.2, None, None)
    ]
    assert "learning curve 0.2 and no value" in profile_picture(profile).alt and profile.why == (
        "0 dimensions are known of both",
    )
    assert "neither has a value on any dimension: b beside c" in " ".join(
        texts(profile_picture(dimension_profile(given, "b", "c")).svg)
    )
    with pytest.raises(UnknownName, match="technique"):
        dimension_profile(PropertyGraph.of([Node("technique:x"), Node("y")]), "technique:z", "y")


# --- all of them ---


def test_names_that_would_break_out_of_a_picture_stay_text_in_it():
    nodes = [
        Node("a", ("</svg>",), {"name": EVIL, "learning_curve": 0.5}),
        Node("b\u202e<b>", (), {"description": "cost of input"}),
    ]
    graph = PropertyGraph.of(
        nodes, [Edge("b\u202e<b>", "<i>requires</i>", "a"), Edge("a", "requires", "b\u202e<b>")]
    )
    found = intent_search(graph, f"cost of input {EVIL.replace(chr(0), '')}")
    for drawn in (
        search_picture(found), impact_picture(impact_analysis(graph, "a")), profile_picture(dimension_profile(graph, "a", "b\u202e<b>"))
    ):  # fmt: skip
        root = ET.fromstring(drawn.svg)
        assert not [each for each in root.iter() if each.tag.removeprefix(SVG) in ("script", "b", "i")]
        assert "\x00" not in drawn.svg
        assert "\u202e" not in "".join(texts(drawn.svg)) and len(max(texts(drawn.svg), key=len)) < 140


def test_the_front_door_shows_each_answer_as_its_picture_and_others_as_a_table(graph):
    found, impact = intent_search(graph, QUESTION), impact_analysis(graph, "tool:embedding_model")
    profile = dimension_profile(graph, "tool:embedding_model", "tool:vector_database")
    assert lab.show(found).alt == search_picture(found).alt
    assert lab.show(impact).alt == impact_picture(impact).alt
    assert lab.show(profile).alt == profile_picture(profile).alt
    assert lab.show(found, limit=2).svg != lab.show(found).svg
    assert lab.show(impact, per_ring=2).svg != lab.show(impact).svg
    shown = lab.show(can_it(graph, "prompt injection immunity"))
    assert isinstance(shown, Table) and "limitation:no_complete_injection_defence" in shown._repr_html_()
    assert "can it" in repr(shown) and "without a workaround" in shown._repr_html_()


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_a_node_that_reaches_nothing_and_one_with_an_edge_to_itself_are_drawn(direction):
    alone = PropertyGraph.of([Node("alone"), Node("b")], [Edge("alone", "requires", "alone")])
    drawn = impact_picture(impact_analysis(alone, "alone", direction=direction))
    assert f"direction: {direction}, nothing is reached" in texts(drawn.svg)
    assert list(places(drawn.svg)) == ["alone"]
    assert "reaches 0 nodes" in drawn.alt


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many"])
def test_a_number_of_nodes_that_makes_no_sense_is_refused(graph, wrong):
    with pytest.raises(BadInput, match="limit"):
        search_picture(intent_search(tiny(), QUESTION), limit=wrong)
    with pytest.raises(BadInput, match="per_ring"):
        impact_picture(impact_analysis(tiny(), "chat"), per_ring=wrong)


def test_an_answer_that_is_empty_says_what_was_asked_and_why(graph):
    shown = lab.show(can_it(graph, "bake bread"))
    assert "can it 'bake bread': unknown: 0 rows" in repr(shown)
    assert "no node is about what is asked" in repr(shown)
    one = lab.show(similar_to(graph, "tool:embedding_model"), limit=1)
    assert "the first 1 shown" in repr(one)
    with pytest.raises(BadInput, match="limit"):
        lab.show(similar_to(graph, "tool:embedding_model"), limit=0)


def test_a_path_says_the_direction_of_the_edge_that_was_followed():
    graphs = [("cost of input", "leads_to", "worry"), ("worry", "leads_to", "cost of input")]
    forward, back = (
        texts(search_picture(intent_search(PropertyGraph.from_triples([each]), "cost of input")).svg)
        for each in graphs
    )
    assert "cost of input --[leads_to]-->" in forward and "cost of input <--[leads_to]--" in back
