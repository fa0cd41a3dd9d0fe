"""Answers in sentences that each name their source: the form that a model is held to, and how it is told on
as text while it comes.

A small model asked for prose cites little; held to this form it chooses a source among those it was told, and
then says what that one says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic_core import from_json

from kgot_lab.experts.chat.citations import CITED, CitableNode
from kgot_lab.types import Json

NO_SOURCE, KNOWS_NOT = "none", "I do not know."
_MOST_SENTENCES = 4


def sentences_schema(nodes: Iterable[CitableNode], *, may_know_nothing: bool) -> Mapping[str, Json]:
    """The JSON schema of an answer of at most four sentences, each behind the handle of one of some nodes.

    `may_know_nothing` lets one say, and no more, that it does not know: where the graphs say little of a
    question. A sentence that rests on nothing may not say anything else, for there a model tells what it
    makes up.
    """
    handles: list[Json] = list(dict.fromkeys(node.handle for node in nodes))
    sentence = _sentence({"enum": handles}, {})
    if may_know_nothing:
        sentence = {"anyOf": [sentence, _sentence({"enum": [NO_SOURCE]}, {"enum": [KNOWS_NOT]})]}
    return {
        "type": "object",
        "properties": {
            "sentences": {"type": "array", "minItems": 1, "maxItems": _MOST_SENTENCES, "items": sentence}
        },
        "required": ["sentences"],
        "additionalProperties": False,
    }


def _sentence(source: dict[str, Json], text: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {"source": {"type": "string", **source}, "sentence": {"type": "string", **text}},
        "required": ["source", "sentence"],
        "additionalProperties": False,
    }


@dataclass
class SentencePieces:
    """Reads JSON of that form piece by piece and tells it on as text with citations; a reply in another form is told as it stands.

    A sentence that was said already is not told twice; each piece is told once what came before it cannot change any more.
    """

    _read: str = ""
    _told: str = ""

    def tell(self, piece: str) -> str:
        """What can be told on after one more piece."""
        self._read += piece
        begun = self._read.lstrip()
        if not begun:
            return ""
        if not _may_be_json(begun):
            return self._on(self._read)
        return self._on(_written(_sentences(begun), whole=False))

    def rest(self) -> str:
        """What is left to tell when the reply has ended."""
        return self._on(_written(_sentences(self._read.lstrip()), whole=True) or self._read)

    def _on(self, text: str) -> str:
        more = text[len(self._told) :] if text.startswith(self._told) else ""
        self._told += more
        return more


def _may_be_json(text: str) -> bool:
    return text[0] == "{" or "```json".startswith(text[:7])


def _sentences(text: str) -> list[tuple[str, str]]:
    """The sentences of a reply that may not be whole, as (source, text), each empty where it is not there;
    none of another form.
    """
    try:
        said = from_json(text.removeprefix("```json").removesuffix("```"), allow_partial="trailing-strings")
    except ValueError:
        return []
    rows = said.get("sentences") if isinstance(said, dict) else None
    told = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [(_text(row.get("source")), " ".join(_text(row.get("sentence")).split())) for row in told]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _without_its_source(text: str, source: str, done: bool) -> str:
    """A sentence without the citation of its own source, which stands behind it; while it is written also
    without what may become one.
    """
    if not done and "]" not in text[max(text.rfind("["), 0) :]:
        text = text[: text.rfind("[")] if "[" in text else text
    return " ".join(CITED.sub(lambda found: "" if found[1].strip() == source else found[0], text).split())


def _written(sentences: list[tuple[str, str]], *, whole: bool) -> str:
    """Sentences as text with their citations; the last one without, while it is written, and not while it may
    repeat an earlier one.
    """
    out, said = "", list[str]()
    for place, (source, text) in enumerate(sentences):
        done = whole or place + 1 < len(sentences)
        text = _without_its_source(text, source, done)
        if text in said or not text or (not done and any(each.startswith(text) for each in said)):
            continue
        said.append(text)
        out += (" " if out else "") + text
        if done and source not in ("", NO_SOURCE):
            out += f" [Source: {source}]"
    return out
