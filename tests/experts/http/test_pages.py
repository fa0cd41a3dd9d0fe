"""The pages of experts in a real browser, against a real server: what is asked, shown and stopped, and what
must stay text.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.waiting import AMPLE, until

from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.errors import LabError
from kgot_lab.experts.neighbourhood import lay_out_neighbourhood
from kgot_lab.kgos.schemas.vocabularies import cookbook

pytest.importorskip("fastapi", reason="no web server: pip install 'kgot_lab[serve]'")
pytest.importorskip(
    "playwright", reason="no Playwright to drive a browser with: pip install 'kgot_lab[test]'"
)

from browser.audit import FINE, faults, keyboard_goes_through
from browser.window import Watch, chromium
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright
from support.page_server import ENDLESS, MARKUP, expert_server, odd_graph, office_of, scripted_model

from kgot_lab.experts.http import server
from kgot_lab.experts.http.auth import GuardRules
from kgot_lab.experts.http.tokens import new_token
from kgot_lab.experts.service import LOCAL_OWNER, ExpertService

pytestmark = pytest.mark.extended

QUESTION = "How does prompt caching bring down the cost of a long prompt, and what is its limit?"
ANSWER = (
    "**Prompt caching** helps [Source: cookbook:Prompt caching].\n\n"
    "- Mind the [Source: cookbook:Prefix sensitivity; cookbook:Eternal cache].\n\n"
    "```\ncode [1]\n```\nThat is all."
)
REPLIES = [
    ("caching", ANSWER),
    ("markup", f"It says {MARKUP} and **{MARKUP}** and `{MARKUP}` [Source: odd:odd:one] [Source: {MARKUP}]."),
    ("without end", "word " * ENDLESS),
]
COLOURS = """() => {
    const all = new Set();
    for (const canvas of document.querySelectorAll("#graph canvas")) {
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) all.add(data.slice(at, at + 3).join());
    }
    return all.size;
}"""  # how many colours are drawn
PAGES = Path(server.__file__).parent / "pages"
A_NUMBER = re.compile(r"\d+")
SIZES = ({"width": 1280, "height": 800}, {"width": 390, "height": 844})


@pytest.fixture(scope="module")
def service() -> ExpertService:
    return office_of(scripted_model(REPLIES))


@pytest.fixture(scope="module")
def home(service: ExpertService) -> Iterator[str]:
    with expert_server(service) as address:
        yield address


@pytest.fixture(scope="module")
def watch(home: str) -> Watch:
    return Watch(home)


@pytest.fixture(scope="module")
def window(home: str, watch: Watch) -> Iterator[BrowserContext]:
    try:
        program = find_chromium()
    except LabError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    with sync_playwright() as playwright, chromium(playwright, program, watch) as opened:
        yield opened


@pytest.fixture
def page(window: BrowserContext, watch: Watch) -> Iterator[Page]:
    """A page of its own; at the end nothing was asked elsewhere, nothing was refused by the policy, and no
    error was told.
    """
    watch.clear()
    opened = window.new_page()
    opened.set_viewport_size(SIZES[0])
    yield opened
    opened.close()
    assert watch.outside == []
    assert [
        complaint for complaint in watch.complaints if not complaint.endswith("/scores)")
    ] == []  # nothing is measured: the browser tells that too


def fetched(address: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body that an address answers with."""
    request = urllib.request.Request(
        address, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    try:
        with urllib.request.urlopen(request, timeout=AMPLE) as reply:
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def get(address: str) -> Any:
    return json.loads(fetched(address)[2])


def choose(page: Page, expert: str = "expert_cookbook") -> None:
    """Open the chat with an expert, whose greeting is there then."""
    page.goto(f"/#{expert}")
    expect(page.locator(f".expert[data-id={expert}]")).to_have_attribute("aria-current", "true")
    expect(page.locator(".greeting")).to_be_visible()


def ask(page: Page, question: str) -> None:
    """Ask by the keyboard, and wait until the answer is kept."""
    page.locator("#question").fill(question)
    page.locator("#question").press("Enter")
    expect(page.locator(".message:last-child .thumb")).to_have_count(2)


def conversation_of(page: Page, home: str, expert: str) -> Any:
    """The conversation that stands in the address of a page, as the server keeps it."""
    id = page.evaluate("location.hash.split('/')[1]")
    return get(f"{home}/api/experts/{expert}/conversations/{id}")


# --- the chat ---


def test_an_answer_is_shown_and_read_out_by_its_parts(page):
    choose(page)
    ask(page, QUESTION)
    words = page.locator(".message:last-child .words")
    expect(words.locator("strong").first).to_have_text("Prompt caching")
    expect(words.locator("li")).to_have_count(1)
    expect(words.locator("pre")).to_have_text("code [1]")
    expect(page.locator("#spoken p")).to_have_count(4)
    expect(page.locator("#spoken")).to_contain_text("That is all.")
    expect(page.locator(".talk-open[aria-current]")).to_contain_text("How does prompt caching")


def test_a_citation_opens_its_node_in_the_graph_which_is_drawn(page):
    choose(page)
    ask(page, QUESTION)
    page.get_by_role("button", name="Source: Prompt caching").click()
    expect(page.locator("#graph h2")).to_have_text("Prompt caching")
    expect(page.locator("#graph .limits")).to_contain_text("Prefix sensitivity")
    expect(page.locator("#graph .limits")).to_contain_text("What helps: stable part first")
    expect(page.locator("#graph .canvas")).to_have_attribute(
        "data-drawn", str(1 + len(lay_out_neighbourhood(cookbook(), "technique:prompt_caching").neighbours))
    )
    until(lambda: page.evaluate(COLOURS) > 20, "the canvas has many colours")
    page.locator("#graph .linked").get_by_role("button", name="Cache hit rate").press("Enter")
    expect(page.locator("#graph h2")).to_have_text("Cache hit rate")
    page.get_by_role("button", name="Back to Prompt caching").press("Enter")
    expect(page.locator("#graph h2")).to_have_text("Prompt caching")


def test_a_node_that_is_clicked_in_the_drawing_comes_into_the_middle(page):
    page.goto(f"/pages/node.html#cookbook/{urllib.parse.quote('technique:prompt_caching', safe='')}")
    canvas = page.locator("#graph .canvas[data-drawn]")
    expect(canvas).to_be_visible()
    near = lay_out_neighbourhood(cookbook(), "technique:prompt_caching").neighbours[0]
    side, box = 112, canvas.bounding_box()
    assert box is not None and box["width"] >= 640
    canvas.click(
        position={"x": side + near.x * (box["width"] - 2 * side), "y": 18 + near.y * (box["height"] - 46)}
    )
    expect(page.locator("#graph h2")).to_have_text(near.name)
    page.go_back()
    expect(page.locator("#graph h2")).to_have_text("Prompt caching")


def test_a_citation_of_what_was_never_told_is_struck_and_marked(page):
    choose(page)
    ask(page, QUESTION)
    false = page.locator(".chip.false")
    expect(false).to_have_count(1)
    expect(false.locator("s")).to_have_text("Eternal cache")
    expect(false).to_contain_text("not in the context")
    expect(page.get_by_role("button", name="Source: Prefix sensitivity")).to_have_count(1)


def test_words_of_which_nothing_is_found_are_shown_under_the_answer_and_in_its_train_of_thought(page):
    choose(page)
    ask(page, "Does caching zanzibar quokka bilberry?")
    expect(page.locator(".message:last-child .note")).to_contain_text(
        "nothing that was found says zanzibar, quokka, bilberry."
    )
    expect(page.locator("#thought .unsaid")).to_have_text("Found nowhere: zanzibar, quokka, bilberry")


def test_the_train_of_thought_is_stepped_and_shown_as_a_list(page):
    choose(page)
    ask(page, QUESTION)
    thought = page.locator("#thought")
    expect(thought.locator(".step-where")).to_contain_text("Step 1 of ")
    expect(thought.get_by_role("button", name="Previous")).to_be_disabled()
    count = thought.locator(".rail button").count()
    titles = []
    for number in range(1, count + 1):
        expect(thought.locator(".step-where")).to_have_text(f"Step {number} of {count}")
        titles.append(thought.locator(".step h3").inner_text())
        if number < count:
            thought.get_by_role("button", name="Next").press("Enter")
    expect(thought.get_by_role("button", name="Next")).to_be_disabled()
    assert titles[0].lower() == "what was asked for" and titles[-1].lower() == "what the answer cites"
    thought.get_by_role("button", name="Previous").click()
    expect(thought.locator(".step-where")).to_have_text(f"Step {count - 1} of {count}")
    found = next(number for number, title in enumerate(titles) if title.startswith("Nodes found"))
    thought.locator(".rail button").nth(found).click()
    bars = thought.locator(".found .track i").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect().width)"
    )
    assert max(bars) > 20 and len(bars) == 4 * thought.locator(".found > li").count()
    thought.get_by_role("button", name="As a list").press("Enter")
    expect(thought.locator(".step-list > li")).to_have_count(count)
    thought.locator(".found .link").first.click()
    expect(page.locator("#graph .canvas")).to_have_attribute("data-drawn", A_NUMBER)


def test_an_answer_is_seen_while_it_is_written_and_stop_stops_the_model(page, home):
    choose(page)
    page.locator("#question").fill("Talk without end, please")
    page.locator("#question").press("Enter")
    expect(page.locator(".message:last-child .words")).to_contain_text("word word")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".message:last-child .note")).to_contain_text("Stopped")
    expect(page.locator("#ask")).to_be_visible()
    until(lambda: get(f"{home}/health")["chats"] == 0, "the model was stopped")
    last = conversation_of(page, home, "expert_cookbook")["messages"][-1]
    assert last["metadata"]["stopped"] and 0 < len(last["content"].split()) < ENDLESS


def test_markup_in_names_and_in_answers_stays_text(page):
    choose(page, "expert_odd")
    ask(page, "What of markup?")
    expect(page.locator(".message:last-child .words")).to_contain_text(MARKUP)
    page.locator(".message:last-child button.chip").first.click()
    expect(page.locator("#graph h2")).to_have_text(f"One {MARKUP}")
    expect(page.locator("#graph .canvas")).to_have_attribute("data-drawn", "3")
    page.get_by_role("tab", name="Train of thought").click()
    page.get_by_role("button", name="As a list").click()
    expect(page.locator("#thought")).to_contain_text(MARKUP)
    assert page.locator("img").count() == 0
    page.goto("/pages/expert.html#expert_odd")
    expect(page.locator("h1")).to_have_text(f"Odd {MARKUP}")
    expect(page.get_by_text("Not measured yet.")).to_be_visible()
    assert page.locator("img").count() == 0
    assert page.title() != "taken"


def test_the_keyboard_alone_asks_reads_and_rates(page, home):
    choose(page)
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator(".message:last-child .thumb")).to_have_count(2)
    expect(page.locator("#question")).to_be_focused()
    good = page.get_by_role("button", name="A good answer")
    for _ in range(12):
        page.keyboard.press("Shift+Tab")
        if good.evaluate("(one) => one === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(good).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="A bad answer")).to_have_attribute("aria-pressed", "true")
    expect(good).to_have_attribute("aria-pressed", "false")


def test_an_earlier_conversation_is_opened_gone_on_with_and_deleted(page, home):
    choose(page)
    ask(page, QUESTION)
    page.get_by_role("button", name="New").click()
    expect(page.locator(".greeting")).to_be_visible()
    page.locator(".talk-open").first.click()
    expect(page.locator(".message")).to_have_count(2)
    expect(page.locator(".chip.false")).to_have_count(1)
    ask(page, "What of that is new?")
    assert len(conversation_of(page, home, "expert_cookbook")["messages"]) == 4
    page.reload()
    expect(page.locator(".message")).to_have_count(4)
    before = get(f"{home}/api/experts/expert_cookbook/conversations")["total"]
    away = page.locator(".talk").first.locator(".talk-delete")
    away.press("Enter")
    expect(away).to_have_text("Delete?")
    away.press("Enter")
    expect(page.locator(".greeting")).to_be_visible()
    assert get(f"{home}/api/experts/expert_cookbook/conversations")["total"] == before - 1


def test_what_was_said_with_a_deleted_expert_is_read_and_deleted(page, service):
    service.tables.add_expert(service.expert("expert_cookbook").config, id="expert_gone")
    choose(page, "expert_gone")
    ask(page, QUESTION)
    service.delete("expert_gone")
    page.reload()
    expect(page.locator("#left .expert")).to_have_attribute("data-id", "expert_gone")
    expect(page.locator("#said")).to_contain_text("That is all.")
    expect(page.locator("#asking")).to_be_hidden()
    page.locator(".expert[data-id=expert_cookbook]").click()
    expect(page.locator("#asking")).to_be_visible()
    page.locator("#left .expert").click()
    expect(page.locator(".greeting")).to_contain_text("was deleted")
    page.locator(".talk-open").click()
    expect(page.locator("#said")).to_contain_text("That is all.")
    for _ in range(2):
        page.locator(".talk-delete").first.click()
    expect(page.locator("#left .expert")).to_have_count(0)
    expect(page.locator("#asking")).to_be_visible()


def test_a_thumb_is_still_there_when_the_page_is_loaded_again_and_can_be_taken_back(page, home):
    choose(page)
    ask(page, QUESTION)
    page.get_by_role("button", name="A bad answer").click()
    expect(page.get_by_role("button", name="A bad answer")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.get_by_role("button", name="A bad answer")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="A good answer")).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="A bad answer").click()  # pressed again, it is taken back
    expect(page.get_by_role("button", name="A bad answer")).to_have_attribute("aria-pressed", "false")
    assert conversation_of(page, home, "expert_cookbook")["messages"][-1]["thumb"] is None


def test_each_answer_stands_behind_its_question_and_a_question_without_one_says_so(page, service):
    tables = service.tables
    talk = tables.begin_conversation("expert_cookbook", LOCAL_OWNER, "First?")
    first, second = (tables.add_message(talk, "user", text).id for text in ("First?", "Second?"))
    tables.add_message(talk, "user", "Third?")
    tables.add_message(talk, "assistant", "To the second.", {"answers": second})
    tables.add_message(talk, "assistant", "To the first.", {"answers": first})
    page.goto(f"/#expert_cookbook/{talk}")
    expect(page.locator(".message")).to_have_count(5)
    texts = page.locator(".message .words").all_inner_texts()
    assert texts == ["First?", "To the first.", "Second?", "To the second.", "Third?"]
    expect(page.locator("#said > .note")).to_have_count(1)
    expect(page.locator("#said > .message:last-of-type + .note")).to_contain_text("No answer is stored")


@pytest.mark.parametrize("size", SIZES, ids=["wide", "narrow"])
def test_a_name_of_one_long_word_makes_no_page_wider_than_its_window(page, service, size):
    long = "Donaudampfschifffahrtsgesellschaft" * 5
    persona = {"name": long, "greeting": long, "instructions": long}
    told = {"name": long, "description": long, "kg_db_id": "odd", "persona": persona}
    id = service.create(told).id
    page.set_viewport_size(size)
    for address, there in ((f"/#{id}", ".greeting h2"), (f"/pages/expert.html#{id}", ".card-head h1")):
        page.goto(address)
        expect(page.locator(there)).to_have_text(long)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        right = page.locator(there).evaluate("(one) => one.getBoundingClientRect().right")
        assert right <= size["width"]
    service.delete(id)


def test_a_question_that_the_model_did_not_answer_can_be_asked_again(page):
    failed = {
        "body": 'data: {"type": "error", "content": "no model"}\n\n',
        "content_type": "text/event-stream",
    }
    page.route("**/chat", lambda route: route.fulfill(**failed))
    choose(page)
    page.locator("#question").fill(QUESTION)
    page.locator("#question").press("Enter")
    expect(page.locator(".wrong")).to_have_text("No model.")
    expect(page.locator("#question")).to_have_value(QUESTION)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=["wide", "narrow"])
def test_every_part_can_be_read_reached_and_named(page, size, scheme):
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size(size)
    choose(page)
    narrow = size["width"] < 900
    for part in ("chat", "side", "beside"):
        if narrow:
            page.locator(f"#views button[value={part}]").click()
        if part == "chat":
            ask(page, QUESTION)
        assert faults(page.locator("body")) == FINE, part
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if narrow:
        page.locator("#views button[value=chat]").click()
    page.locator("button.chip").first.click()
    expect(page.locator("#graph .canvas")).to_have_attribute("data-drawn", A_NUMBER)
    assert faults(page.locator("body")) == FINE


# --- the server ---


def test_a_server_with_tokens_asks_for_one_and_keeps_it_for_the_tab(window, watch):
    service = office_of(scripted_model(REPLIES))
    token = new_token(service.tables, "ada")
    home = watch.home
    watch.clear()
    with expert_server(service, lambda: GuardRules(tokens=True)) as watch.home:
        page = window.new_page()
        page.goto(f"{watch.home}/")
        page.locator("#token").fill("kgx_wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("does not hold")
        page.locator("#token").fill(token)
        page.keyboard.press("Enter")
        expect(page.locator(".greeting")).to_be_visible()
        page.reload()
        expect(page.locator(".greeting")).to_be_visible()
        ask(page, QUESTION)
        page.close()
    watch.home = home
    assert watch.outside == []
    assert [complaint for complaint in watch.complaints if "401" not in complaint] == []
    watch.clear()


def test_what_goes_wrong_is_told_in_words(page, watch, home):
    page.goto("/pages/node.html#cookbook/nothing")
    expect(page.get_by_role("alert")).to_have_text("The graph cookbook has no node nothing.")
    page.goto("/pages/node.html#clinic%2Fdevops/x")
    expect(page.locator("#graph")).to_have_text(
        "x is in a graph of another instance, clinic: it cannot be shown here."
    )
    page.goto("/pages/expert.html#expert_nobody")
    expect(page.get_by_role("alert")).to_have_text("There is no such expert.")
    page.goto("/#%E0%A4%A")  # an address that is none shows the first expert
    expect(page.locator(".greeting")).to_be_visible()
    choose(page)
    page.route("**/chat", lambda route: route.abort())
    page.locator("#question").fill(QUESTION)
    page.locator("#question").press("Enter")
    expect(page.get_by_role("alert")).to_have_text("The server cannot be reached. Is it still running?")
    expect(page.locator("#question")).to_have_value(QUESTION)
    watch.clear()  # the browser told of each on its console


def test_a_node_comes_with_its_best_linked_neighbours_and_their_places_never_change():
    found = lay_out_neighbourhood(cookbook(), "tool:language_model_api")
    links = [neighbour.links for neighbour in found.neighbours]
    assert links == sorted(links, reverse=True) and len(links) == found.neighbours_in_all
    places = {(neighbour.x, neighbour.y) for neighbour in found.neighbours}
    assert len(places) == len(links) and all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places)
    assert {limitation.name for limitation in found.limitations} >= {"Hallucination"}
    graph = odd_graph()
    assert lay_out_neighbourhood(graph, "odd:one") == lay_out_neighbourhood(odd_graph(), "odd:one")
    fewer = lay_out_neighbourhood(graph, "odd:one", limit=1)
    assert [neighbour.id for neighbour in fewer.neighbours] == ["odd:two"] and fewer.neighbours_in_all == 2
    assert lay_out_neighbourhood(graph, "odd:two", limit=0).neighbours == ()


def test_pages_are_asked_for_again_only_when_they_changed(home):
    status, headers, body = fetched(f"{home}/")
    shown = (status, headers["content-type"], headers["cache-control"])
    assert shown == (200, "text/html; charset=utf-8", "no-cache")
    assert b'<script type="module"' in body and b"style=" not in body
    assert fetched(f"{home}/", If_None_Match=headers["etag"])[0::2] == (304, b"")
    assert fetched(f"{home}/", If_None_Match=f'W/{headers["etag"]}, "other"')[0] == 304
    assert fetched(f"{home}/", If_None_Match='"other"')[0] == 200
    assert fetched(f"{home}/pages/cytoscape.min.js")[1]["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    "name",
    [
        "__init__.py",
        "..%2fpages.py",
        "%2e%2e/pages.py",
        "chat",
        "head.html",
        "cytoscape.LICENSE.txt",
        "page.css%00",
    ],
)
def test_no_other_file_is_served(home, name):
    assert fetched(f"{home}/pages/{name}")[0] == 404


def test_pages_make_no_markup_of_texts_and_name_no_other_server(home):
    files = {path.name: path.read_text(encoding="utf-8") for path in PAGES.iterdir()}
    assert {"chat.html", "expert.html", "node.html"} < set(files)
    for name, text in files.items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(", text
        ), name
        assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert all(each.startswith("/") for each in re.findall(r'(?:src|href)="([^#"]+)"', text)), name
        if name != "head.html":
            whole = text.replace("<!-- head -->\n", files["head.html"]) if name.endswith(".html") else text
            assert fetched(f"{home}/pages/{name}")[2] == whole.encode() and "<!-- head" not in whole, name


def test_the_keyboard_goes_through_every_part_and_out_of_it(page, service):
    for each in service.tables.conversations("expert_cookbook", LOCAL_OWNER, limit=200)[0]:
        service.tables.remove_conversation(each.id, "expert_cookbook", LOCAL_OWNER)
    choose(page)
    ask(page, QUESTION)
    # the list is sent again after an answer, and must not change on the way
    expect(page.locator("#talks li")).to_have_count(1)
    page.wait_for_load_state("networkidle")
    for part in ("#side", "#said", "#asking", "#beside"):
        assert keyboard_goes_through(page.locator(part)), part


def test_of_many_experts_the_first_are_listed_then_more_and_an_address_leads_to_any(page, service):
    told = {"name": "One of many", "kg_db_id": "cookbook", "persona": {"name": "Many"}}
    made = [service.create(told).id for _ in range(120)]
    try:
        before = len(service.tables.experts()) - 120
        page.goto(f"/#{made[-1]}")
        expect(page.locator("#who h1")).to_have_text("One of many")
        expect(page.locator(".expert")).to_have_count(100)
        page.get_by_role("button", name="Show more").first.click()
        expect(page.locator(".expert")).to_have_count(120 + before)
        expect(page.locator(f".expert[data-id={made[-1]}]")).to_have_attribute("aria-current", "true")
    finally:
        for id in made:
            service.delete(id)
