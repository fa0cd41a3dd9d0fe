"""The pipeline diagram: what a stage is made of becomes boxes and arrows, and no name breaks it."""

import xml.etree.ElementTree as ET

from support.every import every

from kgot_lab.retrieval.entity_linking import title_graph
from kgot_lab.retrieval.fusion import rrf, strongest, weighted
from kgot_lab.retrieval.lexical import bm25, like
from kgot_lab.retrieval.neighbours import boost, boosted_neighbours
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document
from kgot_lab.viz.external_requests import find_external_requests
from kgot_lab.viz.static.pipeline import Fan, Series, StageBox, pipeline, pipeline_parts

SVG = "{http://www.w3.org/2000/svg}"
DOCUMENTS = [
    Document("engine", "Designed by Charles Babbage.", "Analytical Engine"),
    Document("babbage", "A mathematician.", "Charles Babbage"),
]
WORDS, LETTERS, LINKS = bm25(DOCUMENTS), like(DOCUMENTS), title_graph(DOCUMENTS)
EVIL = "</svg><script>alert(1)</script> \"'&, ("


def named(name: str) -> Stage:
    return Stage(name, lambda ranking: ranking)


def texts(drawing) -> list[str]:
    return [node.text or "" for node in ET.fromstring(drawing.svg).iter(f"{SVG}text")]


def arrows(drawing) -> list[ET.Element]:
    return list(ET.fromstring(drawing.svg).iter(f"{SVG}path"))


def numbers(element: ET.Element, *names: str) -> list[float]:
    return [float(element.get(name)) for name in names]


# --- what a stage is made of ---


def test_steps_stand_one_after_the_other_from_the_question_to_the_ranking():
    stage = weighted((0.7, WORDS), (0.3, LETTERS)) >> boost(LINKS, 0.2) % 100
    assert pipeline_parts(stage) == Series(
        (
            Fan(
                (("0.7", "bm25", StageBox("bm25")), ("0.3", "like", StageBox("like"))),
                StageBox("weighted", "", "join"),
            ),
            StageBox("boost", "0.2"),
            StageBox("best 100", kind="keep"),
        )
    )
    boxes = ["question", "bm25", "like", "weighted", "boost", "0.2", "best 100", "ranking"]
    assert texts(pipeline(stage)) == ["0.7", "0.3", *boxes]
    assert len(arrows(pipeline(stage))) == 7


def test_options_of_a_fusion_are_no_lanes():
    fused = pipeline_parts(rrf(WORDS, LETTERS, k=10))
    assert fused == Fan(
        (("", "bm25", StageBox("bm25")), ("", "like", StageBox("like"))), StageBox("rrf", "k=10", "join")
    )
    scaled = pipeline_parts(weighted((0.5, WORDS), (0.5, LETTERS), scale="maximum"))
    assert scaled.join == StageBox("weighted", "scale=maximum", "join") and len(scaled.branches) == 2


def test_a_fusion_can_be_a_branch_of_a_fusion_and_so_can_a_whole_pipeline():
    inner = pipeline_parts(weighted((0.6, strongest(WORDS, LETTERS)), (0.4, WORDS >> boost(LINKS, 0.2))))
    (_, _, first), (_, _, second) = inner.branches
    assert isinstance(first, Fan) and first.join.name == "strongest"
    assert second == Series((StageBox("bm25"), StageBox("boost", "0.2")))


def test_keeping_the_best_holds_for_what_stands_in_brackets_before_it():
    assert pipeline_parts((WORDS >> boost(LINKS, 0.2)) % 5) == Series(
        (StageBox("bm25"), StageBox("boost", "0.2"), StageBox("best 5", kind="keep"))
    )
    assert pipeline_parts(WORDS % 20) == Series((StageBox("bm25"), StageBox("best 20", kind="keep")))


def test_ways_of_which_one_is_taken_stand_below_each_other():
    ways = weighted((0.6, WORDS), (0.4, LETTERS)), weighted((0.8, WORDS), (0.2, LETTERS))
    inputs = tuple(("", way) for way in ways)
    name = f"tuned convex({'; '.join(way.name for way in ways)})"
    fan = pipeline_parts(Stage(name, lambda ranking: ranking, inputs=inputs))
    assert len(fan.branches) == 2 and all(isinstance(branch, Fan) for _, _, branch in fan.branches)
    assert fan.join == StageBox("tuned convex", "one way for each question", "join")


@every(
    "name",
    ["(", ")", "((", "a)(b", "my branch (v2), 50% faster >> x)", "weighted()", "weighted(, )", ">> >>", " % ", "a % 5 % x",
     "(" * 400 + ")" * 400, "rrf(" * 13 + "a" + ")" * 13, "x" * 10_000, "rrf(" + ", ".join(f"branch {n}" for n in range(60)) + ")", EVIL,
     "weighted(1e400 a, 0.1.2 b, nan c)", "()", "around()", "rrf(k=60)", "a ; b", "f(; )", "漢字(語) >> ранг"],
)  # fmt: skip
def test_any_name_is_drawn(name):
    drawing = pipeline(named(name))
    root = ET.fromstring(drawing.svg)
    width, height = numbers(root, "width", "height")
    for box in list(root.iter(f"{SVG}rect"))[1:]:
        x, y, wide, high = numbers(box, "x", "y", "width", "height")
        assert x >= 0 and x + wide <= width + 0.1 and y >= 0 and y + high <= height + 0.1
    assert find_external_requests(drawing.svg) == ()
    assert "script" not in {node.tag.removeprefix(SVG) for node in root.iter()}


def test_a_stage_that_is_too_much_is_one_box():
    deep = WORDS
    for _ in range(1000):
        deep = rrf(deep)
    chain = WORDS
    for _ in range(1000):
        chain = chain >> named("step")
    for stage in (named("x" * 10_000), rrf(*(named(f"branch {n}") for n in range(60))), deep, chain):
        assert isinstance(pipeline_parts(stage), StageBox)


def test_a_name_that_looks_like_a_pipeline_is_the_name_of_one_step():
    assert pipeline_parts(named("rrf(a, b) >> c")) == StageBox("rrf(a, b) >> c")


# --- the drawing ---


def test_an_arrow_is_as_strong_as_its_weight_and_has_the_colour_of_its_lane():
    drawing = pipeline(weighted((0.8, WORDS), (0.2, LETTERS)), colours={"bm25": "#E69F00"})
    strong, weak = (arrow for arrow in arrows(drawing) if float(arrow.get("stroke-width")) > 1.4)
    assert strong.get("stroke") == "#E69F00" != weak.get("stroke")
    assert float(strong.get("stroke-width")) > float(weak.get("stroke-width"))


def test_boxes_do_not_touch():
    strong = strongest(WORDS, LETTERS)
    fused = weighted((0.5, WORDS), (0.3, boosted_neighbours(LINKS, LETTERS)), (0.2, strong))
    stage = rrf(fused >> boost(LINKS, 0.2), WORDS)
    boxes = [
        numbers(box, "x", "y", "width", "height")
        for box in list(ET.fromstring(pipeline(stage).svg).iter(f"{SVG}rect"))[1:]
    ]
    for number, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[number + 1 :]:
            assert x + width < left or left + wide < x or y + height < top or top + high < y
