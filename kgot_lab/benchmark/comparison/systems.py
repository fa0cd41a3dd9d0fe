"""The compared systems by name: how each searches, how much it is shown, and how it reads the answer."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType

from kgot_lab.benchmark.questions.attempt import JSON_CALL, OneCall, plain_rag, zero_shot
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.recall.systems import shuffle_targets
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput
from kgot_lab.loop import prompts
from kgot_lab.loop.events import Event
from kgot_lab.loop.limits import PRESETS, REFERENCE, Limits
from kgot_lab.loop.modes.paths import (
    comparison,
    fetching,
    mentions,
    mode,
    question_form,
    reading,
    routes,
    values,
)
from kgot_lab.retrieval.entity_linking import follow, name_graph
from kgot_lab.retrieval.multihop.retriever import convex_hybrid
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text import words
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result, TextTool, Tool
from kgot_lab.types import LLM, Document, Json, Prompt

SingleCallWalk = Callable[[Question, LLM, Sequence[Tool]], Iterator[Event]]


@dataclass(frozen=True)
class AnswerSystem:
    """A question-answering system.

    reads: "json" (one call, today's prompt), "few" (one call, a short prompt with examples) or "loop" (a
    preset grows a graph in a store). search: "convex" (.7 embeddings + .3 BM25), "follow" (entity-linked
    expansion from there), "shuffled" (the same by shuffled links), "gold" (the sentences that contain the
    answer) or "". The first `questions` of each set are asked, or all if it is None. A `walk` answers in place
    of the loop.
    """

    reads: str
    search: str = ""
    passages: int = 0
    preset: str = ""
    store: str = ""
    questions: int | None = None
    changes: Mapping[str, Json] = field(default_factory=dict)  # limits that differ from the preset's
    walk: SingleCallWalk | None = None

    @property
    def limits(self) -> Limits:
        """The limits of its preset with its changes."""
        preset = PRESETS[self.preset] if self.preset else REFERENCE
        return preset.but(**self.changes) if self.changes else preset

    @property
    def prompt_source(self) -> str:
        """Which of `prompt_digests` its prompts come from."""
        return "paths" if self.reads == "loop" and self.preset == "paths" else self.reads

    def includes_question(self, number: int) -> bool:
        """Return whether the system is asked the question with this index, counted from 0."""
        return self.questions is None or number < self.questions

    def as_json(self) -> dict[str, Json]:
        """Convert the system to plain values, with the limits of its preset."""
        # the changes are part of the limits
        values = {name: value for name, value in asdict(self).items() if name not in ("changes", "walk")}
        return {**values, **({"limits": self.limits.as_json()} if self.preset else {})}


# the figures of this comparison were measured before answers were checked
_UNCHECKED: Mapping[str, Json] = {"check_answers": False, "wide_tokens": 320}
ANSWER_SYSTEMS: Mapping[str, AnswerSystem] = {
    "closed-book": AnswerSystem("few"),
    "long-context": AnswerSystem("few", "convex", 20, questions=20),
    "rag": AnswerSystem("json", "convex", 5),
    "rag-few": AnswerSystem("few", "convex", 5),
    "follow-few": AnswerSystem("few", "follow", 5),
    "local": AnswerSystem("loop", "convex", 8, "local", "in_memory", questions=20),
    "paths": AnswerSystem("loop", "follow", 16, "paths", "in_memory", changes=_UNCHECKED),
    "paths-fused": AnswerSystem("loop", "follow", 16, "paths", "fused", questions=20, changes=_UNCHECKED),
    "gold": AnswerSystem("few", "gold"),
}


# --- searching ---


class PassageSearches:
    """The searches over the passages of a set, with each index built once for all systems.

    Raises NotInstalled if no embedder is available.
    """

    def __init__(self, questions: QuestionSet):
        self._documents = tuple(questions.documents)
        self._by_id = {document.id: document for document in self._documents}
        self._made: dict[tuple[str, int], Tool] = {}

    def tools(self, system: AnswerSystem, question: Question) -> list[Tool]:
        """Return the search tools of a system for a question, or none if it has no search."""
        if system.search == "gold":
            return [self._gold(question)]
        if not system.search:
            return []
        key = system.search, system.passages
        if key not in self._made:
            retriever = getattr(self, f"_{system.search}")
            self._made[key] = search(self._documents, retriever, k=min(system.passages, len(self._documents)))
        return [self._made[key]]

    _convex = cached_property(lambda self: convex_hybrid(self._documents, minilm()))
    _follow = cached_property(lambda self: self._convex >> follow(self._documents, minilm()))

    @cached_property
    def _shuffled(self) -> Stage:
        graph = shuffle_targets(name_graph(self._documents))
        return self._convex >> follow(self._documents, minilm(), graph=graph)

    def _gold(self, question: Question) -> Tool:
        if not question.facts:
            lacking = f"question {question.id!r} does not say which sentences hold its answer"
            raise BadInput(f"{lacking}, so there is no ceiling to measure")
        gold = [self._by_id[id] for id in question.gold]
        found = tuple(_titled_fact(fact, gold) for fact in question.facts)
        given, arguments = Result(reading.format_passages(found), found), {"query": "the question"}
        about = "The sentences that hold the answer."
        return TextTool("gold", about, arguments, lambda query: given, finds="query")


def _titled_fact(fact: str, gold: Sequence[Document]) -> Document:
    """Convert a sentence to a document with the id and title of the gold passage that contains it."""
    source = next((document for document in gold if fact in document.text), Document("", fact))
    return Document(source.id, fact, source.title)


# --- reading ---


def _few_prompt(question: str, found: Result | None) -> Prompt:
    return reading.answer_prompt(question, reading.format_passages(found.sources) if found else "")


def _with_likelihood(call: OneCall) -> OneCall:
    """Request the log-probability of the reply, which does not change its text."""
    return replace(call, prompt=lambda text, found: replace(call.prompt(text, found), likelihood=True))


SINGLE_CALLS: Mapping[str, OneCall] = {
    "json": _with_likelihood(JSON_CALL),
    "few": _with_likelihood(OneCall(_few_prompt, reading.parse_answer)),
}


def single_call_walk(name: str, system: AnswerSystem) -> SingleCallWalk | None:
    """Return how a system answers that has a walk of its own or a single model call, or None for the loop."""
    if system.walk is not None:
        return system.walk
    way = SINGLE_CALLS.get(system.reads)
    if way is None:
        return None

    def walk(question: Question, llm: LLM, tools: Sequence[Tool]) -> Iterator[Event]:
        if not tools:
            return zero_shot(question, llm, way, name=name)
        return plain_rag(question, llm, tools[0], way, name=name)

    return walk


_PATHS_MODULES = (comparison, fetching, mentions, mode, question_form, reading, routes, values, words)


def _source_of(module: ModuleType) -> str:
    """Return the code of a module, and the texts in the file of data beside it."""
    beside = (Path(str(module.__file__)).with_suffix(suffix) for suffix in (".toml", ".txt"))
    return "".join(
        [inspect.getsource(module), *(path.read_text("utf-8") for path in beside if path.exists())]
    )


def prompt_digests() -> dict[str, str]:
    """Return a hash of the prompts of each system, which a plan stores so that they cannot change during a
    run.

    For the mode `paths` it covers the whole code, since rules choose what its prompts show.
    """
    found = Result("[1] A: b.", (Document("d", "b.", "A"),))
    forms = ("Where?", "Which is older, A or B?", "Are A and B both rivers?")  # one for each kind of examples
    texts = {}
    for name, way in SINGLE_CALLS.items():
        made = [asdict(way.prompt(question, shown)) for question in forms for shown in (found, None)]
        texts[name] = json.dumps(made)
    texts["loop"] = _source_of(prompts)
    texts["paths"] = "".join(map(_source_of, _PATHS_MODULES)) + json.dumps(question_form.EXAMPLES)
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
