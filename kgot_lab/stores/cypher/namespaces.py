"""List and delete the namespaces of a Bolt server's database, and confine a statement to one of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.stores.cypher.apply import Turns
from kgot_lab.stores.cypher.connection import BoltLink
from kgot_lab.stores.cypher.patterns import NO_TOKEN, OPENING, OWN_PROPERTIES, Frame, Patterns
from kgot_lab.stores.cypher.statements import CLAUSES, CypherToken, RefusedClause, is_name
from kgot_lab.stores.protocol import GraphSize

_HELD = "MATCH (n) WHERE n._run IS NOT NULL AND n.id IS NOT NULL RETURN n._run, count(n)"
_EDGES = "MATCH (n)-[r]->(m) WHERE n._run IS NOT NULL AND n._run = m._run RETURN n._run, count(r)"
_STRANGE = "MATCH (n {_run: $run}) WHERE n.id IS NULL RETURN count(n)"
_DELETE = "MATCH (n {_run: $run}) WITH n LIMIT 10000 DETACH DELETE n RETURN count(n)"


def bolt_namespaces(link: BoltLink) -> Mapping[str, GraphSize]:
    """Count the nodes and edges of each namespace of a database, by name.

    Raises StoreUnavailable if the server cannot be reached or refuses the queries.
    """
    with link.explained(
        lambda reason: StoreUnavailable(f"{link.name} does not understand this store: {reason}")
    ):
        nodes, edges = (dict(link.ask(query, {})) for query in (_HELD, _EDGES))
    return {
        name: GraphSize(int(nodes[name]), int(edges.get(name, 0)))
        for name in sorted(nodes)
        if isinstance(name, str)
    }


def delete_bolt_namespace(link: BoltLink, namespace: str) -> None:
    """Delete everything in a namespace, and nothing else.

    Raises BadInput if no store made part of it, and StoreUnavailable.
    """
    parameters = {"run": namespace}
    with link.explained(
        lambda reason: StoreUnavailable(f"{link.name} does not understand this store: {reason}")
    ):
        if link.ask(_STRANGE, parameters)[0][0]:
            raise BadInput(
                f"the namespace {namespace!r} of {link.name} has nodes that no store made; nothing was deleted"
            )
        turns = Turns(link, namespace)
        left = 1
        while left:
            left = link.retry(lambda: _deleted(turns, namespace))


def _deleted(turns: Turns, namespace: str) -> int:
    with turns.taken() as turn:
        number = int(turn.transaction.run(_DELETE, run=namespace).values()[0][0])
        if not number:
            turns.forget(turn)
        return number


# Confine a Cypher statement to one namespace of a database: every node that a pattern may match or create
# gets the namespace's mark.
#
# A statement reaches nodes only by patterns, and no edge leaves a namespace, so a statement whose patterns
# are marked reads and changes nothing else. Patterns are parsed strictly, and the text around them is only
# scanned for further patterns. What cannot be parsed is refused. This runs after the check of clauses in
# `statements`, on which it relies: no other clause or function reaches a node.

_SUBQUERIES = ("EXISTS", "COUNT", "COLLECT")


@dataclass(frozen=True)
class Confined:
    """A statement that is restricted to its namespace.

    `walks` is true if it follows paths of any length, which must not leave the namespace.
    """

    text: str
    walks: bool
    mark: str

    def unmarked(self, said: str) -> str:
        """Return a server's message with the marks removed, so that it quotes the statement as it was
        written.
        """
        for marked in (
            f" {{{OWN_PROPERTIES[0]}: {self.mark}}}",
            f"{OWN_PROPERTIES[0]}: {self.mark}, ",
            f"{OWN_PROPERTIES[0]}: {self.mark}",
        ):
            said = said.replace(marked, "")
        return said


def confined(statement: str, mark: str) -> Confined:
    """Return the statement with a mark on each node, so that it only sees its own namespace.

    `mark` is the mark property's value as a Cypher literal. Raises QueryFailed if the statement cannot be
    confined.
    """
    try:
        parser = _Parser(statement, mark)
        parser.run()
    except RefusedClause as refusal:
        why = "This server keeps several graphs apart, so that each node of a statement must be plain to see"
        raise QueryFailed(statement, f"{refusal}. {why}.") from None
    return Confined(parser.marked(), parser.walks, mark)


class _Parser(Patterns):
    """Parses a statement in one pass, clause by clause."""

    def marked(self) -> str:
        """Return the statement with its marks."""
        pieces, done = list[str](), 0
        for place, piece in sorted(self.added):
            pieces += [self.statement[done:place], piece]
            done = place
        return "".join([*pieces, self.statement[done:]])

    def run(self) -> None:
        """Parse the whole statement.

        Raises RefusedClause if it cannot be confined.
        """
        self._refuse_marks()
        while self.at < len(self.tokens):
            self.step()

    # --- outside patterns ---

    def step(self) -> None:
        """Parse one token, or everything that it opens."""
        token, clause = self.peek(), self._clause()
        if clause:
            self._open_clause(clause)
        elif token.text in OPENING:
            if token.text == "(" and self.begins_path():
                known = self.known
                self.path(reading=True)
                self.known = known  # variables of a pattern in an expression are out of scope after it
            else:
                self.open(Frame(OPENING[token.text]))
        elif token.text in OPENING.values():
            self.close()
        elif token.kind == "word" and token.text in _SUBQUERIES and self.peek(1).text == "{":
            self.at += 1
            self.open(Frame("}", self.known, self.known))
            if not self._clause():
                self.patterns(reading=True)
        else:
            self.at += 1

    def _open_clause(self, clause: str) -> None:
        if clause == "USE":
            self.refuse("USE would leave this database")
        self.at += 1
        if clause == "MATCH" and self.peek(-2).text != "ON":
            self.patterns(reading=True)
        elif clause == "MERGE" or (clause == "CREATE" and self.peek(-2).text != "ON"):
            self.patterns(reading=False)
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
            self.expect("(", "FOREACH needs a bracket")
            self.at -= 1
            self.open(Frame(")", self.known, self.known))
            self.known |= {self.named(self.peek())}
        elif clause in ("SET", "REMOVE"):
            self._changes()

    def _call(self) -> None:
        given: frozenset[str] = frozenset()
        if self.peek().text == "(":
            inside = self.tokens[self.at + 1 : self.pairs[self.at]]
            given = (
                self.known
                if [each.text for each in inside] == ["*"]
                else self.known & frozenset(map(self.named, inside))
            )
            self.at = self.pairs[self.at] + 1
        if self.peek().text != "{":
            self.refuse("a procedure would show what others have; use MATCH")
        self.open(Frame("}", self.known, given, hands_out=True))
        self.known = given

    def _projected(self) -> frozenset[str]:
        """Return the variables in scope after the WITH or RETURN that was just parsed."""
        frame = self.frames[-1]
        imports = frame.hands_out and frame.outer is not None and self.peek(-2).text == "{"  # CALL { WITH a …
        bound = frame.outer or frozenset() if imports else self.known
        names: set[str] = set()
        for item in self._items(self.at + (self.peek().text == "DISTINCT")):
            if [each.text for each in item] == ["*"]:
                names |= bound
            elif len(item) == 1:
                names |= bound & {self.named(item[0])}
            elif item[-2].text == "AS":
                names |= {self.named(item[-1])}
        return frozenset(names - {""})

    def _unwound(self) -> frozenset[str]:
        """Return the variable of the UNWIND that was just parsed."""
        (item, *_) = self._items(self.at)
        return frozenset({self.named(item[-1])} - {""} if len(item) > 1 and item[-2].text == "AS" else ())

    def _items(self, at: int) -> list[list[CypherToken]]:
        """Return the comma-separated items from a position up to the next clause, without their bracketed
        content.
        """
        items: list[list[CypherToken]] = [[]]
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.text in (";", *OPENING.values()) or (
                token.kind == "word" and token.text in CLAUSES and not self._is_name_at(at)
            ):
                break
            if token.text == ",":
                items.append([])
                at += 1
            else:
                items[-1].append(token)
                at = self.pairs.get(at, at) + 1
        return [item for item in items if item] or [[NO_TOKEN]]

    def _is_name_at(self, at: int) -> bool:
        around = [
            self.tokens[each] if 0 <= each < len(self.tokens) else NO_TOKEN
            for each in (at - 2, at - 1, at + 1)
        ]
        return is_name(*around)

    def _changes(self) -> None:
        """Parse the items of SET or REMOVE.

        An item that replaces all properties of a node restores its mark. A property named by an expression is
        refused.
        """
        depth = len(self.frames)
        while True:
            name = self.named(self.peek())
            if not name or self.peek(1).text == "[":
                self.refuse("SET and REMOVE name a variable and its property")
            replaced = self.peek(1).text == "="
            spelled = self.statement[self.peek().start : self.peek().end]
            self.at += 1
            while self.at < len(self.tokens) and not (len(self.frames) == depth and self._ends_change()):
                self.step()
            if replaced:
                self.added.append((self.peek(-1).end, f", {spelled}.{OWN_PROPERTIES[0]} = {self.mark}"))
            if self.peek().text != ",":
                return
            self.at += 1

    def _ends_change(self) -> bool:
        return self.peek().text in (",", ";", *OPENING.values()) or bool(self._clause())

    def _clause(self) -> str:
        """Return the keyword that opens a clause at this position, or ""."""
        token = self.peek()
        if token.kind != "word" or is_name(self.peek(-2), self.peek(-1), self.peek(1)):
            return ""
        return token.text if token.text in CLAUSES or token.text == "USE" else ""

    def _refuse_marks(self) -> None:
        for token in self.tokens:
            name = self.named(token)
            if name and unicodedata.normalize("NFKC", name).lower() in OWN_PROPERTIES:
                raise RefusedClause(f"{name} is a name of the store's own; use another one")
            if token.kind == "sign" and not token.text.isascii():
                raise RefusedClause(
                    f"the sign {token.text!r} stands outside of a text; put backticks around a name with odd signs"
                )
