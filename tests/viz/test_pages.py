"""Pictures, tables and pages: they say what there is, and whatever a model wrote stays text."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support, support_properties
from kgot_lab.io.files import bundled_path
from kgot_lab.loop import events as happened
from kgot_lab.loop.events import EVENTS, Event, ToolCall, Wrote
from kgot_lab.loop.formatting import format_event
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.stores.files import read_graph
from kgot_lab.types import Diff, Document, Edge, Message, Node, Prompt, Usage
from kgot_lab.viz import build_run_page, svg, table
from kgot_lab.viz.graph.svg import NO_NODES
from kgot_lab.viz.static.markup import Markup, element, escape_value
from kgot_lab.viz.stepping.data import run_data

EVIL = (
    "</title></text></pre></style>--><script>alert(\"1\")</script>]]><a href='javascript:x()' onclick=x>"
    "&amp;\x00\u202e<img src=//e.example>"
)
SVG = "{http://www.w3.org/2000/svg}"

ADA = Node("Ada", ("Person",), {"name": "Ada Lovelace"})
BABBAGE = Node("Babbage", ("Person",))
LONDON = Node("London", ("City",))
BORN = Edge("Ada", "born in", "London")
MET = Edge("Ada", "met", "Babbage", {"year": 1833})
ADMIRED = Edge("Babbage", "admired", "Ada")
SMALL = PropertyGraph.of([ADA, BABBAGE, LONDON], [BORN, MET, ADMIRED])
EVIL_GRAPH = PropertyGraph.of(
    [Node(EVIL, (EVIL,), {EVIL: EVIL}), ADA], [Edge(EVIL, EVIL, "Ada", {EVIL: [EVIL]}, EVIL)]
)


def parsed(picture) -> ET.Element:
    return ET.fromstring(picture.svg)


def texts(picture) -> list[str]:
    return [node.text or "" for node in parsed(picture).iter(f"{SVG}text")]


def star(leaves: int) -> PropertyGraph:
    return PropertyGraph.of(
        (), (Edge("hub", "has", f"leaf {number}") for number in range(leaves)), dangling="add"
    )


# --- pictures ---


def test_a_picture_names_every_node_and_edge_in_full():
    picture = svg(SMALL)
    assert {"Ada Lovelace", "Babbage", "London", "born in", "met", "admired", "Person", "City"} <= set(
        texts(picture)
    )
    titles = [node.text for node in parsed(picture).iter(f"{SVG}title")]
    assert "Ada --[met]--> Babbage\nyear: 1833" in titles and any("types: City" in title for title in titles)
    assert titles[0] == "A graph with 3 nodes and 3 edges"
    assert "Ada met Babbage" in parsed(picture).find(f"{SVG}desc").text
    assert repr(picture) == "<Picture: 3 of 3 nodes, 3 of 3 edges>" and picture._repr_svg_() == picture.svg


def test_a_text_of_more_than_four_lines_is_shortened_in_the_picture_and_whole_in_the_tooltip():
    picture = svg(PropertyGraph.of([Node("a long name that goes on and on" * 9)]))
    assert any(text.endswith("…") for text in texts(picture))
    assert "a long name that goes on and on" * 9 in picture.svg


def test_an_empty_graph_says_so():
    assert NO_NODES in texts(svg(PropertyGraph.of())) and NO_NODES not in texts(svg(SMALL))


def test_a_node_stays_where_it_was():
    before = svg(SMALL)
    grown = PropertyGraph.of([*SMALL.nodes, Node("new")], [*SMALL.edges, Edge("new", "near", "London")])
    after = svg(grown, positions=before.positions)
    for id in SMALL.ids:
        assert after.positions[id] == pytest.approx(before.positions[id])
    assert "new" in after.positions
    assert svg(SMALL.subgraph(["Ada"]), positions=after.positions).positions.keys() == after.positions.keys()


@pytest.mark.parametrize(
    "graph",
    [star(40), star(3), PropertyGraph.of([Node("alone")]), PropertyGraph.of(Node(str(i)) for i in range(30))],
)
def test_nodes_lie_inside_and_do_not_cover_each_other(graph):
    places = np.array(list(svg(graph).positions.values()))
    assert ((places >= -1e-9) & (places <= 1 + 1e-9)).all()
    pixels = places * (780, 492)
    distances = np.linalg.norm(pixels[:, None] - pixels[None], axis=2)[~np.eye(len(pixels), dtype=bool)]
    assert distances.size == 0 or distances.min() > 22


@pytest.mark.parametrize("number", [2, 3, 4])
def test_few_nodes_are_near_each_other_in_the_middle(number):
    path = PropertyGraph.of((), (Edge(str(i), "next", str(i + 1)) for i in range(number - 1)), dangling="add")
    pixels = np.array(list(svg(path).positions.values())) * (788, 528)
    steps = np.linalg.norm(np.diff(pixels, axis=0), axis=1)
    assert np.ptp(pixels, axis=0).max() < 600 and steps.min() > 60 and steps.max() < 400
    assert np.abs((pixels.min(axis=0) + pixels.max(axis=0)) / 2 - (394, 264)).max() < 60


def test_neighbours_lie_closer_together_than_others():
    path = PropertyGraph.of((), (Edge(str(i), "next", str(i + 1)) for i in range(14)), dangling="add")
    places = svg(path).positions
    gap = lambda a, b: np.hypot(places[str(a)][0] - places[str(b)][0], places[str(a)][1] - places[str(b)][1])  # noqa: E731
    near, far = [gap(i, i + 1) for i in range(14)], [gap(i, j) for i in range(15) for j in range(i + 2, 15)]
    assert max(near) < np.mean(far)


def test_parallel_edges_and_loops_are_separate_curves():
    loops = Edge("Ada", "is", "Ada"), Edge("Ada", "was", "Ada")
    pair = PropertyGraph.of([ADA, BABBAGE], [MET, ADMIRED, Edge("Ada", "wrote to", "Babbage"), *loops])
    middles = [node.get("d").split("Q")[-1].split("C")[-1] for node in parsed(svg(pair)).iter(f"{SVG}path")]
    assert len(set(middles)) == 5


def test_at_most_so_many_nodes_are_drawn_best_connected_first_and_the_picture_says_so():
    graph = PropertyGraph.of((Node(f"lonely {i}") for i in range(300)), star(50).edges, dangling="add")
    picture = svg(graph, limit=51)
    assert (picture.nodes, len(picture.scene.marked.graph), picture.edges) == (51, 351, 50)
    assert "hub" in texts(picture) and any("Shows 51 of 351 nodes" in text for text in texts(picture))
    assert not any("Shows" in text for text in texts(svg(SMALL)))


def test_a_thousand_parallel_edges_are_not_all_drawn():
    crowded = PropertyGraph.of([ADA, BABBAGE], [Edge("Ada", f"type {i}", "Babbage") for i in range(1000)])
    picture = svg(crowded, limit=20)
    assert picture.edges == 80 and any("Shows 80 of 1,000 edges" in text for text in texts(picture))


def test_what_a_write_did_is_marked_and_what_it_took_away_is_drawn():
    married = Node("Ada", ("Person",), {"name": "Ada King"})
    after = PropertyGraph.of([married, BABBAGE, Node("Byron")], [MET, Edge("Byron", "father of", "Ada")])
    diff = SMALL.diff(after)
    picture = svg(after, highlight=diff)
    whole = picture.scene.marked.graph
    assert len(whole) == 4 and len(whole.edges) == 4
    assert {"+ father of", "− born in", "− admired", "met", "London"} <= set(texts(picture))
    assert {"added", "removed", "changed"} <= {text.strip() for text in texts(picture)}
    signs = [text for text in texts(picture) if text in {"+", "−", "~"}]
    assert sorted(signs) == sorted(["+", "−", "~"] * 2)  # legend and node
    assert not any(text in {"+", "−", "~"} for text in texts(svg(after)))


def test_what_a_write_touched_is_drawn_first_when_there_is_no_room_for_all():
    graph = PropertyGraph.of(
        [*star(60).nodes, Node("new"), Node("old")], [*star(60).edges, Edge("new", "near", "old")]
    )
    picture = svg(
        graph, highlight=Diff(added_nodes=(Node("new"),), added_edges=(Edge("new", "near", "old"),)), limit=3
    )
    assert {"new", "old", "hub"} <= set(texts(picture)) and picture.edges == 1


def test_a_label_keeps_its_look_while_the_graph_grows():
    sample = lambda picture, label: re.search(rf'fill="(#\w+)"[^>]*/></g><text[^>]*>{label}<', picture.svg)[1]  # noqa: E731
    grown = PropertyGraph.of(
        [*SMALL.nodes, Node("x", ("Machine",)), Node("y", ("Machine",)), Node("z", ("Machine",))]
    )
    assert sample(svg(SMALL), "City") == sample(svg(grown), "City") != sample(svg(grown), "Machine")


@pytest.mark.parametrize("graph", [SMALL, EVIL_GRAPH, star(200), PropertyGraph.of()], ids=repr)
def test_a_picture_is_well_formed_and_asks_for_nothing(graph):
    picture = svg(graph, highlight=PropertyGraph.of().diff(graph))
    names = {node.tag.removeprefix(SVG) for node in parsed(picture).iter()}
    assert names <= {"svg", "title", "desc", "g", "path", "polygon", "circle", "rect", "text"}
    attributes = {name for node in parsed(picture).iter() for name in node.attrib}
    asking = ("id", "class", "src")
    assert not {name for name in attributes if name.startswith("on") or "href" in name or name in asking}
    assert picture.svg.count("http") == picture.svg.count("http://www.w3.org/2000/svg") == 1


def test_a_picture_is_saved_as_svg_and_as_nothing_else(tmp_path):
    assert svg(EVIL_GRAPH).save(tmp_path / "graph.svg").read_text(encoding="utf-8") == svg(EVIL_GRAPH).svg
    with pytest.raises(BadInput, match=r"saved as \.svg"):
        svg(SMALL).save(tmp_path / "graph.png")


# --- markup ---


def test_markup_escapes_texts_but_not_markup():
    made = element("b", "<i>", Markup("<i/>"), class_='a"b', data_x=1.25, none=None)
    assert made == '<b class="a&quot;b" data-x="1.2">&lt;i&gt;<i/></b>'


def test_characters_that_xml_forbids_or_that_turn_text_around_are_replaced():
    assert escape_value("a\x00b\ud800c\u202ed\ufffee\U0001f600\tü\n") == "a�b�c�d�e\U0001f600\tü\n"
    assert escape_value(1.0) == "1" and escape_value(2.345) == "2.3" and escape_value(None) == "None"


# --- tables ---


def test_rows_of_every_kind_become_a_table():
    assert table([{"a": 1, "b": "x"}, {"a": True, "c": None}]).sheets[0].rows == (
        ("1", "x", ""),
        ("true", "", ""),
    )
    assert table([["x", 1.5], ["y"]]).sheets[0].rows == (("x", "1.5"), ("y", ""))
    assert table(["x", {"a": ["ü"]}, 3]).sheets[0].rows == (("x",), ('{"a": ["ü"]}',), ("3",))
    assert repr(table([])) == "0 rows\nvalue"


def test_a_long_table_is_cut_and_says_so():
    cut = table([{"n": number} for number in range(1234)], limit=10)
    assert len(cut.sheets[0].rows) == 10 and "1,234 rows, the first 10 shown" in cut._repr_html_()
    assert "the first 10 shown" in repr(cut)
    assert repr(table(star(99), limit=5)).startswith("Nodes: 100 rows, the first 5 shown")


def test_a_table_of_hostile_texts_is_harmless():
    for hostile in (table(EVIL_GRAPH), table([{EVIL: EVIL}]), table([EVIL, [EVIL]])):
        assert {node.tag for node in ET.fromstring(f"<x>{hostile._repr_html_()}</x>").iter()} <= {
            "x", "table", "caption", "thead", "tbody", "tr", "th", "td",
        }  # fmt: skip


# --- pages ---


def run(text: str = "word", *, forced: bool = False) -> list[Event]:
    """A run with every kind of event, the same text in every place that takes one."""
    prompt = Prompt(
        (Message("system", f"system {text}"), Message(text, f"user {text}")), {"type": text}, 0.7, 3
    )
    usage, call = Usage(1000, 20, 1.5, 0.01), ToolCall(text, {text: text})
    node, edge = Node(text, (text,), {text: text}), Edge(text, text, text, {text: text})
    changed = Node(text, (text,), {text: 2})
    document = Document(f"doc {text}", f"passage {text}", f"title {text}")
    return [
        happened.Started(
            question=f"question {text}",
            attachments=(text,),
            limits={"preset": text},
            planning=text,
            dialect=text,
            tools={text: text},
        ),
        happened.Asked(role="vote", model=text, prompt=prompt, reply=f"reply {text}", usage=usage),
        happened.Vote(number=1, choice=text, text=f"vote {text}"),
        happened.Failed(statement=f"failed {text}", reason=f"because {text}"),
        happened.Voted(choice="INSERT", inserts=2, retrieves=1, invalid=1, possible=5, reasons=(text,)),
        happened.Merged(reason=f"merged {text}"),
        happened.Chose(step=1, calls=(call,), skipped=(call,)),
        happened.Decided(
            step=1, what="write", proposed=f"proposed {text}", decision="denied", text=f"denial {text}"
        ),
        happened.ToolReturned(step=1, call=call, text=f"tool {text}", sources=(document,), failed=forced),
        happened.Cut(step=1, what=text, kept=480, left_out=1120),
        happened.Asked(step=1, role=f"write {text}", model=text, prompt=prompt, reply=text, usage=usage),
        happened.Repaired(step=1, statement=f"wrong {text}", error=f"error {text}", mended=f"mended {text}"),
        Wrote(
            step=1,
            statement=f"wrote {text}",
            diff=Diff(added_nodes=(node,), added_edges=(edge,)),
            source=text,
        ),
        Wrote(step=1, statement=text, diff=Diff(changed_nodes=((node, changed),), removed_edges=(edge,))),
        happened.Refused(step=1, statement=text, reason=f"refused {text}", writing=True),
        happened.Read(step=1, statement=f"read {text}", rows=({text: f"row {text}"}, {"n": 1})),
        happened.Read(step=1, statement=text, rows=()),
        happened.Forced(step=1, what="read"),
        happened.Computed(step=1, code=f"code {text}", output=f"output {text}"),
        happened.Parsed(step=1, text=f"candidate {text}"),
        happened.Parsed(step=1, text="", problem=f"problem {text}"),
        happened.Answered(
            step=1,
            text=f"answer {text}",
            forced=forced,
            evidence=(f"fact {text}", [text]),
            passages=(f"doc {text}", text),
            supports=((Support(f"doc {text}", f"sentence {text}"),),),
        ),
    ]


class Tags(HTMLParser):
    """What a browser would see: the names of tags and attributes."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


def test_every_kind_of_event_is_in_the_sample_run():
    assert {type(event).__name__ for event in run()} == set(EVENTS)


def test_a_page_holds_the_words_of_every_event():
    text = "".join(ET.fromstring(build_run_page(run())).itertext())
    for said in (
        "question", "system", "user", "reply", "vote", "failed", "because", "merged", "tool", "passage", "title", "wrong", "error",
        "mended", "wrote", "refused", "read", "row", "code", "output", "candidate", "problem", "answer", "fact",
    ):  # fmt: skip
        assert f"{said} word" in text, said
    evidence = text.partition("Facts of the graph")[2].partition("Step")[0]
    assert "fact word" in evidence and "“sentence word” [doc word]" in evidence, (
        "each fact stands beside the sentence that says it"
    )
    assert "2 INSERT, 1 RETRIEVE, 1 invalid. 50% of 4 votes agreed; 5 were possible." in text
    assert "about 480 tokens kept, 1,120 left out" in text and "No rows." in text
    assert "Step 1" in text and "word(word='word')" in text and "temperature 0.7, seed 3" in text


def test_the_answer_says_whether_it_was_forced():
    assert "Unsure, a guess: what was read does not say it" in build_run_page(run(forced=True))
    assert "Forced:" not in build_run_page(run(forced=False))
    assert "did not reach an answer" in build_run_page(
        run()[:-1]
    ) and "did not reach an answer" not in build_run_page(run())


def test_the_ledger_adds_up_by_role():
    rows = [
        [cell.text for cell in row]
        for row in ET.fromstring(build_run_page(run())).find(".//table[@class='numbers']/tbody")
    ]
    assert rows == [
        ["vote", "1", "1,000", "20", "1.5", "0.0100"],
        ["write word", "1", "1,000", "20", "1.5", "0.0100"],
        ["all", "2", "2,000", "40", "3.0", "0.0200"],
    ]


@every(
    "text",
    [EVIL, '"><script>', "javascript:alert(1)", "</details></div></body></html>", "]]>", "&lt;b&gt;", "<!--"],
)
def test_no_text_of_a_run_becomes_markup(text):
    made = build_run_page(run(text), title=text.replace("\x00", ""))
    ET.fromstring(made)  # well-formed
    tags, plain = Tags(made), Tags(build_run_page(run(), title="word"))
    assert tags.tags == plain.tags and tags.attributes.keys() == plain.attributes.keys()
    assert not tags.tags & {"script", "a", "img", "iframe", "object", "link", "base", "form", "foreignobject"}
    asking = ("href", "src", "xlink:href", "id")
    assert not {name for name in tags.attributes if name.startswith("on") or name in asking}
    made.encode("utf-8")


def test_a_page_asks_for_nothing_from_outside():
    made = build_run_page(run())
    assert set(re.findall(r"\w+://[^\"' <]+", made)) == {"http://www.w3.org/2000/svg"}
    assert "url(" not in made and "@import" not in made and "default-src &#x27;none&#x27;" in made


def test_a_page_of_an_event_that_is_not_known_yet_still_shows_it():
    class Dreamed(Event):
        pass

    assert "Dreamed" in build_run_page([Dreamed(step=4)]) and "Step 4" in build_run_page([Dreamed(step=4)])
    assert NO_NODES in build_run_page([])


def test_a_run_on_a_graph_that_was_there_is_told_what_it_was():
    writes = [Wrote(statement="x", diff=Diff(removed_nodes=(LONDON,), removed_edges=(BORN,)))]
    assert "2 nodes and 2 edges" in build_run_page([happened.Started(question="?", start=SMALL), *writes])
    with pytest.raises(BadInput, match="does not fit"):
        build_run_page(writes)


def test_a_fact_whose_node_stands_for_a_sentence_is_told_as_the_title_and_the_sentence():
    edge = Edge("Ada", "says", "Ada §2", support_properties([Support("d1", "She wrote programs.")]))
    supports = ((Support("d1", "She wrote programs."),), ())
    answered = happened.Answered(
        text="programs", forced=False, evidence=(fact_of(edge), "Ada --[met]--> Bob"), supports=supports
    )
    wrote = Wrote(statement="add", diff=Diff(added_nodes=(Node("Ada"), Node("Ada §2")), added_edges=(edge,)))
    run = [happened.Started(question="What did she write?"), wrote, answered]
    words = re.sub("<[^>]*>", " ", build_run_page(run).partition("<h2>Evidence</h2>")[2])
    assert "Ada: “She wrote programs.”" in words and "[d1]" in words
    assert "--[says]--" not in words.partition("Step by step")[0]
    assert "Ada --[met]--&gt; Bob" in words
    assert "Ada: “She wrote programs.”" in "".join(map(str, format_event(answered).parts))
    (fact, other) = run_data(run, {})["grounds"]["facts"]
    assert fact["sentence_of"] == "Ada" and "sentence_of" not in other


def test_a_turn_without_a_vote_says_so_instead_of_counting_no_votes():
    reasons = ("no vote on an <empty> graph",)
    voted = happened.Voted(choice="INSERT", inserts=0, retrieves=0, invalid=0, possible=0, reasons=reasons)
    events = (happened.Started(question="?"), voted)
    text = build_run_page(events, title="x")
    assert "without a vote: no vote on an &lt;empty&gt; graph" in text and "0 votes" not in text


def test_every_prompt_and_every_graph_is_folded_away():
    root = ET.fromstring(build_run_page(run()))
    folded = ["".join(details.itertext()) for details in root.iter("details")]
    assert sum("system word" in text and "reply word" in text for text in folded) == 1
    assert len(list(root.iter(f"{SVG}svg"))) == 3
    assert len([details for details in root.iter("details") if details.find(f"{SVG}svg") is not None]) == 2


def test_the_heading_of_a_page_holds_a_long_question_whole():
    question = "Which of the " + "very " * 40 + "many words of this question is the last?"
    text = build_run_page([happened.Started(question=question)])
    assert f"<h1>{question}</h1>" in text and "<title>Which of the very" in text
    assert f"<title>{question}" not in text


def test_the_bundled_snapshots_can_be_drawn():
    pictures = [svg(read_graph(path)) for path in sorted(bundled_path("kgot-snapshots").glob("data_*.json"))]
    assert [picture.nodes for picture in pictures] == [11, 9, 1, 10, 6]
    assert "Philippines" in texts(pictures[0])
