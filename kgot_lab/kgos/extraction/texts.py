"""The facts of a Markdown or settings file.

Markdown: title, first paragraph, sections with their text, and the code and files that it names.
"""

from __future__ import annotations

import posixpath
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from kgot_lab.documents.structure import DATA_PARSERS, Section, front_matter, group_sections, read_sections
from kgot_lab.documents.tables import record_blocks
from kgot_lab.kgos.extraction.facts import PACKAGE, Definition, FileFacts, Reference

# Markdown sections. Each is a definition with its text, so that it can be found and cited.
#
# A long section is cut at sentence ends, since a prompt holds only a limited amount of text from one node.

_MAX_PART_CHARACTERS = 600  # of a part
_MAX_NAME_CHARACTERS, _MAX_ID_CHARACTERS = 100, 60  # characters of a heading in the name, and in the id
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class _TextSpan(NamedTuple):
    text: str
    line: int
    end_line: int
    subject: str = ""  # of a row of a table, which is a part of its own


class _Section(NamedTuple):
    heading: str
    above: str  # the heading above
    said: list[_TextSpan]


def split_document(tokens: Sequence[Any], document: Definition, description: str) -> list[Definition]:
    """Split the markdown-it tokens of a document into sections, and long sections into parts, in order.

    The text `description`, which describes the document, is left out of the first section. Each section is named by
    its heading and the one above it, as in "Limits (Rust)", since many files repeat the same heading.
    """
    ids: set[str] = set()
    counts = Counter([document.name])  # the document itself is the first part of the text under its title
    found = []
    for section in _split_sections(tokens, document.name):
        first = not section.above
        repeated = first and section.said and section.said[0].text == description
        spans = section.said[1:] if repeated else section.said
        heading, above = section.heading[:_MAX_NAME_CHARACTERS], section.above[:_MAX_NAME_CHARACTERS]
        title = document.name if first else f"{heading} ({above})"
        for part in _split_parts(spans):
            id = _unique_id(f"{document.id}#{_slug(part.subject or section.heading)}", ids)
            counts[title] += not part.subject
            name = part.subject or (title if counts[title] == 1 else f"{title}, part {counts[title]}")
            found.append(Definition(id, "section", name, part.line, part.end_line, document.id, part.text))
    return found


def plain_text(text: str) -> str:
    """Join Markdown text into one line, without the marks of links, code and bold text."""
    return " ".join(
        re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("**", "").split()
    )


def _split_sections(tokens: Sequence[Any], title: str) -> Iterator[_Section]:
    """Yield the text under each heading.

    The first section holds what follows the title, also if there is no heading.
    """
    section, above = _Section(title, "", []), list[tuple[int, str]]()
    titled = False
    inside = 0  # the level of the open heading
    for token in tokens:
        if token.type == "heading_open":
            inside = int(token.tag[1:])
        elif token.type == "heading_close":
            inside = 0
        elif token.type == "inline" and inside:
            if not titled:
                titled = True
                continue
            yield section
            above = [each for each in above if each[0] < inside]
            heading = plain_text(token.content) or "section"
            section = _Section(heading, above[-1][1] if above else title, [])
            above.append((inside, heading))
        elif token.type in ("inline", "fence", "code_block") and (words := plain_text(token.content)):
            line, end = token.map or (0, 1)
            rows = _table_rows(token.content)
            spans = [_TextSpan(row, line + 1, end, _row_subject(row)) for row in rows]
            section.said.extend(spans or [_TextSpan(words, line + 1, end)])
    yield section


def _split_parts(spans: Sequence[_TextSpan]) -> Iterator[_TextSpan]:
    """Join texts and cut them at sentence ends into parts of bounded length."""
    part: _TextSpan | None = None
    for span in spans:
        if span.subject:
            yield from filter(None, [part])
            yield span
            part = None
            continue
        for sentence in _SENTENCE_END.split(span.text):
            for piece in textwrap.wrap(sentence, _MAX_PART_CHARACTERS):
                if part is not None and len(part.text) + 1 + len(piece) > _MAX_PART_CHARACTERS:
                    yield part
                    part = None
                text, line = (piece, span.line) if part is None else (f"{part.text} {piece}", part.line)
                part = _TextSpan(text, line, span.end_line)
    if part is not None:
        yield part


def _table_rows(text: str) -> list[str]:
    """Return the rows in the lines of a table, or none if the text is no table."""
    lines = [line.strip() for line in text.split("\n")]
    if not all(line.startswith("|") for line in lines):
        return []
    if any(line.count("|") > 1 for line in lines):
        lines = [
            line for section in read_sections(text, ".md", "") for line in section.text.split("\n") if line
        ]
    return [plain_text(line.removeprefix("| ")) for line in lines]


def _row_subject(row: str) -> str:
    return re.split(r"(?: \([^()]*\))?: ", row, maxsplit=1)[0][:_MAX_NAME_CHARACTERS]


def _slug(heading: str) -> str:
    """Convert a heading to an anchor."""
    return re.sub(r"[^\w]+", "-", heading.casefold()).strip("-")[:_MAX_ID_CHARACTERS] or "section"


def _unique_id(id: str, taken: set[str]) -> str:
    """Return an unused id based on `id`, and mark it as taken."""
    chosen = next(each for each in chain([id], (f"{id}-{n}" for n in count(2))) if each not in taken)
    taken.add(chosen)
    return chosen


_PATH = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.(?:py|js|mjs|cjs|jsx|ts|tsx|json|ya?ml|toml|md)\b")
_NAME = re.compile(r"^([A-Za-z_][\w.]*)(?:\(.*\))?$", re.DOTALL)
_QUOTE_CHARACTERS = 120  # characters of the quotation around a name
_MAX_HEADINGS = 60
_MAX_SECTIONS = 400  # nodes of one file


def prose_facts(text: str, path: str) -> FileFacts:
    """Extract the facts of a Markdown file.

    Any text is valid Markdown, so nothing is rejected.
    """
    from markdown_it import MarkdownIt

    lines = text.split("\n")
    front, count = front_matter(lines)
    said = [f"{'| ' if block.level or block.kind != 'heading' else '# '}{block.text}" for block in front]
    lines[:count] = [*said, *[""] * (count - len(said))]
    tokens = MarkdownIt("commonmark").parse("\n".join(lines))
    headings, first, references = [], "", dict[str, Reference]()
    heading = False
    for token in tokens:
        heading = token.type == "heading_open" or (heading and token.type != "heading_close")
        if token.type == "inline":
            if heading:
                headings.append(plain_text(token.content))
            elif not first and not token.content.startswith("|"):
                first = plain_text(token.content)
        line = token.map[0] + 1 if token.map else 1
        if token.type in ("inline", "fence", "code_block"):
            for target in _mentioned_names(token, path):
                around = _text_around(target, token.content)
                references.setdefault(target, Reference(path, "documents", target, line, around))
    title = (headings[0] if headings else PurePosixPath(path).stem) or path
    about = first if not headings[1:] else f"{first} Sections: {'; '.join(headings[1:_MAX_HEADINGS])}".strip()
    itself = Definition(path, "document", title, 1, text.count("\n") + 1, "", about)
    sections = split_document(tokens, itself, first)
    remark = f"only its first {_MAX_SECTIONS:,} sections were kept" if len(sections) > _MAX_SECTIONS else ""
    definitions = (itself, *sections[:_MAX_SECTIONS])
    return FileFacts(path, "markdown", definitions, tuple(references.values()), remark)


def section_facts(sections: Sequence[Section], path: str) -> FileFacts:
    """Extract the facts of a text that is no Markdown, from its sections. No line numbers are known."""
    title = sections[0].headings[0] if sections else PurePosixPath(path).stem
    text = [f"# {title}"]
    for section in sections:
        headings = section.headings[1:]
        text += [f"{'#' * min(len(headings) + 1, 6)} {headings[-1]}"] if headings else []
        text.append(section.text)
    facts = prose_facts("\n\n".join(text), path)
    definitions = (replace(definition, line=1, end_line=1) for definition in facts.definitions)
    references = (replace(reference, line=1) for reference in facts.references)
    language = PurePosixPath(path).suffix[1:].lower() or "text"
    return replace(facts, language=language, definitions=tuple(definitions), references=tuple(references))


def _mentioned_names(token: object, path: str) -> Iterator[str]:
    """Yield the names and paths in a piece of Markdown.

    Links are resolved relative to the file.
    """
    children = getattr(token, "children", None) or ()
    content: str = getattr(token, "content", "")
    for child in children:
        if child.type == "code_inline" and (match := _NAME.match(child.content.strip())):
            yield match[1].strip(".")
        elif child.type == "link_open":
            parts = urlsplit(str(child.attrGet("href") or ""))
            if not parts.scheme and not parts.netloc and parts.path:
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path)))
    yield from _PATH.findall(content)


def _text_around(target: str, content: str) -> str:
    """Return the text around a name, on one line."""
    position = content.find(target.rpartition("/")[2])
    if position < 0:
        return plain_text(content)[:_QUOTE_CHARACTERS]
    begin, end = position - _QUOTE_CHARACTERS // 2, position + len(target) + _QUOTE_CHARACTERS // 2
    return plain_text(content[max(0, begin) : end])


# The facts of a settings file: its keys, its required packages, and the names in its values.

_DEPENDENCY_KEYS = set(
    "dependencies devdependencies peerdependencies optionaldependencies optional-dependencies requires".split()
)
_REQUIREMENT = re.compile(r"^(@?[A-Za-z0-9][\w.\-/]*)\s*(?:\[[^\]]*\])?\s*(?:[<>=!~;@ ].*)?$")
_NAME_VALUE = re.compile(r"^[A-Za-z0-9_@./\-]+(?::[\w.]+)?$")  # a path, a dotted name, or module:function
_MAX_KEYS = 40  # in the description
_MAX_VALUES = 5_000  # a data file has more, and names nothing
_MAX_VALUE_CHARACTERS = 200  # characters of a value that may name something


def settings_facts(text: str, path: str) -> FileFacts:
    """Extract the facts of a settings file.

    Raises BadInput if it does not parse; the message gives the position.
    """
    form = PurePosixPath(path).suffix.lower()
    documents = DATA_PARSERS[form](text)
    whole = documents[0] if len(documents) == 1 else documents
    keys = list(map(str, whole)) if isinstance(whole, Mapping) else []
    description = f"{len(whole)} entries" if isinstance(whole, list) else "one value"
    if keys:
        description = f"settings: {', '.join(keys[:_MAX_KEYS])}"
    description += ", …" if len(keys) > _MAX_KEYS else ""
    itself = Definition(path, "config", PurePosixPath(path).name, 1, text.count("\n") + 1, "", description)
    references: dict[str, Reference] = {}
    value_count = 0
    for pointer, value in _iterate_strings(whole):
        value_count += 1
        if value_count > _MAX_VALUES:
            break
        for target in _named_targets(pointer, value):
            place = ".".join(map(str, pointer))
            references.setdefault(target, Reference(path, "configures", target, _line_of(text, value), place))
    remark = f"only its first {_MAX_VALUES:,} values were looked at" if value_count > _MAX_VALUES else ""
    records = group_sections(list(record_blocks(whole)), itself.name) if isinstance(whole, list) else []
    sections = section_facts(records, path).definitions[1:]
    return FileFacts(path, form[1:], (itself, *sections), tuple(references.values()), remark)


def _named_targets(pointer: tuple[Any, ...], value: str) -> Iterator[str]:
    """Yield what a value may name: a required package, or a file, module or function.

    Files, modules and functions are resolved when all files are read.
    """
    if any(str(each).lower() in _DEPENDENCY_KEYS for each in pointer):
        match = _REQUIREMENT.match(value)
        if match and match[1].lower() != "python":
            yield PACKAGE + match[1]
    elif (
        len(value) <= _MAX_VALUE_CHARACTERS
        and _NAME_VALUE.match(value)
        and ("." in value or "/" in value or ":" in value)
    ):
        yield value


def _iterate_strings(whole: Any) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield each string in some settings with the keys that lead to it, breadth first.

    For a mapping of required packages, the strings are its keys.
    """
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), whole)]
    seen: set[int] = set()
    for pointer, value in waiting:
        if isinstance(value, str):
            yield pointer, value
        elif isinstance(value, Mapping | list):
            # YAML may refer to one object many times, and to itself
            if id(value) in seen or len(waiting) > 4 * _MAX_VALUES:
                continue
            seen.add(id(value))
            if isinstance(value, Mapping):
                if pointer and str(pointer[-1]).lower() in _DEPENDENCY_KEYS:
                    yield from ((pointer, str(key)) for key, of in value.items() if not isinstance(of, list))
                    waiting.extend(((*pointer, key), of) for key, of in value.items() if isinstance(of, list))
                else:
                    waiting.extend(((*pointer, key), of) for key, of in value.items())
            else:
                waiting.extend((pointer, of) for of in value)


def _line_of(text: str, value: str) -> int:
    """Return the first line of a text that contains a value, or 1 if it does not contain it literally."""
    position = text.find(value)
    return text.count("\n", 0, position) + 1 if position >= 0 else 1
