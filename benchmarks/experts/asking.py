"""Asks the shipped expert on the curated graph each question, and the same model with the same persona and
playbooks without the graph.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from benchmarks.experts.gold import ExpertQuestion
from benchmarks.experts.replies import ARMS, Arm, KeptReply, keep_reply, kept_replies
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, LLMError
from kgot_lab.experts.chat.chat_events import ChatDone, ChatFailed, SourcesEvent, ThoughtEvent
from kgot_lab.experts.chat.citations import CitableNode
from kgot_lab.experts.chat.prompting import (
    PlaybookSection,
    PromptContext,
    PromptQuestion,
    expert_prompt,
    matching_sections,
)
from kgot_lab.experts.expert import ExpertConfig, expert_config
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService, shipped_configs
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.types import LLM, Message, Prompt, Reply, Usage

_EXPERT = "expert_cookbook"
_CITING = "\n\n[Citation Instructions]\n"  # where the part of a prompt begins that speaks of the graph
_PLAIN = (
    "[Instructions]\nAnswer from what you know. If something that you recommend has a limitation, say so. Where you do not know, say that "
    "you do not know."
)


@dataclass
class AskedOnce:
    """A model that notes its last prompt and what the reply cost."""

    llm: LLM
    prompt: Prompt | None = None
    usage: Usage = Usage()
    model: str = ""

    @property
    def name(self) -> str:
        return self.llm.name

    def __call__(self, prompt: Prompt) -> Reply:
        self.prompt = prompt
        reply = self.llm(prompt)
        self.usage, self.model = reply.usage, reply.model or self.name
        return reply


@dataclass
class ExpertAnswers:
    """Questions, a model, and the file that keeps its replies; `embedder` is what the expert searches with."""

    questions: Sequence[ExpertQuestion]
    llm: LLM
    path: Path
    embedder: Embedder | None = None
    clock: Callable[[], float] = field(default=time.monotonic)

    def missing(self) -> list[tuple[ExpertQuestion, Arm]]:
        """The questions and arms that are not on file; both arms of a question follow each other, so that
        what is stopped has pairs.
        """
        there = {(reply.id, reply.arm) for reply in kept_replies(self.path)}
        return [
            (question, arm) for question in self.questions for arm in ARMS if (question.id, arm) not in there
        ]

    def replies(self, minutes: float | None = None) -> Iterator[KeptReply]:
        """Ask what is missing, each as it is on file; none is begun once the minutes are over.

        Raises BadInput where the file holds replies of another model, expert or question, and LLMError where
        there is no reply: what is on file stays, and the next time goes on from there.
        """
        self._checked()
        began = self.clock()
        for question, arm in self.missing():
            if minutes is not None and self.clock() - began >= 60 * minutes:
                return
            reply = self._with_graph(question) if arm == "graph" else self._plain(question)
            keep_reply(self.path, reply)
            yield reply

    @cached_property
    def config(self) -> ExpertConfig:
        """The expert as it is shipped."""
        return shipped_cookbook()

    @cached_property
    def setting(self) -> str:
        """A hash of all that is not the question and the model: the expert, its graph, its playbooks, what it
        searches with.
        """
        known = self._office.graphs.expert_graphs(self.config).digest
        books = sorted(repr(book) for book in self._office.playbooks.values())
        told = [self.config.model_dump_json(), known, books, self.embedder.name if self.embedder else ""]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    @cached_property
    def _office(self) -> ExpertService:
        graphs = GraphFolder(None, dict.fromkeys(self.config.graphs, cookbook))
        service = ExpertService(
            open_experts(),
            graphs,
            ExpertModels({"asked": lambda: self._asked}, "asked"),
            embedder=self.embedder,
        )
        service.create(self.config.model_dump(mode="json", exclude_unset=True), id=_EXPERT)
        return service

    @cached_property
    def _asked(self) -> AskedOnce:
        return AskedOnce(self.llm)

    @cached_property
    def _by_handle(self) -> dict[str, str]:
        (name,) = self.config.graphs
        graph = self._office.graphs.graph(name)
        rows = zip(graph.ids, graph.node_properties, strict=True)
        return {CitableNode(name, id, str(known["name"]), "").handle: id for id, known in rows}

    def _with_graph(self, question: ExpertQuestion) -> KeptReply:
        """What the expert answers to somebody who never asked before, so that nothing of an earlier answer is
        remembered.
        """
        self._asked.prompt, self._asked.usage = None, Usage()  # an expert that declines asks no model
        events = list(self._office.ask(_EXPERT, f"asks {question.id}", question.question).events())
        for event in events:
            if isinstance(event, ChatFailed):
                raise LLMError(event.content)
        (sources,) = (event for event in events if isinstance(event, SourcesEvent))
        (thought,) = (event.thought for event in events if isinstance(event, ThoughtEvent))
        (done,) = (event for event in events if isinstance(event, ChatDone))
        limits = tuple(self._by_handle[handle] for handle in thought.limitations)
        ends = [edge[end] for edge in thought.edges for end in ("source", "target")]
        return self._kept(
            question,
            "graph",
            done.text,
            cited=tuple(node.id for node in done.cited),
            false=done.false,
            told=tuple(dict.fromkeys([*(node.id for node in sources.nodes), *ends, *limits])),
            limitations=limits,
            intent=thought.intent or "",
            playbooks=tuple(thought.playbooks),
        )

    def _plain(self, question: ExpertQuestion) -> KeptReply:
        """What the same model answers as the same persona, with the playbooks that the expert had, without a
        word of the graph.
        """
        intent = next(
            reply.intent
            for reply in kept_replies(self.path)
            if (reply.id, reply.arm) == (question.id, "graph")
        )
        sections = matching_sections(
            question.question, self.config.playbook_skills, self._office.playbooks, intent=intent
        )
        reply = self._asked(plain_prompt(self.config, sections, question.question))
        books = tuple(f"{section.playbook}: {section.heading}" for section in sections)
        return self._kept(question, "plain", reply.text, intent=intent, playbooks=books)

    def _kept(self, question: ExpertQuestion, arm: Arm, text: str, **more: object) -> KeptReply:
        asked, usage = self._asked, self._asked.usage
        kept = KeptReply(question.id, arm, question.question, asked.name, text, setting=self.setting, **more)  # type: ignore[arg-type]
        digest = prompt_digest(asked.prompt, asked.name) if asked.prompt else ""
        return replace(
            kept,
            prompt=digest,
            tokens=(usage.prompt_tokens, usage.completion_tokens),
            seconds=round(usage.seconds, 2),
        )

    def _checked(self) -> None:
        texts = {question.id: question.question for question in self.questions}
        for reply in kept_replies(self.path):
            if reply.model != self.llm.name:
                raise BadInput(
                    f"{self.path.name} holds replies of {reply.model}, not of {self.llm.name}: name another folder"
                )
            if reply.setting != self.setting:
                raise BadInput(
                    f"{self.path.name} holds replies of another expert, graph or playbooks: put it away, or name another folder"
                )
            if texts.get(reply.id, reply.question) != reply.question:
                raise BadInput(
                    f"{self.path.name} holds a reply to another wording of {reply.id}: put it away, or name another folder"
                )


def shipped_cookbook() -> ExpertConfig:
    """The shipped expert on the curated graph, as it is set."""
    return expert_config(dict(shipped_configs())[_EXPERT])


def plain_prompt(config: ExpertConfig, sections: Sequence[PlaybookSection], question: str) -> Prompt:
    """What a model is asked without the graph: the expert's own prompt up to what speaks of the graph, and
    the same two requests.
    """
    nothing = PromptContext((), (), (), (), "", "", "", ())
    whole = expert_prompt(config, nothing, PromptQuestion(question, sections=tuple(sections)))
    kept, _, _ = whole.messages[0].text.partition(_CITING)
    return replace(whole, messages=(Message("system", f"{kept}\n\n{_PLAIN}"), *whole.messages[1:]))
