"""What may be given to a store, checked before an engine sees it."""

from __future__ import annotations

from kgot_lab.errors import QueryFailed, require


def require_statement(statement: object) -> None:
    """Raise BadInput unless a statement is a text, and QueryFailed for one that no engine can be sent."""
    require(statement, str, "a statement is a text")
    try:
        str(statement).encode()
    except UnicodeEncodeError:
        raise QueryFailed(str(statement), "it holds half a surrogate pair, which is no text") from None


def require_words(words: object) -> None:
    """Raise BadInput unless the words to search for are a text."""
    require(words, str, "a store is searched for the words of a text")
