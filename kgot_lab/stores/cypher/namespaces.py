"""List and delete the namespaces of a Bolt server's database, and confine a statement to one of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.stores.cypher.apply import WriteLock
from kgot_lab.stores.cypher.connection import BoltLink
from kgot_lab.stores.cypher.patterns import BRACKETS, NO_TOKEN, OWN_PROPERTIES, Frame, PatternParser
from kgot_lab.stores.cypher.statements import CLAUSES, CypherToken, RefusedClause, is_name
from kgot_lab.stores.protocol import GraphSize

_COUNT_NODES = "MATCH (n) WHERE n._run IS NOT NULL AND n.id IS NOT NULL RETURN n._run, count(n)"
_COUNT_EDGES = "MATCH (n)-[r]->(m) WHERE n._run IS NOT NULL AND n._run = m._run RETURN n._run, count(r)"
COUNT_FOREIGN_NODES = "MATCH (n {_run: $run}) WHERE n.id IS NULL RETURN count(n)"
_DELETE = "MATCH (n {_run: $run}) WITH n LIMIT 10000 DETACH DELETE n RETURN count(n)"


def bolt_namespaces(link: BoltLink) -> Mapping[str, GraphSize]:
    """Count the nodes and edges of each namespace of a database, by name.

    Raises StoreUnavailable if the server cannot be reached or refuses the queries.
    """
    with link.internal_errors():
        nodes, edges = (dict(link.run_query(query, {})) for query in (_COUNT_NODES, _COUNT_EDGES))
    names = sorted(name for name in nodes if isinstance(name, str))
    return {name: GraphSize(int(nodes[name]), int(edges.get(name, 0))) for name in names}


def delete_bolt_namespace(link: BoltLink, namespace: str) -> None:
    """Delete everything in a namespace, and nothing else.

    Raises BadInput if no store made part of it, and StoreUnavailable.
    """
    parameters = {"run": namespace}
    with link.internal_errors():
        if link.run_query(COUNT_FOREIGN_NODES, parameters)[0][0]:
            foreign = f"the namespace {namespace!r} of {link.name} has nodes that no store made"
            raise BadInput(f"{foreign}; nothing was deleted")
        lock = WriteLock(link, namespace)
        remaining = 1
        while remaining:
            remaining = link.retry(lambda: _delete_batch(lock, namespace))


def _delete_batch(lock: WriteLock, namespace: str) -> int:
    with lock.acquire() as locked:
        count = int(locked.transaction.run(_DELETE, run=namespace).values()[0][0])
        if not count:
            lock.delete_lock(locked)
        return count


# Confine a Cypher statement to one namespace of a database: every node that a pattern may match or create
# gets the namespace's mark.
#
# A statement reaches nodes only by patterns, and no edge leaves a namespace, so a statement whose patterns
# are marked reads and changes nothing else. Patterns are parsed strictly, and the text around them is only
# scanned for further patterns. What cannot be parsed is refused. This runs after the check of clauses in
# `statements`, on which it relies: no other clause or function reaches a node.

_SUBQUERIES = ("EXISTS", "COUNT", "COLLECT")


@dataclass(frozen=True)
class ConfinedStatement:
    """A statement that is restricted to its namespace.

    `has_variable_length_path` is true if it follows paths of any length, which must not leave the namespace.
    """

    text: str
    has_variable_length_path: bool
    mark: str

    def remove_marks(self, message: str) -> str:
        """Return a server's message with the marks removed, so that it quotes the statement as it was
        written.
        """
        mark = f"{OWN_PROPERTIES[0]}: {self.mark}"
        for marked in (f" {{{mark}}}", f"{mark}, ", mark):
            message = message.replace(marked, "")
        return message


def confine_statement(statement: str, mark: str) -> ConfinedStatement:
    """Return the statement with a mark on each node, so that it only sees its own namespace.

    `mark` is the mark property's value as a Cypher literal. Raises QueryFailed if the statement cannot be
    confined.
    """
    try:
        parser = _ConfinementParser(statement, mark)
        parser.run()
    except RefusedClause as refusal:
        why = "This server keeps several graphs apart, so that each node of a statement must be plain to see"
        raise QueryFailed(statement, f"{refusal}. {why}.") from None
    return ConfinedStatement(parser.marked_statement(), parser.has_variable_length_path, mark)


class _ConfinementParser(PatternParser):
    """Parses a statement in one pass, clause by clause."""

    def marked_statement(self) -> str:
        """Return the statement with its marks."""
        pieces, end = list[str](), 0
        for position, piece in sorted(self.insertions):
            pieces += [self.statement[end:position], piece]
            end = position
        return "".join([*pieces, self.statement[end:]])

    def run(self) -> None:
        """Parse the whole statement.

        Raises RefusedClause if it cannot be confined.
        """
        self._refuse_marks()
        while self.position < len(self.tokens):
            self.parse_step()

    # --- outside patterns ---

    def parse_step(self) -> None:
        """Parse one token, or everything that it opens."""
        token, clause = self.peek(), self._clause_keyword()
        if clause:
            self._parse_clause(clause)
        elif token.text in BRACKETS:
            if token.text == "(" and self.begins_path():
                known = self.bound_variables
                self.parse_path(reading=True)
                # variables of a pattern in an expression are out of scope after it
                self.bound_variables = known
            else:
                self.open_frame(Frame(BRACKETS[token.text]))
        elif token.text in BRACKETS.values():
            self.close_frame()
        elif token.kind == "word" and token.text in _SUBQUERIES and self.peek(1).text == "{":
            self.position += 1
            self.open_frame(Frame("}", self.bound_variables, self.bound_variables))
            if not self._clause_keyword():
                self.parse_patterns(reading=True)
        else:
            self.position += 1

    def _parse_clause(self, clause: str) -> None:
        if clause == "USE":
            self.refuse("USE would leave this database")
        self.position += 1
        if clause == "MATCH" and self.peek(-2).text != "ON":
            self.parse_patterns(reading=True)
        elif clause == "MERGE" or (clause == "CREATE" and self.peek(-2).text != "ON"):
            self.parse_patterns(reading=False)
        elif clause == "WITH":
            self.bound_variables = self._projected_variables()
        elif clause == "RETURN":
            self.frames[-1].returned = self._projected_variables()
        elif clause == "UNWIND":
            self.bound_variables |= self._unwound_variables()
        elif clause == "UNION":
            self.bound_variables = self.frames[-1].initial_variables
        elif clause == "CALL":
            self._parse_call()
        elif clause == "FOREACH":
            self.expect("(", "FOREACH needs a bracket")
            self.position -= 1
            self.open_frame(Frame(")", self.bound_variables, self.bound_variables))
            self.bound_variables |= {self.token_name(self.peek())}
        elif clause in ("SET", "REMOVE"):
            self._parse_changes()

    def _parse_call(self) -> None:
        imported: frozenset[str] = frozenset()
        if self.peek().text == "(":
            inside = self.tokens[self.position + 1 : self.pairs[self.position]]
            imported = self.bound_variables
            if [token.text for token in inside] != ["*"]:
                imported &= frozenset(map(self.token_name, inside))
            self.position = self.pairs[self.position] + 1
        if self.peek().text != "{":
            self.refuse("a procedure would show what others have; use MATCH")
        self.open_frame(Frame("}", self.bound_variables, imported, exports_variables=True))
        self.bound_variables = imported

    def _projected_variables(self) -> frozenset[str]:
        """Return the variables in scope after the WITH or RETURN that was just parsed."""
        frame = self.frames[-1]
        # CALL { WITH a …
        imports = frame.exports_variables and frame.outer_variables is not None and self.peek(-2).text == "{"
        bound = frame.outer_variables or frozenset() if imports else self.bound_variables
        names: set[str] = set()
        for item in self._items(self.position + (self.peek().text == "DISTINCT")):
            if [token.text for token in item] == ["*"]:
                names |= bound
            elif len(item) == 1:
                names |= bound & {self.token_name(item[0])}
            elif item[-2].text == "AS":
                names |= {self.token_name(item[-1])}
        return frozenset(names - {""})

    def _unwound_variables(self) -> frozenset[str]:
        """Return the variable of the UNWIND that was just parsed."""
        (item, *_) = self._items(self.position)
        is_renamed = len(item) > 1 and item[-2].text == "AS"
        return frozenset({self.token_name(item[-1])} - {""} if is_renamed else ())

    def _items(self, index: int) -> list[list[CypherToken]]:
        """Return the comma-separated items from a position up to the next clause, without their bracketed
        content.
        """
        items: list[list[CypherToken]] = [[]]
        while index < len(self.tokens):
            token = self.tokens[index]
            is_clause = token.kind == "word" and token.text in CLAUSES and not self._is_name_at(index)
            if is_clause or token.text in (";", *BRACKETS.values()):
                break
            if token.text == ",":
                items.append([])
                index += 1
            else:
                items[-1].append(token)
                index = self.pairs.get(index, index) + 1
        return [item for item in items if item] or [[NO_TOKEN]]

    def _is_name_at(self, index: int) -> bool:
        positions = (index - 2, index - 1, index + 1)
        neighbours = [self.tokens[at] if 0 <= at < len(self.tokens) else NO_TOKEN for at in positions]
        return is_name(*neighbours)

    def _parse_changes(self) -> None:
        """Parse the items of SET or REMOVE.

        An item that replaces all properties of a node restores its mark. A property named by an expression is
        refused.
        """
        depth = len(self.frames)
        while True:
            name = self.token_name(self.peek())
            if not name or self.peek(1).text == "[":
                self.refuse("SET and REMOVE name a variable and its property")
            is_replacement = self.peek(1).text == "="
            spelling = self.statement[self.peek().start : self.peek().end]
            self.position += 1
            while self.position < len(self.tokens):
                if len(self.frames) == depth and self._ends_change():
                    break
                self.parse_step()
            if is_replacement:
                self.insertions.append((self.peek(-1).end, f", {spelling}.{OWN_PROPERTIES[0]} = {self.mark}"))
            if self.peek().text != ",":
                return
            self.position += 1

    def _ends_change(self) -> bool:
        return self.peek().text in (",", ";", *BRACKETS.values()) or bool(self._clause_keyword())

    def _clause_keyword(self) -> str:
        """Return the keyword that opens a clause at this position, or ""."""
        token = self.peek()
        if token.kind != "word" or is_name(self.peek(-2), self.peek(-1), self.peek(1)):
            return ""
        return token.text if token.text in CLAUSES or token.text == "USE" else ""

    def _refuse_marks(self) -> None:
        for token in self.tokens:
            name = self.token_name(token)
            if name and unicodedata.normalize("NFKC", name).lower() in OWN_PROPERTIES:
                raise RefusedClause(f"{name} is a name of the store's own; use another one")
            if token.kind == "sign" and not token.text.isascii():
                problem = f"the sign {token.text!r} stands outside of a text"
                raise RefusedClause(f"{problem}; put backticks around a name with odd signs")
