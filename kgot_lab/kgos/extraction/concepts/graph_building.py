"""Reading passages one after another, and putting what they state into the graph."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kgot_lab.embedding.cache_file import CacheFile, CacheTable
from kgot_lab.errors import BadReply
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.extraction.concepts import (
    FIELDS,
    Passage,
    ReadPassage,
    about_prompt,
    read_about,
    read_relations,
    relations_prompt,
)
from kgot_lab.llm.budget import CostEstimate, Rate, estimate
from kgot_lab.llm.recorded import prompt_digest, reply_from_json, reply_to_json
from kgot_lab.llm.structured import checked_reply
from kgot_lab.text.tokens import tokens
from kgot_lab.types import LLM, Edge, Json, Node, Prompt, Reply, Usage

_REPLIES = CacheTable("read_concepts.sqlite", "replies", "json", "TEXT", "json")
_USUAL_REPLY = 180  # tokens
_Ask = tuple[Callable[[Passage], Prompt], Callable[[Passage, str], ReadPassage]]
_RELATIONS: _Ask = (relations_prompt, read_relations)
_TYPES = {relation: types for relation, _, *types in FIELDS.values()}
_ABOUT: _Ask = (about_prompt, read_about)


@dataclass(frozen=True)
class Grown:
    """A graph with what was read put into it: how many calls were made and how many replies were kept ones,
    what was refused, the cost.
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
        passages, keywords = (
            len({id(each.passage) for each in self.read}),
            sum(len(each.keywords) for each in self.read),
        )
        said = f"{passages} passages: {relations} relations, {keywords} keywords"
        return f"<{said}; {refused} refused, {self.unusable} replies were no list; {self.calls} calls, {self.reused} kept replies>"


def what_it_takes(
    passages: Sequence[Passage], *, about: bool = True, rate: Rate | None = None
) -> CostEstimate:
    """About what reading some passages takes, if none was read before: calls, tokens, seconds and dollars."""
    asked = [ask(each) for ask, _ in _asks(about) for each in passages]
    sizes = {
        str(number): (sum(tokens(message.text) for message in prompt.messages), _USUAL_REPLY)
        for number, prompt in enumerate(asked)
    }
    return estimate(dict.fromkeys(sizes, 1), sizes, rate or Rate())


def read_concepts(
    graph: PropertyGraph,
    passages: Sequence[Passage],
    llm: LLM,
    *,
    about: bool = True,
    cache: Path | Literal[False] | None = None,
    progress: Callable[[int, int, str], object] | None = None,
) -> Grown:
    """The graph with the concepts that a model reads in some passages, each with the words that state it, its
    file and line.

    Each reply is kept when it comes, under its prompt and the model's name: what was interrupted goes on, and
    a second run asks nothing. A reply that is no list is counted and left out. Raises LLMError, also where
    the budget is used up; what was read is kept.
    """
    kept = (
        None
        if cache is False
        else CacheFile(cache, _REPLIES, called="concept", without="passages are read again")
    )
    state = _Reading(llm, kept)
    read = []
    total = len(passages) * len(_asks(about))
    for number, (ask, passage) in enumerate((ask, passage) for passage in passages for ask in _asks(about)):
        if progress is not None:
            progress(number, total, f"{passage.file}:{passage.line}")
        try:
            read.append(ask[1](passage, state.reply(ask[0](passage)).text))
        except BadReply:
            state.unusable += 1
    return Grown(
        with_concepts(graph, read, llm.name),
        tuple(read),
        state.calls,
        state.reused,
        state.unusable,
        state.usage,
    )


def _asks(about: bool) -> tuple[_Ask, ...]:
    return (_RELATIONS, _ABOUT) if about else (_RELATIONS,)


class _Reading:
    """Asks a model, or finds what it said before."""

    def __init__(self, llm: LLM, kept: CacheFile | None):
        self.llm, self.kept = llm, kept
        self.calls = self.reused = self.unusable = 0
        self.usage = Usage()

    def reply(self, prompt: Prompt) -> Reply:
        key = hashlib.sha256(prompt_digest(prompt, self.llm.name).encode()).digest()
        for rows in self.kept.read([key]) if self.kept else ():
            for _, value in rows:
                if (found := _reply(value)) is not None:
                    self.reused += 1
                    return found
        reply = checked_reply(self.llm, prompt)
        self.calls += 1
        self.usage += reply.usage
        if self.kept:
            self.kept.write([(key, json.dumps(reply_to_json(reply)))])
        return reply


def _reply(value: object) -> Reply | None:
    try:
        return reply_from_json(json.loads(str(value)))
    except (ValueError, KeyError, TypeError):
        return None  # damaged: it is asked again


def with_concepts(graph: PropertyGraph, read: Iterable[ReadPassage], model: str) -> PropertyGraph:
    """The graph with what was read: nodes for concepts, edges with quotation, file, line and model; keywords
    and dimensions at nodes.

    An end that is called as one node of the graph is that node. What is said in several places is one edge
    with all of them.
    """
    named: dict[str, list[str]] = {}
    for node in graph.nodes:
        for name in {str(node.properties.get("name", node.id)), node.id}:
            named.setdefault(_folded(name), []).append(node.id)
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str, str], dict[str, Any]] = {}
    properties: dict[str, dict[str, Json]] = {}
    for each in read:
        passage = each.passage
        for stated in each.relations:
            subject_type, object_type = _TYPES[stated.relation]
            ends = [
                _end(text, type, passage, named, nodes, graph)
                for text, type in ((stated.subject, subject_type), (stated.object, object_type))
            ]
            if ends[0] == ends[1]:
                continue
            where = {"quote": stated.quote, "file": passage.file, "line": passage.line}
            edges.setdefault((ends[0], stated.relation, ends[1]), {"model": model, "said": []})[
                "said"
            ].append(where)
            for end in ends:
                if end != passage.node and passage.node in graph:
                    type = "documents" if graph.node(passage.node).labels == ("document",) else "relates_to"
                    pair = (passage.node, end) if type == "documents" else tuple(sorted((passage.node, end)))
                    edges.setdefault(
                        (pair[0], type, pair[1]), {"file": passage.file, "line": passage.line, "model": model}
                    )
        if passage.node in graph and (each.keywords or each.dimensions):
            held = properties.setdefault(passage.node, {})
            words = held.get("intent_keywords", [])
            held["intent_keywords"] = list(
                dict.fromkeys([*(words if isinstance(words, list) else []), *each.keywords])
            )
            for rated in each.dimensions:
                held.setdefault(rated.dimension, rated.value)
                held.setdefault(f"{rated.dimension}_said", rated.quote)
    kept = [
        Node(node.id, node.labels, {**properties.get(node.id, {}), **node.properties}) for node in graph.nodes
    ]
    known = {(edge.source, edge.type, edge.target) for edge in graph.edges}
    new = (Edge(*ends, about) for ends, about in sorted(edges.items()) if ends not in known)
    return PropertyGraph.of([*kept, *nodes.values()], [*graph.edges, *new])


def _end(
    text: str,
    type: str,
    passage: Passage,
    named: dict[str, list[str]],
    nodes: dict[str, Node],
    graph: PropertyGraph,
) -> str:
    folded = _folded(text)
    found = named.get(folded, [])
    if passage.node in found or (
        folded == _folded(passage.name)
        and passage.node in graph
        and graph.node(passage.node).labels != ("document",)
    ):
        return passage.node
    if len(found) == 1:
        return found[0]
    id = f"concept:{re.sub(r'[^a-z0-9]+', '_', folded).strip('_')[:80] or hashlib.sha256(folded.encode()).hexdigest()[:12]}"
    nodes.setdefault(
        id,
        Node(
            id,
            (type,),
            {
                "name": " ".join(text.split()),
                "description": passage.text[:300],
                "file": passage.file,
                "line": passage.line,
            },
        ),
    )
    return id


def _folded(text: str) -> str:
    words = " ".join(text.casefold().replace("`", "").removesuffix("()").split())
    return re.sub(r"^(the|a|an|this) ", "", words)
