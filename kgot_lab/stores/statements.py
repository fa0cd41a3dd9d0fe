"""Limit the size of statements, find their constants, and check path queries.

Also remembers statements during which a server went away. Sizes are counted in the words of a statement, so
that no parser sees one that exceeds the limits.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, QueryFailed, ServerLost, require_count
from kgot_lab.stores.protocol import Scalar, StatementConstants
from kgot_lab.text.cleaning import is_encodable

MAX_STATEMENT_LENGTH = 250_000
OPEN, CLOSE = "open", "close"
# OPEN, CLOSE, or the precedence of an operator: 1 the lowest, and 0 for what ends all chains, such as a comma
NestingMark = str | int


class TooLarge(Exception):
    """A statement exceeds the size limit, which the message names."""


def require_length(statement: str) -> None:
    """Raise TooLarge for a statement with too many characters."""
    if len(statement) > MAX_STATEMENT_LENGTH:
        problem = f"the statement has {len(statement):,} characters"
        raise TooLarge(f"{problem}; {MAX_STATEMENT_LENGTH:,} is the most: write several smaller ones")


def require_shallow(marks: Iterable[NestingMark], *, brackets: int, depth: int) -> None:
    """Raise TooLarge if brackets are nested too deeply.

    `brackets` limits the brackets themselves, `depth` the brackets and the links of the chains around them.
    For a + b * c * d OR e, a parser builds a tree as deep as its chains are long: one OR, one +, two *. An
    operator of lower precedence ends the chains of those of higher precedence.
    """
    # of each open bracket, the links of its chains by precedence
    frames: list[dict[int, int]] = [{}]
    links = 0
    for mark in marks:
        if mark == OPEN:
            frames.append({})
        elif mark == CLOSE:
            links -= sum(frames.pop().values()) if len(frames) > 1 else 0
        elif isinstance(mark, int):
            ended = [level for level in frames[-1] if level > mark]
            links += bool(mark) - sum(frames[-1].pop(level) for level in ended)
            if mark:
                frames[-1][mark] = frames[-1].get(mark, 0) + 1
        if len(frames) - 1 > brackets:
            raise TooLarge(f"brackets are nested more than {brackets} deep, which is the most")
        if len(frames) - 1 + links > depth:
            problem = f"operators and brackets follow each other more than {depth} deep, which is the most"
            raise TooLarge(f"{problem}: write several statements")


def require_part_count(parts: int, limit: int, noun: str) -> None:
    """Raise TooLarge for more parts than an engine can plan."""
    if parts > limit:
        size = f"the statement has {parts:,} {noun}"
        raise TooLarge(f"{size}; {limit:,} is the most: write several smaller ones")


# The constants of a read statement in Python, whatever the graph contains, and what all languages need to
# find them.

LITERAL = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d[\d.]*|true|false)"""


def blank_quoted(statement: str) -> str:
    """Replace every quoted text in a statement by underscores of the same length."""
    return re.sub(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", lambda match: "_" * len(match[0]), statement)


_GRAPH_NAMES = {"G", "self", "facts", "names", "paths"}


def python_constants(statement: str) -> StatementConstants:
    """Return the constants that a statement's result contains, as keys with constant values and list items.

    Only the expressions assigned to `result` are read.
    """
    try:
        tree = ast.parse(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return StatementConstants()
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assignments = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    expressions = [node.value for node in assignments if _assigns_result(node.targets)]
    keys = frozenset(key for expression in expressions for key in _constant_keys(expression))
    values = frozenset(value for expression in expressions for value in _constant_items(expression))
    return StatementConstants(bool(names & _GRAPH_NAMES), keys, values)


def _assigns_result(targets: Iterable[ast.expr]) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "result" for target in targets)


def _constant_keys(expression: ast.expr) -> Iterator[str]:
    """Yield the keys of a dictionary, or of dictionaries in a list, whose values are constants."""
    match expression:
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    yield str(key.value)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                yield from _constant_keys(item)


def _constant_items(expression: ast.expr) -> Iterator[tuple[type, Scalar]]:
    """Yield the constants that stand alone or in lists.

    The alternatives of a conditional expression count as computed, not as constants.
    """
    match expression:
        case ast.Constant(value=value) if isinstance(value, str | int | float):
            yield type(value), value
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            for item in items:
                yield from _constant_items(item)


# Statements during which a server went away: a store does not send them again.


class LostStatements:
    """The statements that a store will not send again, because the server went away during them."""

    def __init__(self) -> None:
        self._lost: set[str] = set()

    @contextmanager
    def guard(self, statement: str) -> Iterator[None]:
        """Refuse a recorded statement, and record this one if the server goes away during it.

        Raises ServerLost.
        """
        if statement in self._lost:
            raise ServerLost(statement)
        try:
            yield
        except ServerLost as error:
            self._lost.add(statement)
            raise ServerLost(statement) from error


# Checks of the arguments of a store, before an engine sees them.


def require_statement(statement: str) -> None:
    """Raise QueryFailed for a statement that cannot be encoded."""
    if not is_encodable(statement):
        raise QueryFailed(statement, "it holds half a surrogate pair, which is no text")


# The path query of all languages, so that all return the same rows in the same order.
#
# `PATH_COLUMNS` are the columns of a row, "" where a path has no such part. The best paths come first, ties
# by `PATH_ORDER`. A path that begins with a fact has no `place_1`: its first sentence and source are those of
# the fact.

_SCORE_DECIMALS = 6  # decimals of a score: every engine reads such a short number exactly


class PathQuery(NamedTuple):
    """A path query: start names, sentences with the relevance score of each by its node, and number of rows.

    All are in alphabetical order.
    """

    names: tuple[str, ...]
    scores: Mapping[str, float]
    limit: int


@check_arguments
def path_query(names: Sequence[str], scores: Mapping[str, float], limit: int) -> PathQuery:
    """Check the arguments of a path query and return them normalized.

    Names that no node can have (with half a surrogate pair) are left out. Raises BadInput if `names` is not a
    list of texts or a score is not a finite number.
    """
    require_count(limit, 1, "the number of paths")
    if not all(map(math.isfinite, scores.values())):
        raise BadInput("what a sentence is worth must be a finite number")
    # + 0.0: no -0.0
    rounded = {
        sentence_id: round(float(scores[sentence_id]), _SCORE_DECIMALS) + 0.0
        for sentence_id in sorted(filter(is_encodable, filter(None, scores)))
    }
    return PathQuery(tuple(sorted(set(filter(is_encodable, filter(None, names))))), rounded, limit)


def python_path_query(names: Sequence[str], scores: Mapping[str, float], limit: int) -> str:
    """Build the Python statement that reads paths."""
    query = path_query(names, scores, limit)
    return f"result = paths({list(query.names)!r}, {query.scores!r}, {limit})"
