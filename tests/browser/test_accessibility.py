"""The live views without a mouse, without colour, at double size and read aloud: measured in the browser, against WCAG 2.2 AA."""

from __future__ import annotations

import pytest

from browser.lab import expect, open_notebook, run_cell
from browser.window import SIZE, open_from_disk
from kgot_lab.bundled import bundled
from kgot_lab.draw.markup import Markup, element
from kgot_lab.loop.forks import recorded_fork
from kgot_lab.loop.trace import graph_after, load
from kgot_lab.retrieval.bm25 import bm25
from kgot_lab.types import Document
from kgot_lab.viz import show_graph, stepper
from kgot_lab.viz.explorer import Lanes, explore
from kgot_lab.viz.live import page_script, place, style

NARROW = {"width": 500, "height": 1000}  # a window of 1,000 pixels at 200 %
NAMED = {"application", "button", "checkbox", "combobox", "image", "img", "navigation", "region", "searchbox", "slider", "textbox"}
SETUP = """
from kgot_lab.bundled import bundled
from kgot_lab.loop.trace import load
from kgot_lab.retrieval.bm25 import bm25
from kgot_lab.types import Document
from kgot_lab.viz import explore, show_graph, stepper
from kgot_lab.viz.explorer import Lanes
from kgot_lab.loop.trace import graph_after

storm = load(bundled("tapes/winter_storm.jsonl"))
documents = [Document(name, f"{name} runs on a machine", name.title()) for name in ("ada", "bob", "charles")]
"""
VIEWS = {
    "graph": "show_graph(graph_after(storm.events))",
    "stepper": "stepper(storm)",
    "explorer": "explore(Lanes(text=bm25(documents)), documents, queries=['ada', 'a machine'], systems={'bm25': bm25(documents)})",
}

# Where a text, a control or a ring fails; `view` is the element of a live view.
TOO_PALE = """(view) => {
    const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
    const over = ([r, g, b, a], under) => [r, g, b].map((part, at) => part * a + under[at] * (1 - a));
    const light = (rgb) => rgb.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const paper = (node) => (node ? over(parse(getComputedStyle(node).backgroundColor), paper(node.parentElement)) : [255, 255, 255]);
    const found = [];
    const walker = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement, text = walker.currentNode.data.trim(), look = getComputedStyle(node);
        if (!text || !node.checkVisibility({ visibilityProperty: true }) || node.closest("title, desc, option, :disabled")) continue;
        const back = paper(node), ink = over(parse(node.closest("svg") ? look.fill : look.color), back);
        const [dark, bright] = [light(ink), light(back)].sort((one, other) => one - other), ratio = (bright + 0.05) / (dark + 0.05);
        const size = parseFloat(look.fontSize), isLarge = size >= 24 || (size >= 18.66 && Number(look.fontWeight) >= 700);
        if (ratio < (isLarge ? 3 : 4.5)) found.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
    }
    return found;
}"""
TOO_SMALL = """(view) => [...view.querySelectorAll("button, input, select, textarea, summary")]
    .filter((control) => control.checkVisibility({ visibilityProperty: true }) && !control.disabled)
    .map((control) => [control, (control.closest("label:has(input[type=checkbox])") ?? control).getBoundingClientRect()])
    .filter(([, box]) => box.width < 24 || box.height < 23.9)
    .map(([control, box]) => `${control.tagName} ${control.className} ${control.textContent}: ${box.width} x ${box.height}`)"""
TOO_WIDE = """(view) => [document.documentElement, ...view.querySelectorAll("button, input, select, textarea, summary")]
    .filter((each) => each === document.documentElement ? each.scrollWidth > innerWidth : each.checkVisibility({ visibilityProperty: true }))
    .filter((each) => each === document.documentElement || each.getBoundingClientRect().right > innerWidth || each.getBoundingClientRect().left < 0)
    .map((each) => `${each.tagName} ${each.className} ${each.textContent.slice(0, 30)}: to ${each.getBoundingClientRect().right}`)"""
STOPS = """(view) => [view, ...view.querySelectorAll("*")].filter((each) => each.checkVisibility({ visibilityProperty: true })
    && each.tabIndex >= 0 && !each.disabled && !each.closest("fieldset:disabled")
    && (each.matches("button, input, select, textarea, summary") || each.hasAttribute("tabindex")))"""
AT = """(view) => {
    const at = document.activeElement, look = getComputedStyle(at);
    const named = `${at.tagName} ${at.className} ${at.getAttribute("aria-label") ?? at.textContent.slice(0, 30)}`;
    const ring = at.matches(":focus-visible") && look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 2;
    const stops = (%s)(view);
    return { inside: view.contains(at), number: stops.indexOf(at), named, ring, count: stops.length, positive: at.tabIndex > 0 };
}""" % STOPS


def on_disk(page, watch, folder, shown):
    """A view on a page of its own, between two buttons."""
    script, digest = page_script()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {digest}"
    head = element("head", element("meta", charset="utf-8"), element("meta", http_equiv="Content-Security-Policy", content=policy))
    inside = place({**shown.live.data, "stands_for": ""})
    body = element("body", element("style", Markup(style())), element("button", "before"), inside, element("button", "after"), script)
    (folder / "page.html").write_text(f"<!DOCTYPE html>{element('html', head, body, lang='en')}", encoding="utf-8")
    open_from_disk(page, watch, folder / "page.html")
    view = page.locator(".kl").first
    expect(view).to_be_visible()
    page.wait_for_timeout(300)  # a graph is drawn some frames later
    return view


def storm():
    run = load(bundled("tapes/winter_storm.jsonl"))
    return run, recorded_fork(run, load(bundled("tapes/winter_storm_fork_volcano.jsonl")))


def unnamed(view):
    """Controls without a name, and those whose name leaves out what is written on them, as the browser tells a screen reader."""
    page = view.page
    client = page.context.new_cdp_session(page)
    view.evaluate("(view) => { window.audited = view; }")
    root = client.send("Runtime.evaluate", {"expression": "window.audited"})["result"]["objectId"]
    found = []
    for node in client.send("Accessibility.queryAXTree", {"objectId": root})["nodes"]:
        role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "")
        if node["ignored"] or role not in NAMED:
            continue
        object = client.send("DOM.resolveNode", {"backendNodeId": node["backendDOMNodeId"]})["object"]["objectId"]
        ask = "function () { return [this.outerHTML.slice(0, 90), this.tagName === 'BUTTON' ? this.innerText : '']; }"
        told = client.send("Runtime.callFunctionOn", {"objectId": object, "functionDeclaration": ask, "returnByValue": True})
        outer, written = told["result"]["value"]
        if not name.strip() or words(written) not in words(name):
            found.append(f"{role} {name!r}: {outer}")
    client.detach()
    return found


def words(text):
    """Letters and digits, without signs and arrows."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())


def faults(view):
    """Everything that is wrong with a view as it stands, the keyboard aside."""
    return {
        "no name": unnamed(view), "too pale": view.evaluate(TOO_PALE), "too small": view.evaluate(TOO_SMALL),
        "positive tabindex": view.locator("[tabindex]:not([tabindex='0'], [tabindex='-1'])").count(),
    }  # fmt: skip


FINE = {"no name": [], "too pale": [], "too small": [], "positive tabindex": 0}


def walked(view, key="Tab"):
    """The stops of the Tab key in a view, from the one that has the focus to the last: it leaves the view, rings on its way."""
    stops = []
    for _ in range(120):
        at = view.evaluate(AT)
        if not at["inside"]:
            return stops
        assert at["ring"], f"the focus cannot be seen: {at['named']}"
        stops.append(at)
        view.page.keyboard.press(key)
    raise AssertionError(f"the Tab key does not leave the view: {stops[-3:]}")


def reaches_all(view):
    """Whether the Tab key goes through all stops of a view in the order of the page, and out of it again both ways."""
    view.evaluate(f"(view) => ({STOPS})(view)[0].focus({{ focusVisible: true }})")
    stops = [stop for stop in walked(view) if stop["number"] >= 0]  # others: places that scroll, which the browser adds by itself
    numbers = [stop["number"] for stop in stops]
    assert numbers == list(range(stops[-1]["count"])), [stop["named"] for stop in stops]
    view.page.keyboard.press("Shift+Tab")
    assert view.evaluate(AT)["inside"] or view.page.url.startswith("http")
    view.evaluate(f"(view) => ({STOPS})(view).at(-1).focus({{ focusVisible: true }})")
    return walked(view, "Shift+Tab")[-1]["number"] == 0
