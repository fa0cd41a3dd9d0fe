"""Check the citations of an answer, [Source: graph:node], against the nodes in the prompt.

Also read answers in JSON, in which each sentence names a source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_core import from_json

from kgot_lab.types import Json

_OPENS = "source:"  # after a bracket; a model may write round ones too, which are shown as square ones
_CLOSES = {"[": "]", "(": ")"}
_SHORTEST = 4  # characters of a name that is searched for in an answer
_LONGEST = 400  # characters of a citation; anything longer is text
FALSE_MARK = " (not in the context)"
CITATION_PATTERN = re.compile(r"\[source:([^\]\n]{1,400})\]", re.I)


class CitableNode(NamedTuple):
    """A node that can be cited: its graph, its id there, its name and type."""

    graph: str
    id: str
    name: str
    type: str

    @property
    def handle(self) -> str:
        """The text by which an answer cites the node: its name if that fits between brackets, else its id."""
        return f"{self.graph}:{self.name if self.name and not set(self.name) & set('[];:') and len(self.name) < 100 else self.id}"

    def named_in(self, cited: str) -> bool:
        """Return whether a citation, or one of its parts as in "graph:one; graph:two", names this node."""
        parts = {_plain(cited), *(_plain(part) for part in re.split(r"[;,]", cited))}
        return not parts.isdisjoint(self.called)

    @property
    def called(self) -> frozenset[str]:
        """All texts by which a citation may name the node.

        These are its name, its id and the end of its id, each with or without its graph.
        """
        words = (self.name, self.id, re.split(r"[:/]", self.id)[-1])
        return frozenset(_plain(f"{before}{each}") for each in words for before in ("", f"{self.graph}:"))


class CitableNodes:
    """The nodes that can be cited in an answer, by all texts that may name them."""

    def __init__(self, nodes: Iterable[CitableNode]):
        self.nodes = tuple(dict.fromkeys(nodes))
        self._called: dict[str, list[CitableNode]] = {}
        for node in self.nodes:
            for called in node.called:
                self._called.setdefault(called, []).append(node)

    def meant(self, cited: str) -> CitableNode | None:
        """Return the node that a citation names, or None if it matches no node or several."""
        found = self._called.get(_plain(cited), [])
        return found[0] if len(found) == 1 else None


def named_nodes(
    text: str, nodes: Iterable[CitableNode], cited: Collection[CitableNode] = ()
) -> tuple[CitableNode, ...]:
    """Return the nodes whose names occur in an answer without being cited, in the order of the text.

    The names are matched here; the model did not cite them. Whole words are matched, ignoring case. A name
    inside a longer name that also occurs does not count, nor does a name of fewer than four characters.
    """
    spans: list[tuple[int, int, CitableNode]] = []
    plain = text.casefold()
    for node in nodes:
        name = " ".join(node.name.split()).casefold()
        if len(name) >= _SHORTEST and (found := re.search(rf"(?<!\w){re.escape(name)}s?(?!\w)", plain)):
            spans.append((found.start(), found.end(), node))
    whole = [
        each
        for each in spans
        if not any(
            one[0] <= each[0] and each[1] <= one[1] and one[1] - one[0] > each[1] - each[0] for one in spans
        )
    ]
    return tuple(
        dict.fromkeys(node for _, _, node in sorted(whole, key=lambda each: each[:2]) if node not in cited)
    )


@dataclass
class CitationCheck:
    """Checks an answer piece by piece, marks false citations, and records the nodes cited."""

    citables: CitableNodes
    cited: dict[CitableNode, int] = field(default_factory=dict)  # how often each
    false: list[str] = field(default_factory=list)
    _held: str = ""

    def tell(self, piece: str) -> str:
        """Add one piece of an answer and return the text that can be sent.

        An incomplete citation is held back.
        """
        text, self._held = self._held + piece, ""
        out = []
        while text:
            start = next((place for place, letter in enumerate(text) if letter in _CLOSES), len(text))
            out.append(text[:start])
            text = text[start:]
            if not text:
                break
            begins = _OPENS.startswith(text[1 : len(_OPENS) + 1].casefold())
            end = _end(text[: _LONGEST + 2]) if begins else -1
            if begins and end < 0 and len(text) <= _LONGEST and "\n" not in text:
                self._held = text
                break
            if not begins or end < 0 or end > _LONGEST or "\n" in text[:end]:
                out.append(text[0])
                text = text[1:]
                continue
            out.append(self._checked(text[1:end]))
            text = text[end + 1 :]
        return "".join(out)

    def rest(self) -> str:
        """Return the text that was still held back when the answer ended."""
        held, self._held = self._held, ""
        return held

    def _checked(self, inside: str) -> str:
        """Format a citation with a mark behind each part that names no node.

        Cited nodes and false parts are recorded.
        """
        label, _, told = inside.partition(":")
        parts = (
            [told.strip()]
            if self.citables.meant(told)
            else [part.strip() for part in re.split(r"[;,]", told)]
        )
        shown = []
        for part in filter(None, parts):
            node = self.citables.meant(part)
            if node is None:
                self.false.append(part)
                shown.append(part + FALSE_MARK)
            else:
                self.cited[node] = self.cited.get(node, 0) + 1
                shown.append(part)
        return f"[{label}: {'; '.join(shown)}]" if shown else f"[{inside}]"


def _end(text: str) -> int:
    """Return the index of the bracket that closes the one a text begins with, or -1 if it is not closed.

    Brackets of the same kind may be nested.
    """
    opens, closes, depth = text[0], _CLOSES[text[0]], 0
    for place, letter in enumerate(text):
        depth += (letter == opens) - (letter == closes)
        if depth == 0:
            return place
    return -1


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[\s_-]+", " ", text.casefold()).split()).replace(": ", ":")


# Answers in sentences that each name their source: the reply schema, and the conversion to text while it is
# streamed.
#
# A small model asked for prose cites little. With this schema it chooses a source from the prompt, and then
# says what that source says.

NO_SOURCE, KNOWS_NOT = "none", "I do not know."
_MOST_SENTENCES = 4


def sentences_schema(nodes: Iterable[CitableNode], *, may_know_nothing: bool) -> Mapping[str, Json]:
    """Build the JSON schema of an answer of at most four sentences, each with the handle of one of the nodes.

    `may_know_nothing` also allows a sentence without a source, whose only text is that the answer is not
    known. It is for questions that the graphs hardly cover. Such a sentence cannot say anything else, because
    a model makes up what it says without a source.
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
    """Converts a JSON answer, read piece by piece, to text with citations.

    A reply in another form is passed on unchanged. A repeated sentence is left out. Text is sent once, as
    soon as later pieces cannot change it.
    """

    _read: str = ""
    _told: str = ""

    def tell(self, piece: str) -> str:
        """Add one piece of a reply and return the text that can be sent."""
        self._read += piece
        begun = self._read.lstrip()
        if not begun:
            return ""
        if not _may_be_json(begun):
            return self._on(self._read)
        return self._on(_written(_sentences(begun), whole=False))

    def rest(self) -> str:
        """Return the text that is still to be sent when the reply has ended."""
        return self._on(_written(_sentences(self._read.lstrip()), whole=True) or self._read)

    def _on(self, text: str) -> str:
        more = text[len(self._told) :] if text.startswith(self._told) else ""
        self._told += more
        return more


def _may_be_json(text: str) -> bool:
    return text[0] == "{" or "```json".startswith(text[:7])


def _sentences(text: str) -> list[tuple[str, str]]:
    """Parse the sentences of a reply that may be incomplete, as (source, text).

    A missing source or text is empty. A reply of another form has no sentences.
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
    """Remove from a sentence the citation of its own source, which is added behind it.

    While the sentence is still being written, an unclosed bracket at its end is removed too.
    """
    if not done and "]" not in text[max(text.rfind("["), 0) :]:
        text = text[: text.rfind("[")] if "[" in text else text
    return " ".join(
        CITATION_PATTERN.sub(lambda found: "" if found[1].strip() == source else found[0], text).split()
    )


def _written(sentences: list[tuple[str, str]], *, whole: bool) -> str:
    """Format sentences as text with their citations, without repeated sentences.

    Unless `whole`, the last sentence has no citation yet, and is left out while it may repeat an earlier one.
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
