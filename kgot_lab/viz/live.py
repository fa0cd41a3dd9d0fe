"""Live views in notebooks and on pages, and the static pictures where nothing can be live."""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import LabError, NotInstalled, needs_extra
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import Json
from kgot_lab.viz.static.drawing import StaticPicture
from kgot_lab.viz.static.markup import Markup, concat, element, picture_key
from kgot_lab.viz.static.table import Table

_FOLDER = Path(__file__).parent / "browser"
# each is a file NAME.js with a function NAMEView(root, data, tell)
VIEWS = ("graph", "stepper", "explorer", "probe", "guesses", "editing", "talk", "answer")

_SHARED = (
    "page", "theme", "graph_frame", "graph_looks", "graph_find", "graph_keys", "graph_beside", "graph_kept",
    "stepping/events", "stepping/quiz", "stepping/panel", "stepping/facts", "stepping/graph", "stepping/forks",
    "exploring/mixing", "exploring/mail", "exploring/controls", "exploring/hits", "exploring/pair",
)  # fmt: skip

FOR_PAGES = "KGOT_LAB_FOR_PAGES"  # environment variable: views go to pages without Python
_PYTHON_NOTES = {  # what a view cannot do without Python; graphs and the explorer say so themselves
    "stepper": "On this page you can step through the run, guess and compare. Changing an event to fork it needs a running notebook.",
    "editing": "This page shows one moment. Changing the graph needs a running notebook.",
    "talk": "These answers were given before. Asking something else needs a running notebook.",
}

# handles a message from the browser; a reply that is not empty is sent back
MessageHandler = Callable[[Mapping[str, Json]], Json]


# Output where no live view can be drawn: tables and pictures in HTML, with the key by which a live view finds
# what it replaces.


@check_arguments
@dataclass(frozen=True)
class StaticOutput:
    """Self-contained HTML, and the same content as tables for plain text."""

    html: Markup = field(repr=False)
    tables: Table

    def table(self) -> Table:
        """Return the content as tables."""
        return self.tables

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return repr(self.tables)


def static_output(tables: Table, *parts: Markup) -> StaticOutput:
    """Join HTML fragments, by default the tables, under a key made from their content.

    The tables have the same content.
    """
    inner = concat(parts or [tables.html])
    key = hashlib.sha256(inner.encode()).hexdigest()[:12]
    return StaticOutput(element("div", inner, data_picture=key), tables)


@check_arguments
class Live:
    """A live view in the browser, and the static picture before it: two outputs of one cell."""

    def __init__(
        self, picture: StaticPicture | StaticOutput, data: Mapping[str, Json], handle_message: MessageHandler
    ) -> None:
        self.picture, self.data, self._handle_message = picture, data, handle_message
        self.is_live = False  # whether a browser has reported that it shows the view
        self._widgets: list[Any] = []

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.picture)  # type: ignore[no-untyped-call]
        if is_for_pages():
            note = _PYTHON_NOTES.get(str(self.data["view"]), "")
            markup = placeholder({"alone": note, **self._widget_data()})
            display({"text/html": markup, "text/plain": ""}, raw=True)  # type: ignore[no-untyped-call]
            return
        try:
            display(self.widget())  # type: ignore[no-untyped-call]
        except NotInstalled as missing:  # the picture is displayed; the message says how to get more
            display({"text/plain": str(missing)}, raw=True)  # type: ignore[no-untyped-call]

    def in_marimo(self) -> Any:
        """Return the view as a marimo element: the picture, and below it the widget that replaces it."""
        import marimo

        picture = marimo.Html(self.picture._repr_html_())
        try:
            return marimo.vstack([picture, marimo.ui.anywidget(self.widget())], gap=0)
        except NotInstalled as missing:
            return marimo.vstack([picture, marimo.plain_text(str(missing))])

    def widget(self) -> Any:
        """Create a new widget of this view.

        Raises NotInstalled if anywidget is missing.
        """
        new_widget = _widget_class()(data=self._widget_data())
        new_widget.on_msg(lambda widget, message, buffers: self._receive(widget, message))
        self._widgets.append(new_widget)
        return new_widget

    def _widget_data(self) -> dict[str, Json]:
        """Return the data of the view with the key of the picture that it replaces."""
        shown: Any = self.picture
        markup = shown._repr_svg_() if hasattr(shown, "_repr_svg_") else shown._repr_html_()
        return {**replace_surrogates(self.data), "stands_for": picture_key(markup)}

    def send(self, message: Mapping[str, Json]) -> None:
        """Send a message to every widget of this view."""
        for widget in self._widgets:
            widget.send(replace_surrogates(dict(message)))

    def _receive(self, widget: Any, message: Mapping[str, Json]) -> None:
        if "live" in message:
            self.is_live = True
            return
        answer = self._handle_message(message)
        if answer:
            widget.send(replace_surrogates(answer))


class LiveOutput:
    """An object that displays itself by its `live` view, in IPython and in marimo."""

    live: Live

    def _refresh(self) -> None:
        """Update the picture and the data before they are shown."""

    def _ipython_display_(self) -> None:
        self._refresh()
        self.live._ipython_display_()

    def _display_(self) -> Any:  # marimo's display protocol
        self._refresh()
        return self.live.in_marimo()


def describe_error(error: Exception) -> str:
    """Format an error, with its type unless it is a LabError.

    Errors must be shown, since nobody sees what a message handler raises.
    """
    return str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"


def is_for_pages() -> bool:
    """Return whether output goes to a page without Python."""
    return bool(os.environ.get(FOR_PAGES))


@cache
def _widget_class() -> type[Any]:
    with needs_extra("lab", "anywidget, which puts live views into a notebook"):
        import anywidget
        import traitlets

    class LiveView(anywidget.AnyWidget):
        _esm = script() + read_asset("widget.js")
        _css = style()
        data = traitlets.Dict().tag(sync=True)

        def __repr__(self) -> str:  # what a saved notebook shows below the picture
            return "(live view: run this cell to use it)"

    return LiveView


@cache
def script() -> str:
    """Return the functions of every view as one script.

    Nothing runs until one of them is called.
    """
    vendored = f"const cytoscape = (() => {{ const module = {{ exports: {{}} }}, exports = module.exports;\n{read_asset('cytoscape.min.js')}\n"
    views = ", ".join(f"{name}: {name}View" for name in VIEWS)
    files = "\n".join(read_asset(f"{name}.js") for name in (*_SHARED, *VIEWS))
    return f"{vendored}return module.exports; }})();\n{files}\nconst VIEWS = {{ {views} }};\n"


@cache
def style() -> str:
    """Return the CSS of every view."""
    names = ("lab", "stepper", "explorer", "review", "editing", "talk")
    return "".join(read_asset(f"{name}.css") for name in names)


@cache
def page_style() -> str:
    """Return the CSS of every view on a standalone page.

    In print, the still pictures replace the live views.
    """
    return style() + "\n" + read_asset("standalone.css")


def placeholder(data: Mapping[str, Json]) -> Markup:
    """Build the placeholder of a live view on a standalone page.

    The script of `page_source` fills it. `data["stands_for"]` is the key of the picture that it replaces, in
    the same section. `data["alone"]` describes what needs a notebook.
    """
    text = json.dumps(data, ensure_ascii=True, default=str, separators=(",", ":"))
    text = text.replace("<", "\\u003c")  # no text in the data can close the element
    content = element("script", Markup(text), type="application/json")
    return element("div", content, data_view=data["view"], class_="live")


@cache
def page_source() -> str:
    """Return the script that fills every `placeholder` of a page, as a separate file."""
    return f'"use strict";\n{script()}{read_asset("standalone.js")}'


def page_script() -> tuple[Markup, str]:
    """Return the same script as an inline element, with its hash for the Content-Security-Policy.

    No other script may run.
    """
    text = page_source().replace("</script", "<\\/script")
    digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return element("script", Markup(text)), f"'sha256-{digest}'"


@cache
def read_asset(name: str) -> str:
    """Return a script or style sheet of this package."""
    return (_FOLDER / name).read_text(encoding="utf-8")
