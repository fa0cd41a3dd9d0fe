"""Check the citations of an answer, [Source: graph:node], against the nodes in the prompt.

Also read answers in JSON, in which each sentence names a source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_core import from_json

from kgot_lab.loop.events import Answered, Outcome
from kgot_lab.loop.modes.paths.values import is_no_answer
from kgot_lab.text.words import folded_name, text_sentences
from kgot_lab.types import Json

# after a bracket; a model may write round ones too, which are shown as square ones
_CITATION_START = "source:"
_BRACKETS = {"[": "]", "(": ")"}
_MIN_NAME_LENGTH = 4  # characters of a name that is searched for in an answer
_MAX_CITATION_LENGTH = 400  # characters of a citation; anything longer is text
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

    def is_named_in(self, cited: str) -> bool:
        """Return whether a citation, or one of its parts as in "graph:one; graph:two", names this node."""
        parts = {_normalize(cited), *(_normalize(part) for part in re.split(r"[;,]", cited))}
        return not parts.isdisjoint(self.aliases)

    @property
    def aliases(self) -> frozenset[str]:
        """All texts by which a citation may name the node.

        These are its name, its id and the end of its id, each with or without its graph.
        """
        words = (self.name, self.id, re.split(r"[:/]", self.id)[-1])
        return frozenset(_normalize(f"{prefix}{word}") for word in words for prefix in ("", f"{self.graph}:"))


_Nodes = tuple[CitableNode, ...]


class CitableNodes:
    """The nodes that can be cited in an answer, by all texts that may name them."""

    def __init__(self, nodes: Iterable[CitableNode]):
        self.nodes = tuple(dict.fromkeys(nodes))
        self._by_alias: dict[str, list[CitableNode]] = {}
        for node in self.nodes:
            for alias in node.aliases:
                self._by_alias.setdefault(alias, []).append(node)

    def resolve(self, cited: str) -> CitableNode | None:
        """Return the node that a citation names, or None if it matches no node or several."""
        nodes = self._by_alias.get(_normalize(cited), [])
        return nodes[0] if len(nodes) == 1 else None


def mentioned_nodes(text: str, nodes: Iterable[CitableNode], cited: Collection[CitableNode] = ()) -> _Nodes:
    """Return the nodes whose names occur in an answer without being cited, in the order of the text.

    The names are matched here; the model did not cite them. Whole words are matched, ignoring case. A name
    inside a longer name that also occurs does not count, nor does a name of fewer than four characters.
    """
    spans: list[tuple[int, int, CitableNode]] = []
    plain = text.casefold()
    for node in nodes:
        name = " ".join(node.name.split()).casefold()
        if len(name) < _MIN_NAME_LENGTH:
            continue
        if found := re.search(rf"(?<!\w){re.escape(name)}s?(?!\w)", plain):
            spans.append((found.start(), found.end(), node))

    def is_inner(span: tuple[int, int, CitableNode]) -> bool:
        start, end, _ = span
        return any(one[0] <= start and end <= one[1] and one[1] - one[0] > end - start for one in spans)

    outermost = sorted((span for span in spans if not is_inner(span)), key=lambda span: span[:2])
    return tuple(dict.fromkeys(node for _, _, node in outermost if node not in cited))


@dataclass
class CitationCheck:
    """Checks an answer piece by piece, marks false citations, and records the nodes cited."""

    citables: CitableNodes
    cited: dict[CitableNode, int] = field(default_factory=dict)  # how often each
    false: list[str] = field(default_factory=list)
    _pending: str = ""

    def feed(self, piece: str) -> str:
        """Add one piece of an answer and return the text that can be sent.

        An incomplete citation is held back.
        """
        text, self._pending = self._pending + piece, ""
        parts = []
        while text:
            start = next((index for index, character in enumerate(text) if character in _BRACKETS), len(text))
            parts.append(text[:start])
            text = text[start:]
            if not text:
                break
            is_citation = _CITATION_START.startswith(text[1 : len(_CITATION_START) + 1].casefold())
            end = _closing_index(text[: _MAX_CITATION_LENGTH + 2]) if is_citation else -1
            if is_citation and end < 0 and len(text) <= _MAX_CITATION_LENGTH and "\n" not in text:
                self._pending = text
                break
            if not is_citation or end < 0 or end > _MAX_CITATION_LENGTH or "\n" in text[:end]:
                parts.append(text[0])
                text = text[1:]
                continue
            parts.append(self._check_citation(text[1:end]))
            text = text[end + 1 :]
        return "".join(parts)

    def finish(self) -> str:
        """Return the text that was still held back when the answer ended."""
        held, self._pending = self._pending, ""
        return held

    def judge(self, text: str, unsaid: Iterable[str]) -> Answered:
        """Return an answer with its outcome: unsure unless it cites nodes that were found, and nothing else.

        Whether those say it is not checked. `unsaid` are words of the question that nothing found says, if they are most of its words.
        """
        cited, first = tuple(node.handle for node in self.cited), next(iter(text_sentences(text)), "")
        words, false = ", ".join(unsaid), "; ".join(self.false)
        reasons = [f"it cites {false}, which was not found"] if false else []
        reasons += [f"nothing that was found says {words}"] if words else []
        missing = "; ".join(reasons) or ("" if cited else "it cites nothing that was found")
        outcome: Outcome = "unsure" if missing else "not checked"
        if is_no_answer(first) or (not cited and is_no_answer(text)):
            outcome, missing = "not in the sources", missing or "what was found does not say it"
        return Answered(
            text=text, forced=outcome != "not checked", outcome=outcome, missing=missing, passages=cited
        )

    def _check_citation(self, citation: str) -> str:
        """Format a citation with a mark behind each part that names no node.

        Cited nodes and false parts are recorded.
        """
        label, _, sources = citation.partition(":")
        parts = [sources.strip()]
        if not self.citables.resolve(sources):
            parts = [part.strip() for part in re.split(r"[;,]", sources)]
        labels = []
        for part in filter(None, parts):
            node = self.citables.resolve(part)
            if node is None:
                self.false.append(part)
                labels.append(part + FALSE_MARK)
            else:
                self.cited[node] = self.cited.get(node, 0) + 1
                labels.append(part)
        return f"[{label}: {'; '.join(labels)}]" if labels else f"[{citation}]"


def _closing_index(text: str) -> int:
    """Return the index of the bracket that closes the one a text begins with, or -1 if it is not closed.

    Brackets of the same kind may be nested.
    """
    opening, closing, depth = text[0], _BRACKETS[text[0]], 0
    for index, character in enumerate(text):
        depth += (character == opening) - (character == closing)
        if depth == 0:
            return index
    return -1


def _normalize(text: str) -> str:
    return " ".join(re.sub(r"[\s_-]+", " ", folded_name(text)).split()).replace(": ", ":")


# Answers in sentences that each name their source: the reply schema, and the conversion to text while it is
# streamed.
#
# A small model asked for prose cites little. With this schema it chooses a source from the prompt, and then
# says what that source says.

NO_SOURCE, NOT_KNOWN = "none", "I do not know."
_MAX_SENTENCES = 4


def sentences_schema(nodes: Iterable[CitableNode], *, allow_unknown: bool) -> Mapping[str, Json]:
    """Build the JSON schema of an answer of at most four sentences, each with the handle of one of the nodes.

    `allow_unknown` also allows a sentence without a source, whose only text is that the answer is not
    known. It is for questions that the graphs hardly cover. Such a sentence cannot say anything else, because
    a model makes up what it says without a source.
    """
    handles: list[Json] = list(dict.fromkeys(node.handle for node in nodes))
    sentence = _sentence_schema({"enum": handles}, {})
    if allow_unknown:
        sentence = {"anyOf": [sentence, _sentence_schema({"enum": [NO_SOURCE]}, {"enum": [NOT_KNOWN]})]}
    limits: dict[str, Json] = {"minItems": 1, "maxItems": _MAX_SENTENCES}
    return _object_schema({"sentences": {"type": "array", "items": sentence, **limits}})


def _sentence_schema(source: dict[str, Json], text: dict[str, Json]) -> dict[str, Json]:
    return _object_schema({"source": {"type": "string", **source}, "sentence": {"type": "string", **text}})


def _object_schema(properties: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of an object that has just these properties."""
    fields = {"properties": properties, "required": list(properties)}
    return {"type": "object", **fields, "additionalProperties": False}


@dataclass
class SentenceStream:
    """Converts a JSON answer, read piece by piece, to text with citations.

    A reply in another form is passed on unchanged. A repeated sentence is left out. Text is sent once, as
    soon as later pieces cannot change it.
    """

    _reply: str = ""
    _sent: str = ""

    def feed(self, piece: str) -> str:
        """Add one piece of a reply and return the text that can be sent."""
        self._reply += piece
        started = self._reply.lstrip()
        if not started:
            return ""
        if started[0] != "{" and not "```json".startswith(started[:7]):
            return self._take_new(self._reply)
        return self._take_new(_format_sentences(_parse_sentences(started), complete=False))

    def finish(self) -> str:
        """Return the text that is still to be sent when the reply has ended."""
        sentences = _parse_sentences(self._reply.lstrip())
        return self._take_new(_format_sentences(sentences, complete=True) or self._reply)

    def _take_new(self, text: str) -> str:
        new_text = text[len(self._sent) :] if text.startswith(self._sent) else ""
        self._sent += new_text
        return new_text


def _parse_sentences(text: str) -> list[tuple[str, str]]:
    """Parse the sentences of a reply that may be incomplete, as (source, text).

    A missing source or text is empty. A reply of another form has no sentences.
    """
    try:
        reply = from_json(text.removeprefix("```json").removesuffix("```"), allow_partial="trailing-strings")
    except ValueError:
        return []
    rows = reply.get("sentences") if isinstance(reply, dict) else None
    entries = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    pairs = ((_text_or_empty(row.get("source")), _text_or_empty(row.get("sentence"))) for row in entries)
    return [(source, " ".join(sentence.split())) for source, sentence in pairs]


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _remove_own_citation(text: str, source: str, complete: bool) -> str:
    """Remove from a sentence the citation of its own source, which is added behind it.

    While the sentence is still being written, an unclosed bracket at its end is removed too.
    """
    if not complete and "]" not in text[max(text.rfind("["), 0) :]:
        text = text[: text.rfind("[")] if "[" in text else text
    kept = CITATION_PATTERN.sub(lambda match: "" if match[1].strip() == source else match[0], text)
    return " ".join(kept.split())


def _format_sentences(sentences: list[tuple[str, str]], *, complete: bool) -> str:
    """Format sentences as text with their citations, without repeated sentences.

    Unless `complete`, the last sentence has no citation yet, and is left out while it may repeat an earlier one.
    """
    written, earlier = "", list[str]()
    for index, (source, text) in enumerate(sentences):
        is_finished = complete or index + 1 < len(sentences)
        text = _remove_own_citation(text, source, is_finished)
        is_beginning = not is_finished and any(each.startswith(text) for each in earlier)
        if text in earlier or not text or is_beginning:
            continue
        earlier.append(text)
        written += (" " if written else "") + text
        if is_finished and source not in ("", NO_SOURCE):
            written += f" [Source: {source}]"
    return written
