"""The patterns of Cypher: paths of nodes and relationships, parsed strictly, so that each node of a statement
can be given a mark.

What stands between brackets in a pattern is an expression again, which `confined` goes through: it may hold
further patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from kgot_lab.stores.cypher.statements import CypherToken, RefusedClause, cypher_tokens

# the properties that say of a node which namespace it is in, and that its store knows it
OWN_PROPERTIES = ("_run", "_kept")
OPENING = {"(": ")", "[": "]", "{": "}"}
NO_TOKEN = CypherToken("sign", "")
_ESCAPED = re.compile(r"\\u+([0-9a-fA-F]{4})")
_SELECTING = frozenset("ANY ALL SHORTEST GROUP GROUPS PATH PATHS".split())
_SHORTEST = ("SHORTESTPATH", "ALLSHORTESTPATHS")
_DEEPEST = 100  # brackets within each other; each is a call of a function here


@dataclass
class Frame:
    """An open bracket: a subquery has variables of its own, and may hand some out."""

    closing: str
    outer: frozenset[str] | None = None  # the variables to go back to, where it is a subquery
    base: frozenset[str] = frozenset()  # those that each part of a UNION begins with
    hands_out: bool = False
    returned: frozenset[str] = frozenset()


class Patterns:
    """A place in a statement, and the patterns that begin there; notes where the mark, a property of a node,
    has to be put.
    """

    def __init__(self, statement: str, mark: str):
        self.statement, self.mark = statement, mark
        self.tokens = list(cypher_tokens(statement))
        self.pairs = _pairs(self.tokens)
        self.at, self.walks = 0, False
        self.added: list[tuple[int, str]] = []
        # variables that are bound for sure; a doubtful one is marked, and the server refuses it
        self.known: frozenset[str] = frozenset()
        self.frames: list[Frame] = [Frame("")]

    def step(self) -> None:
        """One token of an expression, or all that it opens."""
        raise NotImplementedError

    # --- tokens ---

    def peek(self, ahead: int = 0) -> CypherToken:
        at = self.at + ahead
        return self.tokens[at] if 0 <= at < len(self.tokens) else NO_TOKEN

    def named(self, token: CypherToken) -> str:
        """The name that a word or a quoted name is; "" for any other token."""
        text = self.statement[token.start : token.end]
        if token.kind == "quoted":
            return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text[1:-1].replace("``", "`"))
        return text if token.kind == "word" else ""

    def expect(self, text: str, where: str) -> None:
        if self.peek().text != text:
            self.refuse(where)
        self.at += 1

    def refuse(self, why: str) -> NoReturn:
        token = self.peek()
        near = self.statement[token.start : token.start + 30] if token is not NO_TOKEN else "the end"
        raise RefusedClause(f"{why} (near {near!r})")

    def open(self, frame: Frame) -> None:
        if len(self.frames) > _DEEPEST:
            self.refuse(f"brackets are nested more than {_DEEPEST} deep")
        self.frames.append(frame)
        self.at += 1

    def close(self) -> None:
        frame = self.frames.pop()
        if frame.outer is not None:
            self.known = frame.outer | (frame.returned if frame.hands_out else frozenset())
        self.at += 1

    def until(self, end: int) -> None:
        """All tokens up to one."""
        while self.at < end:
            self.step()

    # --- patterns ---

    def patterns(self, *, reading: bool) -> None:
        """Some paths, with commas between them."""
        self.path(reading=reading)
        while self.peek().text == ",":
            self.at += 1
            self.path(reading=reading)

    def path(self, *, reading: bool) -> None:
        """A path: nodes, relationships between them, and groups of both in brackets, which only a reading
        pattern may have.
        """
        if self.named(self.peek()) and self.peek(1).text == "=":
            self.known |= {self.named(self.peek())}
            self.at += 2
        while self.peek().text in _SELECTING or self.peek().kind == "number":
            self.walks = True
            self.at += 1
        if self.peek().text in _SHORTEST and self.peek(1).text == "(":
            self.walks = True
            self.at += 1
            self._group(reading=reading)
            return
        while True:
            if self._is_group():
                self._group(reading=reading)
                self._quantifier()
            else:
                self._node(reading=reading)
            if self._begins_relationship(self.at):
                self._relationship(reading=reading)
            elif self.peek().text != "(":
                return

    def _is_group(self) -> bool:
        return self.peek().text == "(" and (
            self.peek(1).text == "(" or (bool(self.named(self.peek(1))) and self.peek(2).text == "=")
        )

    def _group(self, *, reading: bool) -> None:
        if not reading:
            self.refuse("CREATE and MERGE take no path in brackets")
        self.walks = True
        end = self.pairs[self.at]
        self.open(Frame(")"))
        self.path(reading=reading)
        self.until(end)  # perhaps a WHERE
        self.close()

    def _quantifier(self) -> None:
        if self.peek().text in ("+", "*"):
            self.walks = True
            self.at += 1
        elif self.peek().text == "{":
            if not all(
                each.kind == "number" or each.text == ","
                for each in self.tokens[self.at + 1 : self.pairs[self.at]]
            ):
                self.refuse("how often a part of a path may follow itself is written {1,3}")
            self.walks = True
            self.at = self.pairs[self.at] + 1

    def _node(self, *, reading: bool) -> None:
        """A node in round brackets: (name :labels {properties} WHERE condition), each of which may be
        missing.
        """
        if self.peek().text != "(":
            self.refuse("a pattern of nodes should stand here")
        end = self.pairs[self.at]
        self.open(Frame(")"))
        name = "" if self.peek().text in ("WHERE", "IS") else self.named(self.peek())
        self.at += bool(name)
        bare = bool(name) and self.at == end
        self._labels()
        if self.peek().text == "{":
            empty = self.peek(1).text == "}"
            self.added.append((self.peek().end, f"{OWN_PROPERTIES[0]}: {self.mark}{'' if empty else ', '}"))
            closing = self.pairs[self.at]
            self.open(Frame("}"))
            self.until(closing)
            self.close()
        elif reading or not (bare and name in self.known):
            self.added.append((self.peek(-1).end, f" {{{OWN_PROPERTIES[0]}: {self.mark}}}"))
        if self.peek().text == "WHERE" and self.at < end:
            self.at += 1
            self.until(end)
        if self.at != end:
            self.refuse("a node is written (name:Label {property: value})")
        self.close()
        self.known |= {name} - {""}

    def _labels(self) -> None:
        if self.peek().text != ":" and self.peek().text != "IS":
            return
        while self.peek().text in (":", "IS", "|", "&", "!", "%", "(") or self.named(self.peek()):
            if self.peek().text == "WHERE" and self.peek(-1).text not in (":", "|", "&", "!", "IS"):
                return
            if self.peek().text == "(":
                inside = self.tokens[self.at + 1 : self.pairs[self.at]]
                if not all(
                    self.named(each) or each.text in (":", "|", "&", "!", "%", "(", ")") for each in inside
                ):
                    self.refuse("the labels of a node are written out")
                self.at = self.pairs[self.at]
            self.at += 1

    def begins_path(self) -> bool:
        """Whether a bracket in an expression is a node with a relationship and another node after it, by its
        shape.
        """
        after = self.pairs[self.at] + 1
        return self._begins_relationship(after) and self._text(self._end_of_relationship(after)) in (
            "(",
            "+",
            "*",
            "{",
        )

    def _begins_relationship(self, at: int) -> bool:
        at += self._text(at) == "<"
        return self._text(at) == "-" and self._text(at + 1) in ("-", "[")

    def _end_of_relationship(self, at: int) -> int:
        at += self._text(at) == "<"
        at += 1
        at = self.pairs[at] + 1 if self._text(at) == "[" else at
        at += self._text(at) == "-"
        return at + (self._text(at) == ">")

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _relationship(self, *, reading: bool) -> None:
        """A relationship with its arrow: -->, <-[name:TYPE*1..3 {properties}]-, and in a reading pattern how
        often it may follow itself.
        """
        end = self._end_of_relationship(self.at)
        while self.at < end and self.peek().text != "[":
            self.at += 1
        if self.peek().text == "[":
            closing = self.pairs[self.at]
            self.open(Frame("]"))
            if self.named(self.peek()) and self.peek().text not in ("WHERE", "IS"):
                self.known |= {self.named(self.peek())}
                self.at += 1
            self.walks = self.walks or any(each.text == "*" for each in self.tokens[self.at : closing])
            self.until(closing)
            self.close()
            self.at = end
        if reading:
            self._quantifier()


def _pairs(tokens: list[CypherToken]) -> dict[int, int]:
    """Where each bracket that opens is closed; raises RefusedClause when one is not, or is closed by another."""
    open_at: list[int] = []
    pairs: dict[int, int] = {}
    for at, token in enumerate(tokens):
        if token.text in OPENING:
            open_at.append(at)
        elif token.text in OPENING.values():
            if not open_at or OPENING[tokens[open_at[-1]].text] != token.text:
                raise RefusedClause(f"the bracket {token.text} closes none")
            pairs[open_at.pop()] = at
    if open_at:
        raise RefusedClause(f"the bracket {tokens[open_at[-1]].text} is not closed")
    return pairs
