"""The sections of a file of Markdown, each a definition that holds its text: what stands under a heading can
be found and cited.

A long section is cut into parts at the ends of sentences, since a prompt holds only so much of one node.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kgot_lab.kgos.extraction.facts import Definition

_MOST_LETTERS = 600  # of a part
_LONGEST_NAME, _LONGEST_ID = 100, 60  # characters of a heading in the name, and in the id
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class _Said(NamedTuple):
    text: str
    line: int
    end_line: int


class _Section(NamedTuple):
    heading: str
    above: str  # the heading that it stands under
    said: list[_Said]


def document_sections(tokens: Sequence[Any], document: Definition, told: str) -> list[Definition]:
    """The parts of the sections in the tokens of markdown-it, in their order; of the first what the document
    has `told` is left out.

    Each is named by its heading and the one above it, as in "Limits (Rust)", since many files have a heading
    of the same words.
    """
    ids: set[str] = set()
    counts = Counter([document.name])  # the document itself is the first part of what its title has under it
    found = []
    for section in _sections(tokens, document.name):
        first = not section.above
        said = section.said[1:] if first and section.said and section.said[0].text == told else section.said
        name = (
            document.name if first else f"{section.heading[:_LONGEST_NAME]} ({section.above[:_LONGEST_NAME]})"
        )
        for part in _parts(said):
            id = _free(f"{document.id}#{_slug(section.heading)}", ids)
            counts[name] += 1
            called = name if counts[name] == 1 else f"{name}, part {counts[name]}"
            found.append(Definition(id, "section", called, part.line, part.end_line, document.id, part.text))
    return found


def plain_words(text: str) -> str:
    """A piece of Markdown on one line, without the marks of links, code and bold words."""
    return " ".join(
        re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("**", "").split()
    )


def _sections(tokens: Sequence[Any], title: str) -> Iterator[_Section]:
    """What stands under each heading; the first holds what the title has under it, also where there is no
    heading.
    """
    section, above = _Section(title, "", []), list[tuple[int, str]]()
    titled = False
    inside = 0  # the level of the heading whose words come
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
            heading = plain_words(token.content) or "section"
            section = _Section(heading, above[-1][1] if above else title, [])
            above.append((inside, heading))
        elif token.type in ("inline", "fence", "code_block") and (words := plain_words(token.content)):
            line, end = token.map or (0, 1)
            section.said.append(_Said(words, line + 1, end))
    yield section


def _parts(said: Sequence[_Said]) -> Iterator[_Said]:
    """Texts joined, and cut at the ends of sentences, into parts of a bounded length."""
    held: _Said | None = None
    for each in said:
        for sentence in _SENTENCE.split(each.text):
            for piece in textwrap.wrap(sentence, _MOST_LETTERS):
                if held is not None and len(held.text) + 1 + len(piece) > _MOST_LETTERS:
                    yield held
                    held = None
                held = (
                    _Said(piece, each.line, each.end_line)
                    if held is None
                    else _Said(f"{held.text} {piece}", held.line, each.end_line)
                )
    if held is not None:
        yield held


def _slug(heading: str) -> str:
    """A heading as an anchor."""
    return re.sub(r"[^\w]+", "-", heading.casefold()).strip("-")[:_LONGEST_ID] or "section"


def _free(id: str, taken: set[str]) -> str:
    """An id that none has yet."""
    chosen, number = id, 1
    while chosen in taken:
        number += 1
        chosen = f"{id}-{number}"
    taken.add(chosen)
    return chosen
