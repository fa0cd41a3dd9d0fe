"""The structure of a text: its title, the headings that its parts stand under, paragraphs, lists and tables."""

from __future__ import annotations

import csv
import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import yaml
from markdown_it import MarkdownIt

from kgot_lab.documents.conversion import CONVERTERS
from kgot_lab.documents.passages import split_passages
from kgot_lab.documents.tables import Block, delimited_grid, pipe_grid, record_blocks, table_blocks
from kgot_lab.errors import BadInput

TABLE_EXTENSIONS = (".csv", ".tsv", ".tab")
PROSE_EXTENSIONS = (".txt", ".text", ".md", ".markdown", ".rst", ".org", ".tex", ".adoc", "")
_LINE_EXTENSIONS = (".ini", ".cfg", ".conf", ".properties", ".env", ".log")
_MAX_TITLE = 200  # characters
_NUMBERED_LEVEL = 6  # of a heading such as "3. Crane" in plain text, which is no title


class Section(NamedTuple):
    """The part of a text below one heading, with the headings that it stands under, the title first."""

    headings: tuple[str, ...]
    blocks: list[Block]

    @property
    def title(self) -> str:
        """The title of the text and, in brackets, the other headings."""
        first, *others = self.headings
        path = " › ".join(others).translate(_BRACKETS)
        return f"{first} ({path})" if path else first

    @property
    def text(self) -> str:
        """The text, with a line for each item of a list and each row of a table, which begins with a bar."""
        parts, before = list[str](), ""
        for kind, line, _ in self.blocks:
            parts += ("\n" if kind == before in ("item", "row") else "\n\n", "| " * (kind == "row") + line)
            before = kind
        return "".join(parts[1:])

    def passages(self) -> list[str]:
        """Split the text into passages."""
        return split_passages(self.text)


_LIGATURES = re.compile("[\ufb00-\ufb06]")
_BRACKETS = str.maketrans("()", "  ")


def read_sections(text: str, extension: str, name: str, declared_title: str = "") -> list[Section]:
    """Split a text into sections by its headings, each with its blocks.

    The title is the only heading of the highest level, or one with nothing below it, if no text is above it, else
    the declared one or `name`. A heading without text is the text of its section. Raises BadInput if data do not parse.
    """
    return group_sections(list(read_blocks(text, extension)), name, declared_title)


def group_sections(blocks: list[Block], name: str, declared_title: str = "") -> list[Section]:
    """Group blocks into sections by their headings, as `read_sections` does."""
    if blocks and blocks[0].kind == "heading" and not blocks[0].level:  # as front matter declares it
        declared_title = blocks.pop(0).text
    levels = [block.level for block in blocks if block.kind == "heading"]
    first = next((at for at, block in enumerate(blocks) if block.kind == "heading"), 0)
    is_sole = bool(levels) and levels.count(min(levels)) == 1
    below = blocks[first + 1 : first + 2]
    is_bare = levels[:1] == [block.level for block in below if block.kind == "heading"]
    is_title = is_sole or (is_bare and not declared_title.strip())
    is_above = bool(levels) and levels[0] != _NUMBERED_LEVEL and (first == 0 or levels[0] == 1)
    if is_above and is_title and levels[0] == min(levels):
        declared_title = blocks.pop(first).text
    title = " ".join(declared_title.split())[:_MAX_TITLE] or name
    sections = [Section((title,), [])]
    above: list[tuple[int, str]] = []
    for block in blocks:
        if block.kind != "heading":
            sections[-1].blocks.append(block)
            continue
        above = [each for each in above if each[0] < block.level] + [(block.level, block.text)]
        sections.append(Section((title, *(heading for _, heading in above)), []))
    parents = {section.headings[:-1] for section in sections}
    for at, section in enumerate(sections):
        if not section.blocks and section.headings not in parents and (at or len(sections) == 1):
            sections[at] = Section(section.headings[:-1] or (title,), [Block("text", section.headings[-1])])
    return [section for section in sections if section.blocks]


def read_blocks(text: str, extension: str) -> Iterator[Block]:
    """Yield the headings, paragraphs, items and rows of a text, by the extension of its file.

    Raises BadInput if data do not parse.
    """
    text = re.sub(r"\r\n?", "\n", text).strip("\n")
    if extension == ".pdf":
        text = re.sub(r"(?m)(?<![.!?:|\n])\n\n(?=\S)", _glue(text), text)
        text = re.sub("(?<=\\S) +", " ", text)
        text = _LIGATURES.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    if extension in TABLE_EXTENSIONS:
        try:
            yield from table_blocks(delimited_grid(text, extension))
        except csv.Error as error:
            raise BadInput(f"does not parse: {error}") from None
    elif extension in DATA_PARSERS:
        comments = [line.strip("# ") for line in text.split("\n") if line.lstrip().startswith("#")]
        yield from (Block("text", comment) for comment in comments if "json" not in extension)
        for value in DATA_PARSERS[extension](text):
            yield from record_blocks(value)
    elif extension in _LINE_EXTENSIONS:
        for line in filter(None, map(str.strip, text.split("\n"))):
            section = re.fullmatch(r"\[(.+)\]", line) if extension != ".log" else None
            yield Block("heading", section[1], 1) if section else Block("row", line)
    elif extension in PROSE_EXTENSIONS or extension in CONVERTERS:
        if extension in CONVERTERS:  # a term and its description
            text = re.sub(r"^(\S.*)\n+:[ \t]{3}(?=\S)", r"\1: ", text, flags=re.MULTILINE)
        is_marked = CONVERTERS.get(extension) in ("HtmlConverter", "DocxConverter")
        plain = _plain_text if is_marked or extension == ".pptx" else str
        for block in prose_blocks(text, dehyphenated=extension == ".pdf", plain=plain):
            is_plain = not is_marked or block.kind in ("row", "code")
            yield block if is_plain else block._replace(text=_plain_text(block.text))
    elif text.strip():
        yield Block("code", text)


def _plain_text(text: str) -> str:
    """Return the text of a line of Markdown, without marks, escapes, addresses, and links from notes back."""
    if not re.search(r"[\\*_`\[]", text):
        return text
    (line,) = _MARKDOWN.parseInline(_BACK_LINK.sub("", text))
    return "".join(token.content or "\n" * token.type.endswith("break") for token in line.children or ())


_MARKDOWN = MarkdownIt().disable(["entity", "html_inline", "autolink"])
_BACK_LINK = re.compile(r"\s*\[[↑^↩\ufe0e]+\]\(#[^)]*\)")


def _glue(text: str) -> Callable[[re.Match[str]], str]:
    """Return what joins two lines of a PDF that are paragraphs of their own but were wrapped."""
    width = max(map(len, text.split("\n")))

    def glue(match: re.Match[str]) -> str:
        before = match.start() - text.rfind("\n", 0, match.start()) - 1
        is_wrapped = before >= 0.7 * width or text[match.end() : match.end() + 1].islower()
        return "\n" if is_wrapped else match[0]

    return glue


# Markdown and plain text, line by line.

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")  # a line that starts or ends a block of code
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+)")
_BOLD_LINE = re.compile(r"\*\*([^*]{1,80}[^*.!?])\*\*")  # used as a heading
_UNDERLINE = re.compile(r"={3,}|-{3,}|~{3,}")
_ITEM = re.compile(r"([ \t]*)([-*+•‣▪]|\d{1,3}[.)])[ \t]+(\S.*)")
# a heading above a line that is not indented
_NUMBERED = re.compile(r"\d{1,2}[.)][ \t]+((?:\S+ ){0,6}\S*[^\s.!?:;,])")
_BOLD = re.compile(r"\*\*(?=\S)([^*]+)\*\*")
# "**Mill.** Closed." is "Mill: Closed."
_BOLD_LEAD = re.compile(r"((?:[-\d][.)]? )?)\*\*([^*]+?)[.:]?\*\*[.:]?\s+(?=\S)")
_RULE = re.compile(r"[\s|:-]*-[\s|:-]*\|[\s|:-]*|\|[\s|:-]*-[\s|:-]*")  # below the header of a table
_SEPARATOR_LINE = re.compile(r"\s*([-*_=~])(?:\s*\1){2,}\s*|\s*<!--.*-->\s*")
_LEAD_WORDS = 12  # words of a line above a list that each item is read with
_MIN_WIDTH = 50  # characters of a line that may be wrapped
_ENDS_HEADING = re.compile(r"[ \t]+#+[ \t]*$")


def prose_blocks(
    text: str, *, dehyphenated: bool = False, plain: Callable[[str], str] = str
) -> Iterator[Block]:
    """Yield the blocks of Markdown or plain text, the cells of tables made `plain`.

    Wrapped lines are joined. With `dehyphenated`, words that are divided at the ends of lines are too. An
    item of a list begins with a short line above the list that ends with a colon.
    """
    lines = text.split("\n")
    title, start = front_matter(lines)
    yield from title
    words = set(re.findall(r"[\w-]+", text)) if dehyphenated else None
    held: list[str] = []
    at = start

    def end() -> Iterator[Block]:
        if held:
            yield from (Block("text", _without_bold(line)) for line in _joined_lines(held, words))
            held.clear()

    while at < len(lines):
        line = lines[at]
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if (fence := _FENCE.match(line)) and not (fence[1].startswith("`") and "`" in fence[2]):
            yield from end()
            ends = (row for row in range(at + 1, len(lines)) if _closes(lines[row], fence[1]))
            closing = next(ends, len(lines))
            if any(map(str.strip, lines[at + 1 : closing])):
                yield Block("code", "\n".join(lines[at : closing + 1]))
            at = closing
        elif heading := _HEADING.match(line):
            yield from end()
            yield Block("heading", _heading_text(heading[2]), len(heading[1]))
        elif not held and line.strip() and not _ITEM.match(line) and _is_underline(below, line):
            yield Block("heading", line.strip(), 1 if below.startswith("=") else 2)
            at += 1
        elif not held and not below.strip() and (bold := _BOLD_LINE.fullmatch(line.strip())):
            yield Block("heading", bold[1].strip(" :"), 7)
        elif (count := _table_lines(lines, at)) > 0:
            yield from end()
            grid, has_header = pipe_grid(lines[at : at + count])
            yield from table_blocks([list(map(plain, row)) for row in grid], 7, has_header=has_header)
            at += count - 1
        elif not held and (numbered := _NUMBERED.fullmatch(line)) and below[:1].isupper():
            yield Block("heading", numbered[1], _NUMBERED_LEVEL)
        elif _ITEM.match(line) and (not held or not line.lstrip()[0].isdigit()):
            lead = _pop_lead(held)
            yield from end()
            items, count = _read_items(lines, at)
            yield from (Block("item", _without_bold(item)) for item in _leading_items(items, lead))
            at += count - 1
        elif not line.strip() or _SEPARATOR_LINE.fullmatch(line):
            if not _is_lead(held) or not _ITEM.match(below):
                yield from end()
        else:
            held.append(line)
        at += 1
    yield from end()


def _without_bold(text: str) -> str:
    return _BOLD.sub(r"\1", _BOLD_LEAD.sub(r"\1\2: ", text, count=1) if "**" in text[:5] else text)


def _closes(line: str, fence: str) -> bool:
    mark = _FENCE.match(line)
    return bool(mark and mark[1].startswith(fence) and not mark[2].strip())


def _heading_text(text: str) -> str:
    # "## Title ##" has a closing sequence, "C#" does not
    return re.sub(r"(\*\*|__)(.+?)\1", r"\2", _ENDS_HEADING.sub("", text[:_MAX_TITLE])).strip()


def _is_underline(below: str, line: str) -> bool:
    below = below.rstrip()
    return bool(_UNDERLINE.fullmatch(below)) and len(below) >= min(len(line.strip()), 30) - 2


def front_matter(lines: Sequence[str]) -> tuple[list[Block], int]:
    """Return the blocks of the YAML or the header of a mail at the top of a text, and the lines they take.

    A title in it is a heading of level 0.
    """
    if lines[0].rstrip() == "---":
        inner = list(takewhile(lambda line: line.rstrip() not in ("---", "..."), lines[1:]))
        try:
            (values,) = DATA_PARSERS[".yaml"]("\n".join(inner))
        except (BadInput, ValueError):
            return [], 0
        size = len(inner) + 2
    else:
        header = list(takewhile(str.strip, lines[:40]))
        pairs = [re.match(r"([A-Z][A-Za-z-]{1,20}):[ \t]+(\S.*)", line) for line in header]
        values = {pair[1]: pair[2].strip() for pair in pairs if pair}
        size = len(header)
        if len(values) != size or not {"Subject", "From"} <= values.keys():
            return [], 0
    if not isinstance(values, Mapping):
        return [], 0
    title = next((str(values[name]) for name in ("title", "Title", "Subject") if values.get(name)), "")
    others = {name: value for name, value in values.items() if name not in ("title", "Title")}
    return [*([Block("heading", title, 0)] if title else []), *record_blocks(others, 6)], size


def _table_lines(lines: Sequence[str], at: int) -> int:
    """Return how many lines from here on are a table."""
    line = lines[at].strip()
    is_open = "|" in line and at + 1 < len(lines) and bool(_RULE.fullmatch(lines[at + 1].strip() or " "))
    if not is_open and not (line.startswith("|") and line.count("|") > 1):
        return 0
    last = at + 1 + is_open
    begin = "|" if is_open else ("|", "+-", "+=")
    while last < len(lines) and ("|" in lines[last] if is_open else lines[last].lstrip().startswith(begin)):
        last += 1
    return last - at


def _read_items(lines: Sequence[str], at: int) -> tuple[list[tuple[int, str]], int]:
    """Return the items of a list, each with its indent, and the number of lines that they take."""
    items: list[tuple[int, list[str]]] = []
    start, is_after_blank = at, False
    while at < len(lines):
        line = lines[at]
        if match := _ITEM.fullmatch(line):
            sign = match[2] if match[2][0].isdigit() else "-"
            items.append((len(match[1].expandtabs(4)), [f"{sign} {match[3].rstrip()}"]))
        elif line.strip():
            is_outside = is_after_blank and not line[0].isspace()
            if is_outside or _HEADING.match(line) or _FENCE.match(line) or _table_lines(lines, at):
                break
            items[-1][1].append(line.strip())
        is_after_blank = not line.strip()
        at += 1
    return [(indent, " ".join(parts)) for indent, parts in items], at - start


def _is_lead(held: Sequence[str]) -> bool:
    return bool(held) and held[-1].rstrip().endswith((":", "："))


def _pop_lead(held: list[str]) -> str:
    """Remove the sentence above a list that ends with a colon from a paragraph, if it is short."""
    if not _is_lead(held):
        return ""
    *before, lead = re.split(r"(?<=[.!?])\s+", " ".join(line.strip() for line in held))
    if len(lead.split()) > _LEAD_WORDS or len(lead) > 8 * _LEAD_WORDS:
        return ""
    held[:] = [" ".join(before)] if before else []
    return lead


def _leading_items(items: Sequence[tuple[int, str]], lead: str) -> Iterator[str]:
    """Yield the items of a list, each after the line above the list and after the items that it is part of."""
    above: list[tuple[int, str]] = []
    for number, (indent, item) in enumerate(items):
        sign, _, text = item.partition(" ")
        above = [each for each in above if each[0] < indent]
        leads = " ".join([lead, *(f"{each.rstrip(':：')}:" for _, each in above)]).strip()
        has_parts = items[number + 1 : number + 2] and items[number + 1][0] > indent
        if not (has_parts and text.endswith((":", "："))):
            yield f"{sign} {leads} {text}" if leads else item
        if len(text.split()) <= _LEAD_WORDS:
            above.append((indent, text))


def _joined_lines(lines: Sequence[str], words: set[str] | None) -> Iterator[str]:
    """Yield the lines of a paragraph, with those joined that were wrapped because the next word did not fit.

    `words` are those of the text, if words may be divided at the ends of lines.
    """
    width = max(_MIN_WIDTH, *(len(line.strip()) for line in lines)) * (0.85 if words else 1)
    joined: list[str] = []
    before = ""
    for line in map(str.strip, lines):
        fits = len(before) + 1 + len(line.split(" ", 1)[0]) <= width
        if words is not None and line[:1].islower() and (divided := re.search(r"([\w-]*\w)-$", before)):
            if not _has_hyphen(divided[1], re.split(r"[^\w-]", line, maxsplit=1)[0], words):
                joined[-1] = joined[-1][:-1]
            joined.append(line)
        elif joined and (not fits or (line[:1].islower() and before[-1:] not in ".!?:")):
            joined += (" ", line)
        else:
            if joined:
                yield "".join(joined)
            joined = [line]
        before = line
    yield "".join(joined)


def _has_hyphen(head: str, tail: str, words: set[str]) -> bool:
    """Return whether a word that is divided after a hyphen is written with it, as elsewhere in the text."""
    if head + tail in words:
        return False
    return f"{head}-{tail}" in words or head.lower() in _COMPOUND_HEADS


_COMPOUND_HEADS = set(
    "self well non half north south east west co ex all cross high low long short two three".split()
)


# Data.


def _parse_json(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except json.JSONDecodeError as error:
        if rows := _parse_json_lines(text):
            return rows
        raise BadInput(f"does not parse: {error.msg}, line {error.lineno}") from None


def _parse_json_lines(text: str) -> list[Any]:
    """Parse one JSON value per line, and return them as a list, and after it each line that does not parse.

    Without any value, nothing is returned.
    """
    rows, others = list[Any](), list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            rows += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError):
            others.append(f"line {number}, which does not parse: {line.strip()}")
    return [rows, *others] if len(rows) > len(others) else []


class _UntaggedLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, which ignores unknown tags and keeps the tagged value."""


def _construct_untagged(loader: Any, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node)
    is_list = isinstance(node, yaml.SequenceNode)
    return loader.construct_sequence(node) if is_list else loader.construct_scalar(node)


_UntaggedLoader.add_multi_constructor("", _construct_untagged)


def _parse_yaml(text: str) -> list[Any]:
    return [each for each in yaml.load_all(text, _UntaggedLoader) if each is not None] or [None]


def _parser(parse: Callable[[str], list[Any]]) -> Callable[[str], list[Any]]:
    """Make a parser raise BadInput with the reason."""

    def parse_data(text: str) -> list[Any]:
        try:
            return parse(text)
        except RecursionError:
            raise BadInput("does not parse: nested too deep") from None
        except yaml.MarkedYAMLError as error:
            location = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
            raise BadInput(f"does not parse: {error.problem or error.context}{location}") from None
        except (yaml.YAMLError, ValueError, TypeError) as error:  # as an invalid date, an unhashable key
            raise BadInput(f"does not parse: {error}") from None

    return parse_data


DATA_PARSERS: Mapping[str, Callable[[str], list[Any]]] = {
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".geojson"), _parser(_parse_json)),
    **dict.fromkeys((".yaml", ".yml"), _parser(_parse_yaml)),
    ".toml": _parser(lambda text: [tomllib.loads(text)]),
}
