"""Keeps a Cypher statement to one namespace of a database: every node that a pattern may find or make bears the namespace's mark.

A statement meets nodes by patterns alone, and no edge leads out of a namespace, so a statement whose patterns are marked sees and touches
nothing else. Patterns are parsed strictly, and what surrounds them is only scanned for more of them; what is not understood is refused.
Runs after the list of clauses in `clauses`, on which it relies: no other clause or function reaches a node.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import NoReturn

from kgot_lab.errors import QueryFailed
from kgot_lab.stores.cypher.clauses import CLAUSES, CypherToken, RefusedClause, cypher_tokens, is_name

HIDDEN = ("_run", "_kept")  # the properties that mark a node as one of a namespace, and as one that is known to its store
_ESCAPED = re.compile(r"\\u+([0-9a-fA-F]{4})")
_OPENING = {"(": ")", "[": "]", "{": "}"}
_SELECTING = frozenset("ANY ALL SHORTEST GROUP GROUPS PATH PATHS".split())
_SHORTEST = ("SHORTESTPATH", "ALLSHORTESTPATHS")
_SUBQUERIES = ("EXISTS", "COUNT", "COLLECT")
_DEEPEST = 100  # brackets within each other; each is a call of a function here
_NOTHING = CypherToken("sign", "")


@dataclass(frozen=True)
class Confined:
    """A statement that keeps to its namespace; `walks` if it follows paths of any length, which must not lead out of it."""

    text: str
    walks: bool
    mark: str

    def unmarked(self, said: str) -> str:
        """What a server says of the statement, as of the one that was written."""
        for marked in (f" {{{HIDDEN[0]}: {self.mark}}}", f"{HIDDEN[0]}: {self.mark}, ", f"{HIDDEN[0]}: {self.mark}"):
            said = said.replace(marked, "")
        return said


def confined(statement: str, mark: str) -> Confined:
    """A statement with a mark, a property's value as Cypher spells it, on each node; raises QueryFailed for one that cannot be confined."""
    try:
        parser = _Parser(statement, mark)
        parser.run()
    except RefusedClause as refusal:
        why = "This server keeps several graphs apart, so that each node of a statement must be plain to see"
        raise QueryFailed(statement, f"{refusal}. {why}.") from None
    return Confined(parser.marked(), parser.walks, mark)


@dataclass
class _Frame:
    """An open bracket: a subquery has variables of its own, and may hand some out."""

    closing: str
    outer: frozenset[str] | None = None  # the variables to go back to, where it is a subquery
    base: frozenset[str] = frozenset()  # those that each part of a UNION begins with
    hands_out: bool = False
    returned: frozenset[str] = field(default_factory=frozenset)


class _Parser:
    """Goes through a statement once, and notes where the mark has to be put."""

    def __init__(self, statement: str, mark: str):
        self.statement, self.mark = statement, mark
        self.tokens = list(cypher_tokens(statement))
        self.pairs = _pairs(self.tokens)
        self.at, self.walks = 0, False
        self.added: list[tuple[int, str]] = []
        self.known: frozenset[str] = frozenset()  # variables that are bound for sure; a doubtful one is marked, and the server refuses it
        self.frames: list[_Frame] = [_Frame("")]
        self._refuse_hidden()

    def marked(self) -> str:
        """The statement with its marks."""
        pieces, done = list[str](), 0
        for place, piece in sorted(self.added):
            pieces += [self.statement[done:place], piece]
            done = place
        return "".join([*pieces, self.statement[done:]])

    def run(self) -> None:
        """Go through it all; raises RefusedClause."""
        while self.at < len(self.tokens):
            self._step()

    # --- tokens ---

    def _peek(self, ahead: int = 0) -> CypherToken:
        at = self.at + ahead
        return self.tokens[at] if 0 <= at < len(self.tokens) else _NOTHING

    def _name(self, token: CypherToken) -> str:
        """The name that a word or a quoted name is; "" for any other token."""
        text = self.statement[token.start : token.end]
        if token.kind == "quoted":
            return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text[1:-1].replace("``", "`"))
        return text if token.kind == "word" else ""

    def _expect(self, text: str, where: str) -> None:
        if self._peek().text != text:
            self._refuse(where)
        self.at += 1

    def _refuse(self, why: str) -> NoReturn:
        token = self._peek()
        near = self.statement[token.start : token.start + 30] if token is not _NOTHING else "the end"
        raise RefusedClause(f"{why} (near {near!r})")

    def _refuse_hidden(self) -> None:
        for token in self.tokens:
            name = self._name(token)
            if name and unicodedata.normalize("NFKC", name).lower() in HIDDEN:
                raise RefusedClause(f"{name} is a name of the store's own; use another one")
            if token.kind == "sign" and not token.text.isascii():
                raise RefusedClause(f"the sign {token.text!r} stands outside of a text; put backticks around a name with odd signs")

    def _clause(self) -> str:
        """The word that opens a clause here; "" if none does."""
        token = self._peek()
        if token.kind != "word" or is_name(self._peek(-2), self._peek(-1), self._peek(1)):
            return ""
        return token.text if token.text in CLAUSES or token.text == "USE" else ""

    # --- what surrounds patterns ---

    def _step(self) -> None:
        """One token, or all that it opens."""
        token, clause = self._peek(), self._clause()
        if clause:
            self._open_clause(clause)
        elif token.text in _OPENING:
            if token.text == "(" and self._begins_path():
                known = self.known
                self._path(reading=True)
                self.known = known  # what a pattern in an expression names is gone after it
            else:
                self._open(_Frame(_OPENING[token.text]))
        elif token.text in _OPENING.values():
            self._close()
        elif token.kind == "word" and token.text in _SUBQUERIES and self._peek(1).text == "{":
            self.at += 1
            self._open(_Frame("}", self.known, self.known))
            if not self._clause():
                self._patterns(reading=True)
        else:
            self.at += 1

    def _open(self, frame: _Frame) -> None:
        if len(self.frames) > _DEEPEST:
            self._refuse(f"brackets are nested more than {_DEEPEST} deep")
        self.frames.append(frame)
        self.at += 1

    def _close(self) -> None:
        frame = self.frames.pop()
        if frame.outer is not None:
            self.known = frame.outer | (frame.returned if frame.hands_out else frozenset())
        self.at += 1

    def _until(self, end: int) -> None:
        """All tokens up to one."""
        while self.at < end:
            self._step()

    def _open_clause(self, clause: str) -> None:
        if clause == "USE":
            self._refuse("USE would leave this database")
        self.at += 1
        if clause == "MATCH" and self._peek(-2).text != "ON":
            self._patterns(reading=True)
        elif clause == "MERGE" or (clause == "CREATE" and self._peek(-2).text != "ON"):
            self._patterns(reading=False)
        elif clause == "WITH":
            self.known = self._projected()
        elif clause == "RETURN":
            self.frames[-1].returned = self._projected()
        elif clause == "UNWIND":
            self.known |= self._unwound()
        elif clause == "UNION":
            self.known = self.frames[-1].base
        elif clause == "CALL":
            self._call()
        elif clause == "FOREACH":
            self._expect("(", "FOREACH needs a bracket")
            self.at -= 1
            self._open(_Frame(")", self.known, self.known))
            self.known |= {self._name(self._peek())}
        elif clause in ("SET", "REMOVE"):
            self._changes()

    def _call(self) -> None:
        given: frozenset[str] = frozenset()
        if self._peek().text == "(":
            inside = self.tokens[self.at + 1 : self.pairs[self.at]]
            given = self.known if [each.text for each in inside] == ["*"] else self.known & frozenset(map(self._name, inside))
            self.at = self.pairs[self.at] + 1
        if self._peek().text != "{":
            self._refuse("a procedure would show what others have; use MATCH")
        self._open(_Frame("}", self.known, given, hands_out=True))
        self.known = given

    def _projected(self) -> frozenset[str]:
        """The variables that WITH or RETURN, which was just passed, goes on with."""
        frame = self.frames[-1]
        imports = frame.hands_out and frame.outer is not None and self._peek(-2).text == "{"  # CALL { WITH a …
        bound = frame.outer or frozenset() if imports else self.known
        names: set[str] = set()
        for item in self._items(self.at + (self._peek().text == "DISTINCT")):
            if [each.text for each in item] == ["*"]:
                names |= bound
            elif len(item) == 1:
                names |= bound & {self._name(item[0])}
            elif item[-2].text == "AS":
                names |= {self._name(item[-1])}
        return frozenset(names - {""})

    def _unwound(self) -> frozenset[str]:
        """The variable of UNWIND, which was just passed."""
        (item, *_) = self._items(self.at)
        return frozenset({self._name(item[-1])} - {""} if len(item) > 1 and item[-2].text == "AS" else ())

    def _items(self, at: int) -> list[list[CypherToken]]:
        """What stands between commas from a place on, up to the next clause, each without what is in its brackets."""
        items: list[list[CypherToken]] = [[]]
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.text in (";", *_OPENING.values()) or (token.kind == "word" and token.text in CLAUSES and not self._is_name_at(at)):
                break
            if token.text == ",":
                items.append([])
                at += 1
            else:
                items[-1].append(token)
                at = self.pairs.get(at, at) + 1
        return [item for item in items if item] or [[_NOTHING]]

    def _is_name_at(self, at: int) -> bool:
        around = [self.tokens[each] if 0 <= each < len(self.tokens) else _NOTHING for each in (at - 2, at - 1, at + 1)]
        return is_name(*around)

    def _changes(self) -> None:
        """The items of SET or REMOVE: what replaces all properties of a node leaves it its mark, and none is named by an expression."""
        depth = len(self.frames)
        while True:
            name = self._name(self._peek())
            if not name or self._peek(1).text == "[":
                self._refuse("SET and REMOVE name a variable and its property")
            replaced = self._peek(1).text == "="
            spelled = self.statement[self._peek().start : self._peek().end]
            self.at += 1
            while self.at < len(self.tokens) and not (len(self.frames) == depth and self._ends_change()):
                self._step()
            if replaced:
                self.added.append((self._peek(-1).end, f", {spelled}.{HIDDEN[0]} = {self.mark}"))
            if self._peek().text != ",":
                return
            self.at += 1

    def _ends_change(self) -> bool:
        return self._peek().text in (",", ";", *_OPENING.values()) or bool(self._clause())

    # --- patterns ---

    def _patterns(self, *, reading: bool) -> None:
        """Some paths, with commas between them."""
        self._path(reading=reading)
        while self._peek().text == ",":
            self.at += 1
            self._path(reading=reading)

    def _path(self, *, reading: bool) -> None:
        """A path: nodes, relationships between them, and groups of both in brackets, which only a reading pattern may have."""
        if self._name(self._peek()) and self._peek(1).text == "=":
            self.known |= {self._name(self._peek())}
            self.at += 2
        while self._peek().text in _SELECTING or self._peek().kind == "number":
            self.walks = True
            self.at += 1
        if self._peek().text in _SHORTEST and self._peek(1).text == "(":
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
            elif self._peek().text != "(":
                return

    def _is_group(self) -> bool:
        return self._peek().text == "(" and (self._peek(1).text == "(" or (bool(self._name(self._peek(1))) and self._peek(2).text == "="))

    def _group(self, *, reading: bool) -> None:
        if not reading:
            self._refuse("CREATE and MERGE take no path in brackets")
        self.walks = True
        end = self.pairs[self.at]
        self._open(_Frame(")"))
        self._path(reading=reading)
        self._until(end)  # perhaps a WHERE
        self._close()

    def _quantifier(self) -> None:
        if self._peek().text in ("+", "*"):
            self.walks = True
            self.at += 1
        elif self._peek().text == "{":
            if not all(each.kind == "number" or each.text == "," for each in self.tokens[self.at + 1 : self.pairs[self.at]]):
                self._refuse("how often a part of a path may follow itself is written {1,3}")
            self.walks = True
            self.at = self.pairs[self.at] + 1

    def _node(self, *, reading: bool) -> None:
        """A node in round brackets: (name :labels {properties} WHERE condition), each of which may be missing."""
        if self._peek().text != "(":
            self._refuse("a pattern of nodes should stand here")
        end = self.pairs[self.at]
        self._open(_Frame(")"))
        name = "" if self._peek().text in ("WHERE", "IS") else self._name(self._peek())
        self.at += bool(name)
        bare = bool(name) and self.at == end
        self._labels()
        if self._peek().text == "{":
            empty = self._peek(1).text == "}"
            self.added.append((self._peek().end, f"{HIDDEN[0]}: {self.mark}{'' if empty else ', '}"))
            closing = self.pairs[self.at]
            self._open(_Frame("}"))
            self._until(closing)
            self._close()
        elif reading or not (bare and name in self.known):
            self.added.append((self._peek(-1).end, f" {{{HIDDEN[0]}: {self.mark}}}"))
        if self._peek().text == "WHERE" and self.at < end:
            self.at += 1
            self._until(end)
        if self.at != end:
            self._refuse("a node is written (name:Label {property: value})")
        self._close()
        self.known |= {name} - {""}

    def _labels(self) -> None:
        if self._peek().text != ":" and self._peek().text != "IS":
            return
        while self._peek().text in (":", "IS", "|", "&", "!", "%", "(") or self._name(self._peek()):
            if self._peek().text == "WHERE" and self._peek(-1).text not in (":", "|", "&", "!", "IS"):
                return
            if self._peek().text == "(":
                inside = self.tokens[self.at + 1 : self.pairs[self.at]]
                if not all(self._name(each) or each.text in (":", "|", "&", "!", "%", "(", ")") for each in inside):
                    self._refuse("the labels of a node are written out")
                self.at = self.pairs[self.at]
            self.at += 1

    def _begins_path(self) -> bool:
        """Whether a bracket in an expression is a node with a relationship and another node after it, by its shape."""
        after = self.pairs[self.at] + 1
        return self._begins_relationship(after) and self._text(self._end_of_relationship(after)) in ("(", "+", "*", "{")

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
        """A relationship with its arrow: -->, <-[name:TYPE*1..3 {properties}]-, and in a reading pattern how often it may follow itself."""
        end = self._end_of_relationship(self.at)
        while self.at < end and self._peek().text != "[":
            self.at += 1
        if self._peek().text == "[":
            closing = self.pairs[self.at]
            self._open(_Frame("]"))
            if self._name(self._peek()) and self._peek().text not in ("WHERE", "IS"):
                self.known |= {self._name(self._peek())}
                self.at += 1
            self.walks = self.walks or any(each.text == "*" for each in self.tokens[self.at : closing])
            self._until(closing)
            self._close()
            self.at = end
        if reading:
            self._quantifier()


def _pairs(tokens: list[CypherToken]) -> dict[int, int]:
    """Where each bracket that opens is closed; raises RefusedClause when one is not, or is closed by another."""
    open_at: list[int] = []
    pairs: dict[int, int] = {}
    for at, token in enumerate(tokens):
        if token.text in _OPENING:
            open_at.append(at)
        elif token.text in _OPENING.values():
            if not open_at or _OPENING[tokens[open_at[-1]].text] != token.text:
                raise RefusedClause(f"the bracket {token.text} closes none")
            pairs[open_at.pop()] = at
    if open_at:
        raise RefusedClause(f"the bracket {tokens[open_at[-1]].text} is not closed")
    return pairs
