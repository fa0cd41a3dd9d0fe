"""What an expert remembers: what was said in earlier conversations of the same person with the same expert,
and in no other.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgot_lab.retrieval.lexical import bm25
from kgot_lab.text.words import content_words
from kgot_lab.types import Document

_LOOKED_AT = 2_000  # messages of the past, the last first
_LONGEST = 400  # characters of each that are told


def recollected(
    question: str, said: Sequence[tuple[str, str, str]], *, limit: int = 5
) -> tuple[tuple[str, str], ...]:
    """Of what was said, as (id, role, content), that which shares most with a question, as (id, text); by
    BM25, at most `limit`.
    """
    asked = set(content_words(question))
    documents = [
        Document(id, content) for id, _, content in said[:_LOOKED_AT] if asked & set(content_words(content))
    ]
    if not documents:
        return ()
    roles = {id: role for id, role, _ in said}
    texts = {each.id: " ".join(each.text.split())[:_LONGEST] for each in documents}
    found = bm25(documents).search(question).hits
    told: dict[str, str] = {}
    for id, score in found:
        if score > 0 and texts[id] not in told.values():
            told[id] = texts[id]
        if len(told) == limit:
            break
    return tuple((id, f"{roles[id]}: {text}") for id, text in told.items())
