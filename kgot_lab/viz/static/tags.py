"""The tags of a text, split as the HTML standard splits them (13.2.5): also where a text is written to
mislead a reader of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

RAW = frozenset("script style xmp iframe noembed noframes textarea title plaintext".split())

_GAP = re.compile(r"[\t\n\f\r /]*")
_NAME = re.compile(r"=?[^\t\n\f\r />=]*")
_VALUE = re.compile(r"""[\t\n\f\r ]*=[\t\n\f\r ]*("[^"]*"|'[^']*'|(?!["'])[^\t\n\f\r >]*)""")
_UNCLOSED = re.compile(r"""[\t\n\f\r ]*=[\t\n\f\r ]*["']""")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\t\n\f\r />]*)")
_COMMENT = re.compile(r"<!---?>|<!--.*?(?:--!?>|\Z)|<[!?][^>]*(?:>|\Z)|</[^a-zA-Z][^>]*(?:>|\Z)", re.DOTALL)
_SHEET = re.compile(r"""^<\?xml-stylesheet.*?href=["'](.*?)["']""", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[.*?(?:\]\]>|\Z)", re.DOTALL)

_Attributes = list[tuple[str, str]]


class Tag(NamedTuple):
    """A start tag, in lower case and without its namespace prefix; `content` is the text of a script, a
    style and the like.
    """

    name: str
    attributes: _Attributes
    content: str = ""


def tags(text: str, *, svg_is_markup: bool) -> Iterator[Tag]:
    """The start tags of a text in order; a style or a title is raw text in HTML, and in SVG it may hold tags."""
    at, depth = 0, 0
    while (at := text.find("<", at)) >= 0:
        aside = (_CDATA.match(text, at) if depth else None) or _COMMENT.match(text, at)
        tag = None if aside else _TAG.match(text, at)
        if not tag:
            yield from (
                Tag("xml-stylesheet", [("href", address)])
                for address in _SHEET.findall(aside[0] if aside else "")
            )
            at = aside.end() if aside else at + 1
            continue
        attributes, at = _attributes(text, tag.end())
        name = tag[2].lower()
        if name in ("svg", "math") and svg_is_markup:
            depth = max(depth + (-1 if tag[1] else text[at - 2] != "/"), 0)
        if not tag[1]:
            content = _content(name, text, at)
            yield Tag(local(name), attributes, unescape(content) if depth else content)
            at += len(content) if name in RAW and not depth else 0


def local(name: str) -> str:
    """A name without its namespace prefix."""
    return name.rpartition(":")[2]


def _content(name: str, text: str, at: int) -> str:
    """What stands between a tag of raw text and its end tag, or the end of all."""
    if local(name) not in RAW:
        return ""
    end = re.compile(rf"</{re.escape(name)}(?=[\t\n\f\r />])", re.IGNORECASE).search(text, at)
    return text[at : end.start()] if end else text[at:]


def _attributes(text: str, at: int) -> tuple[_Attributes, int]:
    """The attributes of a tag, and where it ends; a tag that does not end before the text does is none."""
    found: _Attributes = []
    while (at := _end(_GAP, text, at)) < len(text) and text[at] != ">":
        name = _NAME.match(text, at)
        at = _end(_NAME, text, at)
        if value := _VALUE.match(text, at):
            plain = value[1][1:-1] if value[1][:1] in ("'", '"') else value[1]
            found.append((name[0].lower() if name else "", unescape(plain)))
            at = value.end()
        elif _UNCLOSED.match(text, at):
            at = len(text)
    return ([], len(text)) if at >= len(text) else (found, at + 1)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
