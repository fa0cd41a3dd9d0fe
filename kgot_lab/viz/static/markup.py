"""Markup that is safe by construction: whatever is not `Markup` already is escaped."""

from __future__ import annotations

import hashlib
import html
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from unicodedata import east_asian_width

# Characters that XML forbids, and those that change the text direction, with which a model's text could
# mislead.
_FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_CHILDLESS = frozenset({"img", "meta", "path", "circle", "rect", "polygon"})


class Markup(str):
    """A string that is already HTML, SVG or XML."""


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """Build an element.

    Children and attribute values are escaped unless they are Markup. Attributes that are None are omitted. In
    attribute names an underscore becomes a hyphen, and a trailing one is dropped (`class_`).
    """
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = concat(children)
    return Markup(
        f"<{name}{attribute_text}/>" if name in _CHILDLESS else f"<{name}{attribute_text}>{inner}</{name}>"
    )


def concat(children: Iterable[object]) -> Markup:
    """Concatenate pieces of markup, escaping texts."""
    return Markup("".join(child if isinstance(child, Markup) else escape_value(child) for child in children))


def escape_value(value: object) -> str:
    """Escape a value for HTML and XML.

    Floats are formatted with one decimal, as coordinates need.
    """
    text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return html.escape(_FORBIDDEN.sub("\ufffd", text), quote=True)


def shorten(text: str, length: int) -> str:
    """Collapse a text to one line, and truncate it with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}…"


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text in a sans-serif font of this size, in the same unit."""
    return size * sum(1.0 if east_asian_width(character) in "WF" else 0.56 for character in text)


def image_element(svg: str, alt: str) -> Markup:
    """Return an img element that embeds an SVG as a data: address.

    Notebooks show only this form before they are trusted.
    """
    content = b64encode(svg.encode()).decode()
    return element(
        "img", src=f"data:image/svg+xml;base64,{content}", alt=alt, style="max-width:100%;height:auto"
    )


def picture_key(svg: str) -> str:
    """Return the key in a picture's `data-picture`, or "" if it has none.

    The live view that replaces the picture finds it by this key.
    """
    start = svg.find('data-picture="')
    return svg[start + 14 : svg.index('"', start + 14)] if start >= 0 else ""


def add_picture_key(svg: Markup) -> Markup:
    """Add a key made from the picture's content.

    The same picture has the same key in every run.
    """
    key = hashlib.sha256(svg.encode()).hexdigest()[:12]
    return Markup(svg.replace("<svg ", f'<svg data-picture="{key}" ', 1))


def first_lines(lines: Sequence[str], limit: int) -> list[str]:
    """Return the first `limit` lines and a line with the number of the others."""
    return [*lines[:limit], *([f"and {len(lines) - limit:,} more"] if len(lines) > limit else [])]


def bullet_list(lines: Iterable[object], **attributes: object) -> Markup:
    """Build a list with an item for each line."""
    return element("ul", *(element("li", line) for line in lines), **attributes)


def collapsible(summary: object, *inside: object) -> Markup:
    """Build a collapsible section with a summary."""
    return element("details", element("summary", summary), *inside)
