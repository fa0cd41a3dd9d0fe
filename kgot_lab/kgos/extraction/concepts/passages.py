"""What a model reads: paragraphs of Markdown, and what functions and classes say of themselves, each with its
place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.documents.files import text_of
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.text.words import blocks, searched_words

_PROSE = (("document",), ("section",))  # read from their files, paragraph by paragraph
_FEWEST_WORDS = 8  # that say something; a heading or a line of a table says no relation
_MOST_LETTERS = 1_500
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


@dataclass(frozen=True)
class Passage:
    """A text to read: the node it belongs to, what that is called, the file, and the first line."""

    node: str
    name: str
    file: str
    line: int
    text: str


def passages_to_read(graph: PropertyGraph, folder: Path | None = None) -> list[Passage]:
    """The passages of a graph that was read from a folder: paragraphs of its documents if the folder is
    given, and descriptions of code.
    """
    found: list[Passage] = []
    for node in graph.nodes:
        name, file, line = (
            str(node.properties.get("name", node.id)),
            str(node.properties.get("file", "")),
            node.properties.get("line", 1),
        )
        if node.labels == ("document",) and folder is not None:
            found += [
                Passage(node.id, heading or name, file, at, text)
                for at, heading, text in _paragraphs(folder / file)
            ]
        elif (
            node.labels not in _PROSE
            and len(searched_words(text := str(node.properties.get("description", "")))) >= _FEWEST_WORDS
        ):
            found.append(
                Passage(node.id, name, file, line if isinstance(line, int) else 1, text[:_MOST_LETTERS])
            )
    return found


def _paragraphs(path: Path) -> Iterator[tuple[int, str, str]]:
    """The paragraphs of a file with their first lines and the heading they stand under; code is left out. A
    file that is gone has none.
    """
    try:
        text = text_of(path).text
    except BadInput:
        return
    prose = re.sub(
        r"^(```|~~~).*?^\1\s*$",
        lambda match: "\n" * match[0].count("\n"),
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    line, heading = 1, ""
    for part in re.split(r"(\n\s*\n)", prose):
        if title := _HEADING.match(part.strip()):
            heading = title[1].strip()
        for block in blocks(part) if part.strip() else ():
            said = " ".join(block.split())
            if len(searched_words(said)) >= _FEWEST_WORDS and "|" not in said:
                yield line, heading, said[:_MOST_LETTERS]
        line += part.count("\n")
