"""Cypher in pieces: words, texts, numbers and signs, and which words open a clause.

What a string, a comment or backticks hold is no word. Where servers read a text in different ways (escapes,
line ends), it is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
      | (?P<quoted>(?:`[^`]*`)+)
      | (?P<number>\d\w*)
      | (?P<word>\w+)
      | (?P<sign>\.\.|::|\+=|\S)""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"\d[\d_]*([eE]\d+)?[fFdD]?|\d[\d_]*[eE]|0[xX][\da-fA-F_]+|0[oO]?[0-7_]+")
# some servers resolve it before they look at the language, and some do not
_ESCAPED = re.compile(r"\\u+([0-9a-fA-F]{4})")
_SIGNS = frozenset("\"'`\\/*\n\r\v\f\x85\u2028\u2029")  # what must then not come of it
_LINE_ENDS = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029](?!$)")

READS = frozenset("MATCH OPTIONAL WHERE WITH RETURN UNWIND ORDER SKIP OFFSET LIMIT UNION CALL YIELD".split())
WRITES = frozenset("CREATE MERGE ON SET REMOVE DELETE DETACH FOREACH".split())
CLAUSES = READS | WRITES


@dataclass(frozen=True)
class CypherToken:
    """A piece of a statement, and where it stands."""

    kind: str  # text, quoted, number, word, sign
    text: str  # a word in upper case; of a text or a quoted name nothing
    start: int = 0
    end: int = 0


class RefusedClause(Exception):
    """The statement holds what it may not; the message says what."""


def cypher_tokens(statement: str) -> Iterator[CypherToken]:
    """The pieces of a statement but for spaces and comments; raises RefusedClause where servers read it in
    different ways.
    """
    for found in _TOKEN.finditer(statement):
        kind, text = str(found.lastgroup), found[0]
        if text == "\\" or any(
            kind == "comment" or chr(int(code, 16)) in _SIGNS for code in _ESCAPED.findall(text)
        ):
            raise RefusedClause(
                "an escape \\uXXXX stands for a sign of the language, or outside of a text; write the character itself"
            )
        if kind == "comment":
            if _LINE_ENDS.search(text) or "/*" in text[2:]:
                raise RefusedClause(
                    "a comment holds another comment or an odd line end; leave the comment out"
                )
        elif kind == "word":
            yield CypherToken(kind, unicodedata.normalize("NFKC", text).upper(), *found.span())
        elif kind == "number" and not _NUMBER.fullmatch(text):
            raise RefusedClause(f"put a space after the number in {text[:40]!r}")
        elif text == "/" and statement.startswith(
            "/*", found.start()
        ):  # said at the first: each other would be sought to the end
            raise RefusedClause("a comment that begins with /* has no end")
        elif text in ("'", '"', "`"):
            raise RefusedClause(f"a text that begins with {text} has no end")
        elif kind == "sign" and unicodedata.category(text[0]) in ("Cc", "Cf"):
            raise RefusedClause(f"the invisible character U+{ord(text):04X} stands outside of a text")
        else:
            yield CypherToken(kind, text if kind in ("sign", "number") else "", *found.span())


def is_name(before: CypherToken, previous: CypherToken, following: CypherToken) -> bool:
    """Whether a word is the name of a property, label, type, parameter or key of a map, so that it cannot
    open a clause.
    """
    if previous.text == "." and before.kind == "number":
        raise RefusedClause("put a space or a digit after a number's point")
    return previous.text in (".", ":", "$") or (previous.text in ("{", ",") and following.text == ":")
