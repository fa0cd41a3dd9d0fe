"""The blocks of a text whose lines mean something: headings, list items and rows of tables stand for
themselves.
"""

from __future__ import annotations

import re

_HEADING = re.compile(r"\s*#{1,6}\s+")
_ITEM = re.compile(r"\s*(?:[-*+•]\s+(?=\S)|(\d{1,2}[.)]\s+)(?=\S))")
_RULE = re.compile(r"[\s|:=-]+")  # between the head of a table and its rows


def blocks(text: str) -> list[str]:
    """A text in pieces: headings without their signs, rows of tables without outer bars, list items without
    numbers, what lies between.
    """
    found: list[str] = []
    begun: list[str] = []

    def end() -> None:
        if begun:
            found.append("\n".join(begun))
            begun.clear()

    for line in text.split("\n"):
        is_row = line.lstrip().startswith("|")
        if is_row or _HEADING.match(line):
            end()
            if not _RULE.fullmatch(line):
                found.append(line.strip().strip("|").strip() if is_row else line.strip().strip("#").strip())
            continue
        if item := _ITEM.match(line):
            end()
            line = line[item.end() :] if item[1] else line  # the stop behind a number would end a sentence
        begun.append(line)
    end()
    return found
