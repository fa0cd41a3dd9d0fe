"""Find external requests of a page: the check behind every export and every committed notebook.

Tags are split as the HTML standard splits them (13.2.5). SVG inside HTML is read both as markup and as raw
text, whichever a browser takes it for. Scripts are searched by pattern, so an address that a script assembles
from pieces is not found. A page should therefore also have a Content-Security-Policy. This check reports what
that policy would have to block.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from kgot_lab.errors import BadInput
from kgot_lab.types import Json

# The tags of a text, split as the HTML standard splits them (13.2.5), even if the text is written to mislead
# a parser.

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
    """A start tag, in lower case and without its namespace prefix.

    `content` is the text of a raw text element, such as a script or a style.
    """

    name: str
    attributes: _Attributes
    content: str = ""


def tags(text: str, *, svg_is_markup: bool) -> Iterator[Tag]:
    """Yield the start tags of a text in order.

    A style or a title is raw text in HTML, but may contain tags in SVG.
    """
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
    """Return a name without its namespace prefix."""
    return name.rpartition(":")[2]


def _content(name: str, text: str, at: int) -> str:
    """Return the text between a raw text tag and its end tag, or up to the end of the text."""
    if local(name) not in RAW:
        return ""
    end = re.compile(rf"</{re.escape(name)}(?=[\t\n\f\r />])", re.IGNORECASE).search(text, at)
    return text[at : end.start()] if end else text[at:]


def _attributes(text: str, at: int) -> tuple[_Attributes, int]:
    """Parse the attributes of a tag and return them with the tag's end.

    A tag that is not closed before the end of the text has no attributes.
    """
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


_Kind = Literal["markup", "style", "script"]

FETCHED = frozenset(
    "src poster background action formaction manifest ping codebase dynsrc lowsrc attributionsrc".split()
)
PAINTED = frozenset(
    "fill stroke filter mask clip-path cursor marker marker-start marker-mid marker-end".split()
)
NOT_FETCHED = frozenset(
    "canonical license author help alternate bookmark external nofollow noopener noreferrer search tag".split()
)
_INSIDE = frozenset("data blob about javascript mailto tel attachment".split())
SCRIPTS = re.compile(
    r"$|module$|(text|application)/(x-)?(java|ecma|j|live)script|importmap$|speculationrules$", re.I
)
_DEEPEST = 8  # maximum nesting of data: addresses; deeper ones are reported unread


def references(text: str, *, beside: bool = False) -> tuple[str, ...]:
    """Return every address that a browser would fetch or follow by itself on opening a page.

    `text` is HTML, SVG or CSS. Each address is listed once, in order. Only external addresses are listed;
    with `beside` also files next to the page. Addresses that a reader may click are in `links`.
    """
    return _unique(
        found.address for found in _found(text) if not found.clicked and _is_outside(found.address, beside)
    )


def links(text: str) -> tuple[str, ...]:
    """Return every external address that a reader may click, once each, in order."""
    return _unique(
        found.address for found in _found(text) if found.clicked and _is_outside(found.address, False)
    )


@dataclass(frozen=True)
class Reference:
    """An external request of a notebook cell.

    For a widget, which needs a live kernel or external scripts, it is the media type.
    """

    place: str
    kind: str
    address: str

    def __str__(self) -> str:
        return f"{self.place}, {self.kind}: {self.address}"


def notebook_references(path: Path | str) -> tuple[Reference, ...]:
    """Return what the outputs and texts of a notebook would fetch from outside, and its widgets.

    Raises BadInput if the file is damaged.
    """
    notebook = _notebook(Path(path))
    found = [
        Reference("metadata", "widget state", kind)
        for kind in _mapping(notebook.get("metadata")).get("widgets") or ()
    ]
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell.get("cell_type") == "markdown":
            found += [
                Reference(f"cell {number}", "text", address)
                for address in _in_markdown(_joined(cell.get("source")))
            ]
        for count, output in enumerate(cell.get("outputs") or (), start=1):
            found += _in_output(_mapping(output.get("data")), f"cell {number}, output {count}")
    return tuple(found)


# --- addresses ---


class _Found(NamedTuple):
    address: str
    clicked: bool = False


class _Text(NamedTuple):
    kind: _Kind
    text: str


def _is_outside(address: str, beside: bool) -> bool:
    plain = _plain(address)
    scheme = re.match(r"([a-z][a-z0-9+.-]*):", plain, re.I)
    if scheme:
        return scheme[1].lower() not in _INSIDE
    return plain.startswith("//") or (beside and not plain.startswith("#") and plain != "")


def _plain(address: str) -> str:
    """Normalize an address as a browser does.

    Line breaks, tabs and surrounding blanks are removed, and backslashes become slashes.
    """
    return re.sub(r"[\t\n\r]", "", address).strip("".join(map(chr, range(33)))).replace("\\", "/")


def _found(text: str) -> Iterator[_Found]:
    """Yield the addresses in a text and, after them, those in the texts nested within it.

    A text that does not begin with a tag is also read as CSS.
    """
    waiting: list[tuple[_Text, int]] = [(_Text("markup", text), 0)]
    if not text.lstrip("\ufeff\t\n\f\r ").startswith("<"):
        waiting.append((_Text("style", text), 0))
    while waiting:
        part, depth = waiting.pop(0)
        for item in _READERS[part.kind](part.text):
            if isinstance(item, _Text):
                waiting.append((item, depth))
            elif inner := _within(item.address):
                if depth < _DEEPEST:
                    waiting.append((inner, depth + 1))
                else:
                    yield _Found(f"too-deep:{_plain(item.address)[:80]}")
            else:
                yield item


def _within(address: str) -> _Text | None:
    """Return the page, style or script embedded in a data: or javascript: address, or None."""
    plain = _plain(address)
    if plain[:11].lower() == "javascript:":
        return _Text("script", plain[11:])
    head, comma, body = plain.partition(",")
    if plain[:5].lower() != "data:" or not comma:
        return None
    kinds: dict[str, _Kind] = {"html": "markup", "xml": "markup", "css": "style", "script": "script"}
    kind = next((kind for word, kind in kinds.items() if word in head.lower()), None)
    content = unquote_to_bytes(body)
    if head.lower().rstrip().endswith(";base64"):
        try:
            content = base64.b64decode(content + b"==")
        except binascii.Error:
            return None
    return _Text(kind, content.decode("utf-8", "replace")) if kind else None


# --- markup ---

_ENTITY = re.compile(r"""<!ENTITY\s+\S+\s+("[^"]*"|'[^']*')""")


def _in_markup(text: str) -> Iterator[_Found | _Text]:
    for value in _ENTITY.findall(text):  # XML substitutes this text wherever its name is used
        yield _Found(unescape(value[1:-1]))
        yield _Text("markup", unescape(value[1:-1]))
    for svg_is_markup in (False, True) if re.search("<(svg|math)", text, re.I) else (False,):
        for tag in tags(text, svg_is_markup=svg_is_markup):
            yield from _in_tag(tag)


def _in_tag(tag: Tag) -> Iterator[_Found | _Text]:
    given = dict(reversed(tag.attributes))
    for name, value in tag.attributes:
        if name in FETCHED or (name, tag.name) == ("data", "object"):
            yield _Found(value)
        elif local(name) == "href":
            yield _Found(value, clicked=_only_clicked(tag.name, given))
        elif name in ("srcset", "imagesrcset"):
            yield from (
                _Found(address)
                for address in re.findall(r"([^\s,]\S*[^\s,]|[^\s,])(?:,|\s+[^,]*,?|$)", value)
            )
        elif name == "srcdoc":
            yield _Text("markup", value)
        elif name == "style" or (name in PAINTED and "(" in value):
            yield _Text("style", value)
        elif name.startswith("on"):
            yield _Text("script", value)
        elif (
            name in ("to", "from", "by", "values") and local(given.get("attributename", "").lower()) == "href"
        ):
            yield from (_Found(address) for address in value.split(";"))
    if tag.name == "meta" and given.get("http-equiv", "").strip().lower() == "refresh":
        yield _Found(
            re.sub(
                r"""^\s*[\d.]*\s*[;,]?\s*(url\s*=)?\s*["']?""", "", given.get("content", ""), flags=re.I
            ).rstrip("\"' ")
        )
    if tag.name == "style":
        yield _Text("style", tag.content)
    if tag.name == "script" and SCRIPTS.match(given.get("type", "").strip()):
        yield _Text("script", tag.content)


def _only_clicked(tag: str, given: Mapping[str, str]) -> bool:
    rel = given.get("rel", "").lower().split()
    return tag in ("a", "area") or (tag == "link" and bool(rel) and NOT_FETCHED.issuperset(rel))


# --- styles and scripts ---

_STYLE = re.compile(
    r"""/\*.*?(?:\*/|\Z) | (?P<word>@[a-z-]+) | url\(\s*(?P<bare>[^"'\s)][^)]*?)\s*(?:\)|\Z) | (?P<opened>[a-z-]*)\(
      | "(?P<double>(?:\\.|[^"\\])*) (?:"|\Z) | '(?P<single>(?:\\.|[^'\\])*) (?:'|\Z) | (?P<other>[;{})])""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_FETCHING = re.compile("(url|src|image|(-webkit-)?image-set|(-webkit-)?cross-fade)$", re.I)
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})[ \t\r\n\f]?|\n|(.))", re.IGNORECASE | re.DOTALL)
_ADDRESS = re.compile(r"""["'`]((?:(?:https?|wss?|ftp):|//)[^"'`\s]*)|url\(((?:https?:|//)[^"')]*)""", re.I)
_CALLED = r"import|from|fetch|importScripts|sendBeacon|open|WebSocket|EventSource|(?:Shared)?Worker|Request|addModule|register"
_ASKING = re.compile(  # the text before an address that a script requests
    rf"""(?: \b(?:{_CALLED}) (?:\s|/\*.*?\*/|\()* (?:["']\w*["']\s*,\s*)?
           | \b(?:src|srcset|href|action|poster|data|location|background)["'\]]*\s*=\s*
           | \bset\w*\( [^()]{{0,80}} ,\s*
           | \burl\(
         )\Z""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_BEFORE = 160  # characters before an address that are examined


def _in_style(text: str) -> Iterator[_Found]:
    """Yield the addresses in url() and similar functions and after @import.

    Names of XML namespaces are skipped.
    """
    word, functions = "", [""]
    for token in _STYLE.finditer(_ESCAPE.sub(_harmless_escape, text)):
        string = token["double"] or token["single"]
        fetched = word == "@import" or _FETCHING.match(functions[-1])
        if token["word"]:
            word = token["word"].lower()
        elif token["opened"] is not None:
            functions.append(token["opened"])
        elif token["other"] == ")":
            functions = functions[:-1] or [""]
        elif token["other"]:
            word, functions = "", [""]
        elif word != "@namespace" and (token["bare"] or (string and fetched)):
            yield _Found(_ESCAPE.sub(_unescaped, token["bare"] or string))


def _unescaped(escape: re.Match[str]) -> str:
    code = int(escape[1], 16) if escape[1] else 0
    return (chr(code) if code < 0x110000 else "\ufffd") if escape[1] else escape[2] or ""


def _harmless_escape(escape: re.Match[str]) -> str:
    """Decode an escape if its character cannot end a string, else leave it."""
    plain = _unescaped(escape)
    return plain if re.fullmatch(r"[\w@:/.?-]", plain) else escape[0]


def _in_script(text: str) -> Iterator[_Found]:
    """Yield the literal addresses where a script imports, fetches or sets a source."""
    plain = re.sub(
        r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|/)",
        lambda code: chr(int(code[1] or code[2] or "2f", 16)),
        text,
        flags=re.I,
    )
    import_map = text.lstrip().startswith("{")  # every address in an import map may be fetched
    for match in _ADDRESS.finditer(plain):
        before = plain[max(match.start() - _BEFORE, 0) : match.start()]
        if match[2] or import_map or _ASKING.search(before):
            yield _Found(match[1] or match[2])


_READERS = {"markup": _in_markup, "style": _in_style, "script": _in_script}


def _unique(addresses: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_plain, addresses)))


# --- notebooks ---


def _notebook(path: Path) -> Mapping[str, Json]:
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read as a notebook ({error}); name an .ipynb file") from error
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise BadInput(f"{path} holds no cells: open it in Jupyter and save it again (notebook format 4)")
    return notebook


def _in_markdown(text: str) -> tuple[str, ...]:
    """Return the images that a Markdown text would fetch, and whatever HTML in it would."""
    images = re.findall(r"!\[[^\]]*\]\(\s*<?([^)\s>]+)", text)
    if "![" in text:
        images += re.findall(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)", text, re.MULTILINE)
    return _unique(
        iter((*filter(lambda address: _is_outside(address, False), images), *references(f"<p>{text}")))
    )


def _in_output(bundle: Mapping[str, Json], place: str) -> Iterator[Reference]:
    for media, value in bundle.items():
        text = _joined(value)
        if "jupyter.widget" in media:
            yield Reference(place, "widget view", media)
        elif "html" in media or "svg" in media or "xml" in media:
            yield from (Reference(place, media, address) for address in references(f"<p>{text}"))
        elif "markdown" in media:
            yield from (Reference(place, media, address) for address in _in_markdown(text))
        elif "javascript" in media:
            yield from (Reference(place, media, address) for address in references(f"<script>{text}"))


def _joined(value: Json) -> str:
    return (
        value if isinstance(value, str) else "".join(map(str, value)) if isinstance(value, Sequence) else ""
    )


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
