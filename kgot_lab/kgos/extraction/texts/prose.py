"""The facts of a file of Markdown: its headings, its first paragraph, its sections with their text, and the
code and files it names.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from kgot_lab.kgos.extraction.facts import Definition, FileFacts, Mention
from kgot_lab.kgos.extraction.texts import document_sections, plain_words

_PATH = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)*\.(?:py|js|mjs|cjs|jsx|ts|tsx|json|ya?ml|toml|md)\b")
_NAME = re.compile(r"^([A-Za-z_][\w.]*)(?:\(.*\))?$", re.DOTALL)
_SAID = 120  # characters around a name that are kept as the words that say so
_MOST_HEADINGS = 60
_MOST_SECTIONS = 400  # nodes of one file


def prose_facts(text: str, path: str) -> FileFacts:
    """What a file of Markdown says. Any text is Markdown, so nothing is refused."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text)
    headings, first, references = [], "", dict[str, Mention]()
    heading = False
    for token in tokens:
        heading = token.type == "heading_open" or (heading and token.type != "heading_close")
        if token.type == "inline":
            if heading:
                headings.append(plain_words(token.content))
            elif not first:
                first = plain_words(token.content)
        line = token.map[0] + 1 if token.map else 1
        if token.type in ("inline", "fence", "code_block"):
            for target in _named(token, path):
                references.setdefault(
                    target, Mention(path, "documents", target, line, _around(target, token.content))
                )
    title = (headings[0] if headings else PurePosixPath(path).stem) or path
    about = (
        first if not headings[1:] else f"{first} Sections: {'; '.join(headings[1:_MOST_HEADINGS])}".strip()
    )
    itself = Definition(path, "document", title, 1, text.count("\n") + 1, "", about)
    sections = document_sections(tokens, itself, first)
    return FileFacts(
        path,
        "markdown",
        (itself, *sections[:_MOST_SECTIONS]),
        tuple(references.values()),
        f"only its first {_MOST_SECTIONS:,} sections were kept" * (len(sections) > _MOST_SECTIONS),
    )


def _named(token: object, path: str) -> Iterator[str]:
    """The names and paths in a piece of Markdown; links are taken from where the file is."""
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


def _around(target: str, content: str) -> str:
    """The words around a name, cut at spaces."""
    place = content.find(target.rpartition("/")[2])
    if place < 0:
        return plain_words(content)[:_SAID]
    return plain_words(content[max(0, place - _SAID // 2) : place + len(target) + _SAID // 2])
