"""Cutting a text into passages where paragraphs, lines or sentences end."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORDS = 150

_CUTS = (
    re.compile(r"\n\s*\n"),  # paragraphs
    re.compile(r"\n"),  # lines
    re.compile(r"(?<=[.!?])\s+(?=[\"'“(\[]?[A-ZÀ-Þ0-9])|(?<=[。！？])"),  # sentences
    re.compile(r"\s+"),  # words
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")  # a line that begins or ends code
_HEADING = re.compile(r"#{1,6}[ \t]+(.+)")
_GLUE = ("\n\n", "\n", " ", " ")


def passages(text: str, words: int = _WORDS) -> list[str]:
    """The text in pieces of at most `words` words, cut at the coarsest boundary that will do; nothing is lost
    but white space.
    """
    packed: list[str] = []
    for glue, atom in _atoms(text.replace("\r\n", "\n").replace("\r", "\n").strip(), words, 0, ""):
        if packed and _fits(packed[-1] + glue + atom, words):
            packed[-1] += glue + atom
        elif atom:
            packed.append(atom)
    return packed


def first_heading(text: str) -> str:
    """The first Markdown heading of a text outside of fenced code, at most 200 characters of it, or ''."""
    match = next(filter(None, map(_HEADING.match, _outside_code(text))), None)
    heading = match[1].strip() if match else ""
    without_closing = heading.rstrip("#")  # "## Title ##" is closed, "C#" is not
    return (without_closing.rstrip() if without_closing.endswith((" ", "\t")) else heading)[:200]


def without_heading(text: str) -> str:
    """A text without a Markdown heading on its first line, which is the title already; a text that is only a
    heading stays.
    """
    rest = re.sub(r"\A\s*#{1,6}[ \t]+.+$\s*", "", text, count=1, flags=re.MULTILINE)
    return rest or text


def _outside_code(text: str) -> Iterator[str]:
    """The lines of a Markdown text that are not in fenced code."""
    fence = ""  # that the code around this line began with
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1].startswith("`") and "`" in mark[2]):  # else it is code within a line
            fence = mark[1]
        else:
            yield line


def _fits(text: str, words: int) -> bool:
    # ten characters count as a word where a script has no spaces, or a word has no end
    return len(text) <= 10 * words and len(text.split()) <= words


def _atoms(text: str, words: int, level: int, glue: str) -> Iterator[tuple[str, str]]:
    """Parts that fit, each with what joins it to the part before: whole paragraphs, else lines, else
    sentences, else words.
    """
    if _fits(text, words):
        yield glue, text.strip()
    elif level == len(_CUTS):  # one endless word
        yield from (
            (glue if start == 0 else "", text[start : start + 10 * words])
            for start in range(0, len(text), 10 * words)
        )
    else:
        for number, part in enumerate(filter(None, _CUTS[level].split(text))):
            yield from _atoms(part, words, level + 1, _GLUE[level] if number else glue)
