"""Read passages one by one with a model, and add what they state to the graph."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from kgot_lab.documents.files import read_document_text
from kgot_lab.embedding.vectors import CacheFile
from kgot_lab.errors import BadInput, BadReply
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.dimensions import DIMENSIONS
from kgot_lab.kgos.schemas.extracted_dimensions import NOT_EXTRACTABLE
from kgot_lab.llm.budget import CostEstimate, Rate, estimate
from kgot_lab.llm.recorded import prompt_digest, reply_from_json, reply_to_json
from kgot_lab.llm.structured import checked_reply, compact_schema, parse
from kgot_lab.text.cleaning import FENCES, estimate_tokens, fence_text
from kgot_lab.text.words import blocks, contains_words, rough_sentences, searched_words
from kgot_lab.types import LLM, Edge, Json, Message, Node, Prompt, Reply, Usage

# Passages to read: paragraphs of Markdown, and the descriptions of functions and classes, with their
# positions.

_PROSE_LABELS = (("document",), ("section",))  # read from their files, paragraph by paragraph
_MIN_PASSAGE_WORDS = 8  # the fewest words of a passage; a heading or a line of a table states no relation
_MAX_CHARACTERS = 1_500
_CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


@dataclass(frozen=True)
class Passage:
    """A text to read, with the id and the name of its node, its file and its first line."""

    node: str
    name: str
    file: str
    line: int
    text: str


def list_passages(graph: PropertyGraph, folder: Path | None = None) -> list[Passage]:
    """List the passages of a graph that was extracted from a folder.

    They are descriptions of code and, if the folder is given, paragraphs of its documents.
    """
    found: list[Passage] = []
    for node in graph.nodes:
        name = str(node.properties.get("name", node.id))
        file = str(node.properties.get("file", ""))
        line = node.properties.get("line", 1)
        if node.labels == ("document",) and folder is not None:
            paragraphs = _read_paragraphs(folder / file)
            found += [Passage(node.id, heading or name, file, at, text) for at, heading, text in paragraphs]
        elif (
            node.labels not in _PROSE_LABELS
            and len(searched_words(text := str(node.properties.get("description", "")))) >= _MIN_PASSAGE_WORDS
        ):
            first_line = line if isinstance(line, int) else 1
            found.append(Passage(node.id, name, file, first_line, text[:_MAX_CHARACTERS]))
    return found


def _read_paragraphs(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the paragraphs of a file with their first lines and the headings above them.

    Code blocks are left out. A missing or unreadable file yields nothing.
    """
    try:
        text = read_document_text(path).text
    except BadInput:
        return
    prose = _CODE_BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)
    line, heading = 1, ""
    for part in re.split(r"(\n\s*\n)", prose):
        if title := _HEADING.match(part.strip()):
            heading = title[1].strip()
        for block in blocks(part) if part.strip() else ():
            paragraph = " ".join(block.split())
            if len(searched_words(paragraph)) >= _MIN_PASSAGE_WORDS and "|" not in paragraph:
                yield line, heading, paragraph[:_MAX_CHARACTERS]
        line += part.count("\n")


# Read one passage: the relations that it states, each with its quotation, and what it says of its subject.

# The fields of the form that a model fills in: their relation, their question, and the types of both ends.
# The subject is what the passage is about, but that of a workaround or a cause is the limitation.
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FIELDS: Mapping[str, tuple[str, str, str, str]] = {
    name: tuple(field) for name, field in _TABLES["fields"].items()
}
_LIMITATION_RELATIONS = ("has_workaround", "caused_by")
_MAX_PHRASE_WORDS = 20  # words of a phrase at most
_REPLY_TOKENS = 400
_SYSTEM_PROMPT = (
    "You read one paragraph of documentation about a thing and copy short phrases of the paragraph, word for word, into a form. "
    f"{' '.join(f'{name}: {asked}.' for name, (_, asked, *_) in FIELDS.items())} Most fields stay empty. {FENCES}"
)
_EXAMPLES: tuple[tuple[str, str, dict[str, list[str]]], ...] = tuple(
    (each["thing"], each["text"], each["form"]) for each in _TABLES["examples"]
)
# Words that express a limitation. A small model calls anything unexpected a limitation.
_LIMITATION_WORDS = re.compile(
    r"\b(no|not|cannot|can't|\w+n't|never|without|only|unless|except|fail|slow|limit|un\w+|expensive|los[est]|error|problem|warn|careful|"
    r"hard|difficult|deprecated|approximat|sub\w+|exponential|very|too)",
    re.IGNORECASE,
)
_RATED_DIMENSIONS = {
    dimension.name: dimension for dimension in DIMENSIONS if dimension.name in NOT_EXTRACTABLE
}


class PassageForm(BaseModel):
    """What a model fills in of a passage: phrases of it, word for word."""

    limitations: list[str] = Field(max_length=4)
    workarounds: list[str] = Field(max_length=3)
    requires: list[str] = Field(max_length=4)
    enables: list[str] = Field(max_length=4)
    prevents: list[str] = Field(max_length=3)
    alternatives: list[str] = Field(max_length=3)
    causes: list[str] = Field(max_length=3)


class StatedRelation(NamedTuple):
    """A relation that a passage states, and the sentence that states it."""

    subject: str
    relation: str
    object: str
    quote: str


class Rated(BaseModel):
    """How something is on a dimension, from 0 to 1, with the words that say so."""

    dimension: str
    value: float = Field(ge=0, le=1)
    quote: str


class About(BaseModel):
    """What a passage says of its subject: words by which somebody would look for it, and dimensions."""

    keywords: list[str] = Field(max_length=8)
    dimensions: list[Rated] = Field(max_length=6)


@dataclass(frozen=True)
class ReadPassage:
    """The accepted statements of a passage, and the refused ones with the reasons."""

    passage: Passage
    relations: tuple[StatedRelation, ...] = ()
    keywords: tuple[str, ...] = ()
    dimensions: tuple[Rated, ...] = ()
    refused: tuple[str, ...] = ()


def relations_prompt(passage: Passage) -> Prompt:
    """Build the prompt that asks a model for the relations in a passage."""
    turns = [Message("system", _SYSTEM_PROMPT)]
    for name, text, filled in _EXAMPLES:
        reply = json.dumps({field: filled.get(field, []) for field in FIELDS})
        turns += [Message("user", fence_text(text, f"a paragraph about {name}")), Message("assistant", reply)]
    turns.append(Message("user", fence_text(passage.text, f"a paragraph about {passage.name}")))
    return Prompt(tuple(turns), compact_schema(PassageForm), max_tokens=_REPLY_TOKENS)


def about_prompt(passage: Passage) -> Prompt:
    """Build the prompt that asks a model for the keywords and dimensions of a passage."""
    scales = "; ".join(f"{name}: 0 is {d.low}, 1 is {d.high}" for name, d in _RATED_DIMENSIONS.items())
    system = (
        "You read one paragraph of documentation. List up to eight keywords, words of the paragraph by which somebody would look for what "
        "it is about, and rate it on those dimensions of which the paragraph says something, with the words that say so, each from 0 to 1. "
        f"The dimensions are: {scales}. Rate nothing that the paragraph does not say; empty lists are good answers. {FENCES}"
    )
    question = fence_text(passage.text, f"a paragraph about {passage.name}")
    messages = (Message("system", system), Message("user", question))
    return Prompt(messages, compact_schema(About), max_tokens=_REPLY_TOKENS)


def parse_relations(passage: Passage, reply: str) -> ReadPassage:
    """Parse a model's form and accept the relations that the passage supports.

    Each phrase must occur in the passage word for word, and a limitation must be worded as one. A workaround
    and a cause belong to the first accepted limitation; without one they are refused. Raises BadReply if the
    reply is not a form.
    """
    form = parse(reply, PassageForm)
    accepted: dict[tuple[str, str, str], StatedRelation] = {}
    refused: list[str] = []
    limitation = ""
    for part, (relation, *_) in FIELDS.items():
        for answer in getattr(form, part):
            phrase = " ".join(answer.split()).strip(" .,;:")
            subject = limitation if relation in _LIMITATION_RELATIONS else passage.name
            if why := _refusal_reason(phrase, relation, subject, passage):
                refused.append(f"{relation} {phrase!r}: {why}")
                continue
            quote = next((s for s in rough_sentences(passage.text) if contains_words(phrase, s)), phrase)
            relation_key = (subject.casefold(), relation, phrase.casefold())
            accepted.setdefault(relation_key, StatedRelation(subject, relation, phrase, quote))
            if relation == "has_limitation" and not limitation:
                limitation = phrase
    return ReadPassage(passage, tuple(accepted.values()), refused=tuple(refused))


def parse_about(passage: Passage, reply: str) -> ReadPassage:
    """Parse a model's reply and accept the keywords and dimensions that the passage supports.

    Raises BadReply if the reply cannot be parsed.
    """
    about = parse(reply, About)
    absent = [keyword for keyword in about.keywords if not contains_words(keyword, passage.text)]
    refused = [f"keyword {keyword}: it is not in the passage" for keyword in absent]
    rated: dict[str, Rated] = {}
    for dimension in about.dimensions:
        if dimension.dimension not in _RATED_DIMENSIONS:
            refused.append(f"dimension {dimension.dimension}: there is none of this name that has to be read")
        elif len(dimension.quote.split()) < 2 or not contains_words(dimension.quote, passage.text):
            refused.append(f"dimension {dimension.dimension}: its quotation is not in the passage")
        else:
            rated.setdefault(dimension.dimension, dimension)
    keywords = tuple(dict.fromkeys(k.casefold() for k in about.keywords if contains_words(k, passage.text)))
    return ReadPassage(passage, (), keywords, tuple(rated.values()), tuple(refused))


def _refusal_reason(phrase: str, relation: str, subject: str, passage: Passage) -> str:
    if not searched_words(phrase) or not contains_words(phrase, passage.text):
        return "it does not stand in the passage"
    if len(phrase.split()) > _MAX_PHRASE_WORDS:
        return "it is no phrase"
    if not subject:
        return "no limitation is said that it belongs to"
    if phrase.casefold() == subject.casefold():
        return "both ends are the same"
    if relation == "has_limitation" and not _LIMITATION_WORDS.search(phrase):
        return "it says no limit"
    return ""


_CACHE_NAME = "read_concepts-2.sqlite"
_USUAL_REPLY_TOKENS = 180  # tokens
_PromptAndParser = tuple[Callable[[Passage], Prompt], Callable[[Passage, str], ReadPassage]]
_TYPES = {relation: types for relation, _, *types in FIELDS.values()}
# what a model is asked of each passage; the second only if it is to tell `about` its subject too
_QUESTIONS: tuple[_PromptAndParser, ...] = ((relations_prompt, parse_relations), (about_prompt, parse_about))


@dataclass(frozen=True)
class ConceptGraph:
    """A graph with the statements of passages added, the numbers of calls, of cached and of unusable replies,
    and the cost.
    """

    graph: PropertyGraph
    read: tuple[ReadPassage, ...]
    calls: int = 0
    reused: int = 0
    unusable: int = 0
    usage: Usage = field(default_factory=Usage)

    def __repr__(self) -> str:
        relations = sum(len(each.relations) for each in self.read)
        refused = sum(len(each.refused) for each in self.read)
        passages = len({id(each.passage) for each in self.read})
        keywords = sum(len(each.keywords) for each in self.read)
        counts = f"{passages} passages: {relations} relations, {keywords} keywords"
        return f"<{counts}; {refused} refused, {self.unusable} replies were no list; {self.calls} calls, {self.reused} kept replies>"


def estimate_reading(
    passages: Sequence[Passage], *, about: bool = True, rate: Rate | None = None
) -> CostEstimate:
    """Estimate the calls, tokens, seconds and dollars to read some passages, if none was read before."""
    prompts = [ask(passage) for ask, _ in _QUESTIONS[: 1 + about] for passage in passages]
    counts = [sum(estimate_tokens(message.text) for message in prompt.messages) for prompt in prompts]
    sizes = {str(number): (count, _USUAL_REPLY_TOKENS) for number, count in enumerate(counts)}
    return estimate(dict.fromkeys(sizes, 1), sizes, rate or Rate())


def read_concepts(
    graph: PropertyGraph,
    passages: Sequence[Passage],
    llm: LLM,
    *,
    about: bool = True,
    cache: Path | Literal[False] | None = None,
    progress: Callable[[int, int, str], object] | None = None,
) -> ConceptGraph:
    """Add the concepts that a model reads in some passages, each with its quotation, file and line.

    Each reply is cached when it arrives, under its prompt and the model's name. An interrupted run therefore
    resumes, and a second run makes no calls. A reply that cannot be parsed is counted and left out. Raises
    LLMError if the model fails or the budget is used up; the cached replies remain.
    """
    without = "passages are read again"
    replies = None if cache is False else CacheFile(cache, _CACHE_NAME, label="concept", fallback=without)
    state = _CachedModel(llm, replies)
    read = []
    pairs = [(*question, passage) for passage in passages for question in _QUESTIONS[: 1 + about]]
    for number, (ask, parse_reply, passage) in enumerate(pairs):
        if progress is not None:
            progress(number, len(pairs), f"{passage.file}:{passage.line}")
        try:
            read.append(parse_reply(passage, state.reply(ask(passage)).text))
        except BadReply:
            state.unusable += 1
    counts = (state.calls, state.reused, state.unusable, state.usage)
    return ConceptGraph(add_concepts(graph, read, llm.name), tuple(read), *counts)


class _CachedModel:
    """A model with a cache of its replies."""

    def __init__(self, llm: LLM, cache: CacheFile | None):
        self.llm, self.kept = llm, cache
        self.calls = self.reused = self.unusable = 0
        self.usage = Usage()

    def reply(self, prompt: Prompt) -> Reply:
        key = hashlib.sha256(prompt_digest(prompt, self.llm.name).encode()).digest()
        if (value := self.kept.read([key]).get(key) if self.kept else None) is not None:
            self.reused += 1
            return reply_from_json(json.loads(value))
        reply = checked_reply(self.llm, prompt)
        self.calls += 1
        self.usage += reply.usage
        if self.kept:
            self.kept.write({key: json.dumps(reply_to_json(reply)).encode()})
        return reply


def add_concepts(graph: PropertyGraph, read: Iterable[ReadPassage], model: str) -> PropertyGraph:
    """Add nodes for concepts, edges for relations, and keywords and dimensions to a graph.

    Each edge has the quotations, file, line and model. An end whose name matches one node of the graph is
    that node. A relation stated in several places is one edge with all of them.
    """
    named: dict[str, list[str]] = {}
    for node in graph.nodes:
        for name in {str(node.properties.get("name", node.id)), node.id}:
            named.setdefault(_fold_name(name), []).append(node.id)
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str, str], dict[str, Any]] = {}
    properties: dict[str, dict[str, Json]] = {}
    for each in read:
        passage = each.passage
        for stated in each.relations:
            subject_type, object_type = _TYPES[stated.relation]
            stated_ends = ((stated.subject, subject_type), (stated.object, object_type))
            ends = [_resolve_end(text, type, passage, named, nodes, graph) for text, type in stated_ends]
            if ends[0] == ends[1]:
                continue
            where = {"quote": stated.quote, "file": passage.file, "line": passage.line}
            key = (ends[0], stated.relation, ends[1])
            edges.setdefault(key, {"model": model, "said": []})["said"].append(where)
            for end in ends:
                if end != passage.node and passage.node in graph:
                    type = "documents" if graph.node(passage.node).labels == ("document",) else "relates_to"
                    pair = (passage.node, end) if type == "documents" else tuple(sorted((passage.node, end)))
                    at = {"file": passage.file, "line": passage.line, "model": model}
                    edges.setdefault((pair[0], type, pair[1]), at)
        if passage.node in graph and (each.keywords or each.dimensions):
            node_properties = properties.setdefault(passage.node, {})
            words = node_properties.get("intent_keywords", [])
            before = words if isinstance(words, list) else []
            node_properties["intent_keywords"] = list(dict.fromkeys([*before, *each.keywords]))
            for rated in each.dimensions:
                node_properties.setdefault(rated.dimension, rated.value)
                node_properties.setdefault(f"{rated.dimension}_said", rated.quote)
    merged_nodes = [Node(n.id, n.labels, {**properties.get(n.id, {}), **n.properties}) for n in graph.nodes]
    known = {(edge.source, edge.type, edge.target) for edge in graph.edges}
    new = (Edge(*ends, about) for ends, about in sorted(edges.items()) if ends not in known)
    return PropertyGraph.of([*merged_nodes, *nodes.values()], [*graph.edges, *new])


def _resolve_end(
    text: str,
    type: str,
    passage: Passage,
    named: dict[str, list[str]],
    nodes: dict[str, Node],
    graph: PropertyGraph,
) -> str:
    folded = _fold_name(text)
    found = named.get(folded, [])
    if passage.node in found or (
        folded == _fold_name(passage.name)
        and passage.node in graph
        and graph.node(passage.node).labels != ("document",)
    ):
        return passage.node
    if len(found) == 1:
        return found[0]
    id = f"concept:{re.sub(r'[^a-z0-9]+', '_', folded).strip('_')[:80] or hashlib.sha256(folded.encode()).hexdigest()[:12]}"
    about = {"name": " ".join(text.split()), "description": passage.text[:300]}
    nodes.setdefault(id, Node(id, (type,), {**about, "file": passage.file, "line": passage.line}))
    return id


def _fold_name(text: str) -> str:
    words = " ".join(text.casefold().replace("`", "").removesuffix("()").split())
    return re.sub(r"^(the|a|an|this) ", "", words)
