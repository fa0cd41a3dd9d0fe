"""Find external requests of a page: the check behind every export and every committed notebook.

Tags are split as the HTML standard splits them (13.2.5). SVG inside HTML is read both as markup and as raw
text, whichever a browser takes it for. Scripts are searched by pattern, so an address that a script assembles
from pieces is not found. A page should therefore also have a Content-Security-Policy. This check reports what
that policy would have to block.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from markdown_it import MarkdownIt

from kgot_lab.arguments import check_arguments
from kgot_lab.types import Json

# The tags of a text, split as the HTML standard splits them (13.2.5), even if the text is written to mislead
# a parser.

RAW_TEXT_ELEMENTS = frozenset("script style xmp iframe noembed noframes textarea title plaintext".split())

_SEPARATOR = re.compile(r"[\t\n\f\r /]*")
_NAME = re.compile(r"=?[^\t\n\f\r />=]*")
_VALUE = re.compile(r"""[\t\n\f\r ]*=[\t\n\f\r ]*("[^"]*"|'[^']*'|(?!["'])[^\t\n\f\r >]*)""")
_UNCLOSED = re.compile(r"""[\t\n\f\r ]*=[\t\n\f\r ]*["']""")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\t\n\f\r />]*)")
_COMMENT = re.compile(r"<!---?>|<!--.*?(?:--!?>|\Z)|<[!?][^>]*(?:>|\Z)|</[^a-zA-Z][^>]*(?:>|\Z)", re.DOTALL)
_STYLESHEET_INSTRUCTION = re.compile(r"""^<\?xml-stylesheet.*?href=["'](.*?)["']""", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[.*?(?:\]\]>|\Z)", re.DOTALL)

_Attributes = list[tuple[str, str]]


class Tag(NamedTuple):
    """A start tag, in lower case and without its namespace prefix.

    `content` is the text of a raw text element, such as a script or a style.
    """

    name: str
    attributes: _Attributes
    content: str = ""


def start_tags(text: str, *, svg_is_markup: bool) -> Iterator[Tag]:
    """Yield the start tags of a text in order.

    A style or a title is raw text in HTML, but may contain tags in SVG.
    """
    position, depth = 0, 0
    while (position := text.find("<", position)) >= 0:
        skipped = (_CDATA.match(text, position) if depth else None) or _COMMENT.match(text, position)
        tag = None if skipped else _TAG.match(text, position)
        if not tag:
            addresses = _STYLESHEET_INSTRUCTION.findall(skipped[0] if skipped else "")
            yield from (Tag("xml-stylesheet", [("href", address)]) for address in addresses)
            position = skipped.end() if skipped else position + 1
            continue
        attributes, position = _parse_attributes(text, tag.end())
        name = tag[2].lower()
        if name in ("svg", "math") and svg_is_markup:
            depth = max(depth + (-1 if tag[1] else text[position - 2] != "/"), 0)
        if not tag[1]:
            content = _raw_text(name, text, position)
            yield Tag(local_name(name), attributes, unescape(content) if depth else content)
            position += len(content) if name in RAW_TEXT_ELEMENTS and not depth else 0


def local_name(name: str) -> str:
    """Return a name without its namespace prefix."""
    return name.rpartition(":")[2]


def _raw_text(name: str, text: str, position: int) -> str:
    """Return the text between a raw text tag and its end tag, or up to the end of the text."""
    if local_name(name) not in RAW_TEXT_ELEMENTS:
        return ""
    end = re.compile(rf"</{re.escape(name)}(?=[\t\n\f\r />])", re.IGNORECASE).search(text, position)
    return text[position : end.start()] if end else text[position:]


def _parse_attributes(text: str, position: int) -> tuple[_Attributes, int]:
    """Parse the attributes of a tag and return them with the tag's end.

    A tag that is not closed before the end of the text has no attributes.
    """
    attributes: _Attributes = []
    while (position := _match_end(_SEPARATOR, text, position)) < len(text) and text[position] != ">":
        name = _NAME.match(text, position)
        position = _match_end(_NAME, text, position)
        if value := _VALUE.match(text, position):
            unquoted = value[1][1:-1] if value[1][:1] in ("'", '"') else value[1]
            attributes.append((name[0].lower() if name else "", unescape(unquoted)))
            position = value.end()
        elif _UNCLOSED.match(text, position):
            position = len(text)
    return ([], len(text)) if position >= len(text) else (attributes, position + 1)


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


_Kind = Literal["markup", "style", "script"]

FETCHING_ATTRIBUTES = frozenset(
    "src poster background action formaction manifest ping codebase dynsrc lowsrc attributionsrc".split()
)
PAINT_ATTRIBUTES = frozenset(
    "fill stroke filter mask clip-path cursor marker marker-start marker-mid marker-end".split()
)
NON_FETCHING_RELS = frozenset(
    "canonical license author help alternate bookmark external nofollow noopener noreferrer search tag".split()
)
_LOCAL_SCHEMES = frozenset("data blob about javascript mailto tel attachment".split())
SCRIPT_TYPES = re.compile(
    r"$|module$|(text|application)/(x-)?(java|ecma|j|live)script|importmap$|speculationrules$", re.I
)
_MAX_DEPTH = 8  # maximum nesting of data: addresses; deeper ones are reported unread


@check_arguments
def find_external_requests(text: str, *, beside: bool = False) -> tuple[str, ...]:
    """Return every address that a browser would fetch or follow by itself on opening a page.

    `text` is HTML, SVG or CSS. Each address is listed once, in order. Only external addresses are listed;
    with `beside` also files next to the page. Addresses that a reader may click are not.
    """
    found = (address.address for address in _find_addresses(text) if not address.clicked)
    external = (_normalize_address(address) for address in found if _is_external(address, beside))
    return tuple(dict.fromkeys(external))


def find_notebook_requests(notebook: Mapping[str, Json]) -> tuple[str, ...]:
    """Return what the texts and outputs of a notebook would fetch from outside, each with its place."""
    texts: list[tuple[str, str, Json]] = []
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] == "markdown":
            texts.append((f"cell {number}, text", "markdown", cell["source"]))
        for count, output in enumerate(cell.get("outputs", ()), start=1):
            outputs = output.get("data", {}).items()
            texts += [(f"cell {number}, output {count}, {kind}", kind, content) for kind, content in outputs]
    return tuple(
        f"{place}: {address}"
        for place, kind, content in texts
        for address in find_external_requests(_as_html(kind, content))
    )


def _as_html(kind: str, content: Json) -> str:
    """Return a text of a notebook as HTML, or "" if it is of a kind that fetches nothing."""
    text = "".join(content) if isinstance(content, str | list) else ""
    if "markdown" in kind:
        return f"<p>{MarkdownIt().render(text)}"
    if "javascript" in kind:
        return f"<script>{text}"
    return f"<p>{text}" if any(word in kind for word in ("html", "svg", "xml")) else ""


# --- addresses ---


class _Address(NamedTuple):
    address: str
    clicked: bool = False


class _NestedText(NamedTuple):
    kind: _Kind
    text: str


def _is_external(address: str, beside: bool) -> bool:
    normalized = _normalize_address(address)
    scheme = re.match(r"([a-z][a-z0-9+.-]*):", normalized, re.I)
    if scheme:
        return scheme[1].lower() not in _LOCAL_SCHEMES
    return normalized.startswith("//") or (beside and not normalized.startswith("#") and normalized != "")


def _normalize_address(address: str) -> str:
    """Normalize an address as a browser does.

    Line breaks, tabs and surrounding blanks are removed, and backslashes become slashes.
    """
    return re.sub(r"[\t\n\r]", "", address).strip("".join(map(chr, range(33)))).replace("\\", "/")


def _find_addresses(text: str) -> Iterator[_Address]:
    """Yield the addresses in a text and, after them, those in the texts nested within it.

    A text that does not begin with a tag is also read as CSS.
    """
    queue: list[tuple[_NestedText, int]] = [(_NestedText("markup", text), 0)]
    if not text.lstrip("\ufeff\t\n\f\r ").startswith("<"):
        queue.append((_NestedText("style", text), 0))
    while queue:
        part, depth = queue.pop(0)
        for item in _PARSERS[part.kind](part.text):
            if isinstance(item, _NestedText):
                queue.append((item, depth))
            elif nested := _embedded_text(item.address):
                if depth < _MAX_DEPTH:
                    queue.append((nested, depth + 1))
                else:
                    yield _Address(f"too-deep:{_normalize_address(item.address)[:80]}")
            else:
                yield item


def _embedded_text(address: str) -> _NestedText | None:
    """Return the page, style or script embedded in a data: or javascript: address, or None."""
    normalized = _normalize_address(address)
    if normalized[:11].lower() == "javascript:":
        return _NestedText("script", normalized[11:])
    head, comma, body = normalized.partition(",")
    if normalized[:5].lower() != "data:" or not comma:
        return None
    kinds: dict[str, _Kind] = {"html": "markup", "xml": "markup", "css": "style", "script": "script"}
    kind = next((kind for word, kind in kinds.items() if word in head.lower()), None)
    content = unquote_to_bytes(body)
    if head.lower().rstrip().endswith(";base64"):
        try:
            content = base64.b64decode(content + b"==")
        except binascii.Error:
            return None
    return _NestedText(kind, content.decode("utf-8", "replace")) if kind else None


# --- markup ---

_ENTITY = re.compile(r"""<!ENTITY\s+\S+\s+("[^"]*"|'[^']*')""")
_REFRESH_PREFIX = re.compile(r"""^\s*[\d.]*\s*[;,]?\s*(url\s*=)?\s*["']?""", re.I)


def _parse_markup(text: str) -> Iterator[_Address | _NestedText]:
    for value in _ENTITY.findall(text):  # XML substitutes this text wherever its name is used
        yield _Address(unescape(value[1:-1]))
        yield _NestedText("markup", unescape(value[1:-1]))
    for svg_is_markup in (False, True) if re.search("<(svg|math)", text, re.I) else (False,):
        for tag in start_tags(text, svg_is_markup=svg_is_markup):
            yield from _parse_tag(tag)


def _parse_tag(tag: Tag) -> Iterator[_Address | _NestedText]:
    attributes = dict(reversed(tag.attributes))
    animated = local_name(attributes.get("attributename", "").lower())
    for name, value in tag.attributes:
        if name in FETCHING_ATTRIBUTES or (name, tag.name) == ("data", "object"):
            yield _Address(value)
        elif local_name(name) == "href":
            yield _Address(value, clicked=_is_link(tag.name, attributes))
        elif name in ("srcset", "imagesrcset"):
            sources = re.findall(r"([^\s,]\S*[^\s,]|[^\s,])(?:,|\s+[^,]*,?|$)", value)
            yield from map(_Address, sources)
        elif name == "srcdoc":
            yield _NestedText("markup", value)
        elif name == "style" or (name in PAINT_ATTRIBUTES and "(" in value):
            yield _NestedText("style", value)
        elif name.startswith("on"):
            yield _NestedText("script", value)
        elif name in ("to", "from", "by", "values") and animated == "href":
            yield from map(_Address, value.split(";"))
    if tag.name == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh":
        yield _Address(_REFRESH_PREFIX.sub("", attributes.get("content", "")).rstrip("\"' "))
    if tag.name == "style":
        yield _NestedText("style", tag.content)
    if tag.name == "script" and SCRIPT_TYPES.match(attributes.get("type", "").strip()):
        yield _NestedText("script", tag.content)


def _is_link(tag: str, attributes: Mapping[str, str]) -> bool:
    rel = attributes.get("rel", "").lower().split()
    return tag in ("a", "area") or (tag == "link" and bool(rel) and NON_FETCHING_RELS.issuperset(rel))


# --- styles and scripts ---

_STYLE = re.compile(
    r"""/\*.*?(?:\*/|\Z) | (?P<word>@[a-z-]+) | url\(\s*(?P<bare>[^"'\s)][^)]*?)\s*(?:\)|\Z) | (?P<opened>[a-z-]*)\(
      | "(?P<double>(?:\\.|[^"\\])*) (?:"|\Z) | '(?P<single>(?:\\.|[^'\\])*) (?:'|\Z) | (?P<other>[;{})])""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_FETCHING_FUNCTION = re.compile("(url|src|image|(-webkit-)?image-set|(-webkit-)?cross-fade)$", re.I)
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})[ \t\r\n\f]?|\n|(.))", re.IGNORECASE | re.DOTALL)
_ADDRESS = re.compile(r"""["'`]((?:(?:https?|wss?|ftp):|//)[^"'`\s]*)|url\(((?:https?:|//)[^"')]*)""", re.I)
_SCRIPT_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|/)", re.I)
_FETCHING_CALLS = r"import|from|fetch|importScripts|sendBeacon|open|WebSocket|EventSource|(?:Shared)?Worker|Request|addModule|register"
_FETCHING_CONTEXT = re.compile(  # the text before an address that a script requests
    rf"""(?: \b(?:{_FETCHING_CALLS}) (?:\s|/\*.*?\*/|\()* (?:["']\w*["']\s*,\s*)?
           | \b(?:src|srcset|href|action|poster|data|location|background)["'\]]*\s*=\s*
           | \bset\w*\( [^()]{{0,80}} ,\s*
           | \burl\(
         )\Z""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_CONTEXT_LENGTH = 160  # characters before an address that are examined


def _parse_style(text: str) -> Iterator[_Address]:
    """Yield the addresses in url() and similar functions and after @import.

    Names of XML namespaces are skipped.
    """
    at_rule, functions = "", [""]
    for token in _STYLE.finditer(_ESCAPE.sub(_decode_harmless_escape, text)):
        string = token["double"] or token["single"]
        is_fetched = at_rule == "@import" or _FETCHING_FUNCTION.match(functions[-1])
        if token["word"]:
            at_rule = token["word"].lower()
        elif token["opened"] is not None:
            functions.append(token["opened"])
        elif token["other"] == ")":
            functions = functions[:-1] or [""]
        elif token["other"]:
            at_rule, functions = "", [""]
        elif at_rule != "@namespace" and (token["bare"] or (string and is_fetched)):
            yield _Address(_ESCAPE.sub(_decode_escape, token["bare"] or string))


def _decode_escape(escape: re.Match[str]) -> str:
    code = int(escape[1], 16) if escape[1] else 0
    return (chr(code) if code < 0x110000 else "\ufffd") if escape[1] else escape[2] or ""


def _decode_harmless_escape(escape: re.Match[str]) -> str:
    """Decode an escape if its character cannot end a string, else leave it."""
    character = _decode_escape(escape)
    return character if re.fullmatch(r"[\w@:/.?-]", character) else escape[0]


def _parse_script(text: str) -> Iterator[_Address]:
    """Yield the literal addresses where a script imports, fetches or sets a source."""
    decoded = _SCRIPT_ESCAPE.sub(lambda code: chr(int(code[1] or code[2] or "2f", 16)), text)
    import_map = text.lstrip().startswith("{")  # every address in an import map may be fetched
    for match in _ADDRESS.finditer(decoded):
        before = decoded[max(match.start() - _CONTEXT_LENGTH, 0) : match.start()]
        if match[2] or import_map or _FETCHING_CONTEXT.search(before):
            yield _Address(match[1] or match[2])


_PARSERS = {"markup": _parse_markup, "style": _parse_style, "script": _parse_script}
