"""The picture of an answer: question, facts and answer at one glance, whatever a model wrote, and no line
through a box not its end.
"""

import random
import re
import runpy
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.events import Answered, Started, ToolCall, ToolReturned, Wrote
from kgot_lab.loop.trace import load_run
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.types import Diff, Document, Edge, Node
from kgot_lab.viz.graph.marks import find_support
from kgot_lab.viz.static.drawing import line_width
from kgot_lab.viz.static.markup import element

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "draw_answer.py"))
answer_picture, told_answer = SCRIPT["answer_picture"], SCRIPT["told_answer"]
FactSelection, fact_graph = SCRIPT["FactSelection"], SCRIPT["fact_graph"]
SVG = "{http://www.w3.org/2000/svg}"
EVIL = '</title></text></svg><script>alert("1")</script>]]>&amp;\x00\u202e<img src=//e.example> '
LONG = "a very long name that a model wrote without thinking of a reader " * 20
RUNS = sorted(path.name for path in bundled_path("traces/hotpotqa_demo.jsonl").parent.glob("*.jsonl"))


def run_of(question, answer, facts, *, evidence=None, forced=False):
    """The events of a run that wrote some facts, read all of them or those of `evidence`, and answered."""
    ends = dict.fromkeys(end for edge in facts for end in (edge.source, edge.target))
    wrote = Wrote(statement="…", diff=Diff(added_nodes=tuple(map(Node, ends)), added_edges=tuple(facts)))
    read = facts if evidence is None else evidence
    answered = Answered(text=answer, forced=forced, evidence=tuple(map(fact_of, read)))
    return [Started(question=question), wrote, answered]


def texts(svg):
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text")]


def moved(node, x=0.0, y=0.0):
    """Every element with where the moves around it put it."""
    move = re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", node.get("transform", ""))
    x, y = (x + float(move[1]), y + float(move[2])) if move else (x, y)
    yield node, x, y
    for inner in node:
        yield from moved(inner, x, y)


def boxes_and_lines(markup):
    """The boxes of a graph of facts by their titles, and points along each line with the title of its fact."""
    boxes, lines = {}, []
    for group in ET.fromstring(element("g", markup)).iter("g"):
        title, rect, path = (group.find(name) for name in ("title", "rect", "path"))
        if title is not None and rect is not None:
            x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            boxes[title.text] = (x, y, x + w, y + h)
        if title is not None and path is not None:
            x0, y0, turn, *rest = map(float, re.findall(r"-?[\d.]+", path.get("d")))
            (ax, ay, bx, by, x1, y1), shares = rest, [step / 60 for step in range(61)]
            level = [(x0 + (turn - x0) * t, y0) for t in shares]
            curve = [
                tuple(
                    (1 - t) ** 3 * p + 3 * t * (1 - t) ** 2 * a + 3 * t * t * (1 - t) * b + t**3 * q
                    for p, a, b, q in parts
                )
                for t in shares
                for parts in [((turn, ax, bx, x1), (y0, ay, by, y1))]
            ]
            lines.append((title.text, level + curve))
    return boxes, lines


# --- what it says ---


def test_the_demo_shows_its_question_the_facts_and_the_answer_with_its_sentence():
    run = load_run(bundled_path("traces/hotpotqa_demo.jsonl"))
    told, picture = told_answer(run), answer_picture(run)
    assert [fact_of(edge) for edge in told.telling] == [
        "Botswana --[is located in]--> Southern Africa",
        "Botswana --[is a]--> landlocked country",
        "Ayesha Quraishi --[born in]--> Botswana",
    ]
    said = " ".join(texts(picture.svg))
    order = ("What landlocked country", "born in", "ANSWER", "born 8 July 1981 in Botswana")
    assert sorted(order, key=said.index) == list(order)
    assert (told.support.hub, told.support.hub_is_answer) == ("Botswana", True) and "no label" not in said
    strong = [word for word, known in told.question_pieces() if known]
    assert strong == ["landlocked", "country", "located", "Southern", "Africa", "Ayesha"]


@every("name", RUNS)
def test_every_bundled_run_has_a_picture_of_its_answer(name):
    run = load_run(bundled_path(f"traces/{name}"))
    told = told_answer(run)
    assert set(map(fact_of, (*told.telling, *told.beside))) <= set(run.events[-1].evidence)
    assert told.telling or run.events[-1].forced  # a guess rests on nothing
    assert ET.fromstring(answer_picture(run).svg).tag == f"{SVG}svg"


def test_a_fact_on_the_way_to_a_telling_one_is_marked_though_it_adds_no_word():
    facts = [Edge("Ada", "xyz", "Bob"), Edge("Bob", "lives in", "Rome")]
    assert find_support(run_of("Who knows the one in Rome?", "Ada", facts)).telling == tuple(facts)


def test_a_fact_that_no_path_joins_to_the_answer_is_not_drawn():
    own, other = Edge("Ada", "born in", "London"), Edge("Bob", "born in", "Rome")
    told = told_answer(run_of("Where was Ada born?", "London", [own, other]))
    assert (told.telling, told.beside) == ((own,), ())
    assert "Not drawn: 1." in " ".join(
        texts(answer_picture(run_of("Where was Ada born?", "London", [own, other])).svg)
    )


def test_a_fact_without_a_sentence_takes_the_one_of_its_passage():
    events = run_of("Where was Ada born?", "London", [Edge("Ada", "born in", "London")])
    passage = Document("p1", "Bob is a poet. Ada was born in London in 1815. She wrote.", "Ada")
    events.insert(1, ToolReturned(call=ToolCall("search"), text="", sources=(passage,)))
    assert told_answer(events).quoted == ()  # the answer names no passage
    events[-1] = Answered(text="London", forced=False, evidence=events[-1].evidence, passages=("p1",))
    assert [(one.sentence, one.title) for one in told_answer(events).quoted] == [
        ("Ada was born in London in 1815.", "Ada")
    ]


def test_a_guess_is_called_one_and_a_run_without_answer_is_refused():
    said = " ".join(texts(answer_picture(run_of("Who?", "Ada", [], forced=True)).svg))
    assert "None of the graph: the model guessed." in said and "ANSWER, A GUESS" in said
    with pytest.raises(BadInput, match="finished run"):
        answer_picture([Started(question="Who?")])


# --- how it is drawn ---


def random_facts(seed):
    chance = random.Random(seed)
    sizes = enumerate(chance.choices([3, 10, 40, 90], k=chance.randint(2, 9)))
    names = [f"{LONG[:size]} {number}" for number, size in sizes]
    ends = chance.choices(
        list(combinations(names, 2)) + [(name, name) for name in names], k=chance.randint(1, 12)
    )
    types = ["is", "is located in", LONG]
    return names, [
        Edge(one, chance.choice(types), other, key=str(number)) for number, (one, other) in enumerate(ends)
    ]


@every("seed", range(60))
def test_no_line_passes_through_a_box_that_is_not_its_end_and_no_boxes_overlap(seed):
    names, facts = random_facts(seed)
    ends = {end for edge in facts for end in (edge.source, edge.target)}
    graph = fact_graph(
        FactSelection(facts, {name: name for name in names}, facts[0].source, facts[:2], is_answer=True)
    )
    boxes, lines = boxes_and_lines(graph.markup)
    assert set(boxes) == ends and len(lines) == len(graph.drawn)
    for (_, one), (_, other) in combinations(boxes.items(), 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    for edge, (_, points) in zip(graph.drawn, lines, strict=True):
        for name, (left, top, right, bottom) in boxes.items():
            if name not in (edge.source, edge.target):
                assert not any(left < x < right and top < y < bottom for x, y in points)
    points = [point for _, line in lines for point in line]
    assert all(0 <= x <= graph.width + 0.1 and -0.1 <= y <= graph.height + 0.1 for x, y in points)


def test_what_a_model_wrote_is_text_and_nothing_else():
    facts = [Edge(EVIL, EVIL, "Botswana", {"sentence": EVIL, "source": EVIL})]
    picture = answer_picture(run_of(EVIL, f"Botswana {EVIL}", facts))
    tags = {node.tag.removeprefix(SVG) for node in ET.fromstring(picture.svg).iter()}
    assert tags <= {"svg", "title", "rect", "g", "text", "tspan", "path", "polygon"}
    assert "\u202e" not in picture.svg and "<script" not in picture.svg and "<img" not in picture.svg


@every("name", ["Ada", LONG, EVIL, "WWWW MMMM " * 9, "农民在田里撒鸟粪粮食长得更多" * 8, "x" * 400])
def test_every_caption_stays_within_the_frame(name):
    facts = [
        Edge(name, f"is {name}", "Botswana", {"sentence": f"It is said of {name}."}),
        Edge("Botswana", "r", f"{name} again"),
    ]
    picture = answer_picture(run_of(f"What of {name}?", f"Botswana {name}", facts))
    root = ET.fromstring(picture.svg)
    width, height = float(root.get("width")), float(root.get("height"))
    for text, x, y in moved(root):
        if text.tag != f"{SVG}text":
            continue
        wide = line_width(
            "".join(text.itertext()), float(text.get("font-size")), bold=text.get("font-weight") == "bold"
        )
        left = x + float(text.get("x")) - (wide / 2 if text.get("text-anchor") == "middle" else 0)
        assert left >= 0 and left + wide <= width + 1 and 0 < y + float(text.get("y")) <= height
