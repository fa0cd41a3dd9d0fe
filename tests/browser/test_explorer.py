"""The retrieval explorer as a reader uses it, in a notebook: sliders move hits, and what the browser shows is
what Python has.
"""

from __future__ import annotations

import json
import random

import pytest
from support.searching import const

from browser.lab import expect, open_notebook, run_cell
from browser.window import SCREENSHOTS, open_from_disk
from kgot_lab.retrieval.fusion import WEIGHT_PRESETS, Weights
from kgot_lab.types import Document, Query
from kgot_lab.viz.explorer.explorer import Retrievers, explore, explore_dataset
from kgot_lab.viz.explorer.fusion_weights import LETTERS, Mix, effective_weights
from kgot_lab.viz.live import page_script, placeholder, script, style

SHOW = """
from kgot_lab.viz.explorer.explorer import explore_dataset

explorer = explore_dataset("hotpotqa").but(k=8)
explorer
"""
HITS = "import json; print(json.dumps([[id, score] for id, score in explorer.ranking.hits]))"
STATE = "import json; print(json.dumps([explorer.question.text, explorer.mix.to_json, explorer.stage.name, explorer.live.is_live]))"
ONE, HIT = 0.05, ".kl-x-hits > li"


@pytest.fixture
def view(page, lab):
    """The explorer of a notebook, live."""
    open_notebook(page, lab.scratch([SHOW, HITS, STATE, "explorer"]))
    area = run_cell(page, 0)
    expect(area.locator(".kl-x")).to_be_visible()
    expect(area.locator(".kl-replaced")).to_have_count(1)
    expect(area.locator("img:visible")).to_have_count(0)
    return area.locator(".kl-x")


def printed(page, n):
    """What a cell prints, from JSON."""
    return json.loads(run_cell(page, n).locator("pre").inner_text())


def shown(view):
    """The hits on screen: ids and scores."""
    return view.locator(HIT).evaluate_all(
        "(rows) => rows.map((row) => [row.dataset.id, Number(row.dataset.score)])"
    )


def quiet(view):
    """Wait until the answer to the newest movement is on screen."""
    view.page.wait_for_function("(view) => view.dataset.waiting === 'false'", arg=view.element_handle())


def pictured(view, name):
    """Keep a screenshot of the view in a window that has room for it."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    size = view.page.viewport_size
    view.page.set_viewport_size({**size, "height": 2200})
    view.screenshot(path=SCREENSHOTS / f"{name}.png")
    view.page.set_viewport_size(size)


def slider(view, letter):
    return view.get_by_role("slider", name=f"{letter},")


def marks(view):
    """How many lists have been shown, as the browser's own clock noted them."""
    return view.page.evaluate("() => performance.getEntriesByName('explorer updated').length")


def test_a_slider_moves_hits_and_of_many_movements_at_once_the_last_is_shown(page, view):
    before = shown(view)
    assert before == printed(page, 1) and len(before) == 8
    slider(view, "γ").focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    quiet(view)
    assert slider(view, "γ").evaluate("(slider) => document.activeElement === slider"), (
        "the notebook took the arrow keys"
    )
    after = shown(view)
    assert after != before
    expect(view.locator(".kl-x-time")).to_contain_text("updated in ")
    expect(view.locator("[data-retriever=graph] .kl-x-number")).to_have_text("0.75")
    assert printed(page, 1) == after
    _, mix, stage, is_live = printed(page, 2)
    assert mix["weights"]["graph"] == 0.75 and is_live
    assert stage in view.locator(".kl-x-pipeline code").inner_text()
    assert view.locator(".kl-x-move").count() > 0
    pictured(view, "explorer")
    view.locator(".kl-x-pipeline summary").click()
    pictured(view, "explorer-pipeline")
    view.locator(".kl-x-pipeline summary").click()
    lists = marks(view)
    slider(view, "α").evaluate(
        """(slider) => {
            for (let step = 0; step <= 40; step += 1) {
                slider.value = String((step % 20) / 20 + 0.05);
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            }
        }"""
    )
    quiet(view)
    assert 1 <= marks(view) - lists <= 3  # the first at once, and of the other 40 the last
    expect(view.locator("[data-retriever=embedding] .kl-x-number")).to_have_text("0.05")
    assert shown(view) == printed(page, 1) and printed(page, 2)[1]["weights"]["embedding"] == ONE


TIED = [Document(name, f"{name} is a machine", name) for name in ("b", "a", "\U0001f600", "\uff5e", "é", "Z")]
TIES = Retrievers(
    embedding=const("meaning", b=0.5, a=0.5, Z=0.5, **{"\U0001f600": 0.5, "\uff5e": 0.5}),
    text=const("words", é=-3.0, Z=2.0, b=2.0, a=1e-12),
    graph=const("around", Z=0.0, a=0.0),
)


def told_by_the_browser(page, explorer, wishes):
    """What the formula of the browser makes of a question's columns for some mixes, as ids, scores and what
    is told of each hit.
    """
    sheet = json.loads(
        json.dumps(explorer._searches.response_data(explorer.question, Mix(), {"sheet": True})["sheet"])
    )
    page.goto("about:blank")
    page.set_content("<!DOCTYPE html><p>empty</p>")
    page.add_script_tag(content=script())
    return page.evaluate(
        """([sheet, wishes]) => wishes.map((wish) => {
            const { rows, scores, shares } = explorerRanked(sheet, wish);
            const all = [...rows].map((row) => [sheet.ids[row], scores[row]]);
            return { all, shares, ...explorerMixed(sheet, wish, wish.before, new Map()) };
        })""",
        [sheet, wishes],
    )


@pytest.mark.parametrize("tied", [False, True], ids=["hotpotqa", "ties"])
def test_the_formula_of_the_browser_is_that_of_python(page, tied):
    small = explore(TIES, TIED, queries=[Query("machine", "q")], qrels={"q": {"a": 1, "nobody": 1}})
    explorer = small if tied else explore_dataset("hotpotqa")
    chance = random.Random(5)
    own = [Weights(*(chance.randrange(21) / 20 for _ in LETTERS)) for _ in range(12)]
    stands = ((), 10), (("text",), 3), (("embedding", "graph"), 50)
    mixes = [
        Mix(weights, frozenset(off), k) for weights in (*WEIGHT_PRESETS.values(), *own) for off, k in stands
    ]
    wishes = [
        {**mix.to_json, "before": before.to_json} for before, mix in zip([Mix(), *mixes], mixes, strict=False)
    ]
    for query in explorer._searches.queries[:3]:
        there = explorer.but(question=query.text)
        found = told_by_the_browser(page, there, wishes)
        for wish, mix, mixed in zip(wishes, mixes, found, strict=True):
            answer = there._searches.response_data(query, mix, wish)
            if mixed["shares"] is None:
                assert (
                    answer["hits"] == [] and "All weights are 0" in answer["notes"][0]
                ) or "switched off" in answer["notes"][0]
                continue
            ranking = there._searches.search(query).joined(
                effective_weights(there._searches.working_retrievers(query), mix)
            )
            assert [id for id, _ in mixed["all"]] == ranking.ids
            assert [score for _, score in mixed["all"]] == pytest.approx(
                [hit.score for hit in ranking.hits], abs=1e-9
            )
            assert mixed["told"] == answer["told"]
            assert {
                name: retriever["share"]
                for name, retriever in answer["retrievers"].items()
                if retriever["share"]
            } == mixed["shares"]
            for here, expected in zip(mixed["hits"], answer["hits"], strict=True):
                same = ("rank", "id", "name", "gold", "moved", "path")
                assert {name: here[name] for name in same} == {name: expected[name] for name in same}
                assert [part["retriever"] for part in here["parts"]] == [
                    part["retriever"] for part in expected["parts"]
                ]
                assert [part["value"] for part in here["parts"]] == pytest.approx(
                    [part["value"] for part in expected["parts"]], abs=1e-9
                )


def test_presets_switches_and_k_change_the_list_and_each_hit_has_its_numbers(page, view):
    view.locator(HIT).first.focus()
    page.keyboard.press("ArrowDown")
    assert view.locator(HIT).nth(1).evaluate("(row) => document.activeElement === row")
    expect(view.get_by_role("tooltip")).to_contain_text("α embedding: 0.")
    expect(view.get_by_role("tooltip")).to_contain_text("rank ")
    view.get_by_role("button", name="Table").click()
    expect(view.locator("table")).to_contain_text("★ gold")
    expect(view.locator("table tbody tr")).to_have_count(8)
    view.get_by_label("Preset").select_option("exploration")
    quiet(view)
    expect(slider(view, "γ")).to_have_value("0.4")
    assert shown(view) == printed(page, 1)
    view.get_by_label("γ graph").uncheck()
    quiet(view)
    expect(view.locator("[data-retriever=graph] .kl-x-told")).to_contain_text("switched off")
    assert "around" not in printed(page, 2)[2] and shown(view) == printed(page, 1)
    slider(view, "k").fill("50")
    quiet(view)
    expect(view.locator(HIT)).to_have_count(50)
    expect(slider(view, "δ")).to_be_disabled()
    expect(view.locator("[data-retriever=intent]")).to_contain_text("There is no intent retriever here")


def test_a_question_is_chosen_or_typed_and_bad_ones_are_answered_in_words(page, view):
    first = shown(view)
    chosen = view.get_by_label("or one of 60")
    chosen.focus()
    page.keyboard.press("ArrowDown")
    quiet(view)
    assert shown(view) != first and printed(page, 2)[0] == view.get_by_role("searchbox").input_value()
    expect(view.locator(".kl-x-gold-line")).to_contain_text("of 2 gold in the first 8")
    for question, words in (("  ", "The question is blank"), ("Who was the <b>father</b>?", "")):
        view.get_by_role("searchbox").fill(question)
        view.get_by_role("searchbox").press("Enter")
        quiet(view)
        expect(view.locator(".kl-x-notes")).to_contain_text(words)
    assert view.locator(HIT).count() == 8
    assert view.locator("mark").first.inner_text().lower() in ("father", "who", "was")
    expect(view.locator(".kl-x-gold-line")).to_have_text(
        "No passages are marked as relevant to this question."
    )
    for letter in "αβγ":
        slider(view, letter).fill("0")
    quiet(view)
    expect(view.locator(".kl-x-notes")).to_contain_text("All weights are 0")
    assert view.locator(HIT).count() == 0


def test_on_a_page_from_disk_sliders_and_retrievers_move_and_what_needs_python_says_so(page, watch, tmp_path):
    from kgot_lab.retrieval.lexical import bm25
    from kgot_lab.types import Document
    from kgot_lab.viz import live
    from kgot_lab.viz.explorer.explorer import Retrievers, explore
    from kgot_lab.viz.static.markup import Markup, element

    evil = "<img src=x onerror=alert(1)>"
    documents = [Document("a", f"a machine {evil}", evil), Document("b", "another machine", "B")]
    explorer = explore(
        Retrievers(text=bm25(documents)), documents, queries=["machine"], systems={evil: bm25(documents)}
    )
    script, digest = live.page_script()
    rules = f"default-src 'none'; style-src 'unsafe-inline'; script-src {digest}"
    policy = element("meta", http_equiv="Content-Security-Policy", content=rules)
    head = f"<!DOCTYPE html><meta charset='utf-8'>{policy}{element('style', Markup(live.style()))}"
    (tmp_path / "page.html").write_text(
        f"{head}{live.placeholder({**explorer.live.data, 'stands_for': ''})}{script}", encoding="utf-8"
    )
    open_from_disk(page, watch, tmp_path / "page.html")
    view = page.locator(".kl-x")
    expect(view.locator(HIT)).to_have_count(2)
    expect(view).to_contain_text("another question needs a running notebook")
    expect(view.locator(HIT).filter(has_text=evil).first).to_be_visible()
    assert view.locator("img").count() == 0
    for control in view.locator(".kl-x-top input, .kl-x-top select, .kl-x-top button").all():
        expect(control).to_be_disabled()
    expect(view.get_by_role("group", name="Side by side")).to_have_count(0)
    view.get_by_role("slider", name="k, how many").fill("1")
    expect(view.locator(HIT)).to_have_count(1)
    view.get_by_role("slider", name="k, how many").fill("2")
    expect(view.locator(HIT)).to_have_count(2)
    view.locator("[data-retriever=text] input[type=checkbox]").uncheck()
    expect(view).to_contain_text("All weights are 0")
    view.locator("[data-retriever=text] input[type=checkbox]").check()
    expect(view.locator(HIT)).to_have_count(2)
    expect(view).not_to_contain_text("All weights are 0")


def test_sliders_and_ten_hits_stand_in_one_window_of_1280_by_680(page):
    data = explore_dataset("hotpotqa").live.data
    page.goto("about:blank")
    page.set_viewport_size({"width": 1280, "height": 680})
    made, _ = page_script()
    page.set_content(
        f"<!DOCTYPE html><html lang='en'><style>{style()}</style>{placeholder({**data, 'stands_for': ''})}{made}</html>"
    )
    expect(page.locator(HIT)).to_have_count(10)
    seen = page.locator(f"{HIT}, [data-retriever], .kl-x-side [type=range]")
    assert (
        seen.evaluate_all("(rows) => Math.max(...rows.map((row) => row.getBoundingClientRect().bottom))")
        <= 680
    )
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 1280


def test_two_systems_stand_side_by_side_and_what_is_shown_again_is_where_the_reader_left_it(page, view):
    view.get_by_role("button", name="Keep as A").click()
    quiet(view)
    slider(view, "β").fill("0")
    quiet(view)
    expect(view.locator(".kl-x-short")).to_have_count(2)
    assert view.locator(".kl-x-line").count() > 0 and view.locator(".kl-x-gold").count() > 0
    view.get_by_role("combobox", name="A", exact=True).select_option("bm25")
    view.get_by_role("combobox", name="B", exact=True).select_option("rrf")
    quiet(view)
    expect(view.locator(".kl-x-side-head").nth(1)).to_contain_text("B: rrf")
    assert set(view.locator(".kl-x-move").evaluate_all("(all) => all.map((each) => each.textContent.split(' ')[1])")) <= {
        "up", "down", "new", "gone", "same",
    }  # fmt: skip
    pictured(view, "explorer-side-by-side")
    view.get_by_role("button", name="Stop comparing").click()
    quiet(view)
    expect(view.locator(HIT)).to_have_count(8)
    view.get_by_label("Preset").select_option("sparse")
    quiet(view)
    again = run_cell(page, 3).locator(".kl-x")
    expect(again).to_be_visible()
    expect(again.get_by_label("Preset")).to_have_value("sparse")
    assert shown(again) == shown(view)
