"""What a live view lacks for those who do not see it, or use no mouse: measured in the browser, against WCAG
2.2 AA.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # without Playwright this file is still read
    from playwright.sync_api import Locator, Page

ASKED = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
NAMED = set(
    "application button checkbox combobox image img navigation region searchbox slider textbox".split()
)
FINE: dict[str, Any] = {"no name": [], "too pale": [], "too faint": [], "too small": [], "out of order": 0}
_ALL_IN = "(dark) => [...document.querySelectorAll('.kl')].every((view) => view.classList.contains('kl-dark') === dark)"
MOST = 120  # stops of the Tab key in a view


def faults(view: Locator) -> dict[str, Any]:
    """Everything that is wrong with a view as it stands, the keyboard aside: `FINE` for nothing."""
    return {
        "no name": _unnamed(view),
        "too pale": asked(view, "tooPale"),
        "too faint": asked(view, "tooFaint"),
        "too small": asked(view, "tooSmall"),
        "out of order": view.locator("[tabindex]:not([tabindex='0'], [tabindex='-1'])").count(),
    }


def asked(view: Locator, what: str) -> Any:
    """The answer of one of the functions of audit.js."""
    return view.evaluate(f"(view) => ({ASKED}).{what}(view)")


def follows_the_browser(page: Page) -> bool:
    """Whether a page is light or dark as the browser is, each text of it stands out, and its still pictures
    stay on white paper.
    """
    body, grounds = page.locator("body"), []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.wait_for_function(_ALL_IN, arg=theme == "dark")
        assert asked(body, "tooPale") == [], theme
        assert asked(body, "offPaper") == [], theme
        grounds.append(body.evaluate("(body) => getComputedStyle(body).backgroundColor"))
    page.emulate_media(color_scheme="light")
    return grounds == ["rgb(255, 255, 255)", "rgb(27, 27, 27)"]


def keyboard_goes_through(view: Locator) -> bool:
    """Whether the Tab key goes through all stops of a view in the order of the page, each with a ring, and
    out of it both ways.
    """
    asked(view, "first")
    # others are places that scroll: the browser adds them
    stops = [stop for stop in _walked(view, "Tab") if stop["number"] >= 0]
    assert [stop["number"] for stop in stops] == list(range(stops[0]["all"])), [
        stop["name"] for stop in stops
    ]
    asked(view, "last")
    return bool(_walked(view, "Shift+Tab")[-1]["number"] == 0)


def focused(view: Locator) -> str:
    """What has the focus, which must be in the view."""
    at = asked(view, "at")
    assert at["inside"], f"the focus was lost to {at['name']}"
    return str(at["name"])


def spoken(view: Locator) -> str:
    """What the live regions of a view say."""
    return " ".join(view.get_by_role("status").all_text_contents())


def _walked(view: Locator, key: str) -> list[dict[str, Any]]:
    """The places that have the focus one after the other, until it leaves the view."""
    stops: list[dict[str, Any]] = []
    while (at := asked(view, "at"))["inside"]:
        assert at["seen"], f"the focus cannot be seen: {at['name']}"
        assert len(stops) < MOST, f"the {key} key does not leave the view: {at['name']}"
        stops.append(at)
        view.page.keyboard.press(key)
    return stops


def _unnamed(view: Locator) -> list[str]:
    """Controls without a name, and those whose name leaves out what is written on them (2.5.3), as screen
    readers are told.
    """
    client = view.page.context.new_cdp_session(view.page)
    view.evaluate("(view) => { window.audited = view; }")
    root = client.send("Runtime.evaluate", {"expression": "window.audited"})["result"]["objectId"]
    found = []
    for node in client.send("Accessibility.queryAXTree", {"objectId": root})["nodes"]:
        role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "")
        if node["ignored"] or role not in NAMED:
            continue
        control = client.send("DOM.resolveNode", {"backendNodeId": node["backendDOMNodeId"]})["object"][
            "objectId"
        ]
        ask = f"function () {{ return this.tagName === 'BUTTON' ? ({ASKED}).written(this) : ''; }}"
        written = client.send(
            "Runtime.callFunctionOn", {"objectId": control, "functionDeclaration": ask, "returnByValue": True}
        )
        if not name.strip() or _words(written["result"]["value"]) not in _words(name):
            found.append(f"{role} {name!r}")
    client.detach()
    return found


def _words(text: str) -> str:
    """Letters and digits, without signs and arrows."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
