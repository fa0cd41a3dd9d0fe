"""A new user in a real browser: a folder of one's own is chosen or dropped, read, asked with a cited answer; an
expert, a node and an edge are made and changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.errors import LabError

pytest.importorskip("fastapi", reason="no web server: pip install 'kgot_lab[serve]'")
pytest.importorskip(
    "playwright", reason="no Playwright to drive a browser with: pip install 'kgot_lab[test]'"
)

from browser.audit import FINE, faults
from browser.window import Watch, chromium
from playwright.sync_api import Page, expect, sync_playwright
from support.expert_server import ServedExperts, served
from support.page_server import office_of, scripted_model
from support.waiting import AMPLE

from kgot_lab.experts.http.auth import GuardRules
from kgot_lab.experts.learning.ledger import open_proposals
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.experts.uploads import UploadFolder

pytestmark = pytest.mark.extended

REPLIES = [("oven", "Bake at 240 degrees [Source: Ovens].")]
OVENS = "# Ovens\n\nBread is baked in the oven at 240 degrees.\n"
DROP = """([name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedExperts]:
    service = office_of(scripted_model(REPLIES))
    service.graphs.uploads = UploadFolder(tmp_path_factory.mktemp("uploads") / "graphs")
    learned = LearnedGraphs(service, open_proposals(":memory:"))
    with served(service, GuardRules(uploads=True), learned) as running:
        yield running


@pytest.fixture(scope="module")
def page(server: ServedExperts) -> Iterator[Page]:
    try:
        program = find_chromium()
    except LabError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    watch = Watch(server.url)
    with sync_playwright() as playwright, chromium(playwright, program, watch) as window:
        opened = window.new_page()
        opened.set_default_timeout(1000 * AMPLE)
        expect.set_options(timeout=1000 * AMPLE)
        yield opened
        assert watch.outside == []


def cited_answer(page: Page) -> None:
    """Ask about ovens, and open the node that the answer cites."""
    page.locator("#question").fill("How hot is the oven for bread?")
    page.locator("#question").press("Enter")
    chip = page.get_by_role("button", name="Source: Ovens")
    expect(chip).to_be_visible()
    chip.click()
    expect(page.locator("#graph h2")).to_contain_text("Ovens")


def test_a_folder_is_chosen_read_and_gives_a_cited_answer(page, server, tmp_path: Path):
    folder = tmp_path / "My bakery"
    (folder / "deep").mkdir(parents=True)
    (folder / "ovens.md").write_text(OVENS)
    (folder / "deep" / "people.txt").write_text("Ada bakes bread every morning.\n")
    (folder / ".hidden").write_text("secret")
    page.goto("/")
    page.get_by_role("button", name="Bring your own").click()
    assert faults(page.locator("dialog")) == FINE
    page.locator("input[webkitdirectory]").set_input_files(folder)
    expect(page.locator("#who h1")).to_have_text("My bakery")
    cited_answer(page)
    stored = server.service.graphs.uploads.folder / "my_bakery"
    assert sorted(each.name for each in stored.rglob("*") if each.is_file()) == ["ovens.md", "people.txt"]


def test_a_document_is_dropped_into_the_page_and_one_that_is_none_says_so(page):
    page.goto("/")
    expect(page.get_by_role("button", name="Bring your own")).to_be_visible()
    page.evaluate(DROP, ["baking.md", OVENS])
    expect(page.locator("#who h1")).to_have_text("baking")
    cited_answer(page)
    page.evaluate(DROP, ["none.graphml", "this is no graph"])
    expect(page.locator("dialog .wrong")).to_contain_text("cannot be read")
    page.get_by_role("button", name="Close").click()


def test_what_was_passed_over_is_told_beside_a_graph_that_can_be_asked(page, tmp_path: Path):
    folder = tmp_path / "Mixed"
    folder.mkdir()
    (folder / "ovens.md").write_text(OVENS)
    (folder / "app.min.js").write_text("function a(){}" * 200)
    (folder / "scan.pdf").write_bytes(b"%PDF-1.4 nothing more")
    page.goto("/")
    page.get_by_role("button", name="Bring your own").click()
    page.locator("input[webkitdirectory]").set_input_files(folder)
    passed = page.get_by_label("What was passed over").get_by_role("listitem")
    expect(passed).to_have_count(2)
    expect(passed.first).to_contain_text("skipped app.min.js")
    expect(passed.last).to_contain_text("skipped scan.pdf")
    assert faults(page.locator("dialog")) == FINE
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#who h1")).to_have_text("Mixed")
    cited_answer(page)
    page.get_by_role("link", name="About").click()
    page.get_by_text("How it was read").click()
    expect(page.locator("pre")).to_contain_text("skipped app.min.js")


def test_a_node_is_changed_and_the_change_undone(page):
    page.goto("/pages/node.html#cookbook/technique%3Aprompt_caching")
    expect(page.locator("h2")).to_have_text("Prompt caching")
    page.get_by_text("Change it").click()
    form = page.locator("form", has=page.get_by_role("heading", name="Add a node"))
    form.get_by_label("Name").fill("Slow oven")
    form.get_by_label("Type", exact=True).fill("technique")
    form.get_by_label("Edge to it").fill("requires")
    form.get_by_role("button").click()
    expect(page.locator(".note")).to_contain_text("add the technique Slow oven")
    expect(page.locator(".linked")).to_contain_text("Slow oven")
    assert faults(page.locator("body")) == FINE
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".linked")).not_to_contain_text("Slow oven")
    page.get_by_text("Change it").click()
    edge = page.locator("form", has=page.get_by_role("heading", name="Add an edge"))
    edge.get_by_label("Type").fill("requires")
    edge.get_by_label("To (name or id)").fill("a thing that is nowhere")
    edge.get_by_role("button").click()
    expect(page.locator(".changes .wrong")).to_contain_text("nowhere")
    page.get_by_role("button", name="Remove Prompt caching").click()
    expect(page.locator(".note")).to_contain_text("remove technique:prompt_caching with its edges")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("h2")).to_have_text("Prompt caching")


def test_an_expert_is_made_and_changed_in_the_page(page, server):
    page.goto("/")
    page.get_by_role("link", name="New expert").click()
    page.get_by_label("Name", exact=True).fill("Two kitchens")
    page.get_by_label("Persona's name").fill("Chef")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("alert")).to_contain_text("graph")
    for graph in ("cookbook", "odd"):
        page.get_by_label(graph, exact=True).check()
    page.get_by_label("hybrid").uncheck()
    assert faults(page.locator("body")) == FINE
    page.get_by_role("button", name="Make it").click()
    expect(page.locator("#who h1")).to_have_text("Two kitchens")
    page.get_by_role("link", name="About").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Greeting").fill("Well met.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".greeting p")).to_have_text("Well met.")
    made = server.service.expert("expert_chef")
    assert (made.graphs, made.retrieval.methods, made.answers_in) == (
        ("cookbook", "odd"),
        ("intent",),
        "sentences",
    )
