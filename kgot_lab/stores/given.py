"""What may be given to a store, checked before an engine sees it."""

from __future__ import annotations

from kgot_lab.errors import require


def require_statement(statement: object) -> None:
    """Raise BadInput unless a statement is a text."""
    require(statement, str, "a statement is a text")


def require_words(words: object) -> None:
    """Raise BadInput unless the words to search for are a text."""
    require(words, str, "a store is searched for the words of a text")
