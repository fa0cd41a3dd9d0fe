"""Pictures of query methods: a search with its lanes, an impact as rings, two nodes by their dimensions; and
what any answer shows as.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

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
    return list(ET.fromstring(svg).iter(f"{SVG}{name}"))


def texts(svg):
    return ["".join(text.itertext()) for text in parts(svg, "text")]


def rows(drawn):
    (sheet,) = drawn.sheets
    return [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]


# --- a search ---


def test_a_search_shows_the_seed_the_edge_followed_and_what_each_lane_gave():
    found = intent_search(tiny(), QUESTION)
    drawn = search_picture(found)
    shown = texts(drawn.svg)
    weight = f"graph × {format_decimal(found.weights.graph)}"
    for said in (QUESTION, "cost of input", "2. prompt cache", "reduces", "1 seed.", weight):
        assert said in shown
    assert "Intent: cost_optimization, 0.3. Purpose: goal." in shown
    assert "prompt cache, .263 of which graph .231, intent .032" in drawn.alt
    assert {row["node"]: row["came by"] for row in rows(drawn)}["prompt cache"] == "cost of input (reduces)"


def test_the_parts_of_a_bar_are_as_long_as_what_the_lanes_gave(graph):
    found = intent_search(graph, "stop the model from making stuff up")
    drawn = search_picture(found, limit=5).svg
    rects = [bar for bar in parts(drawn, "rect") if bar.get("height") == "14"]
    bars = [(float(bar.get("width")), bar.get("fill")) for bar in rects]
    scores = ((node.embedding, node.text, node.graph, node.intent) for node in found.nodes[:5])
    given = [each for row in scores for each in row if each > 0]
    assert len(bars) == len(given) and len({colour for _, colour in bars}) > 1
    assert [wide / bars[0][0] for wide, _ in bars] == pytest.approx(
        [each / given[0] for each in given], rel=5e-3
    )
    for node in found.nodes:
        assert node.score == pytest.approx(node.embedding + node.text + node.graph + node.intent, abs=1e-3)


def test_what_is_left_out_is_counted_and_nothing_found_is_said(graph):
    found = intent_search(graph, "stop the model from making stuff up")
    drawn = search_picture(found, limit=3)
    assert f"{len(found.nodes) - 3} more nodes are in the table." in texts(drawn.svg)[-1]
    assert len(rows(drawn)) == len(found.nodes)
    nothing = search_picture(intent_search(graph, "xyzzy"))
    assert texts(nothing.svg)[-1] == "Nothing was found." and nothing.alt == "Answers to 'xyzzy': none."


# --- an impact ---


def test_an_impact_has_a_dot_for_each_node_on_the_ring_of_its_depth():
    drawn = impact_picture(impact_analysis(tiny(), "prompt cache", direction="forward", follow="dependants"))
    assert {"prompt cache", "cost of input", "chat", "stale answers", "short lifetime"} <= set(
        texts(drawn.svg)
    )
    rings = sorted(
        float(circle.get("r")) for circle in parts(drawn.svg, "circle") if circle.get("fill") == "none"
    )
    dots = [dot for dot in parts(drawn.svg, "circle") if dot.get("stroke-width")]
    far = [round((float(dot.get("cx")) ** 2 + float(dot.get("cy")) ** 2) ** 0.5) for dot in dots]
    assert len(rings) == 2 and sorted(far) == [round(rings[0])] * 3 + [round(rings[1])]
    assert "Rings: edges away, 1 to 2, forward." in texts(drawn.svg)[-1]
    assert "depth 2: short lifetime" in drawn.alt
    assert {row["id"]: row["from"] for row in rows(drawn)}["short lifetime"] == "stale answers"


def test_the_riskiest_chain_is_marked_and_told_in_words():
    impact = impact_analysis(tiny(), "prompt cache", direction="forward", follow="dependants")
    svg = impact_picture(impact).svg
    thick = [line for line in parts(svg, "path") if line.get("stroke-width") == "3.2"]
    assert len(thick) == len(impact.critical_path) - 1 > 0
    assert f"Riskiest chain: {' → '.join(impact.critical_path)}." in impact_picture(impact).alt


def test_of_a_large_ring_the_riskiest_are_drawn_with_what_they_hang_on_and_the_rest_is_counted():
    wide = PropertyGraph.from_triples(
        [(f"part {number}", "requires", "hub") for number in range(120)] + [("end", "requires", "part 119")]
    )
    impact = impact_analysis(wide, "hub", direction="forward", follow="dependants")
    drawn = impact_picture(impact, per_ring=10)
    assert f"Not drawn: {impact.total_impacted - 11} nodes." in texts(drawn.svg)[-1]
    assert {"part 119", "end"} <= set(texts(drawn.svg))
    assert len(rows(drawn)) == impact.total_impacted == 121


def test_every_node_lies_within_the_picture(graph):
    for node, kind in (("tool:embedding_model", "dependants"), ("technique:prompt_caching", "arrows")):
        svg = impact_picture(impact_analysis(graph, node, follow=kind)).svg
        _, _, width, height = map(float, ET.fromstring(svg).get("viewBox").split())
        groups = [group for group in parts(svg, "g") if len(group) > 3]
        (moved,) = (group for group in groups if (group.get("transform") or "").startswith("translate"))
        left, top = map(float, re.findall(r"-?[\d.]+", moved.get("transform")))
        dots = [dot for dot in moved.iter(f"{SVG}circle") if dot.get("stroke-width")]
        places = [(float(dot.get("cx")) + left, float(dot.get("cy")) + top) for dot in dots]
        assert places and all(0 < x < width and 0 < y < height for x, y in places)


# --- two nodes ---


def test_a_profile_shows_both_nodes_at_their_values_between_what_0_and_1_mean(graph):
    profile = dimension_profile(graph, "technique:prompt_caching", "technique:semantic_caching")
    drawn = profile_picture(profile)
    shown = set(texts(drawn.svg))
    assert {
        "Prompt caching",
        "Semantic caching",
        "debugging difficulty",
        "the message names the fault",
        "fails without a sign",
    } <= shown
    dots = [float(dot.get("cx")) for dot in parts(drawn.svg, "circle")][1:]
    squares = [float(mark.get("x")) + 8 for mark in parts(drawn.svg, "rect") if mark.get("width") == "16"][1:]
    assert len(dots) == len(squares) == len(profile.dimensions)
    for dot, square, row in zip(dots, squares, profile.dimensions, strict=True):
        assert square - dot == pytest.approx(250 * row.gap, abs=0.2)
    assert rows(drawn)[3]["second less first"] == "0.35" and "debugging difficulty 0.4 and 0.75" in drawn.alt


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
    assert "Neither has a value on any dimension." in texts(
        profile_picture(dimension_profile(given, "b", "c")).svg
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
    found = intent_search(graph, f"cost of input {EVIL}")
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
    assert texts(drawn.svg) == ["alone", f"Nothing is reached, {direction}."]
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
    assert "no node holds 0.5 of what is asked" in repr(shown)
    one = lab.show(similar_to(graph, "tool:embedding_model"), limit=1)
    assert "the first 1 shown" in repr(one)
    with pytest.raises(BadInput, match="limit"):
        lab.show(similar_to(graph, "tool:embedding_model"), limit=0)


def test_an_edge_followed_against_its_arrow_points_back_at_the_seed():
    forward = search_picture(
        intent_search(PropertyGraph.from_triples([("cost of input", "leads_to", "worry")]), "cost of input")
    ).svg
    back = search_picture(
        intent_search(PropertyGraph.from_triples([("worry", "leads_to", "cost of input")]), "cost of input")
    ).svg
    (ahead,), (behind,) = (
        [float(tip.get("points").split(",")[0]) for tip in parts(svg, "polygon")] for svg in (forward, back)
    )
    assert ahead > behind
